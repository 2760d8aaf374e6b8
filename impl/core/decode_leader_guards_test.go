package core

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/spec"
)

// Tests of single guards that no scenario needs.

// The first token could not be read, or a step failed: no 200, and the cause says which.
func TestDecodeLeader_ReadOrStepThatFails_IsNoSuccess(t *testing.T) {
	g := upDLRig(t, dlConfig(1, 1, 40))
	g.submit(5, 3)
	x := g.transfer(1)
	g.asked(1, 5)
	g.all(Taken{Transfer: x, Lease: 1})
	g.all(LeaseReady{Transfer: x})
	acts := g.step(FirstRead{Transfer: x, Tokens: 5})
	require.Empty(t, only[Emit](acts))
	require.Equal(t, spec.CauseMismatch, answer(g, append(acts, g.all(LeaseFreed{Transfer: x})...)).Cause)
	g.running(2, 5, 3)
	acts = g.step(StepDone{Transfer: g.transfer(2)})
	require.Empty(t, only[Emit](acts))
	require.Equal(t, spec.CauseCompute, answer(g, append(acts, g.all(LeaseFreed{Transfer: g.transfer(2)})...)).Cause)
}

// An answer that says "too much at once" says when to come again.
func TestDecodeLeader_OverCapacity_SaysWhenToComeAgain(t *testing.T) {
	c := dlConfig(1, 1, 40)
	c.MaxTenantQueue = 1
	g := newDLRig(t, c)
	g.submit(5, 3)
	a := answer(g, g.submit(5, 3))
	require.Equal(t, spec.CauseOverCapacity, a.Cause)
	require.Equal(t, c.RetryAfter, a.RetryAfter)
	require.NotEqual(t, Duration(0), a.RetryAfter)
}

// A driver whose clock goes back, or that names a rank that does not exist, broke the contract.
func TestDecodeLeader_ClockThatGoesBack_IsAContractError(t *testing.T) {
	g := upDLRig(t, dlConfig(1, 1, 40))
	g.wait(5)
	_, err := g.l.Step(g.now-1, Tick{})
	require.ErrorIs(t, err, ErrContract)
}
