package core

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kvfence/impl/pages"
	"kvfence/spec"
)

// prefillWorld plays everything around a PrefillRank at random: leader, two decode peers (one pulls), fabric and clock. It knows which
// source pages something may still read or write, and holds the machine to invariants 2, 6, 9, 10, 13 and 17 from outside.
type prefillWorld struct {
	t     *rapid.T
	r     *PrefillRank
	now   Time
	conn  ConnID
	conns map[PeerID]ConnID
	epoch map[PeerID]spec.Epoch
	mark  map[PeerID]spec.LeaseID
	count uint64

	seals        []Seal
	posts        []Post
	failed       []Post // reported failed, not fenced
	notices      []Notice
	fences       []Fence
	jobs         map[spec.TransferID]*worldJob
	names        []spec.TransferID
	offers       map[offerKey][]spec.SourcePage // what a reader may still copy
	written      map[writeKey]bool
	drained      map[LeaseKey]bool // its notice is out
	most, shared uint32            // pages of a prefix to share at most; shared in all
}

type worldJob struct {
	pages    []spec.GrantedPage // KV
	computed uint32
	tokens   uint32
	over     bool // ComputeOver sent
	lost     bool // stopped by the rank
}

type offerKey struct {
	LeaseKey
	component spec.Component
}

type writeKey struct {
	lease LeaseKey
	epoch spec.Epoch
	c     spec.Component
	part  spec.PartIndex
	index uint32
}

func (w *prefillWorld) step(ev Event) {
	acts, err := w.r.Step(w.now, ev)
	require.NoError(w.t, err)
	for _, led := range w.r.ledgers {
		if led != nil {
			require.NoError(w.t, led.Check())
		}
	}
	for _, a := range acts {
		w.act(a)
	}
	w.held()
}

// held: no page that something outside still reads or writes is free, or has been handed out anew (I2, I6).
func (w *prefillWorld) held() {
	check := func(c spec.Component, p spec.SourcePage) {
		led := w.r.ledgers[c]
		require.False(w.t, led.State(p.Page) == pages.Free || led.Gen(p.Page) != p.Gen, "I2, I6: %s page %d generation %d is in use and free", c, p.Page, p.Gen)
	}
	for _, s := range w.seals {
		for _, it := range s.Items {
			check(it.Part.Component, it.Src)
		}
	}
	for _, p := range append(append([]Post(nil), w.posts...), w.failed...) {
		for _, it := range p.Items {
			check(it.Part.Component, it.Src)
		}
	}
	for _, t := range w.names {
		if j := w.jobs[t]; !j.over {
			for _, p := range j.pages {
				check(spec.KV, spec.SourcePage(p))
			}
		}
	}
	for k, ps := range w.offers {
		for _, p := range ps {
			check(k.component, p)
		}
	}
}

func (w *prefillWorld) act(a Action) {
	switch x := a.(type) {
	case Stop:
		w.t.Fatalf("stopped: %s", x.Broken)
	case Seal:
		w.seals = append(w.seals, x)
		for _, it := range x.Items {
			k := writeKey{x.Lease, w.r.links[x.Lease.Peer].epoch, it.Part.Component, it.Part.Index, it.Index + 1<<20}
			require.False(w.t, w.written[k], "I13: sealed twice")
			w.written[k] = true
		}
	case Post:
		w.posts = append(w.posts, x)
		require.False(w.t, w.drained[LeaseKey{x.Peer, x.Lease}], "I9: a post after the drain notice")
		for _, it := range x.Items {
			k := writeKey{LeaseKey{x.Peer, x.Lease}, x.Epoch, it.Part.Component, it.Part.Index, it.Index}
			require.False(w.t, w.written[k], "I13: written twice")
			w.written[k] = true
			require.NotZero(w.t, it.Tag.Digest, "sealed before it is posted")
		}
	case Notice:
		w.notices = append(w.notices, x)
		w.drained[LeaseKey{x.Peer, x.Lease}] = true
	case Fence:
		w.fences = append(w.fences, x)
	case CloseConn:
		for p := range PeerID(3) {
			if w.conns[p] == x.Conn {
				delete(w.conns, p)
			}
		}
	case Send:
		w.message(x)
	case ToLeader:
		w.leader(x.Msg)
	}
}

// message checks what leaves: a receipt only when nothing of its lease is out.
func (w *prefillWorld) message(x Send) {
	var lease spec.LeaseID
	switch m := x.Env.Body.(type) {
	case spec.Offer:
		if m.Lease < w.mark[x.Peer] {
			return // decode has given the lease up before the offer came: nobody reads it
		}
		k := offerKey{LeaseKey{x.Peer, m.Lease}, m.Done.Component}
		w.offers[k] = append(w.offers[k], m.Done.Source...)
		return
	case spec.Complete:
		lease = m.Lease
	case spec.Failed:
		lease = m.Lease
	case spec.AbortAck:
		lease = m.Lease
	case spec.Gone:
		lease = m.Lease
	default:
		return
	}
	for _, p := range append(append([]Post(nil), w.posts...), w.failed...) {
		require.False(w.t, p.Peer == x.Peer && p.Lease == lease && p.Epoch == x.Env.Epoch, "I9: receipt with a post out")
	}
}

func (w *prefillWorld) leader(m SideMsg) {
	switch s := m.(type) {
	case Granted:
		w.step(Side{Msg: TakeSource{Transfer: s.Transfer, MostShare: w.most}})
	case SourceTaken:
		j := w.jobs[s.Transfer]
		require.NotNil(w.t, j)
		j.pages, j.computed = s.Pages[spec.KV], 4*s.Shared
		w.shared += s.Shared
	case JobStopped:
		w.jobs[s.Transfer].lost = true
	case JobOver:
		j := w.jobs[s.Transfer]
		require.True(w.t, j.over, "a kernel may still write")
		j.pages = nil
		for _, p := range w.posts {
			require.NotEqual(w.t, s.Transfer, w.transferOf(p), "I10: over with a post out")
		}
	}
}

func (w *prefillWorld) transferOf(p Post) spec.TransferID { return xfer(p.Peer, uint64(p.Lease)) }

func (w *prefillWorld) peer() PeerID { return PeerID(rapid.IntRange(1, 2).Draw(w.t, "peer")) }

func (w *prefillWorld) env(p PeerID, m spec.Message) Recv {
	h := spec.Header{From: decodeIdentity(p).Incarnation, To: incOf(1), Epoch: w.epoch[p], Mark: w.mark[p]}
	switch rapid.IntRange(0, 59).Draw(w.t, "header") {
	case 0:
		h.Epoch--
	case 1:
		h.To = incOf(8)
	case 2:
		h.From = incOf(9)
	case 3:
		h.Mark = 0
	}
	return Recv{Peer: p, Conn: w.conns[p], Env: spec.Envelope{Header: h, Body: m}}
}

func (w *prefillWorld) connect() {
	p := w.peer()
	w.conn++
	w.count++
	w.epoch[p]++
	c := spec.Connect{Version: spec.Version, Capabilities: requiredCapabilities(), Counter: w.count, Epoch: w.epoch[p], Identity: decodeIdentity(p),
		Layouts: rigLayouts(64), Window: 64, Digests: true, Pull: p == 2}
	if old, ok := w.conns[p]; ok {
		delete(w.conns, p)
		w.step(ConnLost{Peer: p, Conn: old})
	}
	if p == 2 { // connecting is decode's fence: its copies have ended, its mark says so when the fence is back
		w.endReads(p)
	}
	w.conns[p] = w.conn
	w.step(ConnectIn{Peer: p, Conn: w.conn, DataAddress: "a", Env: spec.Envelope{Header: spec.Header{From: c.Identity.Incarnation, Epoch: c.Epoch, Mark: w.mark[p]}, Body: c}})
	if rapid.IntRange(0, 4).Draw(w.t, "data") > 0 {
		w.step(DataUp{Peer: p, Epoch: w.epoch[p]})
	}
}

func (w *prefillWorld) endReads(p PeerID) { w.endRead(func(k LeaseKey) bool { return k.Peer == p }) }

func (w *prefillWorld) endRead(over func(LeaseKey) bool) {
	for k := range w.offers {
		if over(k.LeaseKey) {
			delete(w.offers, k)
		}
	}
}

// through lets what is pushed come to its end.
func (w *prefillWorld) through() {
	w.grantTo(1)
	for range 12 {
		w.compute()
		for range 3 {
			w.fabric()
		}
	}
}

func (w *prefillWorld) grant() { w.grantTo(w.peer()) }

func (w *prefillWorld) grantTo(p PeerID) {
	n := rapid.Uint64Range(1, 6).Draw(w.t, "lease")
	tokens := uint32(1 + 2*n)
	m := grantOf(p, n, spec.LeaseID(n), tokens)
	if p == 2 {
		m = pullGrant(p, n, spec.LeaseID(n), tokens)
	}
	if w.jobs[m.Transfer] == nil {
		w.jobs[m.Transfer] = &worldJob{tokens: tokens}
		w.names = append(w.names, m.Transfer)
		w.step(Side{Msg: Assign{Transfer: m.Transfer, Domain: rigDomain, Tokens: tokens, Links: []spec.Incarnation{decodeIdentity(p).Incarnation},
			Contents: spec.ContentIDs(make([]int32, tokens), rigDomain, 4)}})
	}
	w.step(w.env(p, m))
}

func (w *prefillWorld) compute() {
	if len(w.names) == 0 {
		return
	}
	t := rapid.SampledFrom(w.names).Draw(w.t, "job")
	j := w.jobs[t]
	switch {
	case j.over:
	case j.lost || rapid.IntRange(0, 9).Draw(w.t, "break") == 0:
		w.step(Side{Msg: Break{Transfer: t, Cause: spec.CauseCompute}})
		j.over = true
		w.step(Side{Msg: ComputeOver{Transfer: t}})
	case len(j.pages) > 0:
		to := min(j.computed+3, j.tokens)
		from := j.computed
		j.computed = to
		w.step(Side{Msg: ChunkDone{Transfer: t, From: from, To: to, Last: to == j.tokens}})
		if to == j.tokens {
			j.over = true
			w.step(Side{Msg: ComputeOver{Transfer: t}})
		}
	}
}

func pick[T any](w *prefillWorld, q *[]T) (v T, ok bool) {
	if len(*q) == 0 {
		return v, false
	}
	i := rapid.IntRange(0, len(*q)-1).Draw(w.t, "which")
	v = (*q)[i]
	*q = append(append([]T(nil), (*q)[:i]...), (*q)[i+1:]...)
	return v, true
}

// fabric ends one piece of work, in any order.
func (w *prefillWorld) fabric() {
	switch rapid.IntRange(0, 2).Draw(w.t, "work") {
	case 0:
		if s, ok := pick(w, &w.seals); ok {
			d := make([]uint64, len(s.Items))
			for i := range d {
				d[i] = uint64(i) + 1
			}
			w.step(Sealed{Seal: s.Seal, Lease: s.Lease, Digests: d})
		}
	case 1:
		if p, ok := pick(w, &w.posts); ok {
			if rapid.IntRange(0, 5).Draw(w.t, "fail") == 0 {
				w.failed = append(w.failed, p)
				w.step(Posted{Peer: p.Peer, Epoch: p.Epoch, Batch: p.Batch, Err: "failed"})
			} else {
				w.step(Posted{Peer: p.Peer, Epoch: p.Epoch, Batch: p.Batch})
			}
		}
	case 2:
		if n, ok := pick(w, &w.notices); ok {
			w.step(Noticed{Peer: n.Peer, Epoch: n.Epoch, Lease: n.Lease, Number: n.Number, Channels: []spec.Channel{{ID: 1, Notice: n.Number}}})
		}
	}
}

func (w *prefillWorld) fence() {
	f, ok := pick(w, &w.fences)
	if !ok {
		return
	}
	over := func(p Post) bool { return p.Peer == f.Peer && p.Epoch <= f.Old }
	for _, p := range w.posts {
		if over(p) {
			w.failed = append(w.failed, p) // its end comes after the fence
		}
	}
	late := slices.DeleteFunc(slices.Clone(w.failed), func(p Post) bool { return !over(p) })
	w.posts = slices.DeleteFunc(w.posts, over)
	w.failed = slices.DeleteFunc(w.failed, over)
	w.step(FenceDone{Peer: f.Peer, Old: f.Old, OK: true})
	for _, p := range late {
		w.step(Posted{Peer: p.Peer, Epoch: p.Epoch, Batch: p.Batch, Err: "fenced"})
	}
}

func (w *prefillWorld) read() {
	n := spec.LeaseID(rapid.IntRange(1, 6).Draw(w.t, "lease"))
	w.endRead(func(k LeaseKey) bool { return k == LeaseKey{2, n} })
	w.step(Recv{Peer: 2, Conn: w.conns[2], Env: spec.Envelope{Header: spec.Header{From: decodeIdentity(2).Incarnation, To: incOf(1), Epoch: w.epoch[2], Mark: w.mark[2]},
		Body: spec.Read{Transfer: xfer(2, uint64(n)), Lease: n}}})
}

func (w *prefillWorld) raiseMark() {
	p := w.peer()
	if w.mark[p] < 7 {
		w.mark[p]++
		w.endRead(func(k LeaseKey) bool { return k == LeaseKey{p, w.mark[p] - 1} })
	}
	w.step(w.env(p, spec.Ping{Number: 1}))
}

func TestPrefillRank_RandomWorld_KeepsTheInvariants(t *testing.T) {
	shared := uint32(0)
	defer func() { t.Logf("%d pages shared", shared) }()
	rapid.Check(t, func(rt *rapid.T) {
		cfg := rigConfig()
		cfg.SideLayouts = [][]spec.Layout{rigLayouts(9)}
		cfg.MaxAnswers, cfg.MaxPostItems, cfg.MaxPosts, cfg.MaxSealItems, cfg.MaxOffered = 3, 2, 2, 3, 5
		cfg.MaxPublished = rapid.SampledFrom([]int{0, 2, 9}).Draw(rt, "published")
		r, err := NewPrefillRank(cfg)
		require.NoError(rt, err)
		w := &prefillWorld{t: rt, r: r, now: 1, conns: map[PeerID]ConnID{}, epoch: map[PeerID]spec.Epoch{}, mark: map[PeerID]spec.LeaseID{1: 1, 2: 1},
			jobs: map[spec.TransferID]*worldJob{}, offers: map[offerKey][]spec.SourcePage{}, written: map[writeKey]bool{}, drained: map[LeaseKey]bool{}}
		w.most = rapid.SampledFrom([]uint32{0, 1, 9}).Draw(rt, "most")
		w.connect()
		w.connect()
		moves := []func(){w.through, w.through, w.connect, w.grant, w.grant, w.grant, w.compute, w.compute, w.compute, w.compute, w.fabric, w.fabric, w.fabric, w.fabric, w.fabric,
			w.fabric, w.fabric, w.fabric, w.fence, w.read, w.raiseMark,
			func() {
				p, n := w.peer(), rapid.Uint64Range(1, 6).Draw(w.t, "lease")
				w.step(w.env(p, spec.Abort{Transfer: xfer(p, n), Lease: spec.LeaseID(n)}))
			},
			func() { p := w.peer(); w.step(DataLost{Peer: p, Epoch: w.epoch[p]}) },
			func() { w.now += Time(rapid.Int64Range(0, 3e9).Draw(w.t, "wait")); w.step(Tick{}) },
		}
		for range rapid.IntRange(30, 250).Draw(rt, "steps") {
			moves[rapid.IntRange(0, len(moves)-1).Draw(rt, "move")]()
		}
		w.heal()
		shared += w.shared
	})
}

// heal ends everything fairly; an idle system is clean.
func (w *prefillWorld) heal() {
	for _, t := range w.names {
		w.step(Side{Msg: Break{Transfer: t, Cause: spec.CauseOperator}})
		if !w.jobs[t].over {
			w.jobs[t].over = true
			w.step(Side{Msg: ComputeOver{Transfer: t}})
		}
	}
	for len(w.seals)+len(w.posts)+len(w.notices) > 0 {
		w.fabric()
	}
	w.step(ConnLost{Peer: 1, Conn: w.conns[1]})
	w.endReads(2)
	w.step(ReaderEnded{Peer: 2})
	for len(w.fences) > 0 {
		w.fence()
	}
	s := w.r.Status()
	require.Equal(w.t, s.Pools[spec.KV].Total, s.Pools[spec.KV].Free, "%+v", s)
	require.Equal(w.t, s.Pools[spec.Aux].Total, s.Pools[spec.Aux].Free)
	require.Zero(w.t, s.Jobs)
}

func TestPrefillRank_RandomGarbage_NeverFailsAStep(t *testing.T) {
	kinds := []func(*rapid.T) spec.Message{
		func(t *rapid.T) spec.Message { return rapid.Make[spec.Grant]().Draw(t, "grant") },
		func(t *rapid.T) spec.Message { return rapid.Make[spec.Abort]().Draw(t, "abort") },
		func(t *rapid.T) spec.Message { return rapid.Make[spec.Read]().Draw(t, "read") },
		func(t *rapid.T) spec.Message { return rapid.Make[spec.Ping]().Draw(t, "ping") },
		func(t *rapid.T) spec.Message { return rapid.Make[spec.Refused]().Draw(t, "refused") },
		func(t *rapid.T) spec.Message { return rapid.Make[spec.Complete]().Draw(t, "complete") },
	}
	rapid.Check(t, func(rt *rapid.T) {
		r, err := NewPrefillRank(rigConfig())
		require.NoError(rt, err)
		g := &prefillRig{t: t, r: r, now: 1, inc: map[PeerID]spec.Incarnation{}, ep: map[PeerID]spec.Epoch{}, mark: 1}
		g.open(1, 1, nil)
		for range 20 {
			if rapid.IntRange(0, 4).Draw(rt, "connect") == 0 {
				c := rapid.Make[spec.Connect]().Draw(rt, "connect")
				_, err = r.Step(2, ConnectIn{Peer: 2, Conn: 99, Env: spec.Envelope{Header: rapid.Make[spec.Header]().Draw(rt, "header"), Body: c}})
				require.NoError(rt, err)
			}
			m := kinds[rapid.IntRange(0, len(kinds)-1).Draw(rt, "kind")](rt)
			h := spec.Header{From: g.inc[1], To: incOf(1), Epoch: spec.Epoch(rapid.Uint64Range(0, 2).Draw(rt, "epoch")), Mark: spec.LeaseID(rapid.Uint64().Draw(rt, "mark"))}
			_, err := r.Step(2, Recv{Peer: 1, Conn: g.conn, Env: spec.Envelope{Header: h, Body: m}})
			require.NoError(rt, err)
			require.False(rt, r.stopped)
		}
	})
}
