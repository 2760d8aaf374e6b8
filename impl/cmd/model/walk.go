package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"kvfence/impl/tlc"
	"kvfence/model"
	"kvfence/model/explore"
)

// errNoProperty is what is said of a name that a configuration checks and the model does not have.
var errNoProperty = errors.New("the model has no property of that name")

// walk explores configurations with the model alone, in memory or on disk, checks what they check, and compares what comes of it with
// the manifest: the property that is broken and the length of the way there, or the states and the depth. Neither java nor TLC is
// needed.
func (s *session) walk(ctx context.Context) error {
	as, states := 0, 0
	for i := range s.c.specs.Configurations {
		c := &s.c.specs.Configurations[i]
		if c.Module != twinModule || c.Simulation() || c.Spec != "" || !s.wanted(c) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		began := time.Now()
		r, err := s.check(c)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		states += r.States
		if why := verdict(c, r); why != "" {
			s.fail(c.Name, why)
			continue
		}
		as++
		fmt.Fprintf(s.out, "%s: %s, %.1f s\n", c.Name, words(r), time.Since(began).Seconds())
	}
	if as+s.total.bad == 0 {
		return fmt.Errorf("%w: no configuration of %s is named so", errPins, twinModule)
	}
	fmt.Fprintf(s.out, "walk %d configurations as the manifest says, %d not; %d states\n", as, s.total.bad, states)
	return nil
}

// wanted says whether a configuration is to be walked.
func (s *session) wanted(c *tlc.Configuration) bool {
	if only := s.only(); only != nil {
		return slices.Contains(only, c.Name)
	}
	return s.o.long || !c.Long
}

// check walks one configuration with its properties.
func (s *session) check(c *tlc.Configuration) (explore.Result[model.State], error) {
	var r explore.Result[model.State]
	set, err := newSetting(s.c.specs.Manifest, c)
	if err != nil {
		return r, err
	}
	states, steps, err := properties(s.c.specs.Manifest, c)
	if err != nil {
		return r, err
	}
	o := explore.Options[model.State]{Workers: s.o.workers, Limit: s.o.limit, Dir: s.o.disk, Memory: s.o.memory << 20}
	w := set.twin
	o.Check = func(x *model.State) string {
		for _, p := range states {
			if !p.State(&w, x) {
				return p.Name
			}
		}
		return ""
	}
	if len(steps) > 0 {
		o.Step = func(from *model.State, _ int, to *model.State) string {
			for _, p := range steps {
				if !p.Step(&w, from, to) {
					return p.Name
				}
			}
			return ""
		}
	}
	return explore.Run(set.system, o)
}

// properties are those that a configuration names.
func properties(m *tlc.Manifest, c *tlc.Configuration) (states, steps []model.Property, err error) {
	var names []string
	for _, n := range slices.Concat(c.Check, c.Steps) {
		if list, ok := strings.CutPrefix(n, "@"); ok {
			names = append(names, m.Modules[c.Module].Properties[list]...)
		} else {
			names = append(names, n)
		}
	}
	for _, n := range names {
		switch p := model.Find(n); {
		case p.State != nil:
			states = append(states, p)
		case p.Step != nil:
			steps = append(steps, p)
		default:
			return nil, nil, fmt.Errorf("%w: %q", errNoProperty, n)
		}
	}
	return states, steps, nil
}

// verdict says in what a walk is not what the manifest expects, "" if in nothing. With symmetry TLC counts fewer states, and of a
// configuration that no one has run the manifest knows none.
func verdict(c *tlc.Configuration, r explore.Result[model.State]) string {
	e := c.Expect
	switch {
	case e == tlc.Expectation{}:
		return "" // impl/tlc says that nothing is recorded
	case r.Violation != nil && (e.Violated != r.Violation.Property || e.Trace != len(r.Violation.Path)):
		return fmt.Sprintf("%s, but %s broken after %d states is expected", words(r), orNothing(e.Violated), e.Trace)
	case r.Violation == nil && e.Violated != "":
		return fmt.Sprintf("%s, but %s broken after %d states is expected", words(r), e.Violated, e.Trace)
	case r.Violation == nil && e.Distinct > 0 && c.Symmetry == "" && (e.Distinct != r.States || e.Depth != r.Depth):
		return fmt.Sprintf("%s, but %d states, depth %d are expected", words(r), e.Distinct, e.Depth)
	}
	return ""
}

func orNothing(property string) string {
	if property == "" {
		return "nothing"
	}
	return property
}

// words is what a walk found.
func words(r explore.Result[model.State]) string {
	if v := r.Violation; v != nil {
		return fmt.Sprintf("%s broken after %d states", v.Property, len(v.Path))
	}
	text := fmt.Sprintf("%d states, depth %d", r.States, r.Depth)
	if r.Spills > 0 {
		text += fmt.Sprintf(" (%d files, %d bytes a state, %.1f MiB of states in memory at most)", r.Spills, r.Bytes, float64(r.Peak)/(1<<20))
	}
	return text
}
