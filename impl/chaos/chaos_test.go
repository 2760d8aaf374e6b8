//go:build chaos

package chaos

import (
	"context"
	"math/rand/v2"
	"os"
	"sort"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// run is one chaos run: clients of 50 tenants while faults happen.
type run struct {
	t       *testing.T
	c       *cluster
	o       *oracle
	seed    uint64
	clients int

	mu     sync.Mutex
	counts map[string]int
	errs   []error
	slow   time.Duration // the longest that a client waited for an end of any kind
}

// clients is how many there are at once.
const clients = 500

// seed decides what clients ask and what faults happen in this process.
var seed = sync.OnceValue(func() uint64 {
	if s, err := strconv.ParseUint(os.Getenv("KVFENCE_SEED"), 10, 64); err == nil {
		return s
	}
	return uint64(time.Now().UnixNano())
})

func newRun(t *testing.T, c *cluster) *run {
	t.Logf("seed %d (KVFENCE_SEED takes it back)", seed())
	o, err := sharedOracle()
	require.NoError(t, err)
	return &run{t: t, c: c, o: o, seed: seed(), clients: clients, counts: map[string]int{}}
}

func (r *run) rng(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(r.seed, stream)) }

func (r *run) note(o outcome, err error, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.slow = max(r.slow, took)
	if err != nil {
		r.errs = append(r.errs, err)
		return
	}
	r.counts[o.kind]++
	if o.kind != "exact" {
		r.counts[o.kind+": "+o.cause]++
	}
}

func (r *run) one(ctx context.Context, q request) outcome {
	begin := time.Now()
	o, err := r.o.do(ctx, r.c.front, q)
	r.note(o, err, time.Since(begin))
	return o
}

// client sends requests until ctx ends, at least one; every eighth request is left by its client in the middle.
func (r *run) client(ctx context.Context, i int) {
	rng := r.rng(uint64(i))
	for first := true; first || ctx.Err() == nil; first = false {
		patience := 2 * r.c.shape.request
		if rng.IntN(8) == 0 {
			patience = time.Duration(5+rng.IntN(1500)) * time.Millisecond
		}
		rc, cancel := context.WithTimeout(context.Background(), patience)
		o := r.one(rc, draw(rng, r.c))
		cancel()
		if o.kind != "exact" { // what a client does after an error: wait a little
			wait(ctx, time.Duration(100+rng.IntN(400))*time.Millisecond)
		}
	}
}

// load runs the clients while faults happen, and judges every answer. Faults are undone when it returns.
func (r *run) load(d time.Duration, faults func(ctx context.Context, rng *rand.Rand)) {
	begin := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	var wg sync.WaitGroup
	for i := range r.clients {
		wg.Go(func() { r.client(ctx, i) })
	}
	faults(ctx, r.rng(1<<32))
	r.c.heal()
	wg.Wait()
	r.t.Logf("load and faults for %v, last answer after %v, longest wait of a client %v", d, time.Since(begin).Round(time.Millisecond), r.slow.Round(time.Millisecond))
	r.report()
	require.Empty(r.t, r.errs)
	for _, p := range r.c.all {
		require.Empty(r.t, p.crashed(), "a process ended by itself, or was ended from outside")
	}
	require.Positive(r.t, r.counts["exact"], "no request succeeded: the run says nothing")
}

// storm is load, after which every page is free and service is whole.
func (r *run) storm(d time.Duration, faults func(ctx context.Context, rng *rand.Rand)) {
	r.load(d, faults)
	r.settled()
}

// settled: everything comes to rest, all pages are free, and requests are answered again.
func (r *run) settled() {
	begin := time.Now()
	r.c.waitReady(60 * time.Second)
	r.c.requireAllFree(60 * time.Second)
	free := time.Since(begin)
	r.clean(50)
	r.c.requireAllFree(30 * time.Second)
	r.c.requireNoAlarm()
	r.t.Logf("all pages free %v after the last answer, clean after %v", free.Round(time.Millisecond), time.Since(begin).Round(time.Millisecond))
}

// clean: a healed cluster answers n requests in a row. On a machine that is busy with other things a fence may still fall in
// between; what may not is a wrong answer, or that the row never comes.
func (r *run) clean(n int) {
	rng := r.rng(2 << 32)
	deadline := time.Now().Add(60 * time.Second)
	for row := 0; row < n; row++ {
		ctx, cancel := context.WithTimeout(context.Background(), 2*r.c.shape.request)
		o, err := r.o.do(ctx, r.c.front, draw(rng, r.c))
		cancel()
		require.NoError(r.t, err)
		if o.kind != "exact" {
			require.True(r.t, time.Now().Before(deadline), "after healing: %+v", o)
			r.t.Logf("after healing, request %d: %+v", row, o)
			row = -1
		}
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

// wait returns after d or when ctx ends.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
