package model

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// reached is the states of a configuration, as far as a search of limit states goes.
func reached(t testing.TB, name string, limit int) (*Twin, []State) {
	m := readManifest(t)
	x := search{twin: New(m.settings(t, m.find(t, name))), limit: limit}
	x.run()
	states := make([]State, 0, len(x.states))
	for s := range x.states {
		states = append(states, s)
	}
	return x.twin, states
}

func TestNext_AllocatesNothing(t *testing.T) {
	twin, states := reached(t, "share", 2000)
	next := 0
	emit := func(int, *State) { next++ }
	require.Zero(t, testing.AllocsPerRun(1, func() {
		for i := range states {
			twin.Next(&states[i], emit)
		}
	}))
	require.Positive(t, next)
}

func BenchmarkNext(b *testing.B) {
	for _, name := range []string{"reuse", "share", "all-1"} {
		b.Run(name, func(b *testing.B) {
			twin, states := reached(b, name, 20_000)
			next := 0
			emit := func(int, *State) { next++ }
			for i := 0; b.Loop(); i++ {
				twin.Next(&states[i%len(states)], emit)
			}
			b.ReportMetric(float64(next)/float64(b.N), "successors/op")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "states/s")
		})
	}
}
