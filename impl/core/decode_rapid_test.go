package core

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kvfence/impl/pages"
	"kvfence/spec"
)

// chaos drives one decode rank with anything: its driver keeps its contract, peers say whatever they like. Beside it stands a
// plain record of what was proved, and no lease may be freed before its proofs are in.
type chaos struct {
	t       *rapid.T
	r       *DecodeRank
	now     Time
	conn    ConnID
	last    uint64
	grants  map[grantKey]*proofs
	fences  []Fence
	opens   []OpenData
	running map[spec.LeaseID]int // verifies, reads and copies that have not come back
	verify  []spec.LeaseID
	reads   []spec.LeaseID
	jobs    []PullCopy
	freed   int
	ready   int

	tables map[spec.LeaseID]*[spec.ComponentCount][]spec.GrantedPage // of reads that run
	filled map[spec.GrantedPage]filledFor                            // KV pages, by what was granted
	shares int                                                       // pages read that another lease filled
}

// filledFor is what a KV page was granted for.
type filledFor struct {
	lease   spec.LeaseID
	domain  spec.Domain
	content spec.ContentID
}

type grantKey struct {
	peer  PeerID
	lease spec.LeaseID
}

// proofs is what has arrived for one hold.
type proofs struct {
	transfer spec.TransferID
	epoch    spec.Epoch
	inc      spec.Incarnation
	pull     bool
	notices  map[uint32]uint64
	receipts [][]spec.Channel
	fenced   bool
}

func (p *proofs) proved() bool {
	if p.fenced || p.pull { // a pull hold is its own copies, counted in running
		return true
	}
	return slices.ContainsFunc(p.receipts, func(cs []spec.Channel) bool {
		return !slices.ContainsFunc(cs, func(c spec.Channel) bool { return p.notices[c.ID] < c.Notice })
	})
}

func (c *chaos) step(ev Event) {
	if m, ok := ev.(Recv); ok {
		c.note(m)
	}
	acts, err := c.r.Step(c.now, ev)
	require.NoError(c.t, err)
	require.NoError(c.t, c.r.pools.Check())
	for _, a := range acts {
		c.act(a)
	}
	c.tablesHold()
}

// tablesHold: no page under a running kernel is free or was handed out anew.
func (c *chaos) tablesHold() {
	for id, table := range c.tables {
		for comp, ps := range table {
			for _, p := range ps {
				pool := c.r.pools[comp]
				require.False(c.t, pool.Gen(p.Page) != p.Gen || pool.State(p.Page) == pages.Free, "lease %d reads %s page %d", id, spec.Component(comp), p.Page)
			}
		}
	}
}

// mayRead: what a step reads of its prompt was granted for the same domain and the same tokens up to there, and it stores into no page that
// another lease has.
func (c *chaos) mayRead(a ReadPages) {
	l := c.r.leases[a.Lease]
	for i, p := range a.Pages[spec.KV] {
		if f, granted := c.filled[p]; granted && i < len(l.contents) {
			require.Equal(c.t, f.domain, l.domain)
			require.Equal(c.t, f.content, l.contents[i], "lease %d, page index %d", l.id, i)
			if f.lease != l.id {
				c.shares++
			}
		}
	}
	if l.appended == 0 {
		return
	}
	at := a.Pages[spec.KV][(l.appended-1)/worldPage]
	for _, x := range c.r.leases {
		require.False(c.t, x != l && slices.Contains(x.pages[spec.KV], at), "lease %d stores into a page of lease %d", l.id, x.id)
	}
}

// note records what a message proves, by the protocol's words: transfer, lease, the granted incarnation, the grant's epoch.
func (c *chaos) note(m Recv) {
	add := func(t spec.TransferID, l spec.LeaseID, e spec.Epoch, cs []spec.Channel) {
		p := c.grants[grantKey{m.Peer, l}]
		if p != nil && p.transfer == t && p.epoch == e && p.inc == m.Env.From && m.Env.To == c.r.own {
			p.receipts = append(p.receipts, cs)
		}
	}
	switch b := m.Env.Body.(type) {
	case spec.Complete:
		add(b.Transfer, b.Lease, b.GrantEpoch, b.Channels)
	case spec.Failed:
		add(b.Transfer, b.Lease, b.GrantEpoch, b.Channels)
	case spec.AbortAck:
		add(b.Transfer, b.Lease, b.GrantEpoch, b.Channels)
	case spec.Gone:
		add(b.Transfer, b.Lease, b.GrantEpoch, nil)
	}
}

func (c *chaos) act(a Action) {
	switch a := a.(type) {
	case Stop:
		c.t.Fatalf("stopped: %+v", a)
	case Fence:
		c.fences = append(c.fences, a)
	case OpenData:
		c.opens = append(c.opens, a)
	case Send:
		if g, ok := a.Env.Body.(spec.Grant); ok && c.grants[grantKey{a.Peer, g.Lease}] == nil {
			l := c.r.leases[g.Lease]
			for i, p := range g.Pages[spec.KV] {
				if p.Gen != 0 && i < len(l.contents) {
					c.filled[p] = filledFor{l.id, l.domain, l.contents[i]}
				}
			}
			c.grants[grantKey{a.Peer, g.Lease}] = &proofs{transfer: g.Transfer, epoch: a.Env.Epoch, inc: a.Env.To, pull: c.r.link(a.Peer).cfg.Pull, notices: map[uint32]uint64{}}
		}
	case Verify:
		c.running[a.Lease]++
		c.verify = append(c.verify, a.Lease)
	case ReadPages:
		c.running[a.Lease]++
		c.reads = append(c.reads, a.Lease)
		c.tables[a.Lease] = a.Pages
		c.mayRead(a)
	case PullCopy:
		c.running[a.Lease]++
		c.jobs = append(c.jobs, a)
	case ToLeader:
		switch m := a.Msg.(type) {
		case LeaseReady:
			c.ready++
		case LeaseFreed:
			for k, p := range c.grants {
				if p.transfer == m.Transfer {
					c.freed++
					require.True(c.t, p.proved(), "lease %d freed without proof from peer %d", k.lease, k.peer)
					require.Zero(c.t, c.running[k.lease], "lease %d freed under a kernel or copy", k.lease)
				}
			}
		}
	}
}

func (c *chaos) peer() PeerID {
	return PeerID(rapid.IntRange(1, len(c.r.links)).Draw(c.t, "peer"))
}

// lease is mostly one that lives.
func (c *chaos) lease() *dlease {
	live := slices.Sorted(maps.Keys(c.r.leases))
	if len(live) == 0 || rapid.IntRange(0, 9).Draw(c.t, "dead") == 0 {
		return &dlease{id: 3, transfer: spec.TransferID{Leader: c.r.own, Counter: 1}}
	}
	return c.r.leases[rapid.SampledFrom(live).Draw(c.t, "lease")]
}

func (c *chaos) channels() (out []spec.Channel) {
	for id := range uint32(rapid.IntRange(0, 2).Draw(c.t, "channels")) {
		out = append(out, spec.Channel{ID: id, Notice: rapid.Uint64Range(1, 3).Draw(c.t, "notice")})
	}
	return out
}

// message is anything that a peer might say about a lease; usually with the right names.
func (c *chaos) message(p PeerID, l *dlease) spec.Message {
	k := c.r.link(p)
	t, id, e := l.transfer, l.id, k.epoch
	if h := l.hold(k); h != nil {
		e = h.epoch
	}
	switch rapid.IntRange(0, 14).Draw(c.t, "wrong") {
	case 0:
		t.Counter++
	case 1:
		id++
	case 2:
		e++
	}
	cause := rapid.SampledFrom([]spec.Cause{spec.CauseCompute, spec.CauseFenced, "nonsense", ""}).Draw(c.t, "cause")
	switch rapid.IntRange(0, 12).Draw(c.t, "kind") {
	case 0, 1, 2:
		if l.hold(k) == nil {
			return spec.Complete{Transfer: t, Lease: id, GrantEpoch: e}
		}
		m := c.rightComplete(p, l)
		m.Transfer, m.Lease, m.GrantEpoch, m.Channels = t, id, e, c.channels()
		if rapid.IntRange(0, 9).Draw(c.t, "torn") == 0 && len(m.Parts) > 0 {
			m.Parts = m.Parts[1:]
		}
		return m
	case 3:
		return spec.Failing{Transfer: t, Lease: id, Cause: cause}
	case 4:
		return spec.Failed{Transfer: t, Lease: id, GrantEpoch: e, Cause: cause, Channels: c.channels()}
	case 5:
		return spec.AbortAck{Transfer: t, Lease: id, GrantEpoch: e, Channels: c.channels()}
	case 6:
		return spec.Gone{Transfer: t, Lease: id, GrantEpoch: e}
	case 7:
		d := spec.PartDone{Component: spec.KV, Index: spec.PartIndex(p - 1)}
		for range rapid.IntRange(0, 4).Draw(c.t, "pages") {
			d.Source = append(d.Source, spec.SourcePage{Page: 1, Gen: 1})
		}
		return spec.Offer{Transfer: t, Lease: id, SourceLease: 5, Done: d}
	case 8:
		return spec.Refused{About: spec.Kind(rapid.IntRange(0, 25).Draw(c.t, "about")), Lease: id, Refusal: rapid.SampledFrom(spec.Refusals()).Draw(c.t, "why")}
	case 9:
		return spec.Fenced{Old: e - 1 + spec.Epoch(rapid.IntRange(0, 5).Draw(c.t, "old")/5)}
	case 10:
		return rapid.SampledFrom([]spec.Message{spec.Ping{Number: 1}, spec.Pong{Number: 9}, spec.Read{}, spec.Grant{}, spec.Connect{}, spec.Ask{}, spec.Asked{}, spec.Refuse{}, nil}).Draw(c.t, "other")
	default:
		return spec.Ping{Number: 3}
	}
}

// serve accepts, opens and ends fences as a willing peer and driver would.
func (c *chaos) serve(p PeerID) {
	k := c.r.link(p)
	n := len(c.r.links)
	side := make([]spec.Incarnation, n)
	for i := range side {
		side[i] = worldInc('p', i, 0)
	}
	switch k.state {
	case dlinkDown:
		c.conn++
		c.step(Dialed{Peer: p, Conn: c.conn, Nonce: spec.Nonce{byte(c.conn), byte(c.conn >> 8)}})
	case dlinkConnecting:
		for i, f := range c.fences {
			if f.Peer == p {
				c.fenceDone(i)
				return
			}
		}
		c.step(Recv{Peer: p, Conn: k.conn, Env: spec.Envelope{Header: spec.Header{From: side[p-1], To: c.r.own, Epoch: k.epoch}, Body: spec.Accept{Version: spec.Version,
			Capabilities: requiredCapabilities(), Nonce: k.nonce, Window: 1000, DataAddress: "a", Layouts: worldLayouts(int(p-1), n, 40),
			Identity: spec.Identity{Name: fmt.Sprint("p", p), Role: spec.RolePrefill, Incarnation: side[p-1], Rank: spec.Rank(p - 1), Size: uint16(n), Side: side}}}})
	case dlinkOpening:
		c.step(DataUp{Peer: p, Epoch: k.epoch})
	}
}

func (c *chaos) fenceDone(i int) {
	f := c.fences[i]
	c.fences = slices.Delete(c.fences, i, i+1)
	for k, p := range c.grants {
		if k.peer == f.Peer && p.epoch <= f.Old {
			p.fenced = true
		}
	}
	c.step(FenceDone{Peer: f.Peer, Old: f.Old, OK: true})
}

func (c *chaos) bad() (out []BadPart) {
	if rapid.IntRange(0, 5).Draw(c.t, "bad") == 0 {
		out = append(out, BadPart{Component: spec.Component(rapid.IntRange(0, 3).Draw(c.t, "c")), Index: rapid.Uint32Range(0, 5).Draw(c.t, "i"), State: spec.TagForeign})
	}
	return out
}

func take[T any](c *chaos, from *[]T) (v T, ok bool) {
	if len(*from) == 0 {
		return v, false
	}
	i := rapid.IntRange(0, len(*from)-1).Draw(c.t, "which")
	v = (*from)[i]
	*from = slices.Delete(*from, i, i+1)
	return v, true
}

func (c *chaos) actions() map[string]func(*rapid.T) {
	transfer := func() spec.TransferID { return c.lease().transfer }
	return map[string]func(*rapid.T){
		"serve":   func(*rapid.T) { c.serve(c.peer()) },
		"serve2":  func(*rapid.T) { c.serve(c.peer()) },
		"serve3":  func(*rapid.T) { c.serve(c.peer()) },
		"take":    func(*rapid.T) { c.takePages() },
		"go":      func(*rapid.T) { c.step(Side{Msg: Go{Transfer: transfer()}}) },
		"abort":   func(*rapid.T) { c.step(Side{Msg: AbortLease{Transfer: transfer(), Cause: spec.CauseClientGone}}) },
		"release": func(*rapid.T) { c.step(Side{Msg: ReleaseLease{Transfer: transfer()}}) },
		"grow": func(*rapid.T) {
			c.step(Side{Msg: Grow{Transfer: transfer(), Pos: rapid.Uint32Range(0, 30).Draw(c.t, "pos")}})
		},
		"fork": func(*rapid.T) {
			if c.r.cfg.MaxPublished > 0 {
				c.last++
				c.step(Side{Msg: Fork{Transfer: spec.TransferID{Leader: c.r.own, Counter: c.last}, From: transfer()}})
			}
		},
		"through": func(*rapid.T) { c.through() }, "through2": func(*rapid.T) { c.through() },
		"read2": func(*rapid.T) {
			if l := c.lease(); l.state == dleaseReady {
				c.step(ReadBegin{Lease: l.id, Pos: l.tokens})
			}
		},
		"read": func(*rapid.T) {
			c.step(ReadBegin{Lease: c.lease().id, Pos: rapid.Uint32Range(0, 30).Draw(c.t, "pos")})
		},
		"message": func(*rapid.T) { c.say() }, "honest": func(*rapid.T) { c.honest() }, "honest2": func(*rapid.T) { c.honest() },
		"honest3": func(*rapid.T) { c.honest() }, "honest4": func(*rapid.T) { c.honest() }, "honest5": func(*rapid.T) { c.honest() },
		"notice": func(*rapid.T) { c.noticed() },
		"verified": func(*rapid.T) {
			if l, ok := take(c, &c.verify); ok {
				c.running[l]--
				c.step(Verified{Lease: l, Bad: c.bad()})
			}
		},
		"read end": func(*rapid.T) {
			if l, ok := take(c, &c.reads); ok {
				c.running[l]--
				delete(c.tables, l)
				c.step(ReadEnd{Lease: l, Bad: c.bad(), Copied: rapid.Bool().Draw(c.t, "copied")})
			}
		},
		"copied": func(*rapid.T) {
			if j, ok := take(c, &c.jobs); ok {
				c.running[j.Lease]--
				c.step(PullDone{Peer: j.Peer, Epoch: j.Epoch, Job: j.Job, Lease: j.Lease, Bad: c.bad()})
			}
		},
		"fenced": func(*rapid.T) {
			if len(c.fences) > 0 {
				c.fenceDone(rapid.IntRange(0, len(c.fences)-1).Draw(c.t, "which"))
			}
		},
		"lost": func(*rapid.T) {
			p := c.peer()
			switch rapid.IntRange(0, 5).Draw(c.t, "how") {
			case 0:
				c.step(ConnLost{Peer: p, Conn: c.r.link(p).conn})
			case 1:
				c.step(DataLost{Peer: p, Epoch: c.r.link(p).epoch})
			default:
				c.step(DataUp{Peer: p, Epoch: c.r.link(p).epoch - 1, Err: "late"})
			}
		},
		"time": func(*rapid.T) {
			c.now += Time(rapid.IntRange(1, 30).Draw(c.t, "dt"))
			c.step(Tick{})
		},
		"stray": func(*rapid.T) {
			c.step(rapid.SampledFrom([]Event{Verified{Lease: 99}, ReadEnd{Lease: 99}, PullDone{Peer: 1, Job: 999}, FenceDone{Peer: 1, Old: 999, OK: true},
				Side{Msg: PagesFreed{}}, SayFor{Peer: 1, Body: spec.Ping{}}, SayFor{Peer: 1, Body: spec.Ask{}}}).Draw(c.t, "stray"))
		},
	}
}

// through takes a lease from its pages to ready, if nothing stands in its way.
func (c *chaos) through() {
	for _, k := range c.r.links {
		for range 3 {
			c.serve(k.cfg.ID)
		}
	}
	c.takePages()
	l := c.r.byTransfer[spec.TransferID{Leader: c.r.own, Counter: c.last}]
	if l == nil {
		return
	}
	c.step(Side{Msg: Go{Transfer: l.transfer}})
	for _, k := range c.r.links {
		for range 3 {
			c.honestly(k.cfg.ID, l)
		}
	}
	c.honestly(1, l)
}

// honest brings one lease forward as a right peer would: its Complete with its notice, or its verification without a finding.
func (c *chaos) honest() { c.honestly(c.peer(), c.lease()) }

func (c *chaos) honestly(p PeerID, l *dlease) {
	h := l.hold(c.r.link(p))
	switch {
	case l.state == dleaseVerifying && slices.Contains(c.verify, l.id):
		c.verify = slices.DeleteFunc(c.verify, func(id spec.LeaseID) bool { return id == l.id })
		c.running[l.id]--
		c.step(Verified{Lease: l.id})
	case h != nil && h.pull != nil && h.pull.running > 0:
		if j, ok := take(c, &c.jobs); ok {
			c.running[j.Lease]--
			c.step(PullDone{Peer: j.Peer, Epoch: j.Epoch, Job: j.Job, Lease: j.Lease})
		}
	case h != nil && h.standing:
		m := c.rightComplete(p, l)
		c.step(Recv{Peer: p, Conn: h.link.conn, Env: spec.Envelope{Header: spec.Header{From: h.inc, To: c.r.own, Epoch: h.epoch}, Body: m}})
		for _, ch := range m.Channels {
			if g := c.grants[grantKey{p, l.id}]; g != nil {
				g.notices[ch.ID] = max(g.notices[ch.ID], ch.Notice)
			}
			c.step(NoticeIn{Peer: p, Epoch: h.epoch, Channel: ch.ID, Lease: l.id, Number: ch.Notice})
		}
	}
}

func (c *chaos) rightComplete(p PeerID, l *dlease) spec.Complete {
	m := spec.Complete{Transfer: l.transfer, Lease: l.id, GrantEpoch: l.hold(c.r.link(p)).epoch, Tokens: l.tokens, Request: l.request, SourceLease: 5}
	if !c.r.link(p).cfg.Pull {
		m.Channels = []spec.Channel{{ID: 0, Notice: 3}}
	}
	for _, part := range l.partsOf(int(p - 1)) {
		lo, hi := part.PageRange(*c.r.layouts[part.Component])
		d := spec.PartDone{Component: part.Component, Index: part.Index}
		for i := lo; i < hi; i++ {
			d.Source = append(d.Source, spec.SourcePage{Page: spec.PageID(i), Gen: 1})
		}
		m.Parts = append(m.Parts, d)
	}
	return m
}

func (c *chaos) takePages() {
	c.last++
	t := spec.TransferID{Leader: c.r.own, Counter: c.last}
	var all []PeerID
	for i := range c.r.links {
		all = append(all, PeerID(i+1))
	}
	m := Take{Transfer: t, Tokens: rapid.Uint32Range(1, 12).Draw(c.t, "tokens"), Prefill: all, Domain: spec.Domain{byte(c.last)}}
	if c.r.cfg.MaxPublished > 0 {
		prompt := make([]int32, m.Tokens)
		if len(prompt) > 5 {
			prompt[5] = int32(rapid.IntRange(0, 3).Draw(c.t, "differs") / 3)
		}
		m.Domain = spec.Domain{byte(rapid.IntRange(1, 2).Draw(c.t, "domain"))}
		m.Contents = spec.ContentIDs(prompt, m.Domain, worldPage)
	}
	c.step(Side{Msg: m})
	if rapid.Bool().Draw(c.t, "go") {
		c.step(Side{Msg: Go{Transfer: t}})
	}
}

func (c *chaos) noticed() {
	p, l := c.peer(), c.lease()
	n := NoticeIn{Peer: p, Epoch: c.r.link(p).epoch, Channel: rapid.Uint32Range(0, 2).Draw(c.t, "ch"), Lease: l.id, Number: rapid.Uint64Range(1, 3).Draw(c.t, "n")}
	if g := c.grants[grantKey{p, l.id}]; g != nil && g.epoch == n.Epoch {
		g.notices[n.Channel] = max(g.notices[n.Channel], n.Number)
	}
	c.step(n)
}

func (c *chaos) say() {
	p, l := c.peer(), c.lease()
	k := c.r.link(p)
	env := spec.Envelope{Header: spec.Header{From: worldInc('p', int(p-1), 0), To: c.r.own, Epoch: k.epoch, Mark: 1}, Body: c.message(p, l)}
	conn := k.conn
	switch rapid.IntRange(0, 29).Draw(c.t, "header") {
	case 0:
		env.To = spec.Incarnation{1}
	case 1:
		env.From = spec.Incarnation{2}
	case 2:
		env.Epoch--
	case 3:
		conn++
	}
	c.step(Recv{Peer: p, Conn: conn, Env: env})
}

// Anything from peers, in any order: no error, no broken invariant, no release without proof; and afterwards, with every fence back
// and every kernel ended, every page is free.
func TestDecodeRank_AnyEvents_NoErrorNoBrokenInvariantNoReleaseWithoutProof(t *testing.T) {
	freed, ready, shares := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		cfg := dRigConfig(rapid.SampledFrom([]int{1, 2}).Draw(t, "links"), rapid.Bool().Draw(t, "pull"), false, 14)
		cfg.MaxPublished = rapid.SampledFrom([]int{0, 2, 40, 40}).Draw(t, "published")
		r, err := NewDecodeRank(cfg)
		require.NoError(t, err)
		c := &chaos{t: t, r: r, now: 1, grants: map[grantKey]*proofs{}, running: map[spec.LeaseID]int{}, filled: map[spec.GrantedPage]filledFor{},
			tables: map[spec.LeaseID]*[spec.ComponentCount][]spec.GrantedPage{}}
		for range 4 {
			for _, p := range cfg.Peers {
				c.serve(p.ID)
			}
		}
		for range 6 {
			t.Repeat(c.actions())
		}
		c.wind()
		freed, ready, shares = freed+c.freed, ready+c.ready, shares+c.shares
	})
	t.Logf("%d leases freed, %d ready, %d pages of others read", freed, ready, shares)
	require.NotZero(t, shares)
	require.NotZero(t, freed)
	require.NotZero(t, ready)
}

// wind ends everything and requires that every page comes back, although no peer answers any more.
func (c *chaos) wind() {
	c.step(SideLost{})
	for range 50 {
		for _, k := range c.r.links {
			if k.state == dlinkOpen {
				c.step(DataLost{Peer: k.cfg.ID, Epoch: k.epoch})
			}
		}
		for len(c.fences) > 0 {
			c.fenceDone(0)
		}
		for len(c.verify) > 0 {
			c.running[c.verify[0]]--
			l := c.verify[0]
			c.verify = c.verify[1:]
			c.step(Verified{Lease: l})
		}
		for len(c.reads) > 0 {
			c.running[c.reads[0]]--
			l := c.reads[0]
			c.reads = c.reads[1:]
			delete(c.tables, l)
			c.step(ReadEnd{Lease: l})
		}
		for len(c.jobs) > 0 {
			j := c.jobs[0]
			c.jobs = c.jobs[1:]
			c.running[j.Lease]--
			c.step(PullDone{Peer: j.Peer, Epoch: j.Epoch, Job: j.Job, Lease: j.Lease, Err: "stopped"})
		}
		c.now += 30
		c.step(Tick{})
	}
	require.Empty(c.t, c.r.leases)
	for _, p := range c.r.pools {
		if p != nil {
			require.Equal(c.t, p.Counts().Total, p.Counts().Free)
		}
	}
}

// The record that judges the machine is alive: it refuses what proves nothing.
func TestProofs_WithoutReceiptNoticeOrFence_ProveNothing(t *testing.T) {
	p := &proofs{notices: map[uint32]uint64{}}
	require.False(t, p.proved())
	p.receipts = [][]spec.Channel{{{ID: 1, Notice: 2}}}
	require.False(t, p.proved())
	p.notices[1] = 1
	require.False(t, p.proved())
	p.notices[1] = 2
	require.True(t, p.proved())
	require.True(t, (&proofs{fenced: true}).proved())
}
