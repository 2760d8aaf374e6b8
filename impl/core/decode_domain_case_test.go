package core

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/spec"
)

// The same tokens of another tenant, salt, adapter or revision are another request: a Complete for them is a protocol error in push
// and pull, and what the tags must name at verify is the request's own domain.
func TestCaseB17_SameTokensOfAnotherDomain_AreNeverThisRequest(t *testing.T) {
	tokens := []int32{7, 8, 9}
	own := spec.DomainOf("x", "salt-x", "adapter-a", "r1")
	for name, other := range map[string]spec.Domain{
		"itself":   own,
		"tenant":   spec.DomainOf("y", "salt-x", "adapter-a", "r1"),
		"salt":     spec.DomainOf("x", "salt-y", "adapter-a", "r1"),
		"adapter":  spec.DomainOf("x", "salt-x", "adapter-b", "r1"),
		"revision": spec.DomainOf("x", "salt-x", "adapter-a", "r2"),
		"nothing":  {},
	} {
		for _, pull := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				g := openDRig(t, dRigConfig(1, pull, false, 20))
				g.last++
				tr := spec.TransferID{Leader: g.r.own, Counter: g.last}
				g.side(Take{Transfer: tr, Tokens: uint32(len(tokens)), Domain: own, Request: spec.DigestRequest(tokens, own), Prefill: g.peers})
				g.side(Go{Transfer: tr})
				l := g.r.byTransfer[tr]
				c := g.complete(l, 1)
				c.Request = spec.DigestRequest(tokens, other)
				acts := g.recv(1, c)
				if !pull {
					acts = append(acts, g.notice(l, 1)...)
				}
				if name != "itself" {
					require.Equal(t, spec.CauseProtocol, told[LeaseFailed](acts)[0].Cause)
					require.Empty(t, only[Verify](acts))
					require.Empty(t, only[PullCopy](acts), "nothing of it is copied")
					return
				}
				require.Empty(t, told[LeaseFailed](acts))
				if pull {
					require.NotEmpty(t, only[PullCopy](acts))
					return
				}
				for _, check := range one[Verify](g, acts).Checks {
					require.Equal(t, own, check.Want.Domain)
				}
			})
		}
	}
}

// A request without tokens is refused before anything exists.
func TestCaseB17_NoTokens_IsRefusedBeforeAnythingExists(t *testing.T) {
	g := upDLRig(t, dlConfig(1, 1, 40))
	acts := g.submit(0, 2)
	require.Equal(t, spec.CauseInvalid, answer(g, acts).Cause)
	require.Empty(t, asks(acts))
}
