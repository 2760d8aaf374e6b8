package core

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/spec"
)

// The error of a request that was tried again is its first transfer's (B51): the last one failed for another reason, as original as that.
func TestCaseB51_TriedAgainAndFailedOtherwise_TheErrorIsTheFirst(t *testing.T) {
	g := upDLRig(t, dlConfig(1, 1, 40))
	g.submit(7, 2)
	g.asked(1, 7)
	first := g.transfer(1)
	g.all(Taken{Transfer: first, Lease: 1})
	require.Empty(t, only[Answer](g.from(0, LeaseFailed{Transfer: first, Cause: spec.CauseTransport, Detail: "a post failed"})))
	g.from(0, LeaseFreed{Transfer: first})
	second := g.transfer(2)
	g.asked(2, 7)
	g.all(Taken{Transfer: second, Lease: 2})
	a := answer(g, g.from(0, LeaseFailed{Transfer: second, Cause: spec.CausePeerLost, Detail: "its peer is gone"}))
	require.Equal(t, spec.CauseTransport, a.Cause)
	require.Equal(t, "a post failed", a.Detail)
}
