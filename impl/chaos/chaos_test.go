//go:build chaos

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sort"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvfence/impl/workload"
)

// run is one chaos run: 500 clients of 50 tenants while faults happen.
type run struct {
	t      *testing.T
	c      *cluster
	o      *oracle
	seed   uint64
	mu     sync.Mutex
	counts map[string]int
	errs   []error
}

const clients = 500

func newRun(t *testing.T, c *cluster) *run {
	seed := uint64(time.Now().UnixNano())
	if s, err := strconv.ParseUint(os.Getenv("KVFENCE_SEED"), 10, 64); err == nil {
		seed = s
	}
	t.Logf("seed %d (KVFENCE_SEED takes it back)", seed)
	m, err := workload.New(workload.Config{Kind: workload.KindTransformer, Seed: modelSeed})
	require.NoError(t, err)
	return &run{t: t, c: c, o: &oracle{model: m, known: map[string][]int32{}}, seed: seed, counts: map[string]int{}}
}

func (r *run) note(o outcome, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.errs = append(r.errs, err)
		return
	}
	r.counts[o.kind]++
	if o.kind == "failed" {
		r.counts["failed: "+o.cause]++
	}
}

// client sends requests until ctx ends, at least one; every eighth request is left by its client in the middle.
func (r *run) client(ctx context.Context, i int) {
	rng := rand.New(rand.NewPCG(r.seed, uint64(i)))
	for first := true; first || ctx.Err() == nil; first = false {
		patience := 30 * time.Second
		if rng.IntN(8) == 0 {
			patience = time.Duration(5+rng.IntN(1500)) * time.Millisecond
		}
		rc, cancel := context.WithTimeout(context.Background(), patience)
		o, err := r.o.do(rc, r.c, draw(rng, r.c))
		cancel()
		r.note(o, err)
		if o.kind != "exact" { // what a client does after an error: wait a little
			select {
			case <-ctx.Done():
			case <-time.After(time.Duration(100+rng.IntN(400)) * time.Millisecond):
			}
		}
	}
}

// storm runs the clients while faults happen, then heals, drains and checks that every page is free and service is whole.
func (r *run) storm(d time.Duration, faults func(ctx context.Context, rng *rand.Rand)) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	var wg sync.WaitGroup
	for i := range clients {
		wg.Add(1)
		go func() { defer wg.Done(); r.client(ctx, i) }()
	}
	wg.Add(1)
	go func() { defer wg.Done(); faults(ctx, rand.New(rand.NewPCG(r.seed, 1<<32))) }()
	wg.Wait()
	r.report()
	require.Empty(r.t, r.errs)
	require.Positive(r.t, r.counts["exact"], "no request succeeded: the run says nothing")
	r.c.heal()
	r.c.waitReady(30 * time.Second)
	r.c.requireAllFree(60 * time.Second)
	r.clean(100)
	r.c.requireAllFree(20 * time.Second)
}

// clean: a healed cluster answers every request.
func (r *run) clean(n int) {
	rng := rand.New(rand.NewPCG(r.seed, 2<<32))
	for range n {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		o, err := r.o.do(ctx, r.c, draw(rng, r.c))
		cancel()
		require.NoError(r.t, err)
		require.Equal(r.t, "exact", o.kind, "after healing: %+v", o)
	}
}

func (r *run) report() {
	r.mu.Lock()
	defer r.mu.Unlock()
	var keys []string
	for k := range r.counts {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		r.t.Logf("%6d %s", r.counts[k], k)
	}
	for i, e := range r.errs {
		if i < 10 {
			r.t.Logf("WRONG: %v", e)
		}
	}
}

// duration is how long a storm lasts; KVFENCE_CHAOS_SECONDS changes it.
func duration(def time.Duration) time.Duration {
	if s, err := strconv.Atoi(os.Getenv("KVFENCE_CHAOS_SECONDS")); err == nil && s > 0 {
		return time.Duration(s) * time.Second
	}
	return def
}

// processFaults kills, pauses for longer than every timeout, and restarts nodes and the gateway, one after another.
func (r *run) processFaults(ctx context.Context, rng *rand.Rand) {
	pauseFor := 4 * liveness
	for k := 0; ctx.Err() == nil; k++ {
		wait(ctx, time.Duration(500+rng.IntN(1500))*time.Millisecond)
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
	for _, p := range r.c.processesInOrderOfStarting {
		p.signal(syscall.SIGCONT)
	}
}

func (r *run) kill(ctx context.Context, rng *rand.Rand, p *proc) {
	p.kill()
	wait(ctx, time.Duration(rng.IntN(1500))*time.Millisecond)
	p.start()
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func TestChaos_ProcessesKilledAndPaused_NoForeignByteNoFalse200NoLeak(t *testing.T) {
	for _, v := range []struct {
		transport       string
		prefill, decode int
	}{{"tcp", 1, 1}, {"shm", 1, 1}, {"tcp", 2, 1}} {
		t.Run(fmt.Sprintf("%s/%dx%d", v.transport, v.prefill, v.decode), func(t *testing.T) {
			r := newRun(t, newCluster(t, v.transport, v.prefill, v.decode))
			r.storm(duration(25*time.Second), r.processFaults)
		})
	}
}
