package mutants

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
)

// Layers are the parts of the record, in the order of the page.
func Layers() []string { return []string{"model", "proof", "core"} }

// Entry is what the record keeps of one mutant.
type Entry struct {
	Name string // group, "/", kind, ": ", text
	Hash string // of the group: a function of the core, an action of the specification
	Verdict
}

// Group is the function or action of a mutant.
func Group(name string) string {
	group, _, _ := strings.Cut(name, "/")
	return group
}

// KindOf is the kind of a mutant, which is part of its name.
func KindOf(name string) Kind {
	_, rest, _ := strings.Cut(name, "/")
	kind, _, _ := strings.Cut(rest, ":")
	return Kind(kind)
}

// Record is the result of a whole run: by layer and name. An entry is good as long as the text of its group stands, whatever else
// changes.
type Record struct {
	Entries map[string]map[string]Entry
	Tests   map[string]string // hashes of the tests of the core that killed something
}

// group is how a function or action stands in the file: its hash, and what became of each mutant. The value is who killed it and how, or
// survives.
type group struct {
	Hash    string            `json:"hash"`
	Mutants map[string]string `json:"mutants"`
}

const (
	survives = "survives"
	unseen   = "survives, nothing comes by"
	howMark  = " | "
)

// ReadRecord reads a record; a file that is not there is an empty one.
func ReadRecord(path string) (*Record, error) {
	r := &Record{Entries: map[string]map[string]Entry{}, Tests: map[string]string{}}
	for _, l := range Layers() {
		r.Entries[l] = map[string]Entry{}
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	var file struct {
		Tests  map[string]string           `json:"tests"`
		Layers map[string]map[string]group `json:"layers"`
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	maps.Copy(r.Tests, file.Tests)
	for layer, groups := range file.Layers {
		if r.Entries[layer] == nil {
			return nil, fmt.Errorf("%s: no layer %q", path, layer)
		}
		for name, g := range groups {
			for m, what := range g.Mutants {
				e := Entry{Name: name + "/" + m, Hash: g.Hash, Verdict: verdictOf(what)}
				e.Test = r.Tests[e.Killed]
				r.Entries[layer][e.Name] = e
			}
		}
	}
	return r, nil
}

func verdictOf(what string) Verdict {
	switch what {
	case survives:
		return Verdict{Seen: true}
	case unseen:
		return Verdict{}
	}
	killed, how, _ := strings.Cut(what, howMark)
	return Verdict{Killed: killed, How: how, Seen: true}
}

func (v Verdict) word() string {
	switch {
	case v.Killed == "" && v.Seen:
		return survives
	case v.Killed == "":
		return unseen
	case v.How == "":
		return v.Killed
	}
	return v.Killed + howMark + v.How
}

// Write writes the record in order of names. Of a group whose entries have several hashes those of fresh stay.
func (r *Record) Write(path string, fresh map[string]map[string]string) error {
	layers, tests := map[string]map[string]group{}, map[string]string{}
	for layer, entries := range r.Entries {
		layers[layer] = map[string]group{}
		for _, e := range entries {
			of := Group(e.Name)
			if h := fresh[layer][of]; h != "" && h != e.Hash {
				continue
			}
			g, ok := layers[layer][of]
			if !ok {
				g = group{e.Hash, map[string]string{}}
				layers[layer][of] = g
			}
			g.Mutants[e.Name[len(of)+1:]] = e.word()
			if e.Test != "" {
				tests[e.Killed] = e.Test
			}
		}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(map[string]any{"tests": tests, "layers": layers}); err != nil {
		return err
	}
	tmp := path + ".new"
	if err := os.WriteFile(tmp, b.Bytes(), 0o644); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

// Keep puts an entry into the record.
func (r *Record) Keep(layer string, e Entry) { r.Entries[layer][e.Name] = e }

// Stale is the names of the tasks that the record does not have or has of another text, and of those whose killing test has changed
// since (tests: hashes of the tests by name; nil does not ask).
func (r *Record) Stale(layer string, tasks []Task, tests map[string]string) (out []Task) {
	for _, t := range tasks {
		e, ok := r.Entries[layer][t.Name]
		if !ok || e.Hash != t.Hash || tests != nil && e.Test != "" && tests[e.Killed] != e.Test {
			out = append(out, t)
		}
	}
	return out
}

// Prune drops entries of mutants that do not exist any more, and says how many.
func (r *Record) Prune(layer string, tasks []Task) (dropped int) {
	has := map[string]bool{}
	for _, t := range tasks {
		has[t.Name] = true
	}
	for _, name := range slices.Collect(maps.Keys(r.Entries[layer])) {
		if !has[name] {
			delete(r.Entries[layer], name)
			dropped++
		}
	}
	return dropped
}
