//go:build chaos

package chaos

import (
	"context"
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
	"time"
)

// processFaults kills, pauses for longer than every timeout, and restarts nodes and the gateway, one after another.
func (r *run) processFaults(ctx context.Context, rng *rand.Rand) {
	pauseFor := 4 * r.c.shape.liveness
	for k := rng.IntN(6); ctx.Err() == nil; k++ {
		wait(ctx, time.Duration(300+rng.IntN(1200))*time.Millisecond)
		victim := r.c.prefills[rng.IntN(2)]
		switch k % 6 {
		case 0, 3:
			r.kill(ctx, rng, victim)
		case 1:
			victim.pause(ctx, pauseFor)
		case 2:
			r.kill(ctx, rng, r.c.gateway)
		case 4:
			r.c.decode.pause(ctx, pauseFor)
		case 5:
			r.kill(ctx, rng, r.c.decode)
		}
	}
	for _, p := range r.c.all {
		p.signal(syscall.SIGCONT)
	}
}

func (r *run) kill(ctx context.Context, rng *rand.Rand, p *proc) {
	p.kill()
	wait(ctx, time.Duration(rng.IntN(1500))*time.Millisecond)
	p.start()
}

// TestChaos_ProcessesKilledAndPaused is the storm over processes. Those marked long run when KVFENCE_CHAOS_LONG is set.
func TestChaos_ProcessesKilledAndPaused_NoForeignByteNoFalse200NoLeak(t *testing.T) {
	for _, v := range []struct {
		shape
		long bool
	}{
		{shape: shape{transport: "tcp"}},
		{shape: shape{transport: "shm"}},
		{shape: shape{transport: "tcp", tls: true, prefill: 2, decode: 2}},
		{shape: shape{transport: "tcp", prefill: 1, decode: 2, noDigests: true}},
		{shape: shape{transport: "tcp", prefill: 2, decode: 1}, long: true},
		{shape: shape{transport: "tcp", tls: true}, long: true},
		{shape: shape{transport: "tcp", tls: true, plainData: true}, long: true},
		{shape: shape{transport: "tcp", noDigests: true}, long: true},
		{shape: shape{transport: "shm", prefill: 2, decode: 2}, long: true},
		{shape: shape{transport: "shm", noDigests: true}, long: true},
	} {
		if v.long && os.Getenv("KVFENCE_CHAOS_LONG") == "" {
			continue
		}
		t.Run(v.filled().String(), func(t *testing.T) {
			r := newRun(t, newCluster(t, v.shape))
			r.storm(duration(8*time.Second), r.processFaults)
		})
	}
}
