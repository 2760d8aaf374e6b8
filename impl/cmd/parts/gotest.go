package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sort"
	"strings"
)

// testEvent is one line of `go test -json` (cmd/test2json).
type testEvent struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Elapsed    float64
	Output     string
}

// goTest runs `go test -json` with args and counts top-level tests.
func (e *env) goTest(args ...string) { e.goTestWith(nil, args...) }

// goTestWith is goTest with environment variables.
func (e *env) goTestWith(vars []string, args ...string) {
	c := e.start(vars, "go", append([]string{"test", "-json"}, args...)...)
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		e.book("go test", err)
		return
	}
	before := len(e.result.failures)
	err = countTests(out, e.out, e.result)
	// Wait closes the pipe: everything was read before it.
	if err = errors.Join(err, c.Wait()); err != nil && len(e.result.failures) == before {
		e.result.fail("go test "+strings.Join(args, " "), err.Error(), e.out)
	}
}

// countTests reads events, prints each package as it ends and the output of what failed, and books into r.
func countTests(in io.Reader, out io.Writer, r *result) error {
	said := map[string]*strings.Builder{} // by package and test
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var ev testEvent
		if json.Unmarshal(lines.Bytes(), &ev) != nil {
			fmt.Fprintln(out, lines.Text())
			continue
		}
		if ev.Package == "" {
			ev.Package = ev.ImportPath
		}
		key := ev.Package + " " + ev.Test
		if said[key] == nil {
			said[key] = &strings.Builder{}
		}
		switch {
		case ev.Action == "output" || ev.Action == "build-output":
			said[key].WriteString(ev.Output)
		case ev.Test != "":
			r.book(ev, said[key].String(), said, out)
		default:
			r.bookPackage(ev, said[key].String(), out)
		}
	}
	return lines.Err()
}

// book counts one test. Subtests are counted by their parents; those that skip are named all the same.
func (r *result) book(ev testEvent, output string, said map[string]*strings.Builder, out io.Writer) {
	name := ev.Package + "." + ev.Test
	top := !strings.Contains(ev.Test, "/")
	switch ev.Action {
	case "pass":
		if top {
			r.passed++
		}
	case "skip":
		r.skips = append(r.skips, skip{name, skipReason(output)})
	case "fail":
		if top {
			fmt.Fprint(out, output)
			for _, k := range under(said, ev.Package+" "+ev.Test+"/") {
				fmt.Fprint(out, said[k].String())
			}
			r.fail(name, "", out)
		}
	}
}

func under(said map[string]*strings.Builder, prefix string) (keys []string) {
	for k := range said {
		if strings.HasPrefix(k, prefix) {
			keys = append(keys, k)
		}
	}
	sort.Strings(keys)
	return keys
}

// bookPackage prints one line for a package that ended and books one that failed without a failing test.
func (r *result) bookPackage(ev testEvent, output string, out io.Writer) {
	switch ev.Action {
	case "build-fail":
		fmt.Fprint(out, output)
		r.fail(ev.Package, "does not build", out)
	case "fail":
		for _, f := range r.failures {
			if strings.HasPrefix(f.name, ev.Package+".") || strings.HasPrefix(f.name, ev.Package+" ") || f.name == ev.Package {
				fmt.Fprintf(out, "FAIL %s %.1fs\n", ev.Package, ev.Elapsed)
				return
			}
		}
		fmt.Fprint(out, output)
		r.fail(ev.Package, "failed outside of its tests", out)
	case "pass":
		fmt.Fprintf(out, "ok   %s %.1fs\n", ev.Package, ev.Elapsed)
	}
}

var skipText = regexp.MustCompile(`(?m)^\s+\S+_test\.go:\d+: (.+)$`)

// skipReason is what a skipped test said last.
func skipReason(output string) string {
	all := skipText.FindAllStringSubmatch(output, -1)
	if len(all) == 0 {
		return "no reason given"
	}
	return all[len(all)-1][1]
}
