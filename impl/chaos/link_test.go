//go:build chaos

package chaos

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// cuts sets the link down for shorter and for longer than every timeout, again and again.
func (r *run) cuts(h *hosts) func(ctx context.Context, rng *rand.Rand) {
	return func(ctx context.Context, rng *rand.Rand) {
		for k := 0; ctx.Err() == nil; k++ {
			wait(ctx, time.Duration(500+rng.IntN(2000))*time.Millisecond)
			h.cut(true)
			if k%2 == 0 {
				wait(ctx, time.Duration(50+rng.IntN(600))*time.Millisecond)
			} else {
				wait(ctx, 4*r.c.shape.liveness)
			}
			h.cut(false)
		}
		h.cut(false)
	}
}

func TestChaos_LinkCutAgainAndAgain_NoForeignByteNoFalse200NoLeak(t *testing.T) {
	h := newHosts(t, false)
	r := newRun(t, newCluster(t, shape{net: h, prefill: 1, decode: 1}))
	r.storm(duration(10*time.Second), r.cuts(h))
}

// TestChaos_PartitionForEver: the link goes down under load and stays down. Both ends get all their pages back alone; when it
// is up again, after all, the peer is used again.
func TestChaos_PartitionForEver_BothEndsGetTheirPagesBackAlone(t *testing.T) {
	h := newHosts(t, false)
	r := newRun(t, newCluster(t, shape{net: h, prefill: 2, decode: 1}))
	r.load(4*time.Second, func(ctx context.Context, _ *rand.Rand) {
		wait(ctx, 2*time.Second)
		for begin := time.Now(); ; time.Sleep(5 * time.Millisecond) { // in the middle of transfers
			s, err := r.c.status("d1")
			require.NoError(t, err)
			if s.Decode.count("filling") > 0 || time.Since(begin) > 20*time.Second {
				break
			}
		}
		h.cut(true)
		<-ctx.Done()
	})
	begin := time.Now()
	r.c.requireAllFree(60 * time.Second)
	t.Logf("both ends had all pages %v after the last answer, the link still down", time.Since(begin).Round(time.Millisecond))
	s, err := r.c.status("d1")
	require.NoError(t, err)
	require.False(t, s.Ready, "a decode node that reaches no prefill side says that it is ready")
	require.NotEmpty(t, s.Reason)
	h.cut(false)
	r.settled()
}

// weathers changes what the wire does every second or so: fair, lossy, slow and out of order, all of it, nothing gets through.
func weathers(w *wire) func(ctx context.Context, rng *rand.Rand) {
	kinds := []weather{
		{delay: time.Millisecond, lose: 5, double: 10, late: 20, jitter: 5 * time.Millisecond},
		{lose: 50},
		{delay: 15 * time.Millisecond, late: 100, jitter: 30 * time.Millisecond},
		{delay: 3 * time.Millisecond, lose: 20, double: 50, late: 50, jitter: 20 * time.Millisecond},
		{lose: 250, double: 100},
		{none: true},
		{double: 300, late: 300, jitter: 2 * time.Millisecond},
	}
	return func(ctx context.Context, rng *rand.Rand) {
		for k := 0; ctx.Err() == nil; k++ {
			w.now.Store(&kinds[k%len(kinds)])
			d := time.Duration(700+rng.IntN(1500)) * time.Millisecond
			if kinds[k%len(kinds)].none && k/len(kinds)%2 == 0 {
				d = 3 * liveness
			}
			wait(ctx, d)
		}
		w.now.Store(&weather{})
	}
}

func TestChaos_DelayLossRepeatsAndReordering_NoForeignByteNoFalse200NoLeak(t *testing.T) {
	h := newHosts(t, true)
	w := newWire(t, h, seed())
	r := newRun(t, newCluster(t, shape{net: h, prefill: 1, decode: 1}))
	r.clients = 60
	r.storm(duration(10*time.Second), weathers(w))
	t.Logf("frames passed %d, lost %d, sent twice %d, held back %d", w.stats.passed.Load(), w.stats.lost.Load(), w.stats.doubled.Load(), w.stats.late.Load())
	require.Positive(t, w.stats.lost.Load())
	require.Positive(t, w.stats.doubled.Load())
	require.Positive(t, w.stats.late.Load())
}
