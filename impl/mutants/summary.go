package mutants

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Sorted is the entries of a layer by name.
func (r *Record) Sorted(layer string) []Entry {
	return slices.SortedFunc(maps.Values(r.Entries[layer]), func(a, b Entry) int { return cmp.Compare(a.Name, b.Name) })
}

// Tally is how many mutants there are and who killed them. The first column that kills one counts: property, graph, proof, test,
// difference.
type Tally struct {
	Mutants, Property, Graph, Proof, Test, Difference, Survivors int
}

// Killed is all that do not survive.
func (t Tally) Killed() int { return t.Mutants - t.Survivors }

func (t *Tally) add(e Entry, proof Entry) {
	t.Mutants++
	switch {
	case strings.HasPrefix(e.Killed, "property "):
		t.Property++
	case e.Killed == "graph":
		t.Graph++
	case strings.HasPrefix(e.Killed, "difference "):
		t.Difference++
	case e.Killed != "":
		t.Test++
	case proof.Killed != "":
		t.Proof++
	default:
		t.Survivors++
	}
}

// TallyOf counts the mutants of a layer that keep says.
func (r *Record) TallyOf(layer string, keep func(Entry) bool) (t Tally) {
	for _, e := range r.Entries[layer] {
		if keep(e) {
			t.add(e, r.proofOf(layer, e.Name))
		}
	}
	return t
}

func (r *Record) proofOf(layer, name string) Entry {
	if layer == "model" {
		return r.Entries["proof"][name]
	}
	return Entry{}
}

// Closing is the last line of figures. A conjunct of the specification counts once, whether the model or the proof kills it; graph
// counts the runs of the core that differ, too.
func (r *Record) Closing(explained map[string]string) string {
	all := func(Entry) bool { return true }
	m, c := r.TallyOf("model", all), r.TallyOf("core", all)
	reasons := 0
	for _, layer := range []string{"model", "core"} {
		for _, e := range r.Survivors(layer) {
			if explained[e.Name] != "" {
				reasons++
			}
		}
	}
	line := fmt.Sprintf("mutants %d killed of %d (property %d, graph %d, proof %d, test %d), %d survivors with reasons",
		m.Killed()+c.Killed(), m.Mutants+c.Mutants, m.Property, m.Graph+c.Difference, m.Proof, c.Test, reasons)
	if left := m.Survivors + c.Survivors - reasons; left > 0 {
		line += fmt.Sprintf(", %d without", left)
	}
	return line
}
