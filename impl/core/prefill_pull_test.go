package core

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/spec"
)

func pullLink(c *spec.Connect) { c.Pull = true }

func pullGrant(p PeerID, n uint64, lease spec.LeaseID, tokens uint32) spec.Grant {
	m := grantOf(p, n, lease, tokens)
	m.Pages = [spec.ComponentCount][]spec.GrantedPage{}
	return m
}

// offered brings a pull lease to its Complete.
func (g *prefillRig) offered(p PeerID, n uint64, lease spec.LeaseID, tokens uint32) []Action {
	g.t.Helper()
	g.assign(p, n, tokens)
	g.say(p, pullGrant(p, n, lease, tokens))
	g.side(TakeSource{Transfer: xfer(p, n)})
	require.NotNil(g.t, toLeader[SourceTaken](g.last))
	return g.seal(g.computed(xfer(p, n), 0, tokens, true))
}

func TestPrefillRank_Pull_HoldsSourceUntilRead(t *testing.T) {
	g := newPrefillRig(t, nil)
	g.open(1, 1, pullLink)
	acts := g.offered(1, 1, 1, 10)
	o, c := sent[spec.Offer](acts), sent[spec.Complete](acts)
	require.Len(t, o.Done.Source, 3)
	require.Equal(t, o.SourceLease, c.SourceLease)
	require.Equal(t, o.Done, c.Parts[0])
	require.Empty(t, c.Channels)
	require.Equal(t, uint32(5), g.free(), "readable is not over")
	acts = g.wait(2e8)
	require.NotNil(t, sent[spec.Complete](acts), "repeated until it is read")
	require.Nil(t, sent[spec.Complete](g.wait(2e8)), "with back-off")
	require.NotNil(t, sent[spec.Complete](g.wait(2e8)))
	acts = g.say(1, spec.Read{Transfer: xfer(1, 1), Lease: 1})
	require.Equal(t, []string{"GiveBack", "GiveBack"}, dids(acts))
	require.Equal(t, uint32(8), g.free())
	require.NotNil(t, toLeader[JobOver](acts))
	require.Nil(t, sent[spec.Complete](g.wait(4e9)))
	require.Empty(t, dids(g.say(1, spec.Read{Transfer: xfer(1, 1), Lease: 1})), "a repeat changes nothing")
}

func TestPrefillRank_Pull_MarkAboveTheLeaseIsAsGoodAsRead(t *testing.T) {
	g := newPrefillRig(t, nil)
	g.open(1, 1, pullLink)
	g.offered(1, 1, 1, 4)
	g.mark = 2
	acts := g.say(1, spec.Ping{Number: 1})
	require.Contains(t, dids(acts), "GiveBack")
	require.Equal(t, uint32(8), g.free())
}

func TestPrefillRank_Pull_AbortOnlyStopsNewOffers(t *testing.T) {
	g := newPrefillRig(t, nil)
	g.open(1, 1, pullLink)
	x := xfer(1, 1)
	g.assign(1, 1, 4)
	m := pullGrant(1, 1, 1, 4)
	m.Parts = []spec.Part{{Component: spec.KV, LayerHi: 1, HeadHi: 2, TokenHi: 2}, {Component: spec.KV, Index: 1, LayerLo: 1, LayerHi: 2, HeadHi: 2, TokenHi: 4}}
	g.say(1, m)
	g.side(TakeSource{Transfer: x})
	require.NotNil(t, sent[spec.Offer](g.seal(g.computed(x, 0, 2, false))))
	acts := g.say(1, spec.Abort{Transfer: x, Lease: 1})
	require.NotNil(t, sent[spec.AbortAck](acts))
	require.Nil(t, sent[spec.Offer](g.computed(x, 2, 4, true)))
	require.Equal(t, uint32(7), g.free(), "the reader may still copy")
	g.say(1, spec.Read{Transfer: x, Lease: 1})
	require.Equal(t, uint32(8), g.free())
}

func TestPrefillRank_Pull_StoppedReaderKeepsItsPagesUntilItsProcessEnds(t *testing.T) {
	g := newPrefillRig(t, func(c *PrefillRankConfig) { c.MaxOffered = 3 })
	g.open(1, 1, pullLink)
	g.offered(1, 1, 1, 4)
	acts := g.offered(1, 2, 2, 8)
	require.Nil(t, sent[spec.Complete](acts), "2 pages and a record more are over the bound")
	g.step(ConnLost{Peer: 1, Conn: g.r.links[1].conn})
	g.step(FenceDone{Peer: 1, Old: 1, OK: true})
	require.True(t, g.r.Status().Links[0].Stopped)
	require.Equal(t, uint32(7), g.free(), "its own fence says nothing about the reader")
	require.Equal(t, uint32(0), g.r.Status().Pools[spec.KV].Quarantined)
	g.open(2, 1, nil) // others go on
	g.started(2, 1, 1, 4)
	g.step(ReaderEnded{Peer: 1})
	require.Equal(t, uint32(7), g.free())
	require.Nil(t, g.r.links[1])
}

func TestPrefillRank_Pull_ReconnectedReaderGivesBackByMark(t *testing.T) {
	g := newPrefillRig(t, nil)
	g.open(1, 1, pullLink)
	g.offered(1, 1, 1, 4)
	g.step(ConnLost{Peer: 1, Conn: g.r.links[1].conn})
	require.Equal(t, uint32(7), g.free())
	g.mark = 2 // its fence has ended its copies
	g.open(1, 2, pullLink)
	require.Equal(t, uint32(8), g.free())
	require.Empty(t, g.r.links[1].order)
}

func TestPrefillRank_Pull_TwoDecodeRanksMayNotShareATagSlot(t *testing.T) {
	g := newPrefillRig(t, nil)
	g.open(1, 1, pullLink)
	g.open(2, 1, pullLink)
	g.side(Assign{Transfer: xfer(1, 1), Domain: rigDomain, Tokens: 4, Links: []spec.Incarnation{g.inc[1], g.inc[2]}})
	g.say(1, pullGrant(1, 1, 1, 4))
	m := pullGrant(1, 1, 1, 4)
	require.Contains(t, sent[spec.Failing](g.say(2, m)).Detail, "tag slot")
}
