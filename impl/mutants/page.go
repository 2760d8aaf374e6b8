package mutants

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Page is docs/mutants.md.
func Page(r *Record, explained map[string]string, guards []GuardRow) string {
	var b strings.Builder
	b.WriteString(head)
	fmt.Fprintf(&b, "\n    %s\n\n", r.Closing(explained))
	b.WriteString("| layer | dropped | mutants | property | graph | proof alone | test | runs differ | survive |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, layer := range []string{"model", "core"} {
		name := map[string]string{"model": "TLA+ and model", "core": "core"}[layer]
		for _, k := range []Kind{Guard, Operand, Update, Assertion} {
			if t := r.TallyOf(layer, func(e Entry) bool { return KindOf(e.Name) == k }); t.Mutants > 0 {
				fmt.Fprintf(&b, "| %s | %s | %s |\n", name, k, t.cells())
			}
		}
	}
	proof := r.TallyOf("proof", func(Entry) bool { return true })
	fmt.Fprintf(&b, "\nThe proof by itself: of %d conjuncts of actions that can happen it needs %d.\n", proof.Mutants, proof.Killed())
	b.WriteString("\n## Guards of the design page\n\n" + guardsHead)
	for _, g := range guards {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", g.Guard, g.Switch, g.TLC, g.Model, g.Proof, g.Core)
	}
	b.WriteString("\n## Conjuncts of TLA/Transfer.tla\n\nThe same conjunct dropped in the text's twin (`model/`) and in its obligations (`proofs/`).\n")
	specTable(&b, r, explained)
	b.WriteString("\n## Functions of the core\n\n| function | mutants | test | runs differ | survive |\n| --- | --- | --- | --- | --- |\n")
	groups := map[string]*Tally{}
	for _, e := range r.Entries["core"] {
		g := Group(e.Name)
		if groups[g] == nil {
			groups[g] = &Tally{}
		}
		groups[g].add(e, Entry{})
	}
	for _, g := range slices.Sorted(maps.Keys(groups)) {
		t := groups[g]
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d |\n", g, t.Mutants, t.Test, t.Difference, t.Survivors)
	}
	b.WriteString("\n## Survivors of the core\n")
	survivorsByReason(&b, r, explained)
	return b.String()
}

func (t Tally) cells() string {
	return fmt.Sprintf("%d | %d | %d | %d | %d | %d | %d", t.Mutants, t.Property, t.Graph, t.Proof, t.Test, t.Difference, t.Survivors)
}

func specTable(b *strings.Builder, r *Record, explained map[string]string) {
	last := ""
	for _, e := range r.Sorted("model") {
		action := Group(e.Name)
		if action != last {
			fmt.Fprintf(b, "\n### %s\n\n| dropped | model | proof |\n| --- | --- | --- |\n", action)
			last = action
		}
		proof, model := r.Entries["proof"][e.Name], e.Killed
		p := strings.TrimPrefix(proof.Killed, "proof ")
		switch {
		case proof.Name == "":
			p = "the action cannot happen"
		case p == "":
			p = "does without it"
		default:
			p = fmt.Sprintf("%s %s", p, proof.How)
		}
		if model == "" {
			if model = explained[e.Name]; model == "" {
				model = "the same graph"
			}
		} else {
			model += ": " + e.How
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", cell(e.Name[len(action)+1:]), cell(model), cell(p))
	}
}

func survivorsByReason(b *strings.Builder, r *Record, explained map[string]string) {
	byReason := map[string][]string{}
	for _, e := range r.Survivors("core") {
		byReason[explained[e.Name]] = append(byReason[explained[e.Name]], e.Name)
	}
	for _, why := range slices.Sorted(maps.Keys(byReason)) {
		title := why
		if title == "" {
			title = "**Without a reason**"
		}
		fmt.Fprintf(b, "\n%s (%d)\n\n", title, len(byReason[why]))
		for _, name := range byReason[why] {
			fmt.Fprintf(b, "- `%s`\n", name)
		}
	}
}

// cell is text for a table.
func cell(s string) string { return strings.ReplaceAll(s, "|", "\\|") }

const head = `# Mutants

Written by ` + "`make mutants ARGS='-all -write'`" + `; do not edit. Each guard and each update is dropped, one at a time, and somebody must notice.

- **TLA+ and model**: a conjunct without primes is left out, or the variables of a conjunct with primes stay as they are. The twin in
  ` + "`model/`" + ` is explored without it in small configurations (prevention guards on, detection off, plants with detection on): a property breaks,
  else the graph differs in states, edges or depth, else it survives. The twin's graph equals TLC's, with conjuncts dropped too
  (` + "`impl/cmd/model`" + `), so that this column is TLC's as well.
- **Proof**: the same conjunct left out of the obligations of its action; z3 refutes one (a step from a state of the invariant), or does not
  prove it any more within the limit that the whole action needs. What the proof does without is often an enabling guard: safety does not ask for it.
- **Core**: a condition (a refusal that never refuses, a condition of an update that always holds), one operand of it, or one statement that changes
  state or sends, in ` + "`impl/pages` and `impl/core`" + `. One build with a switch at each (tag ` + "`mutants`" + `, an overlay of ` + "`go build`" + `; the sources have
  none); the tests of pages, core and sim that come by the place are run with it off, the slow ones left out. What no test kills may still
  differ: seeded runs under faults and garbled events, in which everything that the machines say is hashed, are compared with the unchanged core's.
  "Nothing comes by" means that no test and no such run reaches the place with a value for which the switch matters. Configuration,
  constructors, status and the ledgers' own checkers are left out: they are no part of a machine at work.
- In the line of figures a mutant counts once, by the first of property, graph, proof, test; graph counts the runs of the core that differ, too.
- **Reasons** for survivors of the core are given by what is dropped and read over; they are arguments, not proofs.
`

const guardsHead = `Dropped by a switch of the specification, by the same switch of the model, in the obligations (` + "`proofs/transfer.json`" + `), and in the core at every
place where the guard lives there. Each must be killed: by the property named, by the test named.

| guard | switch | TLC | model | proof | core: place and killing test |
| --- | --- | --- | --- | --- | --- |
`
