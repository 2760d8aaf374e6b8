package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"kvfence/proofs/tla2smt"
)

// figures is what a whole run is about. They stand beside the settings, NAME.figures.json, and a run that asks more or less than they
// say fails: an obligation that is gone is not a proof. docs/checked.md tells them.
type figures struct {
	Obligations int `json:"obligations"` // to be proved, each by every solver
	Promise     int `json:"promise"`     // of them of the refinement to Isolation
	Frame       int `json:"frame"`       // true because nothing in them changes
	Actions     int `json:"actions"`     // of the specification
	Properties  int `json:"properties"`  // promised of states and steps
	Guards      int `json:"guards"`      // switches whose absence must be refuted
}

func figuresOf(set *settings, obligations []tla2smt.Obligation, frame, count int) figures {
	f := figures{Obligations: count, Frame: frame, Properties: len(set.Properties), Guards: len(set.Guards),
		Actions: len(tla2smt.ActionNames(obligations))}
	for i := range obligations {
		if o := &obligations[i]; !o.Frame && strings.HasPrefix(o.Conjunct, "Promise!") {
			f.Promise++
		}
	}
	return f
}

func figuresFile(settings string) string {
	return strings.TrimSuffix(settings, ".json") + ".figures.json"
}

// compare fails where the file says otherwise; write makes it say so. Settings without the file, of tests, have nothing to compare.
func (f figures) compare(path string, write bool) error {
	if write {
		raw, err := json.MarshalIndent(f, "", "  ")
		if err != nil {
			return err
		}
		return os.WriteFile(path, append(raw, '\n'), 0o644)
	}
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var want figures
	if err := json.Unmarshal(raw, &want); err != nil {
		return fmt.Errorf("%w: %s: %w", errSettings, path, err)
	}
	if want != f {
		return fmt.Errorf("%w: %+v in this run, %+v in %s; -write records a run", errFailed, f, want, path)
	}
	return nil
}
