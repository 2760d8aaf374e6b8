package tlc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// ErrDiffers says that at least one configuration did not behave as the manifest says.
var ErrDiffers = errors.New("outcomes differ from the manifest")

// Options say what to run and how.
type Options struct {
	Tools Tools
	Names []string      // configurations by name, or by a part of the name; none: all
	Jobs  int           // configurations at a time
	Limit time.Duration // of one configuration; what takes longer is cut off and differs
	Long  bool          // also the configurations marked long
	Write bool          // record outcomes as the new expectations, and write the .cfg files and the table
	Show  bool          // print what TLC printed
	// Examine judges the outcome of a configuration further: each line that it returns is a difference. nil: not at all.
	Examine func(*Configuration, Outcome) []string
}

// result is one configuration's run.
type result struct {
	got  Outcome
	diff []string
	err  error
}

// Check runs the chosen configurations, o.Jobs at a time, and prints a line for each in the manifest's order, then a line of totals.
func (s *Specs) Check(ctx context.Context, o Options, out io.Writer) error {
	if o.Write && s.Dir == "" {
		return ErrBuiltIn
	}
	began := time.Now()
	chosen, skipped, err := s.choose(o.Names, o.Long)
	if err != nil {
		return err
	}
	bad, states := 0, 0
	for i, done := range s.start(ctx, o, chosen) {
		r := <-done
		if r.err != nil {
			return fmt.Errorf("%s: %w", chosen[i].Name, r.err)
		}
		states += r.got.Seen
		if len(r.diff) > 0 {
			bad++
		}
		fmt.Fprintln(out, line(chosen[i], r.got, r.diff))
		if o.Show || len(r.diff) > 0 {
			fmt.Fprint(out, tail(r.got.Output, o.Show))
		}
	}
	fmt.Fprintf(out, "%d configurations, %d as expected, %d not, %d long ones left out; %d distinct states, %.0f s\n",
		len(chosen), len(chosen)-bad, bad, skipped, states, time.Since(began).Seconds())
	if o.Write {
		return s.Save()
	}
	if bad > 0 {
		return ErrDiffers
	}
	return s.compareTable()
}

// choose returns the configurations to run and how many long ones are left out. A whole name chooses that one, long or not.
func (m *Manifest) choose(names []string, long bool) (chosen []*Configuration, skipped int, err error) {
	hit := make([]bool, len(names))
	for i := range m.Configurations {
		c := &m.Configurations[i]
		part, whole := len(names) == 0, false
		for n, name := range names {
			if c.Name == name {
				whole, hit[n] = true, true
			} else if _, err := m.Find(name); err != nil && strings.Contains(c.Name, name) {
				part, hit[n] = true, true
			}
		}
		switch {
		case whole || part && (long || !c.Long):
			chosen = append(chosen, c)
		case part:
			skipped++
		}
	}
	for n, name := range names {
		if !hit[n] {
			return nil, 0, fmt.Errorf("%w like %q; kvfence spec list names them", ErrNoConfiguration, name)
		}
	}
	return chosen, skipped, nil
}

// start returns a channel for each configuration; its one result comes when it has run.
func (s *Specs) start(ctx context.Context, o Options, chosen []*Configuration) []chan result {
	slots := make(chan struct{}, max(o.Jobs, 1))
	results := make([]chan result, len(chosen))
	for i := range chosen {
		results[i] = make(chan result, 1)
	}
	go func() {
		for i, c := range chosen {
			slots <- struct{}{}
			go func() {
				results[i] <- s.check(ctx, o, c)
				<-slots
			}()
		}
	}()
	return results
}

// check runs one configuration and compares; with o.Write what was found becomes what is expected.
func (s *Specs) check(ctx context.Context, o Options, c *Configuration) result {
	got, text, err := s.run(ctx, o.Tools, c, c.random(), o.Limit)
	if err != nil || ctx.Err() != nil {
		return result{err: errors.Join(err, ctx.Err())}
	}
	if o.Write {
		if want := got.expectation(c); want.Result == "error" {
			return result{err: fmt.Errorf("%w: exit %d is nothing to record; --show prints why", ErrDiffers, got.Exit)}
		}
		c.Expect = got.expectation(c)
		return result{got: got}
	}
	diff := append(got.compare(c), s.compareFile(c, text)...)
	if o.Examine != nil {
		diff = append(diff, o.Examine(c, got)...)
	}
	return result{got: got, diff: diff}
}

// random is c's random runs, or none.
func (c *Configuration) random() (r random) {
	if c.Simulation() {
		r.num, r.depth, r.seed = c.runs()
	}
	return r
}

func line(c *Configuration, got Outcome, diff []string) string {
	verdict := "ok  "
	if len(diff) > 0 {
		verdict = "FAIL"
	}
	s := fmt.Sprintf("%s %-32s exit %-3d %-44s %5.1f s", verdict, c.Name, got.Exit, got.words(c.Simulation()), got.Took.Seconds())
	for _, d := range diff {
		s += "\n     " + d
	}
	return s
}

// words is what was found.
func (got Outcome) words(simulated bool) string {
	switch {
	case got.Violated != "":
		return fmt.Sprintf("%s broken after %d states", got.Violated, got.Trace)
	case simulated:
		return fmt.Sprintf("%d states in random runs", got.Seen)
	}
	return fmt.Sprintf("%d states, depth %d", got.Seen, got.Depth)
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
