package sim

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/impl/core"
)

func prompt(n, seed int) (p []int32) {
	for i := range n {
		p = append(p, int32((i*7+seed*13)%vocabulary))
	}
	return p
}

func submit(tenant string, tokens, maxNew int) core.Submit {
	return core.Submit{Tenant: tenant, Prompt: prompt(tokens, 1), MaxNew: uint32(maxNew)}
}

func TestWorld_OneRequest_IsAnsweredAndLeavesNothing(t *testing.T) {
	for name, cfg := range map[string]Config{
		"push 1x1": {}, "push 2x1": {Prefill: []int{2}}, "push 1x2": {Decode: []int{2}}, "push 2x2": {Prefill: []int{2}, Decode: []int{2}},
		"pull 1x1": {Pull: true}, "pull 2x2": {Prefill: []int{2}, Decode: []int{2}, Pull: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := New(cfg)
			require.NoError(t, w.RunUntil(w.Connected, 20_000))
			q := w.Ask(0, submit("x", 10, 5))
			require.NoError(t, w.RunUntil(w.Answered, 20_000))
			require.True(t, q.OK(), "%s %s", q.Cause, q.Detail)
			require.Len(t, q.Tokens, 5)
			require.NoError(t, w.RunUntil(w.Clean, 20_000))
			require.Zero(t, w.alarms)
		})
	}
}

func TestWorld_PrefillFirst_HalfIsBoundOnceAndUnboundEndsByItsDeadline(t *testing.T) {
	for _, pull := range []bool{false, true} {
		w := New(Config{Pull: pull, Prefill: []int{2}, Decode: []int{2}})
		require.NoError(t, w.RunUntil(w.Connected, 20_000))
		h := w.Half(0, submit("x", 11, 4))
		require.NoError(t, w.RunUntil(func() bool { return h.Source().Counter != 0 && w.prefill[0].running == nil && w.FreePages()[0] < 16 }, 20_000))
		s := submit("x", 11, 4)
		s.Source = h.Source()
		a, b := w.Ask(0, s), w.Ask(0, s)
		require.NoError(t, w.RunUntil(w.Answered, 20_000))
		require.True(t, a.OK() != b.OK(), "one binds it, the other is refused: %q %q", a.Cause, b.Cause)
		require.NoError(t, w.RunUntil(w.Clean, 20_000))
		w.Half(0, submit("x", 9, 4)) // nobody asks for it
		require.NoError(t, w.RunUntil(func() bool { return w.FreePages()[0] < 16 }, 20_000))
		require.NoError(t, w.RunUntil(w.Clean, 20_000))
		require.Greater(t, w.Now(), core.Time(30e9))
	}
}
