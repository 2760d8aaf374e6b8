//go:build chaos

package chaos

import (
	"context"
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestChaos_PeerStoppedForEver: under load one side's processes are stopped and stay so. The other side gets its pages back
// alone; only a stopped reader over shm keeps, bounded and shown as revoking, what it was offered, until its process ends.
func TestChaos_PeerStoppedForEver_OtherSideGetsItsPagesBackAlone(t *testing.T) {
	for _, v := range []struct {
		transport, stopped string
		long               bool
	}{{"shm", "decode", false}, {"shm", "prefill", false}, {"tcp", "decode", true}, {"tcp", "prefill", true}} {
		if v.long && os.Getenv("KVFENCE_CHAOS_LONG") == "" {
			continue
		}
		t.Run(v.transport+"/"+v.stopped, func(t *testing.T) {
			r := newRun(t, newCluster(t, shape{transport: v.transport, request: 6 * time.Second}))
			r.clients = 200
			r.load(2*time.Second, func(ctx context.Context, _ *rand.Rand) {
				wait(ctx, time.Second)
				if v.stopped == "decode" {
					r.decodeStopped(v.transport)
				} else {
					r.prefillsStopped()
				}
			})
			r.settled()
		})
	}
}

// prefillsStopped: decode's holds are its own copies and placers.
func (r *run) prefillsStopped() {
	for _, p := range r.c.prefills {
		p.signal(syscall.SIGSTOP)
	}
	r.c.requireAllFree(60*time.Second, r.c.decode)
	for _, p := range r.c.prefills {
		p.signal(syscall.SIGCONT)
	}
}

func (r *run) decodeStopped(transport string) {
	c := r.c
	c.decode.signal(syscall.SIGSTOP)
	if transport == "tcp" {
		c.requireAllFree(60*time.Second, c.prefills...)
		c.decode.signal(syscall.SIGCONT)
		return
	}
	var held, revoking int
	require.Eventually(r.t, func() bool {
		held, revoking = 0, 0
		for _, p := range c.prefills {
			s, err := c.status(p.name)
			if err != nil {
				return false
			}
			h, v := s.pages()
			held, revoking = held+h, revoking+v
		}
		return held == 0
	}, 60*time.Second, 50*time.Millisecond, "pages that were never offered to the stopped reader are still held")
	r.t.Logf("the stopped reader keeps %d pages", revoking)
	c.decode.kill()
	c.requireAllFree(30*time.Second, c.prefills...)
	c.decode.start()
}
