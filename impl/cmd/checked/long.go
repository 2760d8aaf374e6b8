package main

import (
	"errors"
	"io/fs"
	"strings"
)

// long is the last run of each part of make test-long, as impl/cmd/parts recorded it. A part without a row was never run.
func (w *writer) long(root string) error {
	var runs []struct {
		Part, Commit, Date, Machine string
		Seconds                     float64
		Passed, Failed, Skipped     int
		Figures                     []string
	}
	if err := readJSON(root, "docs/long.json", &runs); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	w.line("## Long runs\n")
	w.line("What `make test-long` (or one of its parts: `make test-long PART=sim`) came to the last time, kept in `docs/long.json`. A part that is not here has not been run.\n")
	w.line("| part | commit | date | machine | seconds | passed | failed | left out | closing lines |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	for _, r := range runs {
		w.line("| %s | %s | %s | %s | %.0f | %d | %d | %d | %s |", r.Part, r.Commit, r.Date, r.Machine, r.Seconds, r.Passed, r.Failed, r.Skipped,
			strings.ReplaceAll(strings.Join(r.Figures, "; "), "|", "\\|"))
	}
	return nil
}
