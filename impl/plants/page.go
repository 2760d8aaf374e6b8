package plants

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// figures are what a record comes to.
type figures struct {
	plants, caught, runs, outside, model, tested int
	slowest                                      float64
	by                                           string
}

func count(all []Plant, r Record) (f figures) {
	for i := range all {
		p := &all[i]
		if p.Aid() {
			continue
		}
		f.plants++
		e := r[p.Name]
		byRun := e.Run != nil && matches(p.Want, e.Run.Property)
		if byRun || p.Tests && len(e.Tests) > 0 {
			f.caught++
		}
		if byRun {
			f.runs++
		}
		if byRun && e.outside(p) != nil {
			f.outside++
		}
		if e.Model != nil {
			f.model++
		}
		if len(e.Tests) > 0 {
			f.tested++
		}
		if e.Run != nil && e.Run.Seconds >= f.slowest {
			f.slowest, f.by = e.Run.Seconds, p.Name
		}
	}
	return f
}

// outside is the run in which something outside of the machines saw a plant; nil: none did.
func (e Entry) outside(p *Plant) *Seen {
	switch {
	case e.Oracle != nil && matches(p.Want, e.Oracle.Property):
		return e.Oracle
	case e.Run != nil && !strings.Contains(e.Run.Text, " stops: I"):
		return e.Run
	}
	return nil
}

// Closing is the line of figures.
func Closing(all []Plant, r Record) string {
	f := count(all, r)
	return fmt.Sprintf("%d planted bugs, %d caught by name, the slowest (%s) in %.1f s", f.plants, f.caught, f.by, f.slowest)
}

// Page is docs/plants.md.
func Page(all []Plant, r Record) string {
	var b strings.Builder
	f := count(all, r)
	b.WriteString(pageHead)
	fmt.Fprintf(&b, "    %s\n\n", Closing(all, r))
	fmt.Fprintf(&b, "A seeded run is refused with %d of them. With the machines' own assertions silent %d are seen by the oracle outside of them, and %d by the specification. Tests fail with %d.\n\n", f.runs, f.outside, f.model, f.tested)
	b.WriteString("| plant | it plants | cases | refused run: property, seed, steps, seconds | assertions silent | the specification | first failing test |\n| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, guard := range guardsOf(all) {
		fmt.Fprintf(&b, "| **%s** | | | | | | |\n", cell(guard))
		for i := range all {
			if p := &all[i]; p.Guard == guard {
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s | %s |\n", p.Name, cell(what(p)), strings.Join(p.Cases, " "),
					cell(runText(p, r[p.Name])), cell(silentText(p, r[p.Name])), cell(modelText(r[p.Name])), cell(testText(r[p.Name])))
			}
		}
	}
	b.WriteString("\n## What is changed\n\nNames are `package.Receiver.function`. Aids are no bugs: they take away what would hide one, and are on in the run without the plant, too.\n\n")
	for i := range all {
		p := &all[i]
		kind := ""
		if p.Aid() {
			kind = " (aid): " + p.What
		}
		fmt.Fprintf(&b, "- `%s`%s\n", p.Name, kind)
		for _, e := range p.Edits {
			fmt.Fprintf(&b, "  - `%s`: %s\n", e.In, change(e))
		}
	}
	b.WriteString("\n## The runs\n\n")
	for _, m := range Mixes() {
		fmt.Fprintf(&b, "- `%s`: %s\n", cmp.Or(m.Name, "drawn"), m.What)
	}
	b.WriteString(casesText(all))
	return b.String()
}

const pageHead = `# Planted bugs

Written by ` + "`go run ./impl/cmd/plants -write`" + `; do not edit. The public faults of ` + "`docs/`" + `'s cases, and each guard of the protocol that lives in the core,
its driver or a transport, are planted one at a time; somebody must notice, and say what is broken.

- A plant is a small change of the source (below). All of them go into one build, each behind a switch; the sources have none. A plant whose
  text does not stand in the source any more is refused.
- **Refused run**: seeded runs of the simulation, one kind of run for each plant, until one is refused for a property that the plant names
  and passes without the plant. Seeds, steps and seconds of processor time on one core are those of the whole search; the seed is pinned, and
  ` + "`go run ./impl/cmd/plants -pinned`" + ` replays it with and without the plant. *I2* and the like are invariants of docs/protocol.md, *answer* a request without an
  answer, *pages* pages that do not come back, *fidelity* a request that was told what did not happen; *stops* means that a machine stopped by its
  own assertion, before anything was read.
- **Assertions silent**: the same search with all assertions of the machines taken out, so that only what looks on from outside can see.
- **The specification**: likewise, with every step held to the specification (model/follow), which is the first to refuse one: the action, and the
  conjunct that does not hold.
- **First failing test** of each package that runs the changed code, with the plant on.
- Plants without a run have tests as their only gate; the reason stands with them.

`

// guardsOf is the guards in the order of their first plant.
func guardsOf(all []Plant) (out []string) {
	for i := range all {
		if g := all[i].Guard; g != "" && !slices.Contains(out, g) {
			out = append(out, g)
		}
	}
	return out
}

func what(p *Plant) string {
	text := p.What
	if len(p.With) > 0 {
		text += "; with " + strings.Join(p.With, ", ")
	}
	if p.Model {
		text += "; held to the specification"
	}
	if p.Why != "" {
		text += ": " + p.Why
	}
	return text
}

func runText(p *Plant, e Entry) string {
	if e.Run == nil {
		return map[bool]string{true: "", false: "none"}[p.Tests]
	}
	return fmt.Sprintf("%s in `%s`: seed %d, %d seeds, %d steps, %.2f s%s", e.Run.Property, cmp.Or(p.Mix, "drawn"), e.Run.Seed, e.Run.Seeds, e.Run.Steps, e.Run.Seconds,
		map[bool]string{true: " (stops)"}[strings.Contains(e.Run.Text, " stops: I")])
}

func silentText(p *Plant, e Entry) string {
	if e.Run == nil {
		return ""
	}
	if e.Oracle == nil {
		return "nothing"
	}
	return fmt.Sprintf("%s: %d seeds, %.2f s", e.Oracle.Property, e.Oracle.Seeds, e.Oracle.Seconds)
}

var refusedStep = regexp.MustCompile(`, \w+ of \S+: (.+): does not hold: (.+?); `)

// modelText is the action and the conjunct of a step that is none of the specification's.
func modelText(e Entry) string {
	if e.Model == nil {
		return ""
	}
	text := fmt.Sprintf("%d seeds, %.2f s", e.Model.Seeds, e.Model.Seconds)
	if m := refusedStep.FindStringSubmatch(e.Model.Text); m != nil {
		text = m[1] + ": `" + m[2] + "`, " + text
	}
	return text
}

func testText(e Entry) string {
	var all []string
	for _, t := range e.Tests {
		all = append(all, fmt.Sprintf("%s.%s", t.Suite, t.Test))
	}
	return strings.Join(all, ", ")
}

// change is an edit for people.
func change(e Edit) string {
	code := func(s string) string { return "`" + strings.Join(strings.Fields(s), " ") + "`" }
	switch e.How {
	case First:
		return code(e.Old) + " comes only after " + code(e.New)
	case Instead, Value:
		return code(e.Old) + " " + string(e.How) + " " + code(e.New)
	}
	return code(e.Old) + " " + string(e.How)
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// casesText says which public cases have a plant.
func casesText(all []Plant) string {
	by := map[string][]string{}
	for i := range all {
		for _, c := range all[i].Cases {
			by[c] = append(by[c], all[i].Name)
		}
	}
	var b strings.Builder
	b.WriteString("\n## By public case\n\n")
	for _, c := range slices.Sorted(maps.Keys(by)) {
		fmt.Fprintf(&b, "- %s: %s\n", c, strings.Join(by[c], ", "))
	}
	return b.String()
}
