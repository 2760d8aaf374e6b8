//go:build verbs && rig

package verbs

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/spec"
)

// whole is the part that covers all of a source layout for tokens tokens.
func whole(l spec.Layout, tokens uint32) spec.Part {
	s := l.Shape
	return spec.Part{Component: l.Component, LayerLo: s.LayerLo, LayerHi: s.LayerHi, HeadLo: s.HeadLo, HeadHi: s.HeadHi, TokenHi: tokens}
}

func TestPush_OneLease_BytesAndTagsAreExact(t *testing.T) {
	for _, by := range []Leases{LeasesWindows, LeasesRegions, LeasesOff} {
		t.Run(string(by), func(t *testing.T) {
			l := kvLayout(16, 4, 0, 4, 4, 16)
			e := newEnds(t, memoryOf(t, l), memoryOf(t, l), Options{Rails: rails(t, 1)}, Options{Rails: rails(t, 1), Leases: by, unprobed: true})
			fill(e.src[spec.KV].Bytes, 1)
			k := e.link()
			for n := range spec.LeaseID(5) {
				x := e.transferOf(n+1, whole(l, 16*4-3), ids(uint32(n), 4), ids(8-uint32(n), 4))
				k.run(x)
				e.check(x)
				k.grants.Revoke(n + 1)
			}
			require.Equal(t, uint64(20), e.pa.Stats().Writes)
		})
	}
}
