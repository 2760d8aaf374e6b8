package core

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A rank had no room, and says that pages came back before another rank has answered in that round: the word counts, for it is not
// said again.
func TestDecodeLeader_PagesFreedWithinTheRound_TheLineMovesOn(t *testing.T) {
	g := upDLRig(t, dlConfig(2, 1, 40))
	g.submit(10, 4)
	require.Len(t, ordered[Take](g.asked(1, 10)), 2)
	g.from(0, NoRoom{Transfer: g.transfer(1)})
	g.from(0, PagesFreed{})
	require.Len(t, ordered[AbortLease](g.from(1, Taken{Transfer: g.transfer(1), Lease: 1})), 1)
	require.Len(t, ordered[Take](g.from(1, LeaseFreed{Transfer: g.transfer(1)})), 2)
}

// Likewise of growth.
func TestDecodeLeader_PagesFreedWithinAGrowRound_ItIsAskedAgain(t *testing.T) {
	g := upDLRig(t, dlConfig(2, 1, 40))
	per := int(g.l.perPage)
	g.running(1, 2*per-1, 8)
	acts := g.step(StepDone{Transfer: g.transfer(1), OK: true})
	require.Len(t, ordered[Grow](acts), 2, "the place of the next token is in a page of its own")
	g.from(0, GrowNoRoom{Transfer: g.transfer(1)})
	g.from(0, PagesFreed{})
	require.Len(t, ordered[Grow](g.from(1, Grown{Transfer: g.transfer(1)})), 2)
}
