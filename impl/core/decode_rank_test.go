package core

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/spec"
)

// dRig is one decode rank with hand-made events. Prefill is what the test says it is.
type dRig struct {
	*testing.T
	r     *DecodeRank
	now   Time
	conn  ConnID
	inc   []spec.Incarnation // by peer
	peers []PeerID
	last  uint64 // transfers
}

func dRigConfig(prefill int, pull, digests bool, pages uint32) DecodeRankConfig {
	side := worldSide('d', 1, 0)
	cfg := DecodeRankConfig{Identity: spec.Identity{Name: "d0", Role: spec.RoleDecode, Incarnation: side[0], Size: 1, Side: side}, Layouts: worldLayouts(0, 1, pages),
		Window: 1000, Digests: digests, Heartbeat: 10, Liveness: 50, ConnectBound: 40, RepeatFirst: 4, RepeatMax: 16, AnswerBound: 100, QuarantineWait: 20}
	for p := range prefill {
		cfg.Peers = append(cfg.Peers, PeerConfig{ID: PeerID(p + 1), Pull: pull})
	}
	return cfg
}

func newDRig(t *testing.T, cfg DecodeRankConfig) *dRig {
	r, err := NewDecodeRank(cfg)
	require.NoError(t, err)
	g := &dRig{T: t, r: r, now: 1}
	for p := range cfg.Peers {
		g.inc = append(g.inc, worldInc('p', p, 0))
		g.peers = append(g.peers, PeerID(p+1))
	}
	return g
}

// openDRig is a rig with all links open.
func openDRig(t *testing.T, cfg DecodeRankConfig) *dRig {
	g := newDRig(t, cfg)
	for _, p := range g.peers {
		g.open(p)
	}
	return g
}

func (g *dRig) step(ev Event) []Action {
	g.Helper()
	acts, err := g.r.Step(g.now, ev)
	require.NoError(g, err)
	require.NoError(g, g.r.pools.Check())
	return acts
}

func (g *dRig) wait(d Time) []Action {
	g.now += d
	return g.step(Tick{})
}

func only[A Action](acts []Action) (out []A) {
	for _, a := range acts {
		if x, ok := a.(A); ok {
			out = append(out, x)
		}
	}
	return out
}

func one[A Action](g *dRig, acts []Action) A {
	g.Helper()
	out := only[A](acts)
	require.Len(g, out, 1, "%+v", acts)
	return out[0]
}

// told are the messages to the leader.
func told[M SideMsg](acts []Action) (out []M) {
	for _, a := range only[ToLeader](acts) {
		if m, ok := a.Msg.(M); ok {
			out = append(out, m)
		}
	}
	return out
}

// said are the bodies sent of one kind.
func said[M spec.Message](acts []Action) (out []M) {
	for _, a := range only[Send](acts) {
		if m, ok := a.Env.Body.(M); ok {
			out = append(out, m)
		}
	}
	return out
}

func did(acts []Action, name string) (n int) {
	for _, d := range only[Did](acts) {
		if d.Name == name {
			n++
		}
	}
	return n
}

func (g *dRig) side(m SideMsg) []Action { g.Helper(); return g.step(Side{Msg: m}) }

func (g *dRig) link(p PeerID) *dlink { return g.r.link(p) }

func (g *dRig) accept(p PeerID) spec.Accept {
	n := len(g.peers)
	side := make([]spec.Incarnation, n)
	for i := range side {
		side[i] = g.inc[i]
	}
	return spec.Accept{Version: spec.Version, Capabilities: requiredCapabilities(), Nonce: g.link(p).nonce, Window: 1000, DataAddress: "a", Layouts: worldLayouts(int(p-1), n, 40),
		Identity: spec.Identity{Name: fmt.Sprint("p", p), Role: spec.RolePrefill, Incarnation: g.inc[p-1], Rank: spec.Rank(p - 1), Size: uint16(n), Side: side}}
}

func (g *dRig) dial(p PeerID) []Action {
	g.conn++
	return g.step(Dialed{Peer: p, Conn: g.conn, Nonce: spec.Nonce{byte(g.conn), 1}})
}

func (g *dRig) open(p PeerID) []Action {
	g.Helper()
	acts := g.dial(p)
	for _, f := range slices.Clone(g.link(p).fencing) {
		acts = append(acts, g.step(FenceDone{Peer: p, Old: f, OK: true})...)
	}
	acts = append(acts, g.recv(p, g.accept(p))...)
	acts = append(acts, g.step(DataUp{Peer: p, Epoch: g.link(p).epoch})...)
	require.Equal(g, dlinkOpen, g.link(p).state)
	return acts
}

// recv delivers a message of the link's present peer, in its present epoch.
func (g *dRig) recv(p PeerID, m spec.Message) []Action {
	g.Helper()
	return g.step(g.msg(p, m))
}

func (g *dRig) msg(p PeerID, m spec.Message) Recv {
	return Recv{Peer: p, Conn: g.link(p).conn, Env: spec.Envelope{Header: spec.Header{From: g.inc[p-1], To: g.r.own, Epoch: g.link(p).epoch}, Body: m}}
}

const dRigTokens = 10

// take takes the pages of a new transfer.
func (g *dRig) take(tokens uint32) (spec.TransferID, []Action) {
	g.Helper()
	g.last++
	t := spec.TransferID{Leader: g.r.own, Counter: g.last}
	return t, g.side(Take{Transfer: t, Tokens: tokens, Domain: spec.Domain{1}, Request: spec.RequestDigest{2}, Prefill: g.peers})
}

// fill takes and grants a new transfer.
func (g *dRig) fill() (*dlease, []Action) {
	g.Helper()
	t, acts := g.take(dRigTokens)
	require.Len(g, told[Taken](acts), 1)
	acts = append(acts, g.side(Go{Transfer: t})...)
	return g.r.byTransfer[t], acts
}

// complete is the right Complete for a lease on a link, with one channel.
func (g *dRig) complete(l *dlease, p PeerID) spec.Complete {
	c := spec.Complete{Transfer: l.transfer, Lease: l.id, GrantEpoch: g.link(p).epoch, Tokens: l.tokens, Request: l.request, Channels: []spec.Channel{{ID: 0, Notice: 1}}}
	for _, part := range l.partsOf(int(p - 1)) {
		d := spec.PartDone{Component: part.Component, Index: part.Index}
		lo, hi := part.PageRange(*g.r.layouts[part.Component])
		for i := lo; i < hi; i++ {
			if g.r.cfg.Digests {
				d.Digests = append(d.Digests, uint64(100+i))
			}
			if g.link(p).cfg.Pull {
				d.Source = append(d.Source, spec.SourcePage{Page: spec.PageID(i), Gen: 3})
			}
		}
		c.Parts = append(c.Parts, d)
	}
	if g.link(p).cfg.Pull {
		c.Channels, c.SourceLease = nil, 77
	}
	return c
}

func (g *dRig) notice(l *dlease, p PeerID) []Action {
	return g.step(NoticeIn{Peer: p, Epoch: g.link(p).epoch, Lease: l.id, Number: 1})
}

// readied is a lease that is ready.
func (g *dRig) readied() *dlease {
	g.Helper()
	l, _ := g.fill()
	for _, p := range g.peers {
		g.recv(p, g.complete(l, p))
		g.notice(l, p)
	}
	g.step(Verified{Lease: l.id})
	require.Equal(g, dleaseReady, l.state)
	return l
}

func (g *dRig) free() uint32 { return g.r.pools[spec.KV].Counts().Free }

func TestDecodeRank_Link_OpensOnlyAfterFenceAcceptAndData(t *testing.T) {
	g := newDRig(t, dRigConfig(1, false, false, 20))
	acts := g.dial(1)
	require.Equal(t, 1, did(acts, "Fence"), "a connect is a fence")
	require.Equal(t, Fence{Peer: 1, Old: 0, New: 1}, one[Fence](g, acts))
	c := said[spec.Connect](acts)[0]
	require.Equal(t, spec.Epoch(1), c.Epoch)
	require.Empty(t, only[OpenData](g.recv(1, g.accept(1))), "the older epoch's fence is not back")
	open := one[OpenData](g, g.step(FenceDone{Peer: 1, Old: 0, OK: true}))
	require.Equal(t, spec.Epoch(1), open.Epoch)
	acts = g.step(DataUp{Peer: 1, Epoch: 1})
	require.Equal(t, 1, did(acts, "Connect"))
	require.Len(t, told[PeerUp](acts), 1)
	acts = g.dial(1)
	require.Greater(t, said[spec.Connect](acts)[0].Counter, c.Counter)
	require.Len(t, told[PeerDown](acts), 1)
	require.Equal(t, spec.Epoch(2), said[spec.Connect](acts)[0].Epoch)
}

func TestDecodeRank_Accept_EveryDifferenceIsRefusedWithItsField(t *testing.T) {
	for field, change := range map[string]func(*spec.Accept){
		"version":            func(a *spec.Accept) { a.Version++ },
		"role":               func(a *spec.Accept) { a.Identity.Role = spec.RoleDecode },
		"name":               func(a *spec.Accept) { a.Identity.Name = "other" },
		"rank":               func(a *spec.Accept) { a.Identity.Rank = 1 },
		"side":               func(a *spec.Accept) { a.Identity.Side = []spec.Incarnation{{9}} },
		"window":             func(a *spec.Accept) { a.Window = 999 },
		"capabilities":       func(a *spec.Accept) { a.Capabilities = a.Capabilities[:2] },
		"data_address":       func(a *spec.Accept) { a.DataAddress = "" },
		"incarnation":        func(a *spec.Accept) { a.Identity.Incarnation = spec.Incarnation{8} },
		"kv.dtype":           func(a *spec.Accept) { a.Layouts[0].Equal.DType = "bf16" },
		"kv.tokens_per_page": func(a *spec.Accept) { a.Layouts[0].Equal.TokensPerPage = 8 },
		"kv.model_revision":  func(a *spec.Accept) { a.Layouts[0].Equal.ModelRevision = "x" },
		"kv":                 func(a *spec.Accept) { a.Layouts = a.Layouts[1:] },
	} {
		t.Run(field, func(t *testing.T) {
			cfg := dRigConfig(1, false, false, 20)
			rank := spec.Rank(0)
			cfg.Peers[0].Name, cfg.Peers[0].Rank = "p1", &rank
			g := newDRig(t, cfg)
			g.dial(1)
			g.step(FenceDone{Peer: 1, Old: 0, OK: true})
			a := g.accept(1)
			a.Layouts = slices.Clone(a.Layouts)
			if field == "kv.tokens_per_page" {
				a.Layouts[0] = spec.NewDense(spec.KV, func() spec.Meaning { m := worldMeaning(spec.KV); m.TokensPerPage = 8; return m }(), 0, 4, 0, 4, 40, 4)
			} else {
				change(&a)
			}
			acts := g.recv(1, a)
			require.Empty(t, only[OpenData](acts))
			require.Len(t, only[CloseConn](acts), 1)
			refused := told[PeerRefused](acts)
			require.Len(t, refused, 1)
			require.Contains(t, refused[0].Detail, field+":")
			require.Equal(t, refused[0].Detail, g.r.Status().Links[0].Refusal)
		})
	}
}

func TestDecodeRank_Accept_ForAnotherNonceConfiguresNothing(t *testing.T) {
	g := newDRig(t, dRigConfig(1, false, false, 20))
	g.dial(1)
	g.step(FenceDone{Peer: 1, Old: 0, OK: true})
	a := g.accept(1)
	a.Nonce[5] ^= 1
	acts := g.recv(1, a)
	require.Equal(t, spec.RefuseWrongNonce, one[Count](g, acts).Refusal)
	require.Equal(t, dlinkConnecting, g.link(1).state)
	old := g.accept(1)
	g.dial(1)
	require.Equal(t, spec.RefuseWrongNonce, one[Count](g, g.recv(1, old)).Refusal)
}

func TestDecodeRank_Grant_VoidThenAllowThenSend(t *testing.T) {
	g := openDRig(t, dRigConfig(2, false, true, 20))
	tr, acts := g.take(8)
	voids := only[VoidTags](acts)
	require.Len(t, voids, 2)
	require.Len(t, voids[0].Pages, 3, "positions 0..8 in pages of 4")
	require.Equal(t, spec.PartLocal, one[PutTag](g, acts).Tag.Part, "the first token's page is decode's own")
	require.Empty(t, said[spec.Grant](acts))
	acts = g.side(Go{Transfer: tr})
	var order []string
	for _, a := range acts {
		switch a := a.(type) {
		case Allow:
			order = append(order, fmt.Sprint("allow", a.Peer))
		case Send:
			order = append(order, fmt.Sprintf("%v%d", a.Env.Body.Kind(), a.Peer))
			require.Equal(t, spec.LeaseID(1), a.Env.Mark)
		}
	}
	require.Equal(t, []string{"allow1", "grant1", "allow2", "grant2"}, order)
	grants := said[spec.Grant](acts)
	require.Len(t, grants[0].Parts, 2, "kv half and the record")
	require.Len(t, grants[1].Parts, 1)
	require.Equal(t, grants[0].Pages, grants[1].Pages)
}

func TestDecodeRank_Complete_IsTakenOnlyWithAllItsNotices(t *testing.T) {
	g := openDRig(t, dRigConfig(1, false, true, 20))
	l, _ := g.fill()
	c := g.complete(l, 1)
	c.Channels = []spec.Channel{{ID: 0, Notice: 4}, {ID: 3, Notice: 4}}
	acts := g.recv(1, c)
	require.Equal(t, 1, did(acts, "RecvComplete"))
	require.Zero(t, did(acts, "Take"))
	in := NoticeIn{Peer: 1, Epoch: 1, Lease: l.id}
	in.Channel, in.Number = 0, 4
	require.Zero(t, did(g.step(in), "Take"))
	in.Channel, in.Number = 3, 3
	require.Zero(t, did(g.step(in), "Take"), "an older notice")
	in.Epoch, in.Number = 9, 4
	require.Zero(t, did(g.step(in), "Take"), "another epoch's")
	in.Epoch = 1
	acts = g.step(in)
	require.Equal(t, 1, did(acts, "Take"))
	v := one[Verify](g, acts)
	require.Equal(t, uint64(100), v.Checks[0].Want.Digest)
	require.Len(t, v.Void, 3*3, "three unused slots of three kv pages")
	acts = g.step(Verified{Lease: l.id})
	require.Len(t, told[LeaseReady](acts), 1)
	require.Len(t, only[Revoke](acts), 1, "no remote write may land in a ready lease")
}

func TestDecodeRank_Complete_ThatDiffersIsNeverASuccess(t *testing.T) {
	for name, change := range map[string]func(*spec.Complete){
		"tokens":  func(c *spec.Complete) { c.Tokens = 1 },
		"request": func(c *spec.Complete) { c.Request[0] ^= 1 },
		"missing": func(c *spec.Complete) { c.Parts = c.Parts[1:] },
		"twice":   func(c *spec.Complete) { c.Parts[1] = c.Parts[0] },
		"foreign": func(c *spec.Complete) { c.Parts[0].Index = 7 },
		"digests": func(c *spec.Complete) { c.Parts[0].Digests = c.Parts[0].Digests[1:] },
	} {
		t.Run(name, func(t *testing.T) {
			g := openDRig(t, dRigConfig(1, false, true, 20))
			l, _ := g.fill()
			c := g.complete(l, 1)
			change(&c)
			acts := append(g.recv(1, c), g.notice(l, 1)...)
			require.Equal(t, spec.CauseProtocol, told[LeaseFailed](acts)[0].Cause)
			require.Len(t, told[LeaseFreed](acts), 1, "it is a receipt all the same: drained at both ends")
			require.Empty(t, only[Verify](acts))
			require.Equal(t, uint32(20), g.free())
		})
	}
}

func TestDecodeRank_CompleteWithoutChannels_FencesInsteadOfBelieving(t *testing.T) {
	g := openDRig(t, dRigConfig(1, false, false, 20))
	l, _ := g.fill()
	c := g.complete(l, 1)
	c.Channels = nil
	acts := g.recv(1, c)
	require.Len(t, told[LeaseFailed](acts), 1)
	require.Len(t, only[Fence](acts), 1)
	require.Empty(t, told[LeaseFreed](acts))
	acts = g.step(FenceDone{Peer: 1, Old: 1, OK: true})
	require.Len(t, told[LeaseFreed](acts), 1)
}

func TestDecodeRank_UnequalSides_EveryLinkMustComplete(t *testing.T) {
	g := openDRig(t, dRigConfig(4, false, true, 20))
	l, _ := g.fill()
	for _, p := range g.peers {
		require.Equal(t, dleaseFilling, l.state)
		g.recv(p, g.complete(l, p))
		g.notice(l, p)
	}
	require.Equal(t, dleaseVerifying, l.state)
}

func TestDecodeRank_Repeats_BackOffThenFence(t *testing.T) {
	g := openDRig(t, dRigConfig(1, false, false, 20))
	g.fill()
	start, grants := g.now, []Time{}
	var fenced []Fence
	for g.now-start < 200 && len(fenced) == 0 {
		acts := g.wait(1)
		if len(said[spec.Grant](acts)) > 0 {
			grants = append(grants, g.now-start)
		}
		fenced = only[Fence](acts)
		if len(fenced) == 0 {
			g.recv(1, spec.Pong{Number: 1}) // alive, but it does not answer: two clocks
		}
	}
	require.Equal(t, []Time{4, 12, 28, 44, 60, 76, 92}, grants)
	require.Len(t, fenced, 1)
	require.GreaterOrEqual(t, g.now-start, Time(100))
}

func TestDecodeRank_WaitingInALivePeersQueue_IsNotSilence(t *testing.T) {
	g := openDRig(t, dRigConfig(1, false, false, 20))
	l, _ := g.fill()
	for range 2000 {
		acts := g.wait(1)
		require.Empty(t, only[Fence](acts))
		if len(said[spec.Grant](acts)) > 0 {
			g.recv(1, spec.Refused{About: spec.KindGrant, Lease: l.id, Refusal: spec.RefuseDuplicate, Detail: "filling"})
		}
		g.recv(1, spec.Ping{Number: 1})
	}
	require.Equal(t, dleaseFilling, l.state)
}

func TestDecodeRank_Silence_FencesAndAHealedPeerIsUsedAgain(t *testing.T) {
	g := openDRig(t, dRigConfig(1, false, false, 20))
	l, _ := g.fill()
	var acts []Action
	for range 50 {
		acts = append(acts, g.wait(1)...)
	}
	require.Equal(t, spec.CauseFenced, told[LeaseFailed](acts)[0].Cause)
	require.Len(t, only[Fence](acts), 1)
	require.Empty(t, told[LeaseFreed](acts), "silence releases no page")
	require.Equal(t, uint32(17), g.free())
	acts = g.step(FenceDone{Peer: 1, Old: 1, OK: true})
	require.Equal(t, 1, did(acts, "FenceEnd"))
	require.Equal(t, l.transfer, told[LeaseFreed](acts)[0].Transfer)
	require.Equal(t, uint32(20), g.free())
	g.open(1)
	g.readied()
}

func TestDecodeRank_Mark_IsTheLowestStandingHoldElseTheNextGrant(t *testing.T) {
	g := openDRig(t, dRigConfig(2, false, false, 40))
	a, _ := g.fill()
	b, _ := g.fill()
	require.Equal(t, spec.LeaseID(1), g.r.mark(g.link(1)))
	g.recv(1, g.complete(a, 1))
	g.notice(a, 1)
	require.Equal(t, spec.LeaseID(2), g.r.mark(g.link(1)))
	require.Equal(t, spec.LeaseID(1), g.r.mark(g.link(2)))
	g.recv(1, g.complete(b, 1))
	g.notice(b, 1)
	require.Equal(t, spec.LeaseID(3), g.r.mark(g.link(1)))
	tr, _ := g.take(4)
	require.Equal(t, spec.LeaseID(3), g.r.mark(g.link(1)), "taken and not sent: it is the next to be granted")
	_, acts := g.take(4)
	require.Len(t, told[NoRoom](acts), 1, "one take at a time: numbers rise in the order of grants")
	require.Len(t, told[PagesFreed](g.side(AbortLease{Transfer: tr})), 1)
	require.Equal(t, spec.LeaseID(4), g.r.mark(g.link(1)))
	acts = g.wait(10)
	marks := map[PeerID]spec.LeaseID{}
	for _, s := range only[Send](acts) {
		if s.Env.Body.Kind() == spec.KindPing {
			marks[s.Peer] = s.Env.Mark
		}
	}
	require.Equal(t, map[PeerID]spec.LeaseID{1: 4, 2: 1}, marks, "in the header of each message")
}

func TestDecodeRank_GrowthAndReads(t *testing.T) {
	g := openDRig(t, dRigConfig(1, false, false, 20))
	l := g.readied()
	p := one[ReadPages](g, g.step(ReadBegin{Lease: l.id, Pos: 10}))
	require.Len(t, p.Pages[spec.KV], 3)
	require.Len(t, p.Checks, 4)
	require.Len(t, only[ReadRefused](g.step(ReadBegin{Lease: l.id, Pos: 11})), 1, "one read at a time")
	acts := g.side(Grow{Transfer: l.transfer, Pos: 12})
	require.Len(t, told[Grown](acts), 1)
	require.Len(t, only[VoidTags](acts), 1)
	require.Len(t, p.Pages[spec.KV], 3, "what a running read holds does not change")
	require.Empty(t, only[VoidTags](g.side(Grow{Transfer: l.transfer, Pos: 12})), "asked again, answered again")
	g.side(ReleaseLease{Transfer: l.transfer})
	require.Equal(t, uint32(16), g.free(), "the kernel holds the pages")
	acts = g.step(ReadEnd{Lease: l.id})
	require.Len(t, told[LeaseFreed](acts), 1)
	require.Equal(t, uint32(20), g.free())
	require.Len(t, only[ReadRefused](g.step(ReadBegin{Lease: l.id, Pos: 12})), 1)
	l = g.readied()
	for _, pos := range []uint32{3, 12, 1 << 31} {
		require.Len(t, only[ReadRefused](g.step(ReadBegin{Lease: l.id, Pos: pos})), 1, "no page there, or prompt")
	}
	require.Len(t, told[GrowNoRoom](g.side(Grow{Transfer: l.transfer, Pos: 400})), 1)
}

func TestDecodeRank_BadVerify_QuarantinesUntilEachLinkIsFenced(t *testing.T) {
	g := openDRig(t, dRigConfig(2, false, true, 20))
	bystander, _ := g.fill()
	l, _ := g.fill()
	for _, p := range g.peers {
		g.recv(p, g.complete(l, p))
		g.notice(l, p)
	}
	acts := g.step(Verified{Lease: l.id, Bad: []BadPart{{Component: spec.KV, Index: 1, State: spec.TagForeign}}})
	require.Len(t, only[Alarm](acts), 1)
	require.Equal(t, 1, did(acts, "BadVerify"))
	require.Equal(t, spec.CauseMismatch, told[LeaseFailed](acts)[0].Cause)
	require.Len(t, told[LeaseFreed](acts), 1)
	require.Equal(t, PoolStatus{Free: 16, Held: 3, Quarantined: 1, Total: 20}, g.r.Status().Pools[spec.KV])
	require.Empty(t, only[Fence](acts), "a bystander still fills: it may end well")
	_, acts = g.take(4)
	require.Len(t, told[NoRoom](acts), 1, "no new grant while a fence is wanted")
	g.recv(1, g.complete(bystander, 1))
	require.Equal(t, PeerID(1), one[Fence](g, g.notice(bystander, 1)).Peer, "link 1 owes nothing now")
	g.step(FenceDone{Peer: 1, Old: 1, OK: true})
	require.Equal(t, uint32(1), g.r.Status().Pools[spec.KV].Quarantined)
	acts = g.wait(20)
	require.Equal(t, PeerID(2), only[Fence](acts)[0].Peer, "the wait is over")
	acts = g.step(FenceDone{Peer: 2, Old: 1, OK: true})
	require.Equal(t, 1, did(acts, "QuarantineEnd"))
	require.Equal(t, PoolStatus{Free: 20, Total: 20}, g.r.Status().Pools[spec.KV])
}

func TestDecodeRank_FenceThatFails_StopsWhenNothingReadyIsLeft(t *testing.T) {
	g := openDRig(t, dRigConfig(1, false, false, 20))
	l := g.readied()
	g.step(DataLost{Peer: 1, Epoch: 1})
	acts := g.step(FenceDone{Peer: 1, Old: 1, OK: false})
	require.Len(t, told[RankEnding](acts), 1)
	require.Empty(t, only[Stop](acts), "what is ready is finished")
	require.EqualValues(t, 1, g.r.Status().Links[0].Fencing, "it has not come back: this link opens no data path any more")
	_, acts = g.take(4)
	require.Len(t, told[NoPlan](acts), 1)
	acts = g.side(ReleaseLease{Transfer: l.transfer})
	require.Zero(t, one[Stop](g, acts).Invariant)
	require.NotEmpty(t, only[Fence](acts))
	require.True(t, g.r.Status().Stopped)
	require.Empty(t, g.step(FenceDone{Peer: 1, Old: 1, OK: true}))
	require.Len(t, only[CloseConn](g.dial(1)), 1)
	_, acts = g.take(4)
	require.Equal(t, spec.CauseInvariant, told[NoPlan](acts)[0].Cause)
	require.Zero(t, g.r.Deadline())
}

func TestDecodeRank_LeaderLost_AbortsAndReleasesByProof(t *testing.T) {
	g := openDRig(t, dRigConfig(1, false, false, 40))
	filling, _ := g.fill()
	g.readied()
	g.take(4)
	acts := g.step(SideLost{})
	require.Len(t, said[spec.Abort](acts), 1)
	require.Equal(t, uint32(37), g.free(), "only what prefill may still write to is held")
	g.recv(1, spec.AbortAck{Transfer: filling.transfer, Lease: filling.id, GrantEpoch: 1})
	require.Equal(t, uint32(40), g.free())
}

func TestDecodeRank_ContractErrors(t *testing.T) {
	g := openDRig(t, dRigConfig(1, false, false, 20))
	for _, ev := range []Event{Dialed{Peer: 9}, NoticeIn{Peer: 9}, FenceDone{Peer: 9}, Submit{}, ComputeDone{}} {
		_, err := g.r.Step(g.now, ev)
		require.ErrorIs(t, err, ErrContract, "%T", ev)
	}
	_, err := g.r.Step(g.now-1, Tick{})
	require.ErrorIs(t, err, ErrContract)
}

func TestDecodeRankConfig_Validate(t *testing.T) {
	for name, change := range map[string]func(*DecodeRankConfig){
		"role":         func(c *DecodeRankConfig) { c.Identity.Role = spec.RolePrefill },
		"incarnation":  func(c *DecodeRankConfig) { c.Identity.Incarnation = spec.Incarnation{} },
		"side":         func(c *DecodeRankConfig) { c.Identity.Side = []spec.Incarnation{{1}} },
		"rank":         func(c *DecodeRankConfig) { c.Identity.Rank = 3 },
		"window":       func(c *DecodeRankConfig) { c.Window = 0 },
		"capabilities": func(c *DecodeRankConfig) { c.Capabilities = []string{} },
		"kv":           func(c *DecodeRankConfig) { c.Layouts = c.Layouts[1:] },
		"twice":        func(c *DecodeRankConfig) { c.Layouts = append(c.Layouts, c.Layouts[0]) },
		"reserve":      func(c *DecodeRankConfig) { c.Reserve[spec.KV] = 20 },
		"peers":        func(c *DecodeRankConfig) { c.Peers = append(c.Peers, c.Peers[0]) },
		"bound":        func(c *DecodeRankConfig) { c.MaxLeases = -1 },
	} {
		cfg := dRigConfig(1, false, false, 20)
		change(&cfg)
		_, err := NewDecodeRank(cfg)
		require.ErrorIs(t, err, ErrConfig, name)
	}
	cfg := dRigConfig(1, false, false, 20)
	cfg.Reserve[spec.KV] = 2
	r, err := NewDecodeRank(cfg)
	require.NoError(t, err)
	require.Equal(t, PoolStatus{Free: 18, Held: 2, Total: 20}, r.Status().Pools[spec.KV])
}
