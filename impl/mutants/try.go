package mutants

import (
	"cmp"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// slow is a test that is not asked.
const slow = 150 * time.Millisecond

// Verdict is what became of a mutant.
type Verdict struct {
	Killed string // suite.Test, "property P", "graph" or "proof Action.Conjunct"; "" if it survives
	How    string // for people
	Seen   bool   // some test comes by this place, some field has this action
	Test   string // hash of the killing test's text
}

// batch is tests of one suite that are run together.
type batch struct {
	suite suite
	tests []string
	cpu   time.Duration
}

// plan is the tests that come by a site: quick ones, then differences; those of its own package first. Slow tests are not asked: a whole
// run would take hours, and what they would kill differs.
func (l *Lab) plan(n int) (out []batch) {
	own := strings.SplitN(l.Sites[n].Name, ".", 2)[0]
	suites := slices.Clone(l.suites)
	slices.SortStableFunc(suites, func(a, b suite) int {
		if (a.name == own) != (b.name == own) {
			return map[bool]int{true: -1, false: 1}[a.name == own]
		}
		return 0
	})
	for rank := range 2 {
		for _, s := range suites {
			b := batch{suite: s}
			var tests []ran
			for _, t := range l.Tests {
				if _, ok := slices.BinarySearch(t.Seen, n); ok && t.Suite == s.name && t.rank() == rank {
					tests = append(tests, t)
				}
			}
			slices.SortStableFunc(tests, func(a, b ran) int { return cmp.Compare(a.CPU, b.CPU) })
			for _, t := range tests {
				b.tests = append(b.tests, t.Test)
				b.cpu += t.CPU
			}
			if len(b.tests) > 0 {
				out = append(out, b)
			}
		}
	}
	return out
}

// rank is when a test is asked.
func (t ran) rank() int {
	switch {
	case isDifference(t.Test):
		return 1
	case t.CPU > slow:
		return 2
	}
	return 0
}

// Try switches one site off and runs every test that comes by it until one fails.
func (l *Lab) Try(ctx context.Context, n int) (Verdict, error) {
	plan := l.plan(n)
	v := Verdict{Seen: len(plan) > 0}
	for _, b := range plan {
		seconds := 3 + 3*int(b.cpu/time.Second+1)
		r := l.exec(ctx, b.suite, b.tests, n, seconds, "")
		if err := ctx.Err(); err != nil {
			return v, err
		}
		if !r.failed {
			continue
		}
		if r.test == "" {
			return v, fmt.Errorf("%s with %q off: %s", b.suite.name, l.Sites[n].Name, r.out)
		}
		v.Killed = b.suite.name + "." + r.test
		if v.Test = l.byTest[v.Killed]; r.how != "fails" {
			v.How = r.how
		}
		if isDifference(r.test) {
			v.Killed, v.How = "difference "+b.suite.name, strings.TrimPrefix(r.test, differencePrefix)
		}
		return v, nil
	}
	return v, nil
}

// TestHashes are the hashes of the test functions that may kill, by suite.Test.
func (l *Lab) TestHashes() map[string]string { return l.byTest }

// testHashes are the hashes of all test functions of the suites, by suite.Test.
func testHashes(root string) (map[string]string, error) {
	out := map[string]string{}
	for _, s := range suitesOf() {
		paths, err := filepath.Glob(filepath.Join(root, s.dir, "*_test.go"))
		if err != nil {
			return nil, err
		}
		for _, p := range paths {
			f, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			for _, d := range f.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok || fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "Test") {
					continue
				}
				if out[s.name+"."+fn.Name.Name], err = textHash(fn); err != nil {
					return nil, err
				}
			}
		}
	}
	return out, nil
}
