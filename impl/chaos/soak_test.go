//go:build chaos

package chaos

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// soakSmoke is how long the soak lasts where nobody says: it runs all of the soak's code and judges everything but memory.
const soakSmoke = 6 * time.Second

func soakLength(t *testing.T) time.Duration {
	v := os.Getenv("KVFENCE_SOAK_SECONDS")
	if v == "" {
		return soakSmoke
	}
	n, err := strconv.Atoi(v)
	require.NoError(t, err, "KVFENCE_SOAK_SECONDS")
	return time.Duration(n) * time.Second
}

// TestSoak_LoadAndFaults: memory, goroutines and files of every process stay flat, every page is free in the end, every answer
// was right. Over tcp and over shm at the same time.
func TestSoak_LoadAndFaults_MemoryStaysFlatAndAllPagesComeBack(t *testing.T) {
	length := soakLength(t)
	for _, transport := range []string{"tcp", "shm"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			r := newRun(t, newCluster(t, shape{transport: transport}))
			r.clients = 150
			m := newMeter(r.c, max(length/500, 200*time.Millisecond))
			r.load(length, r.soakFaults(length))
			m.end()
			r.settled()
			m.report(t)
			if length >= 2*time.Minute {
				m.judge(t, length/2)
			}
		})
	}
}

// soakFaults kills every process in the first seventh, after which only p2 is killed, so that the others have one long life to be
// measured in; pauses longer than every timeout go on to the end.
func (r *run) soakFaults(length time.Duration) func(ctx context.Context, rng *rand.Rand) {
	return func(ctx context.Context, rng *rand.Rand) {
		begin := time.Now()
		for k := 0; ctx.Err() == nil; k++ {
			wait(ctx, time.Duration(500+rng.IntN(2500))*time.Millisecond)
			switch any := r.c.all[rng.IntN(len(r.c.all))]; {
			case time.Since(begin) < length/7:
				r.kill(ctx, rng, any)
			case k%3 == 0:
				r.kill(ctx, rng, r.c.prefills[1])
			case k%3 == 1:
				any.pause(ctx, 4*r.c.shape.liveness)
			default:
				any.pause(ctx, time.Duration(rng.Int64N(int64(r.c.shape.liveness))))
			}
		}
		for _, p := range r.c.all {
			p.signal(syscall.SIGCONT)
		}
	}
}
