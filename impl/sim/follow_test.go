package sim

import (
	"errors"
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/model/follow"
	"kvfence/spec"
)

var followSeeds = flag.Uint64("sim.follow", 40, "seeds of TestRun_EveryStep_IsOneOfTheSpecification, from -sim.from on")

// Every step of every machine, under requests and faults, is a step of the specification, and what it puts out is what it says.
func TestRun_EveryStep_IsOneOfTheSpecification(t *testing.T) {
	total := map[string]int{}
	lines, hidden, damaged := 0, 0, 0
	for seed := *from; seed < *from+*followSeeds; seed++ {
		f := follow.New(true)
		_, err := Run(seed, func(c *Config) {
			c.Line = func(l *spec.TraceLine) error { return f.Step(l) }
		})
		var v *Violation
		if errors.As(err, &v) && v.Oracle == Followed {
			t.Errorf("%v", err)
			continue
		}
		require.NoError(t, err)
		st := f.Stats()
		for a, n := range st.Actions {
			total[a] += n
		}
		lines, hidden, damaged = lines+st.Lines, hidden+st.Hidden, damaged+st.Damaged
	}
	t.Logf("seeds %d to %d: %d lines, %d hidden actions, %d findings; %v", *from, *from+*followSeeds-1, lines, hidden, damaged, total)
	require.Greater(t, len(total), 45)
}
