// Command parts runs the checks of this repository in order and ends with one table and one line: `N passed, N failed, N
// skipped`. Each part streams what it finds, has a limit of its own, and fails the run when it fails. Skips are printed with their
// reasons. It checks nothing itself: parts.go names the commands. The Makefile calls it; .ci/run calls the Makefile.
// Read next: parts.go (what runs), gotest.go (how go test is counted), cache.go (what is not run twice).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// errUsage is wrapped by what is wrong with the command line.
var errUsage = errors.New("parts")

// options are the command line.
type options struct {
	root  string
	skip  []string
	ci    bool
	short bool
	only  []string
	set   string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o, err := parseOptions(os.Args[1:])
	if err == nil {
		err = runParts(ctx, o, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// parseOptions reads the command line. In CI nothing is skipped and nothing is cached.
func parseOptions(args []string) (options, error) {
	var o options
	var skip, ci string
	f := flag.NewFlagSet("parts", flag.ContinueOnError)
	f.StringVar(&o.root, "root", ".", "root of the repository")
	f.StringVar(&skip, "skip", "", "parts to leave out, with commas between")
	f.StringVar(&ci, "ci", "", "true: CI; all parts run, nothing is cached")
	f.StringVar(&o.set, "set", "test", "parts to run: "+strings.Join(setNames(), ", "))
	if err := f.Parse(args); err != nil {
		return o, fmt.Errorf("%w: %v", errUsage, err)
	}
	o.only = f.Args()
	o.ci = ci != "" && ci != "false" && ci != "0"
	o.skip = strings.FieldsFunc(skip, func(r rune) bool { return r == ',' || r == ' ' })
	if o.ci && len(o.skip) > 0 {
		return o, fmt.Errorf("%w: nothing is skipped in CI; SKIP=%s is refused", errUsage, skip)
	}
	if !slices.Contains(setNames(), o.set) {
		return o, fmt.Errorf("%w: no set %q; there are %s", errUsage, o.set, strings.Join(setNames(), ", "))
	}
	for _, name := range slices.Concat(o.skip, o.only) {
		if !slices.ContainsFunc(partsOf(o.set), func(p part) bool { return p.name == name }) {
			return o, fmt.Errorf("%w: no part %q in %s", errUsage, name, o.set)
		}
	}
	return o, nil
}

// runParts runs the set and reports. The error says which parts failed.
func runParts(ctx context.Context, o options, out io.Writer) error {
	var report report
	for _, p := range partsOf(o.set) {
		if len(o.only) > 0 && !slices.Contains(o.only, p.name) {
			continue
		}
		r := runPart(ctx, o, p, out)
		report.add(r)
		if ctx.Err() != nil {
			break
		}
		if o.set == "long" && !slices.Contains(o.skip, p.name) {
			if err := recordLong(o.root, r); err != nil {
				return err
			}
		}
	}
	report.print(out)
	if bad := report.failedParts(); len(bad) > 0 {
		return fmt.Errorf("failed: %s", strings.Join(bad, ", "))
	}
	if report.sum().passed == 0 {
		return fmt.Errorf("%w: no check ran", errUsage)
	}
	return ctx.Err()
}

func runPart(ctx context.Context, o options, p part, out io.Writer) result {
	r := result{part: p.name}
	if slices.Contains(o.skip, p.name) {
		r.skips = append(r.skips, skip{p.name, "left out by SKIP"})
		return r
	}
	fmt.Fprintf(out, "\n=== %s: %s (%v at most)\n", p.name, p.about, p.limit)
	key := ""
	if len(p.inputs) > 0 && !o.ci {
		var err error
		if key, err = cacheKey(o.root, p); err != nil {
			fmt.Fprintf(out, "%s: not cached: %v\n", p.name, err)
		} else if old, ok := cached(o.root, p, key); ok {
			fmt.Fprintf(out, "%s: inputs unchanged since it passed\n", p.name)
			return old
		}
	}
	begin := time.Now()
	limited, cancel := context.WithTimeoutCause(ctx, p.limit, fmt.Errorf("%s did not end within %v", p.name, p.limit))
	defer cancel()
	p.run(&env{ctx: limited, root: o.root, out: &serial{w: out}, ci: o.ci, result: &r})
	r.seconds = time.Since(begin).Seconds()
	if err := context.Cause(limited); err != nil {
		r.fail(p.name, err.Error(), out)
	}
	if key != "" && len(r.failures) == 0 {
		if err := keep(o.root, p, key, r); err != nil {
			fmt.Fprintf(out, "%s: not cached: %v\n", p.name, err)
		}
	}
	return r
}
