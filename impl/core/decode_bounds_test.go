package core

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/spec"
)

// What would come back when its leases are freed must not come back to a side with a rank missing: no answer to its Take could ever
// arrive from there.
func TestDecodeLeader_RankLostWhileARequestIsToComeBack_ItIsAnswered(t *testing.T) {
	ends := map[string]func(g *dlRig){
		"to be tried again": func(g *dlRig) {
			g.submit(10, 4)
			g.asked(1, 10)
			g.all(Taken{Transfer: g.transfer(1), Lease: 1})
			require.Empty(g, only[Answer](g.from(0, LeaseFailed{Transfer: g.transfer(1), Cause: spec.CauseFenced})))
		},
		"preempted": func(g *dlRig) {
			g.running(1, 10, 4)
			g.running(2, 10, 4)
			g.l.preempt(g.l.xfers[2])
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			g := upDLRig(t, dlConfig(2, 1, 40))
			end(g)
			n := uint64(len(g.l.order))
			acts := g.step(SideLost{Rank: 1})
			if x := g.l.xfers[1]; n == 2 && x.busy {
				acts = append(acts, g.step(StepDone{Transfer: g.transfer(1)})...)
				acts = append(acts, g.step(StepDone{Transfer: g.transfer(2)})...)
			}
			for i := range n {
				acts = append(acts, g.from(0, LeaseFreed{Transfer: g.transfer(i + 1)})...)
			}
			require.Len(t, only[Answer](acts), int(n))
			require.Empty(t, g.l.requests)
			require.Empty(t, g.l.order)
		})
	}
}

// A machine of the side that has stopped frees nothing any more: what waits for its leases to come back is answered at once.
func TestDecodeLeader_RankStopsWhileARequestIsToComeBack_ItIsAnswered(t *testing.T) {
	g := upDLRig(t, dlConfig(1, 1, 40))
	g.submit(10, 4)
	g.asked(1, 10)
	g.all(Taken{Transfer: g.transfer(1), Lease: 1})
	require.Empty(t, only[Answer](g.from(0, LeaseFailed{Transfer: g.transfer(1), Cause: spec.CauseTransport})))
	require.Len(t, only[Answer](g.from(0, RankEnding{Cause: spec.CauseInvariant})), 1)
	require.Empty(t, g.l.requests)
}

// A peer that lives and answers every Abort with "draining" for ever holds its pages no longer than the fence.
func TestDecodeRank_PeerDrainsForEver_LinkIsFenced(t *testing.T) {
	g := openDRig(t, dRigConfig(1, false, false, 40))
	before := g.free()
	l, _ := g.fill()
	g.side(AbortLease{Transfer: l.transfer, Cause: spec.CauseDeadline})
	fenced := false
	for range 200 {
		acts := append(g.recv(1, spec.Ping{Number: 1}), g.wait(10)...)
		if f := only[Fence](acts); len(f) > 0 {
			fenced = true
			g.step(FenceDone{Peer: 1, Old: f[0].Old, OK: true})
			break
		}
		for range said[spec.Abort](acts) {
			g.recv(1, spec.Refused{About: spec.KindAbort, Lease: l.id, Refusal: spec.RefuseDuplicate, Detail: "draining"})
		}
	}
	require.True(t, fenced, "the peer was believed for ever")
	require.Equal(t, before, g.free())
}

// A tenant's share of pages: while another waits, a tenant gets no request asked for that would take it over its share, even where it
// is its turn and it may have more requests; alone it may use what is there.
func TestDecodeLeader_TenantOverItsPages_WaitsForTheOthers(t *testing.T) {
	for share, next := range map[uint32]string{10: "y", 40: "x"} {
		c := dlConfig(1, 1, 40)
		c.MaxActive, c.MaxTenantActive, c.MaxTenantPages = 2, 2, share
		g := upDLRig(t, c)
		sub := func(r RequestID, tenant string) {
			g.step(Submit{Req: r, Tenant: tenant, Prompt: make([]int32, 20), MaxNew: 1, EOS: -1}) // 6 pages of 4 tokens
		}
		sub(1, "x")
		sub(2, "x")
		require.Len(t, g.l.order, 2, "nobody else waits: 12 pages")
		sub(3, "x")
		sub(4, "y")
		g.step(ClientGone{Req: 1})
		require.Equal(t, next, g.l.order[len(g.l.order)-1].req.tenant.name, "share %d", share)
		g.step(ClientGone{Req: 4})
		g.step(ClientGone{Req: 2})
		require.Equal(t, RequestID(3), g.l.order[len(g.l.order)-1].req.id, "one request is always allowed")
	}
}

// A receipt speaks of the grant of one epoch; with another one it is counted and ends nothing.
func TestDecodeRank_ReceiptOfAnotherEpoch_EndsNoHold(t *testing.T) {
	g := openDRig(t, dRigConfig(1, false, false, 40))
	l, _ := g.fill()
	g.notice(l, 1)
	for _, epoch := range []spec.Epoch{g.link(1).epoch - 1, g.link(1).epoch + 1} {
		c := g.complete(l, 1)
		c.GrantEpoch = epoch
		for _, m := range []spec.Message{c,
			spec.AbortAck{Transfer: l.transfer, Lease: l.id, GrantEpoch: epoch, Channels: c.Channels},
			spec.Failed{Transfer: l.transfer, Lease: l.id, GrantEpoch: epoch, Cause: spec.CauseCompute, Channels: c.Channels},
			spec.Gone{Transfer: l.transfer, Lease: l.id, GrantEpoch: epoch}} {
			counts := only[Count](g.recv(1, m))
			require.Len(t, counts, 1, "%T", m)
			require.Equal(t, spec.RefuseStaleEpoch, counts[0].Refusal)
			require.Equal(t, dleaseFilling, l.state)
			require.True(t, l.holds[0].standing)
		}
	}
}

// A fence that had begun before the finding proves nothing about what was written since: the quarantine ends by a later one.
func TestDecodeRank_FenceBegunBeforeTheFinding_DoesNotEndTheQuarantine(t *testing.T) {
	g := openDRig(t, dRigConfig(1, false, false, 40))
	l := g.readied()
	g.step(ReadBegin{Lease: l.id})
	first := one[Fence](g, g.step(ConnLost{Peer: 1, Conn: g.link(1).conn}))
	second := one[Fence](g, g.step(ReadEnd{Lease: l.id, Bad: []BadPart{{Component: spec.KV, State: spec.TagForeign}}}))
	g.side(ReleaseLease{Transfer: l.transfer})
	quarantined := func() uint32 { return g.r.pools[spec.KV].Counts().Quarantined }
	require.EqualValues(t, 1, quarantined())
	g.step(FenceDone{Peer: 1, Old: first.Old, OK: true})
	require.EqualValues(t, 1, quarantined(), "by a fence that is older than the finding")
	g.step(FenceDone{Peer: 1, Old: second.Old, OK: true})
	require.Zero(t, quarantined())
	require.EqualValues(t, 40, g.free())
}
