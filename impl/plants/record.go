package plants

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
)

// ErrRecord is wrapped by everything that is not as recorded.
var ErrRecord = errors.New("record of the planted bugs")

// Entry is what is kept of one plant.
type Entry struct {
	Name   string `json:"name"`
	Text   string `json:"text_hash"`        // of the plant: its edits, mix and properties
	Run    *Seen  `json:"run,omitempty"`    // the run that catches it; nil: none does
	Oracle *Seen  `json:"oracle,omitempty"` // likewise, with the machines' own assertions silent
	Model  *Seen  `json:"model,omitempty"`  // likewise, held to the specification step by step, which refuses first
	Tests  []Test `json:"tests,omitempty"`  // what the packages' own tests see, by suite
}

// Seen is a pinned run.
type Seen struct {
	Seed     uint64  `json:"seed"`
	Seeds    int     `json:"seeds"` // until it was found
	Steps    int     `json:"steps"`
	Seconds  float64 `json:"seconds"`
	Property string  `json:"property"`
	Text     string  `json:"text"`
}

// Test is the first test of a suite that fails.
type Test struct {
	Suite   string  `json:"suite"`
	Test    string  `json:"test"`
	How     string  `json:"how"`
	Seconds float64 `json:"seconds"`
}

// Record is all entries, by name.
type Record map[string]Entry

// ReadRecord reads a record, strictly; a file that is not there is an empty one.
func ReadRecord(path string) (Record, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, nil
	}
	if err != nil {
		return nil, err
	}
	var list []Entry
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&list); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrRecord, path, err)
	}
	r := Record{}
	for _, e := range list {
		if _, twice := r[e.Name]; twice {
			return nil, fmt.Errorf("%w: %s stands twice", ErrRecord, e.Name)
		}
		r[e.Name] = e
	}
	return r, nil
}

// Write writes a record in the order of the names.
func (r Record) Write(path string) error {
	list := make([]Entry, 0, len(r))
	for _, name := range slices.Sorted(maps.Keys(r)) {
		list = append(list, r[name])
	}
	b, err := json.MarshalIndent(list, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}

// Fits refuses entries of plants that are not there, and plants that are not recorded as they are.
func (r Record) Fits(all []Plant) error {
	var bad []error
	for _, name := range slices.Sorted(maps.Keys(r)) {
		if n := Find(all, name); n < 0 || all[n].Aid() {
			bad = append(bad, fmt.Errorf("%w: there is no plant %q", ErrRecord, name))
		}
	}
	for i := range all {
		p := &all[i]
		if e, ok := r[p.Name]; !p.Aid() && (!ok || e.Text != p.hash(all)) {
			bad = append(bad, fmt.Errorf("%w: %s is not recorded as it is now", ErrRecord, p.Name))
		}
	}
	return errors.Join(bad...)
}

// Caught refuses plants that nothing catches by name.
func (r Record) Caught(all []Plant) error {
	var bad []error
	for i := range all {
		p := &all[i]
		if p.Aid() {
			continue
		}
		switch e := r[p.Name]; {
		case p.Tests && len(e.Tests) == 0:
			bad = append(bad, fmt.Errorf("%w: no test fails with %s", ErrRecord, p.Name))
		case p.Tests:
		case e.Run == nil:
			bad = append(bad, fmt.Errorf("%w: no run is refused with %s", ErrRecord, p.Name))
		case !matches(p.Want, e.Run.Property):
			bad = append(bad, fmt.Errorf("%w: %s is caught by accident, by %s: %s", ErrRecord, p.Name, e.Run.Property, e.Run.Text))
		case e.Run.Seconds > Limit:
			bad = append(bad, fmt.Errorf("%w: %s was caught after %.0f s", ErrRecord, p.Name, e.Run.Seconds))
		}
	}
	return errors.Join(bad...)
}
