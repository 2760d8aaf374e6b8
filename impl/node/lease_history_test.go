package node

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"kvfence/impl/config"
	"kvfence/impl/core"
	"kvfence/model/history"
	"kvfence/spec"
)

const (
	leasePages      = 24
	leasePageTokens = 4
	leasePageBytes  = 64
)

// leaseRig is a decode and a prefill rank as they run in production, with real sockets between them, and this test in both
// leaders' place: goroutines ask for leases, and prefill fills each with its transfer's number.
type leaseRig struct {
	t     *testing.T
	d     *DecodeRig
	p     *PrefillRig
	epoch time.Time

	mu      sync.Mutex
	waiting map[uint64]chan core.SideMsg // by transfer
	up      bool

	// On decode's loop only.
	voided []spec.PageID
	leased map[uint64][]spec.GrantedPage
	free   map[uint64]bool
	freed  history.Client // records the moments at which leases are free

	jobs chan core.SideMsg // what the prefill rank says
	wg   sync.WaitGroup
}

func leaseLayout(pages uint32, shared bool) spec.Layout {
	m := spec.Meaning{ModelRevision: "history", Quantization: "none", DType: "u8", ByteOrder: "little", HeadDim: leasePageBytes / leasePageTokens / 2, ElemBytes: 1, KVs: 2,
		TokensPerPage: leasePageTokens, Layers: 1, Heads: 1}
	l := spec.NewDense(spec.KV, m, 0, 1, 0, 1, pages, 1)
	l.Shape.Shared = shared
	return l
}

func newLeaseRig(t *testing.T, kind string) *leaseRig {
	r := &leaseRig{t: t, epoch: time.Now(), waiting: map[uint64]chan core.SideMsg{}, leased: map[uint64][]spec.GrantedPage{}, free: map[uint64]bool{}, jobs: make(chan core.SideMsg, 1<<16)}
	r.freed.Now = r.now
	var c config.Config
	c.Prefill.Control, c.Prefill.Data = "127.0.0.1:0", "127.0.0.1:0"
	c.Transport.Kind, c.Transport.SocketDir, c.Sizes.Window = kind, shortDir(t), 4*leasePages
	c.Timeouts.Liveness, c.Timeouts.Repeat, c.Timeouts.Progress = 2*time.Second, 50*time.Millisecond, 3*time.Second
	rc := RigConfig{Config: c.WithDefaults(), Log: testLog(t), Stopped: func(err error) { t.Error(err) }}
	rc.Layouts, rc.Leader = []spec.Layout{leaseLayout(2*leasePages, kind == "shm")}, func(m core.SideMsg) { r.jobs <- m }
	var err error
	sealed := make(chan struct{}, 1<<16)
	r.p, err = NewPrefillRig(rc, func() { sealed <- struct{}{} })
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, r.d.Close())
		require.NoError(t, r.p.Close())
		close(r.jobs)
		close(sealed)
		r.wg.Wait()
	})
	r.wg.Go(func() {
		for range sealed {
			r.p.Release(func() {})
		}
	})
	r.wg.Go(r.prefill)
	rc.Layouts, rc.Leader = []spec.Layout{leaseLayout(leasePages, kind == "shm")}, r.hear
	r.d, err = NewDecodeRig(rc, r.p.Control())
	require.NoError(t, err)
	host := r.d.d.ranks[0].host
	r.d.d.call(func() {
		act := host.act
		host.act = func(a core.Action) error {
			r.watch(a)
			return act(a)
		}
	})
	r.waitUp()
	return r
}

// watch sees which pages a lease is given: their tags are voided before the leader hears of it. On decode's loop.
func (r *leaseRig) watch(a core.Action) {
	switch a := a.(type) {
	case core.VoidTags:
		r.voided = slices.Clone(a.Pages)
	case core.ToLeader:
		if m, ok := a.Msg.(core.Taken); ok {
			var got []spec.GrantedPage
			for _, p := range r.voided {
				got = append(got, spec.GrantedPage{Page: p, Gen: r.d.d.ranks[0].m.Page(spec.KV, p).Gen})
			}
			r.leased[m.Transfer.Counter] = got
		}
	}
}

func (r *leaseRig) now() int64 { return int64(time.Since(r.epoch)) }

// hear is decode's leader; on its loop.
func (r *leaseRig) hear(m core.SideMsg) {
	switch m := m.(type) {
	case core.PeerUp:
		r.setUp(true)
	case core.PeerDown:
		r.setUp(false)
	case core.Taken:
		// A leader has the grants sent before it does anything else.
		r.p.Tell(core.Assign{Transfer: m.Transfer, Request: leaseDigest(m.Transfer), Domain: spec.Domain{1}, Tokens: leaseTokens(len(r.leased[m.Transfer.Counter])), Links: []spec.Incarnation{r.d.Incarnation()}})
		r.d.d.later(r.d.d.ranks[0].host, core.Side{Msg: core.Go{Transfer: m.Transfer}})
		r.tell(m.Transfer, m)
	case core.NoRoom:
		r.tell(m.Transfer, m)
	case core.NoPlan:
		r.tell(m.Transfer, m)
	case core.LeaseReady:
		r.tell(m.Transfer, m)
	case core.LeaseFailed:
		r.tell(m.Transfer, m)
	case core.LeaseFreed:
		// Who asks for the end of what is free already is told again.
		if !r.free[m.Transfer.Counter] {
			r.freed.Do(history.Freed{Transfer: m.Transfer.Counter}, func() any { return nil })
		}
		r.free[m.Transfer.Counter] = true
		r.tell(m.Transfer, m)
	}
}

func (r *leaseRig) setUp(up bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.up = up
}

func (r *leaseRig) waitUp() {
	require.Eventually(r.t, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.up
	}, patience, time.Millisecond, "no link")
}

func (r *leaseRig) tell(t spec.TransferID, m core.SideMsg) {
	r.mu.Lock()
	c := r.waiting[t.Counter]
	r.mu.Unlock()
	c <- m // has room for everything that is said of one transfer
}

// leaseTokens is a prompt that needs so many pages: the last has room for the first token's KV.
func leaseTokens(pages int) uint32 { return uint32(pages*leasePageTokens - 2) }

func leaseDigest(t spec.TransferID) (d spec.RequestDigest) {
	binary.LittleEndian.PutUint64(d[:], t.Counter)
	return d
}

// prefill is its leader: it has pages taken, writes the transfer's number into them, and says that they are computed.
func (r *leaseRig) prefill() {
	computing, waits := map[uint64]spec.TransferID{}, []spec.TransferID(nil)
	over := func(t spec.TransferID) {
		if _, ok := computing[t.Counter]; ok {
			delete(computing, t.Counter)
			r.p.Tell(core.ComputeOver{Transfer: t})
		}
	}
	for m := range r.jobs {
		switch m := m.(type) {
		case core.Granted:
			computing[m.Transfer.Counter] = m.Transfer
			r.p.Tell(core.TakeSource{Transfer: m.Transfer})
		case core.SourceNoRoom:
			waits = append(waits, m.Transfer)
		case core.SourceTaken:
			pool := r.p.Memory()[spec.KV]
			for _, g := range m.Pages[spec.KV] {
				page := pool.Page(g.Page)
				for i := 0; i < len(page); i += 8 {
					binary.LittleEndian.PutUint64(page[i:], m.Transfer.Counter)
				}
			}
			r.p.Tell(core.ChunkDone{Transfer: m.Transfer, To: leaseTokens(len(m.Pages[spec.KV])), Last: true})
			over(m.Transfer)
		case core.JobStopped:
			waits = slices.DeleteFunc(waits, func(t spec.TransferID) bool { return t == m.Transfer })
			computing[m.Transfer.Counter] = m.Transfer
			over(m.Transfer)
		case core.JobOver:
			for _, t := range waits {
				r.p.Tell(core.TakeSource{Transfer: t})
			}
			waits = nil
		}
	}
}

// leaseClient takes leases, reads them and gives them back.
type leaseClient struct {
	history.Client
	*leaseRig
	rng *rand.Rand
}

func (c *leaseClient) hears(heard chan core.SideMsg) core.SideMsg {
	select {
	case m := <-heard:
		return m
	case <-time.After(patience):
		c.t.Error("nothing is said of a transfer")
		return nil
	}
}

// life is that of one transfer; false: it got no lease.
func (c *leaseClient) life(n uint64) bool {
	t := spec.TransferID{Leader: c.d.Incarnation(), Counter: n}
	heard := make(chan core.SideMsg, 16)
	c.mu.Lock()
	c.waiting[n] = heard
	c.mu.Unlock()
	pages := 1 + c.rng.IntN(6)
	if c.Do(history.Lease{Transfer: n, N: pages}, func() any { return c.lease(t, pages, heard) }).(history.Leased).Refused != "" {
		return false
	}
	freed, ready := false, c.rng.IntN(6) > 0 && c.await(t, heard)
	if ready {
		for range c.rng.IntN(2) + 1 {
			c.peruse(n, pages)
		}
	}
	c.Do(history.Yield{Transfer: n}, func() any { return nil })
	if ready {
		c.d.Tell(core.ReleaseLease{Transfer: t})
	} else {
		c.d.Tell(core.AbortLease{Transfer: t, Cause: spec.CauseClientGone})
	}
	for !freed {
		m := c.hears(heard)
		if _, freed = m.(core.LeaseFreed); m == nil {
			break // reported
		}
	}
	return true
}

func (c *leaseClient) lease(t spec.TransferID, pages int, heard chan core.SideMsg) (a history.Leased) {
	tokens := leaseTokens(pages)
	c.d.Tell(core.Take{Transfer: t, Domain: spec.Domain{1}, Request: leaseDigest(t), Tokens: tokens, Prefill: []core.PeerID{1}})
	switch m := c.hears(heard).(type) {
	case core.Taken:
		a.Lease = m.Lease
		c.d.d.call(func() {
			a.Pages = c.leased[t.Counter]
			delete(c.leased, t.Counter)
		})
	case core.NoRoom:
		a.Refused = history.NoPages
	case core.NoPlan:
		a.Refused = m.Cause
	default:
		a.Refused = spec.Cause(fmt.Sprintf("%T", m))
	}
	return a
}

// await waits for a lease's fate.
func (c *leaseClient) await(t spec.TransferID, heard chan core.SideMsg) (ready bool) {
	c.Do(history.Await{Transfer: t.Counter}, func() any {
		switch m := c.hears(heard).(type) {
		case core.LeaseReady:
			ready = true
			return history.Fate{Ready: true}
		case core.LeaseFailed:
			return history.Fate{Cause: m.Cause}
		default:
			return history.Fate{Cause: spec.Cause(fmt.Sprintf("%T", m))}
		}
	})
	return ready
}

// peruse reads what prefill filled.
func (c *leaseClient) peruse(n uint64, pages int) {
	filled := int(leaseTokens(pages)+leasePageTokens-1) / leasePageTokens
	c.Do(history.Peruse{Transfer: n, Filled: filled}, func() any {
		of := make([]uint64, filled)
		for _, op := range slices.Backward(c.Ops) {
			if in, ok := op.Input.(history.Lease); ok && in.Transfer == n {
				for i, g := range op.Output.(history.Leased).Pages[:filled] {
					of[i] = binary.LittleEndian.Uint64(c.d.Memory()[spec.KV].Page(g.Page))
				}
				break
			}
		}
		return of
	})
}

// record lets so many clients live so many lives each, while links are cut.
func (r *leaseRig) record(clients, lives int) []porcupine.Operation {
	seed := uint64(time.Now().UnixNano())
	r.t.Logf("seed %d", seed)
	var all []*history.Client
	var wg sync.WaitGroup
	for i := range clients {
		c := &leaseClient{Client: history.Client{ID: i, Now: r.now}, leaseRig: r, rng: rand.New(rand.NewPCG(seed, uint64(i)))}
		all = append(all, &c.Client)
		wg.Go(func() {
			for k, n := 0, uint64(i+1); k < lives; n += uint64(clients) {
				if c.life(n) {
					k++
				} else {
					r.waitUp() // and let others have their turn
				}
				if c.rng.IntN(8) == 0 {
					c.Do(history.Room{}, func() any { return int(r.d.Status().Pools[spec.KV].Free) })
				}
			}
		})
	}
	op := &history.Client{ID: clients, Now: r.now}
	all = append(all, op)
	stop, stirred := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stirred)
		r.stirLeases(op, rand.New(rand.NewPCG(seed, 99)), stop)
	}()
	wg.Wait()
	close(stop)
	<-stirred
	r.d.d.call(func() { all = append(all, &history.Client{ID: clients + 1, Ops: slices.Clone(r.freed.Ops)}) })
	for i := range all[clients+1].Ops {
		all[clients+1].Ops[i].ClientId = clients + 1
	}
	return history.Join(all...)
}

// stirLeases cuts data paths and control connections, one at a time, and waits until the link is open again.
func (r *leaseRig) stirLeases(op *history.Client, rng *rand.Rand, stop chan struct{}) {
	moment := func(in any) { op.Do(in, func() any { return nil }) }
	d, p := r.d.d, r.p.p
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(2+rng.IntN(30)) * time.Millisecond):
		}
		moment(history.Fault{})
		var before spec.Epoch
		d.call(func() { before = d.ranks[0].m.Status().Links[0].Epoch })
		if rng.IntN(2) == 0 {
			d.call(func() {
				for _, l := range d.ranks[0].links {
					l.push.stop(everyEpoch, func(bool) {})
					l.pull.stop(everyEpoch, func(bool) {})
				}
			})
		} else {
			p.call(func() {
				for _, c := range p.ranks[0].conns {
					c.abort()
				}
			})
		}
		require.Eventually(r.t, func() (open bool) {
			d.call(func() {
				l := d.ranks[0].m.Status().Links[0]
				open = l.State == "open" && l.Epoch > before
			})
			return open
		}, patience, time.Millisecond, "the link does not come back")
		moment(history.Healed{})
	}
}

func leaseAnswers(ops []porcupine.Operation) map[string]int {
	n := map[string]int{}
	for _, op := range ops {
		what := strings.TrimPrefix(fmt.Sprintf("%T", op.Input), "history.")
		switch o := op.Output.(type) {
		case history.Leased:
			what = strings.TrimSpace(what + " " + string(o.Refused))
		case history.Fate:
			what = strings.TrimSpace(what + " " + string(o.Cause))
		}
		n[what]++
	}
	return n
}

func TestLeaseHistory_ManyGoroutinesUnderCuts_IsLinearizable(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for kind, lives := range map[string]int{"tcp": 300, "shm": 100} {
		t.Run(kind, func(t *testing.T) {
			r := newLeaseRig(t, kind)
			begin := time.Now()
			ops := r.record(8, lives)
			took := time.Since(begin)
			begin = time.Now()
			require.NoError(t, history.Check(history.Leases(leasePages), ops))
			n := leaseAnswers(ops)
			t.Logf("%d operations in %v, %d overlap, checked in %v: %v", len(ops), took.Round(time.Millisecond), overlaps(ops), time.Since(begin).Round(time.Millisecond), n)
			require.Greater(t, overlaps(ops), len(ops)/4)
			require.Equal(t, 8*lives, n["Lease"])
			require.Equal(t, 8*lives, n["Yield"])
			require.Positive(t, n["Fault"])
			require.Positive(t, n["Peruse"])
			if kind == "tcp" {
				require.GreaterOrEqual(t, len(ops), 10_000)
			}
			require.NoError(t, r.check(), "both ledgers, when all is over")
		})
	}
}

// check walks both ledgers when all is over: every page is free.
func (r *leaseRig) check() (err error) {
	require.Eventually(r.t, func() bool {
		return r.d.Status().Pools[spec.KV].Free == leasePages && r.p.Status().Pools[spec.KV].Free == 2*leasePages
	}, patience, time.Millisecond, "pages do not come back")
	r.d.d.call(func() { err = r.d.d.ranks[0].m.Check() })
	if err == nil {
		r.p.p.call(func() { err = r.p.p.ranks[0].m.Check() })
	}
	return err
}

// leaseLies are the faults of leases: each changes one thing of a true history, if there is one to change at i.
func leaseLies() map[string]func(ops []porcupine.Operation, i int) bool {
	granted := func(op porcupine.Operation) (history.Leased, bool) {
		a, ok := op.Output.(history.Leased)
		a.Pages = slices.Clone(a.Pages)
		return a, ok && a.Refused == ""
	}
	fate := func(lie history.Fate, of func(history.Fate) bool) func(ops []porcupine.Operation, i int) bool {
		return func(ops []porcupine.Operation, i int) bool {
			f, ok := ops[i].Output.(history.Fate)
			ops[i].Output = lie
			return ok && of(f)
		}
	}
	return map[string]func(ops []porcupine.Operation, i int) bool{
		"a page is granted twice": func(ops []porcupine.Operation, i int) bool {
			a, ok := granted(ops[i])
			for j := i + 1; j < len(ops) && ok; j++ {
				if b, ok := granted(ops[j]); ok && ops[j].Call < ops[i].Return {
					b.Pages[0] = a.Pages[0]
					ops[j].Output = b
					return true
				}
			}
			return false
		},
		"a page comes back before its lease is ended": func(ops []porcupine.Operation, i int) bool {
			end, ok := ops[i].Input.(history.Freed)
			at := slices.IndexFunc(ops, func(op porcupine.Operation) bool {
				in, ok := op.Input.(history.Lease)
				return ok && in.Transfer == end.Transfer
			})
			for j := i + 1; j < len(ops) && ok; j++ {
				next, taken := granted(ops[j])
				old, _ := granted(ops[at])
				if taken && ops[j].Call > ops[i].Return && slices.ContainsFunc(next.Pages, func(g spec.GrantedPage) bool { return g.Page == old.Pages[0].Page }) {
					ops[i].Call, ops[i].Return = ops[j].Return+1, ops[j].Return+2
					return true
				}
			}
			return false
		},
		"a generation is not raised": func(ops []porcupine.Operation, i int) bool {
			a, ok := granted(ops[i])
			if ok {
				a.Pages[0].Gen--
				ops[i].Output = a
			}
			return ok
		},
		"a lease's number comes again": func(ops []porcupine.Operation, i int) bool {
			a, ok := granted(ops[i])
			a.Lease = 1
			ops[i].Output = a
			return ok
		},
		"another's bytes are read": func(ops []porcupine.Operation, i int) bool {
			of, ok := ops[i].Output.([]uint64)
			if ok {
				of = slices.Clone(of)
				of[len(of)-1]++
				ops[i].Output = of
			}
			return ok
		},
		"a lease fails for no reason":      fate(history.Fate{Cause: spec.CauseMismatch}, func(f history.Fate) bool { return f.Ready }),
		"a failure has no cause":           fate(history.Fate{}, func(f history.Fate) bool { return !f.Ready }),
		"a lease is ready and has a cause": fate(history.Fate{Ready: true, Cause: spec.CauseFenced}, func(f history.Fate) bool { return f.Ready }),
		"a page is lost": func(ops []porcupine.Operation, i int) bool {
			n, ok := ops[i].Output.(int)
			ops[i].Output = n - leasePages
			return ok
		},
	}
}

func TestLeaseHistory_AlteredAnswers_AreRefused(t *testing.T) {
	r := newLeaseRig(t, "tcp")
	ops := r.record(4, 40)
	require.NoError(t, history.Check(history.Leases(leasePages), ops))
	for name, lie := range leaseLies() {
		var err error
		lied := 0
		for i := 20; i < len(ops) && lied < 4 && err == nil; i++ {
			if altered := slices.Clone(ops); lie(altered, i) {
				lied++
				err = history.Check(history.Leases(leasePages), altered)
			}
		}
		if name == "a failure has no cause" && lied == 0 {
			continue // no lease failed in this run
		}
		require.ErrorIs(t, err, history.ErrRefused, "%s, at %d places", name, lied)
	}
}
