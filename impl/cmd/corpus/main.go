// Command corpus keeps the committed inputs of the fuzz targets few: of what stands in testdata/fuzz and of what the engine found and
// keeps in its cache, it keeps those that reach a block of code which nothing else that is kept reaches, the smallest first. Inputs
// with a name (those of crashes, which are tests) stay. Run it after a long fuzz run, and look at what it adds.
//
//	go run ./impl/cmd/corpus [-n] [TARGET ...]        TARGET is folder.FuzzName as in fuzz/parsers.go; none: all
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"kvfence/fuzz"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "corpus:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("corpus", flag.ContinueOnError)
	dry := flags.Bool("n", false, "only say what would be kept")
	if err := flags.Parse(args); err != nil {
		return err
	}
	all := targets()
	wanted := flags.Args()
	if len(wanted) == 0 {
		wanted = all
	}
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		return err
	}
	for _, name := range wanted {
		if !slices.Contains(all, name) {
			return fmt.Errorf("%s is no target; there are %s", name, strings.Join(all, ", "))
		}
		at := strings.LastIndex(name, ".")
		t := target{dir: name[:at], name: name[at+1:], cache: strings.TrimSpace(string(cache))}
		kept, of, err := t.minimise(context.Background(), *dry)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fmt.Printf("%-44s %4d of %4d inputs\n", name, kept, of)
	}
	return nil
}

// targets are all that the list names, in order.
func targets() (all []string) {
	for _, p := range fuzz.Parsers() {
		all = append(all, p.Targets...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
