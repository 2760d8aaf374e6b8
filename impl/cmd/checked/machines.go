package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"kvfence/impl/mutants"
)

// equality is what this page needs of TLA/equality.json.
type equality struct {
	Settings, Mutants []struct {
		Name          string
		Long          bool
		States, Edges int
	}
}

// figures is proofs/transfer.figures.json.
type figures struct{ Obligations, Promise, Frame, Actions, Properties, Guards int }

func readJSON(root, path string, into any) error {
	raw, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%w: %s: %w", errPage, path, err)
	}
	return nil
}

// machines is what the twin, the solvers, Coq and the mutants come to, from the files that their commands record and compare.
func (w *writer) machines(root string) error {
	var e equality
	var f figures
	if err := readJSON(root, "TLA/equality.json", &e); err != nil {
		return err
	}
	if err := readJSON(root, "proofs/transfer.figures.json", &f); err != nil {
		return err
	}
	w.line("## One text, four readers\n")
	w.line("`make model` walks the state graph of the twin in `model/` and compares it with TLC's: states and steps (from, action, to), as sets, both ways.")
	w.line("The figures are pinned in `TLA/equality.json`.\n")
	w.line("| setting | states | edges |\n| --- | --- | --- |")
	states, edges, later := 0, 0, 0
	for _, s := range e.Settings {
		if s.States == 0 {
			later++
			continue
		}
		long := ""
		if s.Long {
			long = " (long: `make test-long`)"
		}
		w.line("| `%s`%s | %d | %d |", s.Name, long, s.States, s.Edges)
		states, edges = states+s.States, edges+s.Edges
	}
	w.line("\n%d settings, %d states, %d edges equal; so are the graphs of %d mutants, with a guard off or a conjunct dropped on both sides.",
		len(e.Settings)-later, states, edges, len(e.Mutants))
	if later > 0 {
		w.line("%d settings more are listed for `make test-long`, without a recorded run.", later)
	}
	w.line("")
	w.line("`make proofs`: %d obligations for any size, each by z3 and by cvc5, %d of them that Transfer keeps the promise of Isolation; %d more are true because",
		f.Obligations, f.Promise, f.Frame)
	w.line("nothing in them changes. %d actions, %d properties; without any of %d guards and guarantees an obligation is refuted. On top the theorem in `proofs/coq`,",
		f.Actions, f.Properties, f.Guards)
	w.line("without axioms; the graph of its instance is compared with TLC's. What is not proved: [proofs/README.md](../proofs/README.md).\n")
	record, err := mutants.ReadRecord(filepath.Join(root, "impl/mutants/record.json"))
	if err != nil {
		return err
	}
	reasons, err := mutants.ReadReasons(filepath.Join(root, "impl/mutants/reasons.json"))
	if err != nil {
		return err
	}
	explained, err := mutants.Explain(record, reasons)
	if err != nil {
		return err
	}
	w.line("`make mutants`, last whole run: %s. The table: [mutants.md](mutants.md). Counterexamples of guards that are off, step by step:", record.Closing(explained))
	w.line("[counterexamples](counterexamples/README.md).\n")
	return nil
}
