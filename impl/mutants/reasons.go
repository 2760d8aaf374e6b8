package mutants

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
)

// ErrReasons is what is said of reasons that do not fit the record.
var ErrReasons = errors.New("reasons do not fit")

// Reason says why mutants survive. It names them, or all of one kind, or all of a function whose every mutant is of this sort. The file
// is a list of them.
type Reason struct {
	Layer   string   `json:"layer"` // model or core
	Reason  string   `json:"reason"`
	Kind    Kind     `json:"kind,omitempty"`
	Groups  []string `json:"groups,omitempty"`
	Mutants []string `json:"mutants,omitempty"`
}

// ReadReasons reads the file of reasons.
func ReadReasons(path string) ([]Reason, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var out []Reason
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&out); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return out, nil
}

func (r *Reason) covers(e Entry) bool {
	return slices.Contains(r.Mutants, e.Name) || r.Kind != "" && r.Kind == KindOf(e.Name) || slices.Contains(r.Groups, Group(e.Name))
}

// Explain gives each survivor its reason. It refuses a mutant named that does not survive, a kind or group without a survivor, an empty
// reason, and a survivor with two.
func Explain(r *Record, reasons []Reason) (map[string]string, error) {
	out := map[string]string{}
	var bad []error
	for i := range reasons {
		x := &reasons[i]
		survivors := map[string]bool{}
		for _, e := range r.Survivors(x.Layer) {
			survivors[e.Name] = true
			if !x.covers(e) {
				continue
			}
			if out[e.Name] != "" && slices.Contains(x.Mutants, e.Name) {
				bad = append(bad, fmt.Errorf("%w: %s has two reasons", ErrReasons, e.Name))
			}
			if out[e.Name] == "" {
				out[e.Name] = x.Reason
			}
		}
		if x.Reason == "" || x.Layer != "model" && x.Layer != "core" {
			bad = append(bad, fmt.Errorf("%w: reason %d is empty or of no layer", ErrReasons, i))
		}
		for _, m := range x.Mutants {
			if !survivors[m] {
				bad = append(bad, fmt.Errorf("%w: %s has a reason and does not survive", ErrReasons, m))
			}
		}
		for _, g := range x.Groups {
			if !slices.ContainsFunc(r.Survivors(x.Layer), func(e Entry) bool { return Group(e.Name) == g }) {
				bad = append(bad, fmt.Errorf("%w: %s has a reason and no survivor", ErrReasons, g))
			}
		}
	}
	return out, errors.Join(bad...)
}

// Survivors are the mutants of a layer that nothing kills, by name. A conjunct of the specification survives only where the proof does
// without it, too.
func (r *Record) Survivors(layer string) (out []Entry) {
	for _, e := range r.Sorted(layer) {
		if e.Killed == "" && (layer != "model" || r.Entries["proof"][e.Name].Killed == "") {
			out = append(out, e)
		}
	}
	return out
}
