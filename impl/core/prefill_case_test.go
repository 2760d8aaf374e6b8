package core

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/spec"
)

// The prefill side's half of public cases, where one machine is enough. The whole cases are scenarios of impl/sim.

func TestCaseB02_UsedOrStaleReference_IsRefusedWithItsReason(t *testing.T) {
	g := newPrefillRig(t, nil)
	g.open(1, 1, nil)
	g.started(1, 1, 1, 8)
	require.NotNil(t, sent[spec.Complete](g.noticed(g.posted(posts(g.seal(g.computed(xfer(1, 1), 0, 8, true)))))))
	g.started(1, 2, 2, 8) // the same source pages, another request
	require.NotNil(t, sent[spec.Complete](g.say(1, grantOf(1, 1, 1, 8))), "at once after use: the old answer, nothing is read")
	require.Nil(t, action1[Post](g.last))
	require.Equal(t, spec.RefuseUnknownTransfer, sent[spec.Refused](g.say(1, spec.Grant{Transfer: xfer(1, 9), Lease: 1})).Refusal)
	g.mark = 2
	require.NotNil(t, sent[spec.Gone](g.say(1, grantOf(1, 1, 1, 8))), "long after: gone")
	m := grantOf(1, 3, 3, 8)
	m.Pages[spec.KV][0].Page = 1000
	require.Contains(t, sent[spec.Failed](g.say(1, m)).Detail, "page 1000")
}

func TestCaseB12_AuxiliaryRecord_OnlyTheDeclaredWriterOwesIt(t *testing.T) {
	second := rigSide
	second.Rank, second.Size, second.Incarnation, second.Side = 1, 2, incOf(1), []spec.Incarnation{incOf(7), incOf(1)}
	g := newPrefillRig(t, func(c *PrefillRankConfig) {
		c.Identity, c.SideLayouts = second, [][]spec.Layout{rigLayouts(8), rigLayouts(8)}
	})
	g.open(1, 1, nil)
	g.assign(1, 1, 4)
	m := grantOf(1, 1, 1, 4)
	m.Parts = m.Parts[1:]
	m.Parts[0].Rank = 1
	require.Contains(t, sent[spec.Failing](g.say(1, m)).Detail, "declared writer is rank 0")
}

func TestCaseB13_UnsealedPage_IsNeverPosted(t *testing.T) {
	g := newPrefillRig(t, nil)
	g.open(1, 1, nil)
	g.started(1, 1, 1, 12)
	x := xfer(1, 1)
	require.Empty(t, posts(g.last))
	acts := g.computed(x, 0, 4, false)
	require.Empty(t, posts(acts), "computed is not sealed")
	require.Len(t, posts(g.seal(acts))[0].Items, 1)
	require.Nil(t, action1[Seal](g.computed(x, 4, 7, false)), "half a page is not final")
	acts = g.seal(g.computed(x, 7, 12, true))
	require.Len(t, posts(acts)[0].Items, 3)
}

func TestCaseB25_PreemptedWhileASendReads_SourceIsNotReused(t *testing.T) {
	g := newPrefillRig(t, func(c *PrefillRankConfig) { c.SideLayouts = [][]spec.Layout{rigLayouts(3)} })
	g.open(1, 1, nil)
	g.started(1, 1, 1, 12) // all three pages
	ps := posts(g.seal(g.computed(xfer(1, 1), 0, 12, true)))
	g.side(Break{Transfer: xfer(1, 1), Cause: spec.CauseOperator})
	g.assign(1, 2, 8)
	g.say(1, grantOf(1, 2, 2, 8))
	require.NotNil(t, toLeader[SourceNoRoom](g.side(TakeSource{Transfer: xfer(1, 2)})), "a queued read holds its page")
	acts := g.posted(ps)
	require.Len(t, g.notices, 1)
	require.Nil(t, sent[spec.Failed](acts))
	acts = g.noticed(acts)
	require.NotNil(t, sent[spec.Failed](acts))
	require.NotNil(t, toLeader[PagesFreed](acts))
	require.NotNil(t, toLeader[SourceTaken](g.side(TakeSource{Transfer: xfer(1, 2)})))
}

func TestCaseB31_LateAndRepeatedCompletions_AreCountedAndIgnored(t *testing.T) {
	for _, first := range []int{0, 1} {
		g := newPrefillRig(t, func(c *PrefillRankConfig) { c.MaxPostItems = 2 })
		g.open(1, 1, nil)
		g.started(1, 1, 1, 8)
		ps := posts(g.seal(g.computed(xfer(1, 1), 0, 8, true)))
		require.Len(t, ps, 2)
		g.say(1, spec.Abort{Transfer: xfer(1, 1), Lease: 1})
		require.Nil(t, sent[spec.AbortAck](g.posted(ps[first:first+1])), "one is still out")
		require.Equal(t, uint32(6), g.free())
		acts := g.posted(ps[1-first : 2-first])
		require.NotNil(t, sent[spec.AbortAck](g.noticed(acts)))
		require.Equal(t, uint32(8), g.free())
		g.posted(ps)
		g.noticed(acts)
		require.Equal(t, uint32(8), g.free(), "returned once")
		require.False(t, g.r.stopped)
	}
}

func TestCaseB33_OutsideLabelTwice_AreTwoTransfers(t *testing.T) {
	g := newLeaderRig(t, 1, nil)
	a, b := askOf(1, 4), askOf(2, 6)
	a.Label, b.Label = "7", "7"
	require.Equal(t, uint32(4), reply[spec.Asked](g.ask(a)).Tokens)
	require.Equal(t, uint32(6), reply[spec.Asked](g.ask(b)).Tokens)
	require.Equal(t, 2, g.l.Status().Admitted)
	b.Transfer = a.Transfer // the inner name twice, for another prompt: refused without touching the first
	acts := g.ask(b)
	require.Equal(t, spec.RefuseDuplicate, action1[Count](acts).Refusal)
	require.Nil(t, reply[spec.AskFailed](acts))
	require.Equal(t, 2, g.l.Status().Admitted)
}

func TestCaseB45_IdThatIsNotKnown_IsAnsweredNotDropped(t *testing.T) {
	g := newPrefillRig(t, nil)
	g.open(1, 1, pullLink)
	g.offered(1, 1, 1, 4)
	for _, m := range []spec.Message{spec.Grant{Transfer: xfer(1, 8), Lease: 1}, spec.Abort{Transfer: xfer(1, 8), Lease: 1}, spec.Read{Transfer: xfer(1, 8), Lease: 1}} {
		no := sent[spec.Refused](g.say(1, m))
		require.Equal(t, spec.RefuseUnknownTransfer, no.Refusal, "%T", m)
		require.Equal(t, m.Kind(), no.About)
	}
	require.Equal(t, uint32(7), g.free(), "another transfer's Read ends nothing")
	require.Equal(t, spec.RefuseUnknownLease, sent[spec.Refused](g.say(1, spec.Abort{Transfer: xfer(1, 1)})).Refusal)
	require.Equal(t, spec.RefuseUnknownLease, action1[Count](g.say(1, spec.Read{Transfer: xfer(1, 5), Lease: 5})).Refusal)
}

func TestCaseB48_GrantOfNothing_CompletesAndReleases(t *testing.T) {
	g := newPrefillRig(t, nil)
	g.open(1, 1, nil)
	g.assign(1, 1, 4)
	m := grantOf(1, 1, 1, 4)
	m.Parts, m.Pages = nil, [spec.ComponentCount][]spec.GrantedPage{}
	g.say(1, m)
	g.side(TakeSource{Transfer: xfer(1, 1)})
	acts := g.computed(xfer(1, 1), 0, 4, true)
	require.NotNil(t, sent[spec.Complete](acts), "zero bytes are complete, too")
	require.Nil(t, action1[Notice](acts))
	require.Equal(t, uint32(8), g.free())
}

func TestCaseB46_PostFails_DecodeHearsTheReasonAtOnce(t *testing.T) {
	g := newPrefillRig(t, func(c *PrefillRankConfig) { c.MaxPostItems = 1 })
	g.open(1, 1, nil)
	g.open(2, 1, nil)
	g.side(Assign{Transfer: xfer(1, 1), Domain: rigDomain, Tokens: 8, Links: []spec.Incarnation{g.inc[1], g.inc[2]}})
	g.say(1, grantOf(1, 1, 1, 8))
	g.say(2, grantOf(1, 1, 1, 8))
	g.side(TakeSource{Transfer: xfer(1, 1)})
	ps := posts(g.seal(g.computed(xfer(1, 1), 0, 8, true)))
	acts := g.step(Posted{Peer: 1, Epoch: 1, Batch: ps[1].Batch, Err: "second of four"})
	failing := 0
	for _, a := range acts {
		if s, ok := a.(Send); ok {
			if f, ok := s.Env.Body.(spec.Failing); ok {
				failing++
				require.Equal(t, spec.CauseTransport, f.Cause)
				require.Equal(t, "second of four", f.Detail)
			}
		}
	}
	require.Equal(t, 2, failing, "both decode ranks learn it")
	require.Equal(t, spec.CauseTransport, toLeader[JobStopped](acts).Cause)
}
