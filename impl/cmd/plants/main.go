// Command plants plants the public faults in the engine, one at a time, and looks for the run that catches each by name. Without -pinned it
// searches, each plant within a minute of one core, and compares what comes of it with the record; with -write it writes the record and
// docs/plants.md. With -pinned it replays the recorded seed of each, which must be refused with the plant and pass without it. People, make
// test and make test-long call it; what it does is in impl/plants.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strings"

	"kvfence/impl/plants"
)

// buildFolder is where the changed sources and the binaries are. The go command passes over names that begin with "_".
const buildFolder = "build/_plants"

var errFailed = errors.New("planted bugs are not caught as recorded")

type options struct {
	root, record, page string
	jobs               int
	seconds            float64
	pinned, write      bool
	tests, muted       bool
	only               *regexp.Regexp
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "plants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	var o options
	fs := flag.NewFlagSet("plants", flag.ContinueOnError)
	jobs := fs.Bool("jobs", false, "run the jobs on standard input, in this process, and print what was refused: what a build with plants is for")
	number := fs.String("number", "", "print the numbers of a plant and of what is on with it, as the environment of a build with plants takes them")
	fs.BoolVar(&o.pinned, "pinned", false, "replay the recorded seeds")
	fs.BoolVar(&o.write, "write", false, "write the record and the page")
	fs.BoolVar(&o.tests, "tests", false, "ask the tests of the packages, too")
	fs.BoolVar(&o.muted, "muted", true, "look for each plant with the machines' own assertions silent, too")
	fs.IntVar(&o.jobs, "workers", 2, "plants at a time")
	fs.Float64Var(&o.seconds, "seconds", plants.Limit, "for each plant, on one core")
	only := fs.String("only", "", "plants whose names match this expression")
	fs.StringVar(&o.root, "root", ".", "the repository")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *number != "" {
		n, err := plants.Numbers(plants.All(), *number)
		fmt.Fprintln(out, strings.Trim(fmt.Sprint(n), "[]"))
		return err
	}
	if *jobs {
		return runJobs(in, out)
	}
	o.record, o.page = o.root+"/impl/plants/record.json", o.root+"/docs/plants.md"
	var err error
	if o.only, err = regexp.Compile(*only); err != nil {
		return err
	}
	s := session{o: o, out: out}
	return s.run(ctx)
}

// runJobs runs jobs one after another.
func runJobs(in io.Reader, out io.Writer) error {
	var jobs []plants.Job
	if err := json.NewDecoder(in).Decode(&jobs); err != nil {
		return err
	}
	catches := make([]plants.Catch, 0, len(jobs))
	for _, j := range jobs {
		c, err := j.Run()
		if err != nil {
			return err
		}
		catches = append(catches, c)
	}
	return json.NewEncoder(out).Encode(catches)
}
