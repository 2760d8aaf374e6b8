package core

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/impl/pages"
	"kvfence/spec"
)

func sharePrefillRig(t *testing.T) *prefillRig {
	return newPrefillRig(t, func(c *PrefillRankConfig) { c.MaxPublished = 8 })
}

func sourceContents(tokens uint32, domain spec.Domain) []spec.ContentID {
	return spec.ContentIDs(make([]int32, tokens), domain, 4)
}

// takeShared brings a lease of equal tokens to its source pages.
func (g *prefillRig) takeShared(p PeerID, n uint64, lease spec.LeaseID, tokens uint32, change func(*spec.Grant)) *SourceTaken {
	g.t.Helper()
	m := grantOf(p, n, lease, tokens)
	if change != nil {
		change(&m)
	}
	g.side(Assign{Transfer: m.Transfer, Request: spec.RequestDigest{byte(n)}, Domain: m.Domain, Tokens: tokens, Links: []spec.Incarnation{incOf(byte(100 + p))}, Contents: sourceContents(tokens, m.Domain)})
	g.say(p, m)
	require.NotNil(g.t, toLeader[Granted](g.last), "%v", g.last)
	return toLeader[SourceTaken](g.side(TakeSource{Transfer: m.Transfer, MostShare: ^uint32(0)}))
}

// writeOut ends a computed job well: posts and notices are over.
func (g *prefillRig) writeOut(acts []Action) []Post {
	g.t.Helper()
	ps := posts(acts)
	more := ps
	for len(more) > 0 {
		out := g.posted(more)
		more = posts(out)
		ps = append(ps, more...)
	}
	g.noticed(nil)
	return ps
}

// A second job with the same beginning stands on the first one's pages: it takes one page less each, seals and digests nothing twice, and
// writes what was sealed.
func TestPrefillRank_Prefix_IsComputedAndDigestedOnce(t *testing.T) {
	g := sharePrefillRig(t)
	g.open(1, 1, nil)
	require.Zero(t, g.takeShared(1, 1, 1, 10, nil).Shared)
	first := g.writeOut(g.seal(g.computed(xfer(1, 1), 0, 10, true)))
	require.Equal(t, uint32(8), g.free(), "free, and known")

	got := g.takeShared(1, 2, 2, 10, nil)
	require.Equal(t, uint32(2), got.Shared)
	require.Equal(t, first[0].Items[0].Src, spec.SourcePage(got.Pages[spec.KV][0]))
	require.Equal(t, uint32(5), g.free())
	acts := g.computed(xfer(1, 2), 8, 10, true)
	for _, it := range action1[Seal](acts).Items {
		require.False(t, it.Part.Component == spec.KV && it.Index < 2, "sealed long ago")
	}
	early := posts(acts)
	require.Len(t, early, 1, "what is sealed goes at once")
	all := append(early, g.writeOut(g.seal(acts))...)
	g.writeOut([]Action{early[0]})
	want := map[uint32]uint64{}
	for _, p := range first {
		for _, it := range p.Items {
			if it.Part.Component == spec.KV && it.Index < 2 {
				want[it.Index] = it.Tag.Digest
			}
		}
	}
	for _, p := range all {
		for _, it := range p.Items {
			require.Equal(t, spec.LeaseID(2), it.Tag.Lease)
			if it.Part.Component == spec.KV && it.Index < 2 {
				require.Equal(t, want[it.Index], it.Tag.Digest)
				delete(want, it.Index)
			}
		}
	}
	require.Empty(t, want)
}

// The source is held by whoever still reads it: the first job is over and handed out nothing, the second one's post keeps the shared pages.
func TestPrefillRank_SharedSource_IsHeldUntilItsPostsAreOver(t *testing.T) {
	g := sharePrefillRig(t)
	g.open(1, 1, nil)
	g.takeShared(1, 1, 1, 10, nil)
	g.writeOut(g.seal(g.computed(xfer(1, 1), 0, 10, true)))
	g.takeShared(1, 2, 2, 10, nil)
	acts := g.computed(xfer(1, 2), 8, 10, true)
	early := posts(acts)
	g.side(Break{Transfer: xfer(1, 2), Cause: spec.CauseOperator})
	g.seal(acts)
	g.noticed(nil)
	require.Equal(t, uint32(5), g.free(), "a write may still read them")
	require.Nil(t, toLeader[SourceTaken](g.tryTake(3, 3, 24)))
	g.posted(early)
	require.Equal(t, uint32(8), g.free())
}

// tryTake asks for the pages of a new job of another domain.
func (g *prefillRig) tryTake(n uint64, lease spec.LeaseID, tokens uint32) []Action {
	g.t.Helper()
	g.assign(1, n, tokens)
	g.say(1, grantOf(1, n, lease, tokens))
	return g.side(TakeSource{Transfer: xfer(1, n), MostShare: ^uint32(0)})
}

func TestPrefillRank_Prefix_IsNotSharedWhereItMayNot(t *testing.T) {
	otherDomain := func(m *spec.Grant) { m.Domain = spec.Domain{8} }
	otherParts := func(m *spec.Grant) { // another cut of heads: no digest of it was ever taken
		m.Parts[0].HeadHi = 1
	}
	for name, c := range map[string]struct {
		change func(*spec.Grant)
		most   uint32
		want   uint32
	}{
		"the same": {nil, 9, 2}, "less is asked": {nil, 1, 1}, "none is asked": {nil, 0, 0}, "another domain": {otherDomain, 9, 0}, "another cut": {otherParts, 9, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := sharePrefillRig(t)
			g.open(1, 1, nil)
			g.takeShared(1, 1, 1, 10, nil)
			g.writeOut(g.seal(g.computed(xfer(1, 1), 0, 10, true)))
			m := grantOf(1, 2, 2, 10)
			if c.change != nil {
				c.change(&m)
			}
			g.side(Assign{Transfer: m.Transfer, Domain: m.Domain, Tokens: 10, Links: []spec.Incarnation{incOf(101)}, Contents: sourceContents(10, m.Domain)})
			g.say(1, m)
			got := toLeader[SourceTaken](g.side(TakeSource{Transfer: m.Transfer, MostShare: c.most}))
			require.NotNil(t, got)
			require.Equal(t, c.want, got.Shared)
			g.side(UntakeSource{Transfer: m.Transfer})
			require.Equal(t, uint32(8), g.free())
		})
	}
}

// A pulled source page's tags name its job: a pulled job shares nothing.
func TestPrefillRank_PulledJob_SharesNothing(t *testing.T) {
	g := sharePrefillRig(t)
	g.open(1, 1, nil)
	g.open(2, 1, func(c *spec.Connect) { c.Pull = true })
	g.takeShared(1, 1, 1, 10, nil)
	g.writeOut(g.seal(g.computed(xfer(1, 1), 0, 10, true)))
	m := pullGrant(2, 2, 1, 10)
	g.side(Assign{Transfer: m.Transfer, Domain: m.Domain, Tokens: 10, Links: []spec.Incarnation{incOf(102)}, Contents: sourceContents(10, m.Domain)})
	g.say(2, m)
	require.Zero(t, toLeader[SourceTaken](g.side(TakeSource{Transfer: m.Transfer, MostShare: 9})).Shared)
}

// A job that was given up leaves nothing known: who knows what its kernel still stored.
func TestPrefillRank_BrokenJob_PublishesNothing(t *testing.T) {
	g := sharePrefillRig(t)
	g.open(1, 1, nil)
	g.takeShared(1, 1, 1, 10, nil)
	acts := g.computed(xfer(1, 1), 0, 8, false)
	g.writeOut(g.seal(acts))
	g.side(Break{Transfer: xfer(1, 1), Cause: spec.CauseCompute})
	g.side(ComputeOver{Transfer: xfer(1, 1)})
	require.Zero(t, g.takeShared(1, 2, 2, 10, nil).Shared)
}

// I6: what is posted from a shared page is a share that stands, of that generation, domain and tokens.
func TestPrefillRank_BrokenShareOfASource_IsNotPosted(t *testing.T) {
	for name, plant := range map[string]func(g *prefillRig, j *prefillJob){
		"older generation": func(_ *prefillRig, j *prefillJob) { j.pages[spec.KV][0].Gen-- },
		"other page":       func(_ *prefillRig, j *prefillJob) { j.pages[spec.KV][0] = j.pages[spec.KV][1] },
		"other domain":     func(_ *prefillRig, j *prefillJob) { j.shared[0].Domain = spec.Domain{9} },
		"other tokens":     func(_ *prefillRig, j *prefillJob) { j.shared[0].Content = spec.ContentID{9} },
		"share has ended": func(g *prefillRig, j *prefillJob) {
			_, err := g.r.ledgers[spec.KV].EndGroup(j.share)
			require.NoError(g.t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := sharePrefillRig(t)
			g.open(1, 1, nil)
			g.takeShared(1, 1, 1, 10, nil)
			g.writeOut(g.seal(g.computed(xfer(1, 1), 0, 10, true)))
			g.takeShared(1, 2, 2, 10, nil)
			plant(g, g.r.jobs[xfer(1, 2)])
			acts, err := g.r.Step(g.now, Side{Msg: ChunkDone{Transfer: xfer(1, 2), From: 8, To: 10, Last: true}})
			require.NoError(t, err)
			require.Equal(t, 6, action1[Stop](acts).Invariant)
			require.Empty(t, posts(acts))
		})
	}
}

// The ranks agree on one prefix: the least that any has. A kernel stores behind it at each of them.
func TestPrefillLeader_RanksShareUnlikePrefixes_AllTakeTheLeast(t *testing.T) {
	g := newLeaderRig(t, 2, func(c *PrefillLeaderConfig) { c.Sharing = true })
	g.admitted(1, 14)
	key := xfer(1, 1)
	acts := g.from(0, SourceTaken{Transfer: key, Shared: 3})
	require.Equal(t, []TakeSource{{Transfer: key, MostShare: 3}}, ranked[TakeSource](acts, 1))
	acts = g.from(1, SourceTaken{Transfer: key, Shared: 1})
	require.Len(t, ranked[UntakeSource](acts, 0), 1)
	require.Len(t, ranked[UntakeSource](acts, 1), 1)
	require.Equal(t, []TakeSource{{Transfer: key, MostShare: 1}}, ranked[TakeSource](acts, 0))
	g.from(0, SourceTaken{Transfer: key, Shared: 1})
	acts = g.from(1, SourceTaken{Transfer: key, Shared: 1})
	require.Equal(t, [2]uint32{4, 8}, [2]uint32{action1[Compute](acts).From, action1[Compute](acts).To}, "behind the shared page")
}

// ranked are the messages of one kind to one rank.
func ranked[M SideMsg](acts []Action, r spec.Rank) (out []M) {
	for _, a := range acts {
		if t, ok := a.(ToRank); ok && t.Rank == r {
			if m, ok := t.Msg.(M); ok {
				out = append(out, m)
			}
		}
	}
	return out
}

// TestPublication_KeepsTheFillersParts: what a ledger keeps of a page names its parts and their digests.
func TestPublication_KeepsTheFillersParts(t *testing.T) {
	g := sharePrefillRig(t)
	g.open(1, 1, nil)
	g.takeShared(1, 1, 1, 10, nil)
	g.writeOut(g.seal(g.computed(xfer(1, 1), 0, 10, true)))
	p, ok := g.r.ledgers[spec.KV].Find(sourceContents(10, rigDomain)[1])
	require.True(t, ok)
	require.Len(t, p.Parts, 1)
	require.Equal(t, pages.Owner(1), p.Filler)
	require.Equal(t, uint64(1), p.Tags[0].Digest)
	require.Equal(t, uint32(1), p.Tags[0].Index)
}
