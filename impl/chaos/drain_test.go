//go:build chaos

package chaos

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestChaos_PrefillNodesDrainOneAfterAnother: a rolling restart. A node that drains finishes what it has and takes nothing new;
// requests go to the other one, and none fails.
func TestChaos_PrefillNodesDrainOneAfterAnother_NoRequestFails(t *testing.T) {
	r := newRun(t, newCluster(t, shape{request: time.Minute}))
	r.clients = 60
	r.storm(duration(6*time.Second), func(ctx context.Context, rng *rand.Rand) {
		for k := 0; ctx.Err() == nil; k++ {
			p := r.c.prefills[k%2]
			p.drain(t, 40*time.Second)
			p.start()
			r.c.waitLinks(p.name, 30*time.Second)
			wait(ctx, time.Duration(rng.IntN(500))*time.Millisecond)
		}
	})
	for what, n := range r.counts {
		require.NotContains(t, what, "failed", "%d requests", n)
	}
}
