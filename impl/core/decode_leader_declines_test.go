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
		acts = decline(n, 1, spec.CausePeerLost)
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
