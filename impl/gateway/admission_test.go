package gateway

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func smallAdmission(active, waiting, share int) *admission {
	return newAdmission(Config{MaxActive: active, MaxWaiting: waiting, SharePercent: share}.WithDefaults())
}

func enterT(t *testing.T, a *admission, tenant string) func() {
	t.Helper()
	leave, f := a.enter(identity{tenant: tenant})
	require.Nil(t, f)
	return leave
}

// queued starts an acquire that must wait, and returns when it stands in the queue.
func (a *admission) queuedAcquire(ctx context.Context, tenant string, weight int, got func(release func(), err error)) {
	_, before, _ := a.load()
	go func() { got(a.acquire(ctx, tenant, weight)) }()
	for {
		if _, now, _ := a.load(); now == before+weight {
			return
		}
	}
}

func TestAdmission_OneTenantFloods_AnotherStillGetsIn(t *testing.T) {
	a := smallAdmission(4, 8, 100)
	hog := identity{tenant: "hog"}
	var releases []func()
	for range 12 {
		_, f := a.enter(hog)
		require.Nil(t, f)
	}
	_, f := a.enter(hog)
	require.NotNil(t, f)
	require.Equal(t, 429, f.status)
	require.NotZero(t, f.retryAfter)
	for range 4 {
		r, err := a.acquire(t.Context(), "hog", 1)
		require.NoError(t, err)
		releases = append(releases, r)
	}
	order := make(chan string, 16)
	for range 8 {
		a.queuedAcquire(t.Context(), "hog", 1, func(func(), error) { order <- "hog" })
	}
	_, err := a.acquire(t.Context(), "hog", 1)
	require.Error(t, err, "its queue is full")
	// The whole queue is the hog's. A newcomer stands first in turn all the same.
	defer enterT(t, a, "ann")()
	a.queuedAcquire(t.Context(), "ann", 1, func(func(), error) { order <- "ann" })
	releases[0]()
	first := <-order
	releases[1]()
	require.Contains(t, []string{first, <-order}, "ann", "of the next two slots one is the newcomer's")
}

func TestAdmission_Share_BoundsActiveAndWaiting(t *testing.T) {
	a := smallAdmission(8, 8, 25)
	defer enterT(t, a, "x")()
	r1, err := a.acquire(t.Context(), "x", 1)
	require.NoError(t, err)
	r2, err := a.acquire(t.Context(), "x", 1)
	require.NoError(t, err)
	_, err = a.acquire(t.Context(), "x", 3)
	require.ErrorContains(t, err, "2", "can never fit")
	got := make(chan func(), 1)
	a.queuedAcquire(t.Context(), "x", 2, func(r func(), err error) { got <- r })
	_, err = a.acquire(t.Context(), "x", 1)
	require.Error(t, err, "a full queue")
	// Six slots are free, but not for x; y takes its own share at once.
	defer enterT(t, a, "y")()
	ry, err := a.acquire(t.Context(), "y", 2)
	require.NoError(t, err)
	r1()
	r2()
	r1() // twice does nothing
	(<-got)()
	ry()
	active, waiting, _ := a.load()
	require.Zero(t, active)
	require.Zero(t, waiting)
}

func TestAdmission_WideRequest_IsNotPassedForEver(t *testing.T) {
	a := smallAdmission(4, 16, 100)
	for _, n := range []string{"wide", "narrow"} {
		defer enterT(t, a, n)()
	}
	var slots []func()
	for range 4 {
		r, err := a.acquire(t.Context(), "narrow", 1)
		require.NoError(t, err)
		slots = append(slots, r)
	}
	got := make(chan func(), 1)
	a.queuedAcquire(t.Context(), "wide", 4, func(r func(), err error) { got <- r })
	slots[0]()
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	a.queuedAcquire(ctx, "narrow", 1, func(_ func(), err error) { gone <- err })
	slots[1]()
	slots[2]()
	slots[3]()
	release := <-got
	cancel()
	require.ErrorIs(t, <-gone, context.Canceled)
	release()
	active, waiting, _ := a.load()
	require.Zero(t, active+waiting)
}

func TestAdmission_ManyTenants_NothingIsLostOrOverrun(t *testing.T) {
	const maxActive = 6
	a := smallAdmission(maxActive, 1000, 50)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var active, served, cancelled atomic.Int64
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			tenant := fmt.Sprint("t", i%10)
			leave, f := a.enter(identity{tenant: tenant})
			if f != nil {
				return
			}
			defer leave()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if rng.IntN(4) == 0 {
				go cancel()
			}
			w := 1 + rng.IntN(3)
			release, err := a.acquire(ctx, tenant, w)
			if err != nil {
				cancelled.Add(1)
				return
			}
			if n := active.Add(int64(w)); n > maxActive {
				t.Errorf("%d active", n)
			}
			served.Add(1)
			active.Add(-int64(w))
			release()
		}()
	}
	wg.Wait()
	n, waiting, tenants := a.load()
	require.Zero(t, n+waiting+tenants)
	require.Equal(t, int64(200), served.Load()+cancelled.Load())
	require.Empty(t, a.ring)
}

func TestAdmission_TooManyTenants_IsBounded(t *testing.T) {
	a := newAdmission(Config{MaxTenants: 2}.WithDefaults())
	leave := enterT(t, a, "a")
	defer enterT(t, a, "b")()
	_, f := a.enter(identity{tenant: "c"})
	require.Equal(t, 429, f.status)
	leave()
	leave()
	enterT(t, a, "c")()
}
