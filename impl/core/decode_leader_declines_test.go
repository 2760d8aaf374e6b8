package core

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/spec"
)

// TestDecodeLeader_PrefillSideDeclines: a side that drains refuses every Ask at once, has the fewest transfers for it, and must
// not be asked again and again while another one serves.
func TestDecodeLeader_PrefillSideDeclines_RequestsGoToTheOtherOrWait(t *testing.T) {
	g := upDLRig(t, dlConfig(1, 2, 40))
	decline := func(transfer uint64, side int, c spec.Cause) []Action {
		return g.from(0, PeerSaid{Peer: PeerID(side + 1), Body: spec.AskFailed{Transfer: g.transfer(transfer), Cause: c, Detail: "draining"}})
	}
	require.Equal(t, PeerID(1), only[SendLeader](g.submit(3, 1))[0].Peer)
	acts := decline(1, 0, spec.CauseShutdown)
	require.Empty(t, only[Answer](acts))
	require.Equal(t, PeerID(2), only[SendLeader](acts)[0].Peer, "the other side is asked at once")
	require.Empty(t, drops(acts), "nothing of it is there")
	for range 3 {
		require.Equal(t, PeerID(2), only[SendLeader](g.submit(3, 1))[0].Peer)
	}
	for n := uint64(2); n <= 5; n++ {
		acts = decline(n, 1, spec.CauseShutdown)
		require.Empty(t, only[Answer](acts), "its request waits")
		require.Empty(t, asks(acts))
	}
	acts = g.from(0, PeerUp{Peer: 2, Window: 1000, Layouts: worldLayouts(0, 1, g.pool), Identity: spec.Identity{Name: "p1", Role: spec.RolePrefill,
		Incarnation: worldInc('p', 1, 9), Size: 1, Side: []spec.Incarnation{worldInc('p', 1, 9)}}})
	require.Len(t, asks(acts), 4, "another life of the side")

	g = upDLRig(t, dlConfig(1, 1, 40))
	g.submit(3, 1)
	decline(1, 0, spec.CauseShutdown)
	g.submit(3, 1)
	acts = append(g.wait(499), g.wait(3)...)
	require.Len(t, only[Answer](acts), 2)
	for _, a := range only[Answer](acts) {
		require.Equal(t, spec.CauseShutdown, a.Cause, "nobody else came: the side's own cause")
	}
}

// TestDecodeLeader_Retry_GoesToAnotherSide: the side that failed has the fewest transfers now, and may fail again.
func TestDecodeLeader_Retry_GoesToAnotherSide(t *testing.T) {
	for sides, want := range map[int]PeerID{1: 1, 2: 2} {
		g := upDLRig(t, dlConfig(1, sides, 40))
		for range 2 * sides {
			g.submit(3, 1)
		}
		g.asked(1, 3)
		g.from(0, Taken{Transfer: g.transfer(1), Lease: 1})
		acts := g.from(0, LeaseFailed{Transfer: g.transfer(1), Cause: spec.CauseFenced})
		require.Empty(t, asks(acts), "not before its lease is freed")
		acts = g.from(0, LeaseFreed{Transfer: g.transfer(1)})
		require.Len(t, asks(acts), 1)
		require.Equal(t, want, only[SendLeader](acts)[len(only[SendLeader](acts))-1].Peer, "of %d sides", sides)
	}
}

// TestDecodeLeader_AskFailsForItself: an unknown source name is answered with peer_lost, and so is a transfer that prefill gave up in a
// partition. Neither says anything about the side, which serves everybody else.
func TestDecodeLeader_AskFailsForItself_TheSideServesOthers(t *testing.T) {
	g := upDLRig(t, dlConfig(1, 1, 40))
	g.req++
	require.Len(t, asks(g.step(Submit{Req: g.req, Tenant: "t", Prompt: make([]int32, 3), MaxNew: 1, EOS: -1, Source: spec.SourceName{Leader: worldInc('p', 0, 0), Counter: 9}})), 1)
	acts := g.from(0, PeerSaid{Peer: 1, Body: spec.AskFailed{Transfer: g.transfer(1), Cause: spec.CausePeerLost, Detail: "no such source name"}})
	require.Equal(t, spec.CausePeerLost, answer(g, acts).Cause)
	require.Len(t, asks(g.submit(3, 1)), 1)
}

// TestDecodeLeader_SideDeclinesWhileOthersWaitTheirTurn: what was queued for another reason when the side went is answered, too.
func TestDecodeLeader_SideDeclinesWhileOthersWaitTheirTurn_TheyAreAnswered(t *testing.T) {
	c := dlConfig(1, 1, 40)
	c.MaxActive = 1
	g := upDLRig(t, c)
	g.req++
	g.step(Submit{Req: g.req, Tenant: "t", Prompt: make([]int32, 3), MaxNew: 1, EOS: -1, Source: spec.SourceName{Leader: worldInc('p', 0, 0), Counter: 9}})
	require.Empty(t, asks(g.submit(3, 1)))
	acts := g.from(0, PeerSaid{Peer: 1, Body: spec.AskFailed{Transfer: g.transfer(1), Cause: spec.CauseShutdown, Detail: "draining"}})
	for range 4 {
		acts = append(acts, g.wait(499)...)
	}
	require.Len(t, only[Answer](acts), 2)
}

// TestDecodeLeader_RankEnding_GrowerWithoutPages: pages behind a fence that failed never come back; who waits for them to grow is answered.
func TestDecodeLeader_RankEnding_GrowerWithoutPages_IsAnswered(t *testing.T) {
	for _, endingFirst := range []bool{true, false} {
		g := upDLRig(t, dlConfig(1, 1, 7))
		g.running(1, 7, 5)
		g.running(2, 7, 5)
		require.Len(t, only[Answer](g.step(ClientGone{Req: 2})), 1)
		t1 := g.transfer(1)
		ending := func() []Action { return g.from(0, RankEnding{Cause: spec.CauseShutdown}) }
		var acts []Action
		if endingFirst {
			require.Empty(t, only[Answer](ending()), "what runs goes on")
		}
		require.Len(t, ordered[Grow](g.step(StepDone{Transfer: t1, OK: true, Next: Token{ID: 61}})), 1)
		acts = g.from(0, GrowNoRoom{Transfer: t1})
		if !endingFirst {
			require.Empty(t, only[Answer](acts), "pages of the other are on their way")
			acts = ending()
		}
		a := answer(g, acts)
		require.Equal(t, RequestID(1), a.Req)
		require.Equal(t, spec.CauseShutdown, a.Cause)
	}
}
