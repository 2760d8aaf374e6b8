package gateway

import (
	"context"
	"sync"
	"time"

	"kvfence/impl/node/api"
)

// admission shares the backend between tenants: a bound on all, a bound on each (its
// share), and turns between those that wait. No tenant waits for another's queue: the
// next free slot goes to the next tenant in the ring, and a tenant that has nothing
// inside is let in even where the others have filled the whole queue. Safe for
// concurrent use.
type admission struct {
	maxActive, maxWaiting, maxTenants, share int
	retryAfter                               time.Duration

	mu      sync.Mutex
	active  int // choices at the backend
	waiting int // choices in queues
	inside  int // HTTP requests, from their header to their answer
	tenants map[string]*tenantState
	ring    []*tenantState // in order of coming; turn is the next to look at
	turn    int
}

// tenantState lives while the tenant has requests inside.
type tenantState struct {
	name                      string
	capActive, capWaiting     int
	active, waiting, requests int
	queue                     []*waiter
}

type waiter struct {
	weight  int
	granted chan struct{} // closed with the slot taken
}

func newAdmission(c Config) *admission {
	return &admission{
		maxActive: c.MaxActive, maxWaiting: c.MaxWaiting, maxTenants: c.MaxTenants, share: c.SharePercent,
		retryAfter: c.RetryAfter, tenants: map[string]*tenantState{},
	}
}

func (a *admission) full(who string) *failure {
	return fromNode(api.Errorf(api.OverCapacity, "%s has as many requests here as it may; try again later", who), "", a.retryAfter)
}

// enter counts a request before its body is read. leave must be called once.
func (a *admission) enter(id identity) (leave func(), f *failure) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.tenants[id.tenant]
	if t == nil {
		if len(a.tenants) >= a.maxTenants {
			return nil, a.full("the gateway")
		}
		share := id.share
		if share == 0 {
			share = a.share
		}
		t = &tenantState{name: id.tenant, capActive: max(1, a.maxActive*share/100), capWaiting: max(1, a.maxWaiting*share/100)}
		a.tenants[id.tenant] = t
		a.ring = append(a.ring, t)
	}
	if t.requests >= t.capActive+t.capWaiting {
		return nil, a.full("this tenant")
	}
	if t.requests > 0 && a.inside >= a.maxActive+a.maxWaiting {
		return nil, a.full("the gateway")
	}
	t.requests++
	a.inside++
	return sync.OnceFunc(func() { a.leave(t) }), nil
}

func (a *admission) leave(t *tenantState) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t.requests--
	a.inside--
	if t.requests > 0 {
		return
	}
	delete(a.tenants, t.name)
	for i, other := range a.ring {
		if other == t {
			a.ring = append(a.ring[:i], a.ring[i+1:]...)
			if a.turn > i {
				a.turn--
			}
			return
		}
	}
}

// acquire takes weight slots, waiting its turn. release must be called once. The
// tenant must be inside. It fails with over capacity, an impossible weight, or ctx.
func (a *admission) acquire(ctx context.Context, tenant string, weight int) (release func(), err error) {
	a.mu.Lock()
	t := a.tenants[tenant]
	if t == nil || weight < 1 {
		a.mu.Unlock()
		return nil, api.Errorf(api.Internal, "a tenant that is not inside, or no weight")
	}
	if weight > t.capActive {
		a.mu.Unlock()
		return nil, badParam("n", "%d choices at once are more than this tenant's %d", weight, t.capActive)
	}
	release = sync.OnceFunc(func() { a.release(t, weight) })
	if len(t.queue) == 0 && a.fits(t, weight) && !a.othersWait(t) {
		a.take(t, weight)
		a.mu.Unlock()
		return release, nil
	}
	if t.waiting > 0 && (t.waiting+weight > t.capWaiting || a.waiting+weight > a.maxWaiting) {
		a.mu.Unlock()
		return nil, a.full("this tenant's queue")
	}
	w := &waiter{weight: weight, granted: make(chan struct{})}
	t.queue = append(t.queue, w)
	t.waiting += weight
	a.waiting += weight
	a.dispatch()
	a.mu.Unlock()
	select {
	case <-w.granted:
		return release, nil
	case <-ctx.Done():
	}
	if a.abandon(t, w) {
		release()
	}
	return nil, ctx.Err()
}

// abandon takes w out of the queue; true if it had been granted meanwhile.
func (a *admission) abandon(t *tenantState, w *waiter) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, other := range t.queue {
		if other == w {
			t.queue = append(t.queue[:i], t.queue[i+1:]...)
			t.waiting -= w.weight
			a.waiting -= w.weight
			a.dispatch() // a wide one at the head may have held up others
			return false
		}
	}
	return true
}

func (a *admission) fits(t *tenantState, weight int) bool {
	return t.active+weight <= t.capActive && a.active+weight <= a.maxActive
}

// othersWait says whether another tenant is next in turn and held up only by the
// bound on all: a newcomer must not take the slots it collects.
func (a *admission) othersWait(t *tenantState) bool {
	for _, other := range a.ring {
		if other != t && len(other.queue) > 0 && other.active+other.queue[0].weight <= other.capActive {
			return true
		}
	}
	return false
}

func (a *admission) take(t *tenantState, weight int) {
	t.active += weight
	a.active += weight
}

func (a *admission) release(t *tenantState, weight int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t.active -= weight
	a.active -= weight
	a.dispatch()
}

// dispatch grants slots in turn. It stops at the first tenant that only the bound on
// all holds up, so that narrow requests cannot pass a wide one for ever. Called with
// mu held.
func (a *admission) dispatch() {
	for looked := 0; looked < len(a.ring); {
		if a.turn >= len(a.ring) {
			a.turn = 0
		}
		t := a.ring[a.turn]
		if len(t.queue) == 0 || t.active+t.queue[0].weight > t.capActive {
			a.turn++
			looked++
			continue
		}
		w := t.queue[0]
		if a.active+w.weight > a.maxActive {
			return
		}
		t.queue = t.queue[1:]
		t.waiting -= w.weight
		a.waiting -= w.weight
		a.take(t, w.weight)
		close(w.granted)
		a.turn++
		looked = 0
	}
}

// load is what the gateway carries now.
func (a *admission) load() (active, waiting, tenants int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.active, a.waiting, len(a.tenants)
}
