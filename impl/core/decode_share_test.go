package core

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/impl/pages"
	"kvfence/spec"
)

// shareRig is a rig that shares prefixes; its prompts are 10 tokens, two full pages and a tail.
func shareRig(t *testing.T, prefill int, pull bool, pool uint32) *dRig {
	cfg := dRigConfig(prefill, pull, true, pool)
	cfg.MaxPublished = 40
	return openDRig(t, cfg)
}

func rigContents(domain byte) []spec.ContentID {
	return spec.ContentIDs(make([]int32, dRigTokens), spec.Domain{domain}, worldPage)
}

// takeLike takes pages for the prompt of a domain that may share.
func (g *dRig) takeLike(domain byte, contents []spec.ContentID) (spec.TransferID, []Action) {
	g.Helper()
	g.last++
	t := spec.TransferID{Leader: g.r.own, Counter: g.last}
	return t, g.side(Take{Transfer: t, Tokens: dRigTokens, Domain: spec.Domain{domain}, Request: spec.RequestDigest{2}, Prefill: g.peers, Contents: contents})
}

// sharedFill takes and grants; sharedReady goes on to ready.
func (g *dRig) sharedFill(domain byte) (*dlease, []Action) {
	g.Helper()
	t, acts := g.takeLike(domain, rigContents(domain))
	require.Len(g, told[Taken](acts), 1)
	acts = append(acts, g.side(Go{Transfer: t})...)
	return g.r.byTransfer[t], acts
}

func (g *dRig) sharedReady(domain byte) *dlease {
	g.Helper()
	l, _ := g.sharedFill(domain)
	g.finish(l)
	return l
}

// publishTail makes the page that l would store into next known to others, and returns it. No path of the machine does that.
func (g *dRig) publishTail(l *dlease) spec.GrantedPage {
	g.Helper()
	tail := l.pages[spec.KV][2]
	_, err := g.r.pools[spec.KV].Publish(pages.Publication{Content: spec.ContentID{9}, Domain: l.domain, Page: tail.Page, Gen: tail.Gen, Filler: l.owner()})
	require.NoError(g, err)
	return tail
}

// finish brings a filling lease to ready.
func (g *dRig) finish(l *dlease) []Action {
	g.Helper()
	var acts []Action
	for _, p := range g.peers {
		acts = append(acts, g.recv(p, g.complete(l, p))...)
		g.notice(l, p)
	}
	acts = append(acts, g.step(Verified{Lease: l.id})...)
	require.Equal(g, dleaseReady, l.state)
	return acts
}

func TestDecodeRank_Prefix_IsPublishedAndSharedAndPrefillOwesTheRest(t *testing.T) {
	g := shareRig(t, 2, false, 20)
	a, acts := g.sharedFill(1)
	require.Zero(t, did(acts, "Share"))
	acts = g.finish(a)
	require.Equal(t, 2, did(acts, "Publish"), "the full pages, not the tail")
	require.Equal(t, 2, g.r.Status().Published)

	free := g.free()
	b, acts := g.sharedFill(1)
	require.Equal(t, 2, did(acts, "Share"))
	require.Equal(t, free-1, g.free(), "one page of its own, for the tail")
	require.Equal(t, a.pages[spec.KV][:2], b.pages[spec.KV][:2])
	for _, grant := range said[spec.Grant](acts) {
		require.Equal(t, []spec.GrantedPage{{}, {}, b.pages[spec.KV][2]}, grant.Pages[spec.KV], "no peer learns of shared pages")
		for _, p := range grant.Parts {
			if p.Component == spec.KV {
				require.Equal(t, [2]uint32{8, 10}, [2]uint32{p.TokenLo, p.TokenHi})
			}
		}
	}
	for _, v := range only[VoidTags](acts) {
		for _, p := range v.Pages {
			require.NotContains(t, a.pages[v.Component][:min(2, len(a.pages[v.Component]))], spec.GrantedPage{Page: p, Gen: 1})
		}
	}
	acts = g.finish(b)
	require.Zero(t, did(acts, "Publish"), "known already, and the tail never is")
	read := one[ReadPages](g, g.step(beginOf(b)))
	fillers := 0
	for _, c := range read.Checks {
		if c.Component == spec.KV && c.Want.Index < 2 {
			require.Equal(t, a.id, c.Want.Lease, "the filler's tag")
			require.Equal(t, a.pages[spec.KV][c.Want.Index].Gen, c.Want.Gen)
			require.True(t, c.Want.HasDigest)
			fillers++
		}
	}
	require.Equal(t, 4, fillers, "two parts of two pages")
	require.Empty(t, read.Copies)
}

func TestDecodeRank_FillerReleased_SharedPagesStayUntilTheLastHolder(t *testing.T) {
	g := shareRig(t, 1, false, 20)
	a := g.sharedReady(1)
	b := g.sharedReady(1)
	all := g.r.pools[spec.KV].Counts().Total
	g.side(ReleaseLease{Transfer: a.transfer})
	require.Nil(t, g.r.leases[a.id])
	require.Equal(t, all-3, g.free(), "two shared, one of b's own")
	one[ReadPages](g, g.step(ReadBegin{Lease: b.id, Pos: dRigTokens}))
	g.side(ReleaseLease{Transfer: b.transfer})
	require.Equal(t, all-3, g.free(), "a kernel reads them")
	g.step(ReadEnd{Lease: b.id})
	require.Equal(t, all, g.free())
	require.Equal(t, 2, g.r.Status().Published, "free, and known until they are handed out")
	c, acts := g.sharedFill(1)
	require.Equal(t, 2, did(acts, "Share"))
	g.finish(c)
}

// Equal tokens of another domain, and a domain that quotes another's content ids: neither shares.
func TestDecodeRank_OtherDomain_NeverShares(t *testing.T) {
	g := shareRig(t, 1, false, 20)
	g.sharedReady(1)
	_, acts := g.sharedFill(2)
	require.Zero(t, did(acts, "Share"))
	_, acts = g.takeLike(3, rigContents(1))
	require.Len(t, told[Taken](acts), 1, "it goes on without")
	require.Equal(t, spec.RefuseNotGranted, one[Count](g, acts).Refusal)
	require.Zero(t, g.r.hits)
}

// A request that could share waits for pages; by the time there are some, the prefix was evicted and its pages are another's.
func TestDecodeRank_PrefixEvictedUnderAWaitingTake_IsNotShared(t *testing.T) {
	g := shareRig(t, 1, false, 6)
	a := g.sharedReady(1)
	other := g.sharedReady(2)
	g.side(ReleaseLease{Transfer: a.transfer})
	require.Equal(t, uint32(3), g.free())
	big := spec.TransferID{Leader: g.r.own, Counter: 77}
	require.Len(t, told[Taken](g.side(Take{Transfer: big, Tokens: 7, Domain: spec.Domain{5}, Prefill: g.peers})), 1)
	_, acts := g.takeLike(1, rigContents(1))
	require.Len(t, told[NoRoom](acts), 1)
	g.side(AbortLease{Transfer: big, Cause: spec.CauseClientGone})
	g.side(ReleaseLease{Transfer: other.transfer})
	l, acts := g.sharedFill(1)
	require.Less(t, len(l.shared), 2, "what is left of the prefix, from its start")
	require.LessOrEqual(t, did(acts, "Share"), 1)
	for i, p := range l.shared {
		require.Equal(t, p.Gen, g.r.pools[spec.KV].Gen(p.Page), "%d", i)
	}
}

// A share attempt that brings what was found before the page was handed out anew is refused, whatever the page holds now.
func TestDecodeRank_StalePublication_IsRefused(t *testing.T) {
	g := shareRig(t, 1, false, 6)
	a := g.sharedReady(1)
	old, ok := g.r.pools[spec.KV].Find(rigContents(1)[0])
	require.True(t, ok)
	g.side(ReleaseLease{Transfer: a.transfer})
	g.sharedReady(2)
	g.sharedReady(3)
	_, err := g.r.pools[spec.KV].Share(9, spec.Domain{1}, []pages.Publication{old})
	require.ErrorIs(t, err, pages.ErrStale)
}

// A bad tag in a shared page, found by one holder: all holders fail, filling and ready, its filler too; nobody new shares it; it comes back
// when the links that were granted any of their pages were fenced after the finding.
func TestDecodeRank_BadTagInASharedPage_FailsAllHoldersAndQuarantines(t *testing.T) {
	g := shareRig(t, 1, false, 20)
	filler, ready := g.sharedReady(1), g.sharedReady(1)
	filling, _ := g.sharedFill(1)
	stranger := g.sharedReady(2)
	page := filler.pages[spec.KV][1].Page
	one[ReadPages](g, g.step(ReadBegin{Lease: ready.id, Pos: dRigTokens}))
	one[ReadPages](g, g.step(ReadBegin{Lease: filler.id, Pos: dRigTokens}))
	acts := g.step(ReadEnd{Lease: ready.id, Bad: []BadPart{{Component: spec.KV, Index: 1, State: spec.TagForeign}}})
	failed := told[LeaseFailed](acts)
	require.Len(t, failed, 3)
	for _, f := range failed {
		require.Equal(t, spec.CauseMismatch, f.Cause)
		require.NotEqual(t, stranger.transfer, f.Transfer)
	}
	require.Equal(t, []dleaseState{dleaseRevoking, dleaseRevoking}, []dleaseState{filler.state, filling.state})
	require.Len(t, said[spec.Abort](acts), 1, "the filling one's link is asked to stop")
	require.Zero(t, did(acts, "Abort"), "to the specification the finding has revoked it")
	require.Equal(t, pages.Quarantined, g.r.Page(spec.KV, page).State)
	require.Equal(t, 3, g.r.Status().Published, "the other page of the prefix, and two of the stranger's")
	require.Equal(t, spec.CauseMismatch, one[ReadRefused](g, g.step(ReadBegin{Lease: filling.id})).Cause)

	acts = g.wait(20) // the filling lease owes: the fence waits for it, within a bound
	f := one[Fence](g, acts)
	acts = g.step(FenceDone{Peer: 1, Old: f.Old, OK: true})
	require.Zero(t, did(acts, "QuarantineEnd"), "a kernel still reads")
	require.Equal(t, pages.Quarantined, g.r.Page(spec.KV, page).State)
	acts = g.step(ReadEnd{Lease: filler.id})
	require.Equal(t, 2, did(acts, "QuarantineEnd"), "of the ready ones")
	require.Equal(t, pages.Free, g.r.Page(spec.KV, page).State)
	require.Len(t, g.r.leases, 1)
	require.Equal(t, dleaseReady, stranger.state)
}

// The page was filled over one link and is shared by a lease of another link, long after its filler is over: both links are fenced.
func TestDecodeRank_BadSharedPage_WaitsForTheFenceOfItsFillersLink(t *testing.T) {
	cfg := dRigConfig(2, false, true, 20)
	cfg.MaxPublished = 40
	g := newDRig(t, cfg)
	for _, p := range g.peers { // two prefill sides of one rank each
		g.dial(p)
		for _, f := range g.link(p).fencing {
			g.step(FenceDone{Peer: p, Old: f, OK: true})
		}
		m := g.accept(p)
		m.Layouts = worldLayouts(0, 1, 40)
		m.Identity.Rank, m.Identity.Size, m.Identity.Side = 0, 1, []spec.Incarnation{g.inc[p-1]}
		g.recv(p, m)
		g.step(DataUp{Peer: p, Epoch: g.link(p).epoch})
		require.Equal(t, dlinkOpen, g.link(p).state)
	}
	fill := func(p PeerID) *dlease {
		g.last++
		tr := spec.TransferID{Leader: g.r.own, Counter: g.last}
		g.side(Take{Transfer: tr, Tokens: dRigTokens, Domain: spec.Domain{1}, Request: spec.RequestDigest{2}, Prefill: []PeerID{p}, Contents: rigContents(1)})
		g.side(Go{Transfer: tr})
		l := g.r.byTransfer[tr]
		c := g.complete(l, 1) // the parts of rank 0
		c.GrantEpoch = g.link(p).epoch
		g.recv(p, c)
		g.notice(l, p)
		g.step(Verified{Lease: l.id})
		require.Equal(t, dleaseReady, l.state)
		return l
	}
	a := fill(1)
	b := fill(2)
	require.Len(t, b.shared, 2)
	g.side(ReleaseLease{Transfer: a.transfer})
	one[ReadPages](g, g.step(ReadBegin{Lease: b.id}))
	acts := g.step(ReadEnd{Lease: b.id, Bad: []BadPart{{Component: spec.KV, State: spec.TagForeign}}})
	fences := only[Fence](acts)
	require.Len(t, fences, 2)
	page := b.pages[spec.KV][0].Page
	for _, f := range fences {
		require.Equal(t, pages.Quarantined, g.r.Page(spec.KV, page).State)
		acts = g.step(FenceDone{Peer: f.Peer, Old: f.Old, OK: true})
	}
	require.Equal(t, 1, did(acts, "QuarantineEnd"))
	require.Equal(t, pages.Free, g.r.Page(spec.KV, page).State)
}

// Two holders find the same page bad, one after the other: the later finding takes it over and waits for fences of its own.
func TestDecodeRank_SecondFindingOfAPage_WaitsForItsOwnFence(t *testing.T) {
	g := shareRig(t, 1, false, 20)
	a, b := g.sharedReady(1), g.sharedReady(1)
	bad := []BadPart{{Component: spec.KV, Index: 0, State: spec.TagTorn}}
	one[ReadPages](g, g.step(ReadBegin{Lease: a.id}))
	one[ReadPages](g, g.step(ReadBegin{Lease: b.id}))
	first := one[Fence](g, g.step(ReadEnd{Lease: a.id, Bad: bad}))
	second := one[Fence](g, g.step(ReadEnd{Lease: b.id, Bad: bad}))
	page := b.pages[spec.KV][0].Page
	acts := g.step(FenceDone{Peer: 1, Old: first.Old, OK: true})
	require.Equal(t, 1, did(acts, "QuarantineEnd"))
	require.Equal(t, pages.Quarantined, g.r.Page(spec.KV, page).State)
	acts = g.step(FenceDone{Peer: 1, Old: second.Old, OK: true})
	require.Equal(t, 1, did(acts, "QuarantineEnd"))
	require.Equal(t, pages.Free, g.r.Page(spec.KV, page).State)
	require.Equal(t, g.r.pools[spec.KV].Counts().Total, g.free())
}

// Where a page that decode would store into is known to others (no path leads there: prompts are published, and stored into behind), the
// step gets a page of its own, copies first, and both are held; copies that were not done come again.
func TestDecodeRank_AppendToAPublishedPage_CopiesFirst(t *testing.T) {
	g := shareRig(t, 1, false, 20)
	l := g.sharedReady(1)
	tail := g.publishTail(l)
	acts := g.step(ReadBegin{Lease: l.id, Pos: dRigTokens})
	read := one[ReadPages](g, acts)
	fresh := read.Pages[spec.KV][2]
	require.NotEqual(t, tail, fresh)
	require.Equal(t, []PageCopy{{Component: spec.KV, Index: 2, From: tail, To: fresh, Tokens: 2}}, read.Copies)
	require.Equal(t, 1, did(acts, "Grow"))
	require.Equal(t, spec.PartLocal, one[PutTag](g, acts).Tag.Part)
	require.Equal(t, pages.Held, g.r.Page(spec.KV, tail.Page).State)
	require.Equal(t, pages.Held, g.r.Page(spec.KV, fresh.Page).State)
	g.step(ReadEnd{Lease: l.id})
	require.Len(t, one[ReadPages](g, g.step(ReadBegin{Lease: l.id, Pos: dRigTokens})).Copies, 1)
	g.step(ReadEnd{Lease: l.id, Copied: true})
	again := one[ReadPages](g, g.step(ReadBegin{Lease: l.id, Pos: dRigTokens + 1}))
	require.Empty(t, again.Copies)
	require.Equal(t, fresh, again.Pages[spec.KV][2])
	g.step(ReadEnd{Lease: l.id})
	g.side(ReleaseLease{Transfer: l.transfer})
	require.Equal(t, g.r.pools[spec.KV].Counts().Total, g.free())
}

// No page for the copy: the step does not run, nothing is stored, and the lease is as it was.
func TestDecodeRank_AppendToAPublishedPage_NoRoomForTheCopy(t *testing.T) {
	g := shareRig(t, 1, false, 3)
	l := g.sharedReady(1)
	tail := g.publishTail(l)
	require.Equal(t, spec.CauseOverCapacity, one[ReadRefused](g, g.step(ReadBegin{Lease: l.id, Pos: dRigTokens})).Cause)
	require.Equal(t, tail, l.pages[spec.KV][2])
	one[ReadPages](g, g.step(ReadBegin{Lease: l.id}))
}

// Prefill takes void pages where it owes nothing, and nowhere else.
func TestPrefillRank_GrantWithVoidPages_OnlyBeforeItsParts(t *testing.T) {
	shared := func(void int, from uint32) spec.Grant {
		m := grantOf(1, 1, 1, 10)
		for i := range void {
			m.Pages[spec.KV][i] = spec.GrantedPage{}
		}
		m.Parts[0].TokenLo = from
		return m
	}
	for name, c := range map[string]struct {
		grant spec.Grant
		ok    bool
	}{
		"two pages shared":              {shared(2, 8), true},
		"granted and not owed":          {shared(0, 8), true},
		"owed and void":                 {shared(2, 4), false},
		"void behind the first granted": {func() spec.Grant { m := shared(0, 8); m.Pages[spec.KV][1] = spec.GrantedPage{}; return m }(), false},
	} {
		t.Run(name, func(t *testing.T) {
			k := &prefillLink{layouts: rigLayouts(64)}
			why := judgePages(k, c.grant)
			require.Equal(t, c.ok, why == "", why)
		})
	}
}
