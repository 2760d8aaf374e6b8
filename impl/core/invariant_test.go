package core

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/impl/pages"
	"kvfence/spec"
)

// broken is one way to break an invariant of a decode rank: what a fault of ours would leave behind, and the event that finds it.
type broken struct {
	number int
	name   string
	plant  func(g *dRig) Event
}

// filling is a rig's lease that was granted; begin is the first read of a ready one.
func (g *dRig) filling() *dlease { l, _ := g.fill(); return l }

// sharer is a rig's ready lease of which another one has filled the first two pages.
func (g *dRig) sharer() *dlease {
	g.r.cfg.MaxPublished = 9
	g.r.pools[spec.KV].AllowSharing(9)
	g.sharedReady(1)
	return g.sharedReady(1)
}

func beginOf(l *dlease) ReadBegin { return ReadBegin{Lease: l.id} }

// find makes assert look at a lease.
func (g *dRig) find(l *dlease) Event { g.r.touch(l); return Tick{} }

var brokenAtDecode = []broken{
	{2, "a lease has a page that the ledger does not know", func(g *dRig) Event {
		l := g.readied()
		l.pages[spec.KV] = append(l.pages[spec.KV], spec.GrantedPage{Page: 19})
		return g.find(l)
	}},
	{3, "ready with another's page", func(g *dRig) Event {
		other, l := g.readied(), g.filling()
		g.recv(1, g.complete(l, 1))
		g.notice(l, 1)
		l.pages[spec.KV][0] = other.pages[spec.KV][0]
		return Verified{Lease: l.id}
	}},
	{3, "a step answers from a page of an older generation", func(g *dRig) Event {
		l := g.readied()
		l.pages[spec.KV][0].Gen--
		return beginOf(l)
	}},
	{3, "a step answers from a shared page of an older generation", func(g *dRig) Event {
		l := g.sharer()
		l.shared[0].Gen--
		l.pages[spec.KV][0].Gen--
		return beginOf(l)
	}},
	{3, "ready with a shared page that was filled for another domain", func(g *dRig) Event {
		g.sharer()
		l, _ := g.sharedFill(1)
		g.recv(1, g.complete(l, 1))
		g.notice(l, 1)
		l.shared[1].Domain = spec.Domain{9}
		return Verified{Lease: l.id}
	}},
	{3, "a step answers from a page filled for another domain", func(g *dRig) Event {
		l := g.sharer()
		l.shared[1].Domain = spec.Domain{9}
		return beginOf(l)
	}},
	{3, "a step answers from a page filled for other tokens", func(g *dRig) Event {
		l := g.sharer()
		l.shared[1].Content = spec.ContentID{9}
		return beginOf(l)
	}},
	{3, "a shared page's tags are those of another position", func(g *dRig) Event {
		l := g.sharer()
		l.shared[0].Tags = l.shared[1].Tags
		return beginOf(l)
	}},
	{3, "a step answers from another page than it shares", func(g *dRig) Event {
		l := g.sharer()
		l.pages[spec.KV][0], l.pages[spec.KV][1] = l.pages[spec.KV][1], l.pages[spec.KV][0]
		return beginOf(l)
	}},
	{3, "a shared page without a share of it", func(g *dRig) Event {
		l := g.sharer()
		l.share++
		return beginOf(l)
	}},
	{3, "a further sample of a page filled for another domain", func(g *dRig) Event {
		l := g.sharer()
		l.contents = rigContents(7)
		for i, p := range l.shared {
			require.NoError(g, g.r.pools[spec.KV].Unpublish(p.Page))
			owner := g.r.pools[spec.KV].Owner(p.Page)
			_, err := g.r.pools[spec.KV].Publish(pages.Publication{Content: l.contents[i], Domain: l.domain, Page: p.Page, Gen: p.Gen, Filler: owner,
				Tags: []spec.Tag{{Lease: spec.LeaseID(owner), Gen: p.Gen, Index: uint32(i), Domain: spec.Domain{7}}}})
			require.NoError(g, err)
		}
		return Side{Msg: Fork{Transfer: spec.TransferID{Leader: g.r.own, Counter: 50}, From: l.transfer}}
	}},
	{4, "ready with a part missing", func(g *dRig) Event {
		l := g.readied()
		l.holds[0].got = false
		return g.find(l)
	}},
	{5, "read while a hold stands", func(g *dRig) Event {
		l := g.filling()
		l.read = true
		return g.find(l)
	}},
	{7, "filling in an epoch that is not its grant's", func(g *dRig) Event {
		l := g.filling()
		l.holds[0].epoch--
		return g.find(l)
	}},
	{9, "parts taken and the hold stands", func(g *dRig) Event {
		l := g.filling()
		l.holds[0].got = true
		return g.find(l)
	}},
	{10, "a hold ends without proof", func(g *dRig) Event {
		l := g.filling()
		l.holds[0].standing = false
		return g.find(l)
	}},
	{10, "a hold ends that the ledger does not have", func(g *dRig) Event {
		l := g.readied()
		g.step(beginOf(l))
		_, err := g.r.pools.EndHold(l.owner(), readHold())
		require.NoError(g, err)
		return ReadEnd{Lease: l.id}
	}},
	{13, "two links owe one part", func(g *dRig) Event {
		tr, _ := g.take(dRigTokens)
		l := g.r.byTransfer[tr]
		l.parts = append(l.parts, l.parts[0])
		return Side{Msg: Go{Transfer: tr}}
	}},
	{13, "pages are freed under a writer", func(g *dRig) Event {
		l := g.readied()
		l.holds[0].standing = true
		g.r.leases[l.id].told = true
		return Side{Msg: ReleaseLease{Transfer: l.transfer}}
	}},
	{15, "a page of the block table has no check", func(g *dRig) Event {
		l := g.readied()
		l.checks = l.checks[1:]
		return beginOf(l)
	}},
	{15, "a finding is not heeded", func(g *dRig) Event {
		l := g.readied()
		l.bad = true
		return g.find(l)
	}},
	{16, "an epoch is used whose fence has returned", func(g *dRig) Event {
		g.link(1).fenced = g.link(1).epoch
		return Tick{}
	}},
	{17, "a page comes out of quarantine that was not in it", func(g *dRig) Event {
		l := g.readied()
		k := g.link(1)
		g.r.findings = append(g.r.findings, &finding{leases: []*dlease{l}, pages: []compPage{{spec.KV, l.pages[spec.KV][0].Page}}, waits: []findingWait{{link: k, begun: true, old: k.epoch}}})
		k.fencing = append(k.fencing, k.epoch)
		k.epoch++
		return FenceDone{Peer: 1, Old: k.epoch - 1, OK: true}
	}},
	{17, "a share that no page stands for", func(g *dRig) Event {
		l := g.readied()
		l.share = 1
		return g.find(l)
	}},
	{10, "shares end that the ledger does not have", func(g *dRig) Event {
		l := g.sharer()
		_, err := g.r.pools[spec.KV].EndGroup(l.share)
		require.NoError(g, err)
		return Side{Msg: ReleaseLease{Transfer: l.transfer}}
	}},
	{18, "a page that decode appended to is published", func(g *dRig) Event {
		l := g.sharer()
		g.step(ReadBegin{Lease: l.id, Pos: dRigTokens})
		l.appended = 5 // as if in a page of the prompt
		return ReadEnd{Lease: l.id}
	}},
	{18, "a page that decode stored into would be published", func(g *dRig) Event {
		g.r.cfg.MaxPublished = 9
		g.r.pools[spec.KV].AllowSharing(9)
		l, _ := g.sharedFill(1)
		g.recv(1, g.complete(l, 1))
		g.notice(l, 1)
		require.NoError(g, g.r.pools[spec.KV].Store(l.owner(), l.pages[spec.KV][0].Page))
		return Verified{Lease: l.id}
	}},
	{18, "decode appended under a remote writer", func(g *dRig) Event {
		l := g.filling()
		l.appended = dRigTokens + 1
		return g.find(l)
	}},
}

// Every broken invariant ends all service of the rank in the step that finds it: nothing that the step would have served leaves.
func TestDecodeRank_BrokenInvariant_StopsFencesAndServesNothing(t *testing.T) {
	for _, b := range brokenAtDecode {
		t.Run(b.name, func(t *testing.T) {
			g := openDRig(t, dRigConfig(1, false, true, 40))
			ev := b.plant(g)
			acts, err := g.r.Step(g.now, ev)
			require.NoError(t, err)
			require.Equal(t, b.number, one[Stop](g, acts).Invariant, "%+v", acts)
			require.Len(t, only[Fence](acts), 1)
			require.Equal(t, spec.CauseInvariant, told[RankEnding](acts)[len(told[RankEnding](acts))-1].Cause)
			g.servesNothing(acts)
			if e, reads := ev.(ReadBegin); reads {
				require.Equal(t, ReadRefused{Lease: e.Lease, Cause: spec.CauseInvariant}, one[ReadRefused](g, acts))
			}
			next := spec.TransferID{Leader: g.r.own, Counter: 99}
			for _, ev := range []Event{Side{Msg: Take{Transfer: next, Tokens: 4, Prefill: g.peers}}, Side{Msg: Go{Transfer: next}}, ReadBegin{Lease: 1},
				Verified{Lease: 2}, Dialed{Peer: 1, Conn: 77}, Recv{Peer: 1, Conn: 77, Env: spec.Envelope{Body: g.accept(1)}}} {
				acts, err := g.r.Step(g.now, ev)
				require.NoError(t, err)
				g.servesNothing(acts)
			}
			require.Zero(t, g.r.Deadline())
		})
	}
}

func (g *dRig) servesNothing(acts []Action) {
	g.Helper()
	require.Empty(g, only[Send](acts))
	require.Empty(g, only[Allow](acts))
	require.Empty(g, only[ReadPages](acts))
	require.Empty(g, only[Verify](acts))
	require.Empty(g, only[PullCopy](acts))
	require.Empty(g, told[Taken](acts))
	require.Empty(g, told[LeaseReady](acts))
	require.Empty(g, told[Grown](acts))
}

// A step that ends in a broken invariant has begun to serve before it was found: that is taken back.
func TestDecodeRank_BrokenAfterItServed_TakesItBack(t *testing.T) {
	g := openDRig(t, dRigConfig(1, false, true, 40))
	l := g.readied()
	l.holds[0].standing = true
	acts, err := g.r.Step(g.now, beginOf(l))
	require.NoError(t, err)
	require.NotZero(t, one[Stop](g, acts).Invariant)
	require.Equal(t, ReadRefused{Lease: l.id, Cause: spec.CauseInvariant}, one[ReadRefused](g, acts))
	g.servesNothing(acts)
}

var brokenAtLeader = []struct {
	number int
	name   string
	plant  func(g *dlRig)
}{
	{8, "a refused request stands", func(g *dlRig) { g.l.refuse(Submit{Req: 1, Prompt: make([]int32, 4)}, spec.CauseTooLong, "", Limits{}) }},
	{11, "a second verdict", func(g *dlRig) { g.l.decide(g.l.xfers[1], verdictFailed); g.l.decide(g.l.xfers[1], verdictOK) }},
	{11, "a second answer", func(g *dlRig) { q := g.l.requests[1]; delete(g.l.requests, 1); g.l.answer(q, "stop") }},
	{12, "success of a transfer that is not ready", func(g *dlRig) { x := g.l.xfers[1]; x.state = xFilling; g.l.succeed(x, "stop") }},
	{12, "success while a step runs", func(g *dlRig) { x := g.l.xfers[1]; x.busy = true; g.l.succeed(x, "stop") }},
}

func TestDecodeLeader_BrokenInvariant_NoSuccessLeaves(t *testing.T) {
	for _, b := range brokenAtLeader {
		t.Run(b.name, func(t *testing.T) {
			g := upDLRig(t, dlConfig(1, 1, 40))
			g.running(1, 7, 9)
			g.l.out = nil
			b.plant(g)
			require.Equal(t, b.number, only[Stop](g.l.out)[0].Invariant)
			for _, a := range only[Answer](g.l.out) {
				require.Empty(t, a.Finish, "a success")
				require.Equal(t, spec.CauseInvariant, a.Cause)
			}
			require.Len(t, ordered[AbortLease](g.l.out), 1)
			require.Equal(t, spec.CauseInvariant, answer(g, g.submit(7, 2)).Cause)
		})
	}
}

func TestDecodeLeader_BrokenInvariant_StopsAndAnswersEveryone(t *testing.T) {
	g := upDLRig(t, dlConfig(2, 1, 40))
	g.running(1, 7, 9)
	g.submit(7, 2)
	g.l.out = nil
	g.l.decide(g.l.xfers[1], verdictOK)
	g.l.decide(g.l.xfers[1], verdictFailed)
	require.Equal(t, 11, only[Stop](g.l.out)[0].Invariant)
	require.Len(t, only[Answer](g.l.out), 2)
	require.Len(t, ordered[AbortLease](g.l.out), 2)
	require.Equal(t, spec.CauseInvariant, answer(g, g.submit(7, 2)).Cause)
	require.Zero(t, g.l.Deadline())
}

// Each number from 2 to 18 is an assertion of a machine, and a test breaks it.
func TestInvariants_EachNumber_IsBrokenByATest(t *testing.T) {
	seen := map[int]bool{}
	for n := range brokenAtPrefill {
		seen[n] = true
	}
	for _, b := range brokenAtDecode {
		seen[b.number] = true
	}
	for _, b := range brokenAtLeader {
		seen[b.number] = true
	}
	for n := 2; n <= 18; n++ {
		require.True(t, seen[n], "I%d", n)
	}
}
