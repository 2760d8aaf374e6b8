package main

import (
	"fmt"
	"io"
	"slices"
)

// skip is a check that did not run, with its reason.
type skip struct{ Name, Reason string }

// failure is a check that failed.
type failure struct{ name, why string }

// result is what one part found.
type result struct {
	part     string
	passed   int
	failures []failure
	skips    []skip
	figures  []string // closing lines of commands
	seconds  float64
	cached   bool
}

func (r *result) fail(name, why string, out io.Writer) {
	r.failures = append(r.failures, failure{name, why})
	fmt.Fprintf(out, "FAIL %s %s\n", name, why)
}

// report is the results of a run in order.
type report struct{ results []result }

func (r *report) add(x result) { r.results = append(r.results, x) }

func (r *report) sum() (s result) {
	for _, x := range r.results {
		s.passed += x.passed
		s.failures = append(s.failures, x.failures...)
		s.skips = append(s.skips, x.skips...)
		s.seconds += x.seconds
	}
	return s
}

func (r *report) failedParts() (names []string) {
	for _, x := range r.results {
		if len(x.failures) > 0 {
			names = append(names, x.part)
		}
	}
	return names
}

// print writes skips, failures, the table and the closing line, which is the last.
func (r *report) print(out io.Writer) {
	all := r.sum()
	fmt.Fprintln(out)
	for _, s := range all.skips {
		fmt.Fprintf(out, "skipped %s: %s\n", s.Name, s.Reason)
	}
	for _, f := range all.failures {
		fmt.Fprintf(out, "failed %s: %s\n", f.name, f.why)
	}
	fmt.Fprintf(out, "\n%-12s %9s %6s %7s %7s %7s\n", "part", "seconds", "share", "passed", "failed", "skipped")
	for _, x := range slices.Concat(r.results, []result{{part: "all", passed: all.passed, failures: all.failures, skips: all.skips, seconds: all.seconds}}) {
		note := ""
		if x.cached {
			note = "  (unchanged since it passed)"
		}
		fmt.Fprintf(out, "%-12s %9.1f %5.0f%% %7d %7d %7d%s\n", x.part, x.seconds, 100*x.seconds/max(all.seconds, 1e-9), x.passed, len(x.failures), len(x.skips), note)
	}
	fmt.Fprintf(out, "%d passed, %d failed, %d skipped\n", all.passed, len(all.failures), len(all.skips))
}
