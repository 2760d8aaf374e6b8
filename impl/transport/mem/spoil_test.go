package mem

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/spec"
)

// What breaks the fabric's word is seen by the digest of what landed: the tag is good, the bytes are not.
func TestPush_SpoiledWrites_LandWithAGoodTagAndAnotherDigest(t *testing.T) {
	whole := uint64(0)
	for _, c := range []struct {
		name  string
		spoil func(*rig, OpRef)
	}{
		{"whole", func(g *rig, w OpRef) {}},
		{"flipped on its way", func(g *rig, w OpRef) {
			require.ErrorIs(t, g.f.Step(w, Flip), ErrNotNow, "nothing is on its way")
			g.step(w, Advance, Flip)
		}},
		{"torn", func(g *rig, w OpRef) {
			require.ErrorIs(t, g.f.Step(w, Tear), ErrNotNow)
			g.step(w, Advance, Advance, Advance, Tear)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t, Faults{}, 1)
			g.src.Post(g.lease(1, 0, 1))
			c.spoil(g, g.write(10, 0))
			g.f.Drain()
			l := g.grants.Landed(1, []spec.Part{part(1)})
			require.Equal(t, []bool{true}, l[0].Done)
			if c.name == "whole" {
				whole = l[0].Digest[0]
				return
			}
			require.NotEqual(t, whole, l[0].Digest[0])
			require.Empty(t, g.f.Pending())
		})
	}
}
