package transport

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/impl/device"
	"kvfence/spec"
)

// Segments are kept once for each shape and leave with the last lease that needs them.
func TestGrants_ShapesOfManyLeases_AreSharedAndLeave(t *testing.T) {
	kv := spec.NewDense(spec.KV, spec.Meaning{ByteOrder: "little", HeadDim: 4, ElemBytes: 1, KVs: 2, TokensPerPage: 4, Layers: 2, Heads: 2}, 0, 2, 0, 2, 64, 2)
	pool, err := device.NewPool(kv, nil, nil)
	require.NoError(t, err)
	g := NewGrants(device.Memory{spec.KV: pool})
	for n := spec.LeaseID(1); n <= 100; n++ {
		g.Allow(spec.Grant{Lease: n, Parts: []spec.Part{
			{Component: spec.KV, LayerHi: 2, HeadHi: 1, TokenLo: 2, TokenHi: 19}, {Component: spec.KV, Index: 1, LayerHi: 2, HeadLo: 1, HeadHi: 2, TokenLo: 2, TokenHi: 19},
			{Component: spec.KV, LayerHi: 2, HeadHi: 1, TokenHi: 7},
			{Component: spec.KV, Index: 3, LayerHi: 2, HeadHi: 9, TokenHi: 7},
		}})
	}
	require.Len(t, g.shapes, 6, "first, inner and last page of two parts")
	for n := spec.LeaseID(1); n < 100; n++ {
		g.Revoke(n)
	}
	require.Len(t, g.shapes, 6)
	g.Revoke(100)
	require.Empty(t, g.shapes)
	require.Empty(t, g.leases)
	g.Allow(spec.Grant{Lease: 101, Parts: []spec.Part{{Component: spec.KV, LayerHi: 2, HeadHi: 1, TokenHi: 7}}})
	g.Raise(9)
	require.Empty(t, g.shapes)
}
