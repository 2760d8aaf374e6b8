package core

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/impl/pages"
	"kvfence/spec"
)

func (g *dRig) forkOf(l *dlease) (spec.TransferID, []Action) {
	g.Helper()
	g.last++
	t := spec.TransferID{Leader: g.r.own, Counter: g.last}
	return t, g.side(Fork{Transfer: t, From: l.transfer})
}

// A further sample shares the full pages, copies the tail in its first step, and appends to its own.
func TestDecodeRank_Fork_SharesFullPagesAndCopiesTheTail(t *testing.T) {
	g := shareRig(t, 1, false, 20)
	a := g.sharedReady(1)
	free := g.free()
	tr, acts := g.forkOf(a)
	require.Len(t, told[Taken](acts), 1)
	require.Len(t, told[LeaseReady](acts), 1)
	require.Empty(t, only[Send](acts), "prefill owes it nothing")
	require.Equal(t, []int{1, 2, 1, 1, 1}, []int{did(acts, "Grant"), did(acts, "Share"), did(acts, "Verify"), did(acts, "Ready"), did(acts, "Grow")})
	b := g.r.byTransfer[tr]
	require.Equal(t, free-1, g.free())
	require.Equal(t, a.pages[spec.KV][:2], b.pages[spec.KV][:2])
	require.NotEqual(t, a.pages[spec.KV][2], b.pages[spec.KV][2])
	require.Empty(t, b.pages[spec.Aux])

	g.side(ReleaseLease{Transfer: a.transfer})
	require.Equal(t, pages.Revoking, g.r.Page(spec.KV, a.pages[spec.KV][2].Page).State, "the tail is still to be copied")
	read := one[ReadPages](g, g.step(ReadBegin{Lease: b.id, Pos: dRigTokens}))
	require.Equal(t, []PageCopy{{Component: spec.KV, Index: 2, From: a.pages[spec.KV][2], To: b.pages[spec.KV][2], Tokens: 2}}, read.Copies)
	tags := map[spec.PageID]int{}
	for _, c := range read.Checks {
		tags[c.Page]++
	}
	require.Equal(t, 1, tags[a.pages[spec.KV][2].Page], "what is copied is compared, too")
	require.Len(t, tags, 4)
	g.step(ReadEnd{Lease: b.id, Copied: true})
	require.Equal(t, pages.Free, g.r.Page(spec.KV, a.pages[spec.KV][2].Page).State)
	g.side(Grow{Transfer: tr, Pos: 12})
	require.Empty(t, one[ReadPages](g, g.step(ReadBegin{Lease: b.id, Pos: 12})).Copies)
	g.step(ReadEnd{Lease: b.id})
	g.side(ReleaseLease{Transfer: tr})
	require.Equal(t, g.r.pools[spec.KV].Counts().Total, g.free())
}

// A bad tail is found by whoever would copy it: it is taken out of use with the page that it was for, and the first sample fails as well.
func TestDecodeRank_Fork_BadTail_FailsBothSamples(t *testing.T) {
	g := shareRig(t, 1, false, 20)
	a := g.sharedReady(1)
	tr, _ := g.forkOf(a)
	b := g.r.byTransfer[tr]
	one[ReadPages](g, g.step(ReadBegin{Lease: b.id, Pos: dRigTokens}))
	acts := g.step(ReadEnd{Lease: b.id, Bad: []BadPart{{Component: spec.KV, Index: 2, State: spec.TagForeign}}})
	require.Len(t, told[LeaseFailed](acts), 2)
	require.Equal(t, pages.Quarantined, g.r.Page(spec.KV, a.pages[spec.KV][2].Page).State)
	require.Equal(t, pages.Quarantined, g.r.Page(spec.KV, b.pages[spec.KV][2].Page).State)
	acts = g.step(FenceDone{Peer: 1, Old: one[Fence](g, acts).Old, OK: true})
	require.Equal(t, 2, did(acts, "QuarantineEnd"))
	require.Equal(t, g.r.pools[spec.KV].Counts().Total, g.free())
}

// The first sample finds its tail bad while another is still to copy it: both fail, and nothing is copied.
func TestDecodeRank_Fork_TailFoundBadByTheFirstSample_FailsBoth(t *testing.T) {
	g := shareRig(t, 1, false, 20)
	a := g.sharedReady(1)
	tr, _ := g.forkOf(a)
	b := g.r.byTransfer[tr]
	one[ReadPages](g, g.step(ReadBegin{Lease: a.id}))
	acts := g.step(ReadEnd{Lease: a.id, Bad: []BadPart{{Component: spec.KV, Index: 2, State: spec.TagForeign}}})
	require.Len(t, told[LeaseFailed](acts), 2)
	require.NotContains(t, g.r.leases, b.id)
	require.Equal(t, spec.CausePreempted, one[ReadRefused](g, g.step(ReadBegin{Lease: b.id, Pos: dRigTokens})).Cause)
	acts = g.step(FenceDone{Peer: 1, Old: one[Fence](g, acts).Old, OK: true})
	require.Equal(t, 1, did(acts, "QuarantineEnd"))
	require.Equal(t, g.r.pools[spec.KV].Counts().Total, g.free())
}

// The copies are done and the second check finds the copied page bad: it goes to quarantine before its hold ends.
func TestDecodeRank_Fork_BadTailAfterTheCopy_IsQuarantined(t *testing.T) {
	g := shareRig(t, 1, false, 20)
	a := g.sharedReady(1)
	tr, _ := g.forkOf(a)
	b := g.r.byTransfer[tr]
	tail := a.pages[spec.KV][2].Page
	g.side(ReleaseLease{Transfer: a.transfer})
	one[ReadPages](g, g.step(ReadBegin{Lease: b.id, Pos: dRigTokens}))
	acts := g.step(ReadEnd{Lease: b.id, Copied: true, Bad: []BadPart{{Component: spec.KV, Index: 2, State: spec.TagForeign}}})
	require.Equal(t, pages.Quarantined, g.r.Page(spec.KV, tail).State)
	g.step(FenceDone{Peer: 1, Old: one[Fence](g, acts).Old, OK: true})
	require.Equal(t, pages.Free, g.r.Page(spec.KV, tail).State)
	require.Equal(t, g.r.pools[spec.KV].Counts().Total, g.free())
}

// The writers of a tail are fenced also when its first sample is long over.
func TestDecodeRank_Fork_BadTailOfAFinishedSample_FencesItsWriters(t *testing.T) {
	g := shareRig(t, 2, false, 20)
	a := g.sharedReady(1)
	tr, _ := g.forkOf(a)
	b := g.r.byTransfer[tr]
	g.side(ReleaseLease{Transfer: a.transfer})
	one[ReadPages](g, g.step(ReadBegin{Lease: b.id, Pos: dRigTokens}))
	acts := g.step(ReadEnd{Lease: b.id, Bad: []BadPart{{Component: spec.KV, Index: 2, State: spec.TagForeign}}})
	require.Len(t, only[Fence](acts), 2)
	for _, f := range only[Fence](acts) {
		require.Less(t, g.free(), g.r.pools[spec.KV].Counts().Total)
		g.step(FenceDone{Peer: f.Peer, Old: f.Old, OK: true})
	}
	require.Equal(t, g.r.pools[spec.KV].Counts().Total, g.free())
}

// A prompt that fills no page shares nothing: only its tail says who wrote it.
func TestDecodeRank_Fork_BadTailOfAShortFinishedSample_FencesItsWriters(t *testing.T) {
	g := shareRig(t, 1, false, 20)
	g.last++
	tr := spec.TransferID{Leader: g.r.own, Counter: g.last}
	g.side(Take{Transfer: tr, Tokens: 3, Domain: spec.Domain{1}, Request: spec.RequestDigest{2}, Prefill: g.peers})
	g.side(Go{Transfer: tr})
	a := g.r.byTransfer[tr]
	g.finish(a)
	fork, _ := g.forkOf(a)
	b := g.r.byTransfer[fork]
	require.Empty(t, b.shared)
	g.side(ReleaseLease{Transfer: tr})
	one[ReadPages](g, g.step(ReadBegin{Lease: b.id, Pos: 3}))
	acts := g.step(ReadEnd{Lease: b.id, Bad: []BadPart{{Component: spec.KV, State: spec.TagForeign}}})
	f := one[Fence](g, acts)
	require.Zero(t, did(acts, "QuarantineEnd"))
	require.Less(t, g.free(), g.r.pools[spec.KV].Counts().Total)
	g.step(FenceDone{Peer: 1, Old: f.Old, OK: true})
	require.Equal(t, g.r.pools[spec.KV].Counts().Total, g.free())
}

func TestDecodeRank_Fork_RefusedWhereItCannotBe(t *testing.T) {
	g := shareRig(t, 1, false, 4)
	a, _ := g.sharedFill(1)
	_, acts := g.forkOf(a)
	require.Len(t, told[NoPlan](acts), 1, "it is not ready")
	g.finish(a)
	tr, acts := g.forkOf(a)
	require.Len(t, told[Taken](acts), 1)
	require.Len(t, told[Taken](g.side(Fork{Transfer: tr, From: a.transfer})), 1, "said again")
	_, acts = g.forkOf(g.r.byTransfer[tr])
	require.Len(t, told[NoPlan](acts), 1, "its own copies are not done")
	_, acts = g.forkOf(a)
	require.Len(t, told[NoRoom](acts), 1)
	require.Len(t, a.shared, 0)
	require.NoError(t, g.r.pools[spec.KV].Unpublish(a.pages[spec.KV][0].Page))
	g.side(ReleaseLease{Transfer: tr})
	_, acts = g.forkOf(a)
	require.Len(t, told[NoPlan](acts), 1, "its prompt is not published any more")
	g.side(ReleaseLease{Transfer: a.transfer})
	require.Equal(t, g.r.pools[spec.KV].Counts().Total, g.free())
}

// Without a tail there is nothing to copy of the prompt.
func TestDecodeRank_Fork_OfAFullPrompt_CopiesNothing(t *testing.T) {
	g := shareRig(t, 1, false, 20)
	g.last++
	tr := spec.TransferID{Leader: g.r.own, Counter: g.last}
	g.side(Take{Transfer: tr, Tokens: 8, Domain: spec.Domain{1}, Request: spec.RequestDigest{2}, Prefill: g.peers, Contents: rigContents(1)})
	g.side(Go{Transfer: tr})
	a := g.r.byTransfer[tr]
	g.finish(a)
	fork, acts := g.forkOf(a)
	require.Equal(t, 1, did(acts, "Grow"), "the page of its first position")
	b := g.r.byTransfer[fork]
	require.Len(t, b.shared, 2)
	require.Empty(t, one[ReadPages](g, g.step(ReadBegin{Lease: b.id, Pos: 8})).Copies)
	g.step(ReadEnd{Lease: b.id})
	g.side(ReleaseLease{Transfer: fork})
	g.side(ReleaseLease{Transfer: tr})
	require.Equal(t, g.r.pools[spec.KV].Counts().Total, g.free())
}
