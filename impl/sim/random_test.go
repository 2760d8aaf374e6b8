package sim

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	seeds = flag.Int("sim.seeds", 60, "seeds of TestRun_Seeds")
	from  = flag.Uint64("sim.from", 1, "first seed of TestRun_Seeds")
	goOn  = flag.Bool("sim.goon", false, "go on after a violation")
	trace = flag.Bool("sim.trace", false, "print the trace of each seed")
)

func TestRun_Seeds_KeepThePromise(t *testing.T) {
	ok, failed := 0, 0
	for seed := *from; seed < *from+uint64(*seeds); seed++ {
		out, err := Run(seed, traced(t))
		if *goOn && err != nil {
			t.Errorf("seed %d: %.300v", seed, err)
			continue
		}
		require.NoError(t, err, "seed %d", seed)
		t.Log(out, out.Causes)
		ok, failed = ok+out.OK, failed+out.Failed
	}
	require.True(t, ok > 0 || *seeds < 10, "of many seeds some requests end well")
	t.Logf("%d ended well, %d failed", ok, failed)
}

func TestRun_SameSeed_SameHash(t *testing.T) {
	for seed := uint64(1); seed <= 5; seed++ {
		a, err := Run(seed, nil)
		require.NoError(t, err)
		b, err := Run(seed, nil)
		require.NoError(t, err)
		require.Equal(t, a.Hash, b.Hash, "seed %d", seed)
		require.Equal(t, a.Steps, b.Steps)
	}
}

// traced prints a run's trace with -sim.trace.
func traced(t *testing.T) func(*Config) {
	if !*trace {
		return nil
	}
	return func(c *Config) { c.Trace = func(line string) { t.Log(line) } }
}
