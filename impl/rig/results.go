package rig

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// Results are what test binaries said in the rig: top-level tests by outcome, and figures.
type Results struct {
	Passed, Failed, Skipped []string
	Figures                 []Figure
	Output                  map[string]string // of failed and skipped tests
}

// Figure is one measured value.
type Figure struct{ Name, Value, Unit string }

var (
	outcomeLine = regexp.MustCompile(`^\s*--- (PASS|FAIL|SKIP): (\S+) \(`)
	figureLine  = regexp.MustCompile(`^figure: (\S+) (\S+) (\S+)$`)
	verdictLine = regexp.MustCompile(`^(PASS|FAIL|ok |exit status|panic: )`)
)

// ErrNoVerdict says that a test binary ended without its closing line: it was killed, or is no test binary.
var ErrNoVerdict = errors.New("a test binary gave no verdict")

// Read adds one binary's verbose output to r. Skipped subtests count as skipped, under their full names.
func (r *Results) Read(name string, in io.Reader) error {
	if r.Output == nil {
		r.Output = map[string]string{}
	}
	verdict, current := "", ""
	said := map[string]*strings.Builder{}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		line := lines.Text()
		if m := figureLine.FindStringSubmatch(line); m != nil {
			r.Figures = append(r.Figures, Figure{m[1], m[2], m[3]})
			continue
		}
		if f := strings.Fields(line); len(f) == 3 && f[0] == "===" {
			current, _, _ = strings.Cut(f[2], "/")
			continue
		}
		if m := outcomeLine.FindStringSubmatch(line); m != nil {
			r.book(name, m[1], m[2])
		} else if m := verdictLine.FindString(line); m == "PASS" || m == "FAIL" || strings.HasPrefix(m, "panic") {
			verdict = m
		}
		if said[current] == nil {
			said[current] = &strings.Builder{}
		}
		said[current].WriteString(line + "\n")
	}
	for test, text := range said {
		r.Output[name+"."+test] = text.String()
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if verdict != "PASS" && verdict != "FAIL" {
		return fmt.Errorf("%w: %s (last running: %s)\n%s", ErrNoVerdict, name, current, tail(r.Output[name+"."+current]))
	}
	return nil
}

func tail(s string) string { return s[max(0, len(s)-4000):] }

func (r *Results) book(name, outcome, test string) {
	full := name + "." + test
	switch sub := strings.Contains(test, "/"); {
	case outcome == "SKIP":
		r.Skipped = append(r.Skipped, full)
	case sub:
	case outcome == "PASS":
		r.Passed = append(r.Passed, full)
	default:
		r.Failed = append(r.Failed, full)
	}
}

// Judge is nil when something passed, nothing failed, and nothing was skipped: in a machine made for these tests a skip is a check that was not made.
func (r *Results) Judge() error {
	switch {
	case len(r.Failed) > 0:
		return fmt.Errorf("failed: %s", strings.Join(r.Failed, ", "))
	case len(r.Skipped) > 0:
		return fmt.Errorf("skipped, where nothing may be: %s", strings.Join(r.Skipped, ", "))
	case len(r.Passed) == 0:
		return errors.New("no test was run")
	}
	return nil
}
