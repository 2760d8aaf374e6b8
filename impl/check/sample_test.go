package check

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvfence/impl/core"
	"kvfence/impl/sim"
	"kvfence/impl/tlc"
	"kvfence/model/follow"
	"kvfence/spec"
)

// sampled is a small run without faults, as the follower took it: two requests, pages of three components, two links.
func sampled(t *testing.T, most int) []follow.Act {
	f := follow.New(true)
	var acts []follow.Act
	f.Journal(func(a follow.Act) { acts = append(acts, a) })
	w := sim.New(sim.Config{Seed: 3, Prefill: []int{2}, Line: func(l *spec.TraceLine) error { return f.Step(l) }})
	for i := range int32(2) {
		w.Ask(0, askOf(i))
	}
	require.NoError(t, w.RunUntil(func() bool { return w.Answered() && w.Clean() }, 100_000))
	require.Greater(t, len(acts), 100)
	return acts[:min(most, len(acts))]
}

func TestSample_ThroughTLC_IsABehaviourAndAlteredIsNot(t *testing.T) {
	if testing.Short() {
		t.Skip("TLC takes seconds")
	}
	tools, err := tlc.FindTools("")
	if err != nil {
		t.Skip(err)
	}
	specs, err := tlc.Open("../../TLA")
	require.NoError(t, err)
	run := func(acts []follow.Act) tlc.Outcome {
		module, constants := Sample(acts)
		out, err := specs.Recorded(context.Background(), tools, SampleName, module, constants, 3*time.Minute)
		require.NoError(t, err)
		return out
	}
	acts := sampled(t, 400)
	out := run(acts)
	require.Equal(t, 0, out.Exit, out.Output)
	t.Logf("%d steps in %v", len(acts), out.Took)
	for i, a := range acts { // the receipt is taken before its notice is in
		if a.Name == "NoticeIn" {
			bad := append(append([]follow.Act{}, acts[:i]...), acts[i+1:]...)
			out = run(bad)
			require.Equal(t, 11, out.Exit, out.Output)
			break
		}
	}
}

func askOf(i int32) core.Submit {
	return core.Submit{Tenant: "tenant", Prompt: []int32{1 + i, 2, 3}, MaxNew: 2, EOS: -1}
}
