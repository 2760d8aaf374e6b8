package core

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/spec"
)

// prefillRig drives one PrefillRank by hand: the test plays its leader, its decode peers and its fabric.
type prefillRig struct {
	t       *testing.T
	r       *PrefillRank
	now     Time
	last    []Action
	notices []Notice // sent and not ended
	conn    ConnID
	inc     map[PeerID]spec.Incarnation
	ep      map[PeerID]spec.Epoch
	mark    spec.LeaseID
}

func incOf(n byte) spec.Incarnation { return spec.Incarnation{n, 15: 1} }

var rigSide = spec.Identity{Name: "p0", Role: spec.RolePrefill, Incarnation: incOf(1), Size: 1, Side: []spec.Incarnation{incOf(1)}}

// rigMeaning is a model of 2 layers, 2 heads, 4 tokens a page.
func rigMeaning(c spec.Component) spec.Meaning {
	m := spec.Meaning{ModelRevision: "r1", DType: "u8", ByteOrder: "little", HeadDim: 4, ElemBytes: 1, KVs: 2, TokensPerPage: 4, Layers: 2, Heads: 2}
	if c != spec.KV {
		m.TokensPerPage, m.KVs, m.Layers, m.Heads = 0, 1, 1, 1
	}
	return m
}

func rigLayouts(kvPages uint32) []spec.Layout {
	return []spec.Layout{spec.NewDense(spec.KV, rigMeaning(spec.KV), 0, 2, 0, 2, kvPages, 4), spec.NewDense(spec.Aux, rigMeaning(spec.Aux), 0, 1, 0, 1, kvPages, 4)}
}

func rigConfig() PrefillRankConfig {
	return PrefillRankConfig{Identity: rigSide, Capabilities: requiredCapabilities(), SideLayouts: [][]spec.Layout{rigLayouts(8)}, Window: 64, Digests: true, Pull: true}
}

func newPrefillRig(t *testing.T, change func(*PrefillRankConfig)) *prefillRig {
	cfg := rigConfig()
	if change != nil {
		change(&cfg)
	}
	r, err := NewPrefillRank(cfg)
	require.NoError(t, err)
	return &prefillRig{t: t, r: r, now: 1, inc: map[PeerID]spec.Incarnation{}, ep: map[PeerID]spec.Epoch{}, mark: 1}
}

// step takes one event and keeps its actions; the ledgers are whole after each.
func (g *prefillRig) step(ev Event) []Action {
	g.t.Helper()
	out, err := g.r.Step(g.now, ev)
	require.NoError(g.t, err)
	g.last = out
	for _, a := range out {
		if n, ok := a.(Notice); ok {
			g.notices = append(g.notices, n)
		}
	}
	for c, led := range g.r.ledgers {
		if led != nil {
			require.NoError(g.t, led.Check(), "component %d", c)
		}
	}
	return out
}

func (g *prefillRig) wait(d Duration) []Action {
	g.now += Time(d)
	return g.step(Tick{})
}

func decodeIdentity(p PeerID) spec.Identity {
	inc := incOf(byte(100 + p))
	return spec.Identity{Name: fmt.Sprintf("d%d", p), Role: spec.RoleDecode, Incarnation: inc, Size: 1, Side: []spec.Incarnation{inc}}
}

func (g *prefillRig) connectEvent(p PeerID, epoch spec.Epoch, change func(*spec.Connect)) ConnectIn {
	g.conn++
	c := spec.Connect{Version: spec.Version, Capabilities: requiredCapabilities(), Nonce: spec.Nonce{byte(g.conn)}, Counter: uint64(g.conn), Epoch: epoch,
		Identity: decodeIdentity(p), Layouts: rigLayouts(16), Window: 64, Digests: true}
	if change != nil {
		change(&c)
	}
	return ConnectIn{Peer: p, Conn: g.conn, DataAddress: "data:1", Env: spec.Envelope{Header: spec.Header{From: c.Identity.Incarnation, Epoch: epoch, Mark: g.mark}, Body: c}}
}

// open connects a decode peer and opens its data path.
func (g *prefillRig) open(p PeerID, epoch spec.Epoch, change func(*spec.Connect)) ConnID {
	g.t.Helper()
	e := g.connectEvent(p, epoch, change)
	g.step(e)
	require.NotNil(g.t, sent[spec.Accept](g.last), "no Accept: %v", g.last)
	g.inc[p], g.ep[p] = e.Env.From, epoch
	g.step(DataUp{Peer: p, Epoch: epoch})
	return e.Conn
}

// say delivers a message of a decode peer on the connection that stands.
func (g *prefillRig) say(p PeerID, m spec.Message) []Action {
	g.t.Helper()
	return g.step(Recv{Peer: p, Conn: g.r.links[p].conn, Env: spec.Envelope{Header: spec.Header{From: g.inc[p], To: incOf(1), Epoch: g.ep[p], Mark: g.mark}, Body: m}})
}

func (g *prefillRig) side(m SideMsg) []Action { g.t.Helper(); return g.step(Side{Msg: m}) }

func xfer(p PeerID, n uint64) spec.TransferID {
	return spec.TransferID{Leader: incOf(byte(100 + p)), Counter: n}
}

var rigDomain = spec.Domain{7}

// grantOf is a whole grant of a prompt to the peer: every KV page and the record.
func grantOf(p PeerID, n uint64, lease spec.LeaseID, tokens uint32) spec.Grant {
	g := spec.Grant{Transfer: xfer(p, n), Lease: lease, Domain: rigDomain, Tokens: tokens, Digests: true}
	for i := range (tokens + 4) / 4 {
		g.Pages[spec.KV] = append(g.Pages[spec.KV], spec.GrantedPage{Page: spec.PageID(i), Gen: spec.Generation(lease)})
	}
	g.Pages[spec.Aux] = []spec.GrantedPage{{Page: 0, Gen: spec.Generation(lease)}}
	g.Parts = []spec.Part{{Component: spec.KV, LayerHi: 2, HeadHi: 2, TokenHi: tokens}, {Component: spec.Aux, LayerHi: 1, HeadHi: 1}}
	return g
}

func (g *prefillRig) assign(p PeerID, n uint64, tokens uint32) {
	g.t.Helper()
	g.side(Assign{Transfer: xfer(p, n), Request: spec.RequestDigest{byte(n)}, Domain: rigDomain, Tokens: tokens, Links: []spec.Incarnation{incOf(byte(100 + p))}})
}

// started brings a lease to the point where its pages are held and nothing is computed.
func (g *prefillRig) started(p PeerID, n uint64, lease spec.LeaseID, tokens uint32) {
	g.t.Helper()
	g.assign(p, n, tokens)
	g.say(p, grantOf(p, n, lease, tokens))
	require.NotNil(g.t, toLeader[Granted](g.last), "not granted: %v", g.last)
	g.side(TakeSource{Transfer: xfer(p, n)})
	require.NotNil(g.t, toLeader[SourceTaken](g.last), "no pages: %v", g.last)
}

// computed says that a chunk is done; the seal that follows is answered, too, unless hold is true.
func (g *prefillRig) computed(t spec.TransferID, from, to uint32, last bool) []Action {
	g.t.Helper()
	out := g.side(ChunkDone{Transfer: t, From: from, To: to, Last: last})
	if last {
		out = append(out, g.side(ComputeOver{Transfer: t})...)
	}
	return out
}

// seal ends the seals among the actions and returns what follows.
func (g *prefillRig) seal(acts []Action) (out []Action) {
	g.t.Helper()
	for _, a := range acts {
		if s, ok := a.(Seal); ok {
			d := make([]uint64, len(s.Items))
			for i, it := range s.Items {
				d[i] = 1000*uint64(it.Part.Component) + uint64(it.Index)
			}
			next := g.step(Sealed{Seal: s.Seal, Lease: s.Lease, Digests: d})
			out = append(out, next...)
			out = append(out, g.seal(next)...)
		}
	}
	return out
}

// posts are the batches among the actions.
func posts(acts []Action) (ps []Post) {
	for _, a := range acts {
		if p, ok := a.(Post); ok {
			ps = append(ps, p)
		}
	}
	return ps
}

func (g *prefillRig) posted(ps []Post) (out []Action) {
	g.t.Helper()
	for _, p := range ps {
		out = append(out, g.step(Posted{Peer: p.Peer, Epoch: p.Epoch, Batch: p.Batch})...)
	}
	return out
}

// noticed ends the notices that were sent and are not ended; its argument says behind what.
func (g *prefillRig) noticed([]Action) (out []Action) {
	g.t.Helper()
	sent := g.notices
	g.notices = nil
	for _, n := range sent {
		out = append(out, g.step(Noticed{Peer: n.Peer, Epoch: n.Epoch, Lease: n.Lease, Number: n.Number, Channels: []spec.Channel{{ID: 1, Notice: n.Number}}})...)
	}
	return out
}

// free is how many pages of the KV pool are free.
func (g *prefillRig) free() uint32 { return g.r.Status().Pools[spec.KV].Free }

// sent is the first message of its kind among the actions; nil if there is none.
func sent[M spec.Message](acts []Action) *M {
	for _, a := range acts {
		if s, ok := a.(Send); ok {
			if m, ok := s.Env.Body.(M); ok {
				return &m
			}
		}
	}
	return nil
}

func toLeader[M SideMsg](acts []Action) *M {
	for _, a := range acts {
		if s, ok := a.(ToLeader); ok {
			if m, ok := s.Msg.(M); ok {
				return &m
			}
		}
	}
	return nil
}

func action1[A Action](acts []Action) *A {
	for _, a := range acts {
		if x, ok := a.(A); ok {
			return &x
		}
	}
	return nil
}

// dids are the names of the trace, in order.
func dids(acts []Action) (names []string) {
	for _, a := range acts {
		if d, ok := a.(Did); ok {
			names = append(names, d.Name)
		}
	}
	return names
}
