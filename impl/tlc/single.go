package tlc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// Simulation is random runs as a person asks for them; zero values are the configuration's own.
type Simulation struct {
	Runs  int // number of runs
	Depth int // length of each
	Seed  int64
}

// Simulate makes random runs of one configuration, or, with name "", of each configuration that is one. Where sim changes nothing
// and the configuration is a simulation, the outcome is compared with the manifest; else nothing may be violated.
func (s *Specs) Simulate(ctx context.Context, o Options, name string, sim Simulation, out io.Writer) error {
	var chosen []*Configuration
	if name != "" {
		c, err := s.Find(name)
		if err != nil {
			return err
		}
		chosen = []*Configuration{c}
	}
	for i := range s.Configurations {
		if c := &s.Configurations[i]; name == "" && c.Simulation() {
			chosen = append(chosen, c)
		}
	}
	if len(chosen) == 0 {
		return fmt.Errorf("%w: the manifest has no simulation; name a configuration, it is run at random then", ErrNoConfiguration)
	}
	bad := 0
	for _, c := range chosen {
		r, pinned := sim.apply(c)
		got, _, err := s.run(ctx, o.Tools, c, r, o.Limit)
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		var diff []string
		switch {
		case pinned:
			diff = got.compare(c)
		case got.Exit != 0:
			diff = []string{fmt.Sprintf("exit %d", got.Exit)}
		}
		if len(diff) > 0 {
			bad++
		}
		fmt.Fprintln(out, line(c, got, diff))
		fmt.Fprintf(out, "     %s runs of at most %d steps, seed %d\n", strings.TrimPrefix(r.num, "num="), r.depth, r.seed)
		if o.Show || len(diff) > 0 {
			fmt.Fprint(out, tail(got.Output, o.Show))
		}
	}
	fmt.Fprintf(out, "%d simulations, %d as expected, %d not\n", len(chosen), len(chosen)-bad, bad)
	if bad > 0 {
		return ErrDiffers
	}
	return nil
}

// apply lays sim over c's own runs and says whether the manifest pins the outcome.
func (sim Simulation) apply(c *Configuration) (r random, pinned bool) {
	r.num, r.depth, r.seed = c.runs()
	if sim.Runs > 0 {
		r.num = "num=" + strconv.Itoa(sim.Runs)
	}
	if sim.Depth > 0 {
		r.depth = sim.Depth
	}
	if sim.Seed != 0 {
		r.seed = sim.Seed
	}
	return r, c.Simulation() && sim == Simulation{}
}

// ErrNothingBroken says that a configuration gave no counterexample.
var ErrNothingBroken = errors.New("TLC found no counterexample")

// Trace runs the configuration of that name, which must fail, and returns what TLC found, with its output. Errors:
// ErrNoConfiguration, ErrNothingBroken.
func (s *Specs) Trace(ctx context.Context, tools Tools, name string, limit time.Duration) (*Configuration, Outcome, error) {
	c, err := s.Find(name)
	if err != nil {
		return nil, Outcome{}, err
	}
	got, _, err := s.run(ctx, tools, c, c.random(), limit)
	if err == nil {
		err = ctx.Err()
	}
	if err == nil && got.Violated == "" {
		err = fmt.Errorf("%w for %s: exit %d, %s\n%s", ErrNothingBroken, name, got.Exit, got.words(c.Simulation()), tail(got.Output, false))
	}
	return c, got, err
}
