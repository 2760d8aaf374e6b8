package main

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"
)

// writer collects the page.
type writer struct{ bytes.Buffer }

func (w *writer) line(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }

// pageOf builds the page from what stands under root.
func pageOf(root string) ([]byte, error) {
	cases, err := publicCases()
	if err != nil {
		return nil, err
	}
	t, err := scan(root)
	if err != nil {
		return nil, err
	}
	tests, err := t.byCase(cases)
	if err != nil {
		return nil, err
	}
	m, err := readManifest(root)
	if err != nil {
		return nil, err
	}
	w := &writer{}
	w.line("# What is checked\n")
	w.line("Written by `make docs` from the sources (`impl/cmd/checked`); a test fails when it is stale. It says which checks there are; `make test`")
	w.line("says whether they pass. How the layers work together: [how-it-is-checked.md](how-it-is-checked.md).\n")
	w.cases(cases, tests)
	w.specifications(m)
	if err := w.machines(root); err != nil {
		return nil, err
	}
	w.assertions(t.asserted)
	w.packages(t.tests)
	w.fuzz(t.tests)
	return w.Bytes(), w.long(root)
}

func (w *writer) cases(cases []publicCase, tests map[string][]test) {
	w.line("## Public faults\n")
	w.line("Faults that were reported of systems that do this job today. Kind (a): two engines and injected faults are enough to show it;")
	w.line("(b): needs a real serving engine or its hardware; (c): operational. The tests are of the whole kind of fault, not of the one example.\n")
	w.line("| case | kind | public reports | tests | limits |\n| --- | --- | --- | --- | --- |")
	var missing []string
	for _, c := range cases {
		var list []string
		for _, x := range tests[c.ID] {
			list = append(list, fmt.Sprintf("[`%s`](../%s)", strings.TrimPrefix(x.name, "Test"), x.file))
		}
		if len(list) == 0 {
			missing = append(missing, c.ID)
			list = []string{"none"}
		}
		w.line("| %s %s | %s | %s | %s | %s |", c.ID, c.Title, c.Kind, c.Report, strings.Join(list, "<br>"), c.Note)
	}
	if len(missing) == 0 {
		w.line("\nEach of the %d cases has a test.\n", len(cases))
	} else {
		w.line("\nWithout a test: %s.\n", strings.Join(missing, ", "))
	}
}

func (w *writer) specifications(m manifest) {
	w.line("## Specification\n")
	w.line("Runs of the model checker TLC over `TLA/`, from `TLA/manifest.json`; `make spec` repeats them and compares. Names: `off-` a guard is turned")
	w.line("off and the property named must break; `plant-` a fault of the world is planted; `reach-` a situation must be reachable, so the run must find")
	w.line("it (its \"violation\" is the finding); all others run the whole protocol within bounds and must find nothing.\n")
	w.line("| configuration | says | must come out |\n| --- | --- | --- |")
	for _, c := range m.Configurations {
		e := c.Expect
		var out string
		switch {
		case e.Result == "violated" && e.Violated == "?":
			out = "a violation"
		case e.Result == "violated":
			out = fmt.Sprintf("`%s` breaks", e.Violated)
			if e.Trace > 0 {
				out += fmt.Sprintf(" in %d states", e.Trace)
			}
		case c.Simulate != "":
			out = "nothing found in random runs"
		default:
			out = "nothing found"
			if e.Distinct > 0 {
				out += fmt.Sprintf(": %d states, depth %d", e.Distinct, e.Depth)
			}
		}
		if c.Long {
			out += " (long: `make test-long`)"
		}
		w.line("| %s `%s` | %s | %s |", c.Module, c.Name, c.About, out)
	}
	w.line("\n%d configurations.\n", len(m.Configurations))
}

func (w *writer) assertions(asserted map[int][]string) {
	w.line("## Assertions that stay on\n")
	w.line("Production code that stops the node when a numbered invariant ([spec/invariants.md](../spec/invariants.md)) does not hold. The others are refused")
	w.line("by construction, or found by tags and digests; that table says how.\n")
	w.line("| invariant | asserted in |\n| --- | --- |")
	numbers := make([]int, 0, len(asserted))
	for n := range asserted {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	for _, n := range numbers {
		var files []string
		for _, f := range asserted[n] {
			files = append(files, fmt.Sprintf("[%s](../%s)", f, f))
		}
		slices.Sort(files)
		w.line("| I%d | %s |", n, strings.Join(files, ", "))
	}
	w.line("")
}

// counts of one folder's tests.
type counts struct{ tests, properties, cases, fuzz, chaos int }

func (w *writer) packages(tests []test) {
	w.line("## Tests by package\n")
	w.line("Test functions (most have many rows or drawn cases). Property tests draw their cases and print the seed of a failure; chaos tests run")
	w.line("separate processes of the real program.\n")
	w.line("| package | tests | of them property tests | for a public case | chaos | fuzz targets |\n| --- | --- | --- | --- | --- | --- |")
	by := map[string]*counts{}
	var all counts
	for _, x := range tests {
		dir := path.Dir(x.file)
		if by[dir] == nil {
			by[dir] = &counts{}
		}
		for _, c := range []*counts{by[dir], &all} {
			c.add(x)
		}
	}
	dirs := make([]string, 0, len(by))
	for d := range by {
		dirs = append(dirs, d)
	}
	slices.Sort(dirs)
	for _, d := range dirs {
		name := d
		if d == "." {
			name = "rules of the repository"
		}
		w.counts(name, *by[d])
	}
	w.counts("all", all)
	w.line("")
}

func (c *counts) add(x test) {
	if strings.HasPrefix(x.name, "Fuzz") {
		c.fuzz++
		return
	}
	c.tests++
	for _, k := range []struct {
		is bool
		n  *int
	}{{x.property, &c.properties}, {casePattern.MatchString(x.name), &c.cases}, {x.chaos, &c.chaos}} {
		if k.is {
			*k.n++
		}
	}
}

func (w *writer) counts(name string, c counts) {
	w.line("| %s | %d | %d | %d | %d | %d |", name, c.tests, c.properties, c.cases, c.chaos, c.fuzz)
}

func (w *writer) fuzz(tests []test) {
	w.line("## Fuzz targets\n")
	w.line("Bytes from outside must give a listed error or be understood, never a crash. `make test` runs each for seconds, `make test-long` for minutes.\n")
	w.line("| target | file |\n| --- | --- |")
	for _, x := range tests {
		if strings.HasPrefix(x.name, "Fuzz") {
			w.line("| `%s` | [%s](../%s) |", x.name, x.file, x.file)
		}
	}
}
