package node

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/impl/transport"
	"kvfence/spec"
)

func TestCutter_EveryPage_IsCutAsThePartSays(t *testing.T) {
	m := spec.Meaning{ByteOrder: "little", HeadDim: 4, ElemBytes: 1, KVs: 2, TokensPerPage: 4, Layers: 2, Heads: 2}
	l := spec.NewDense(spec.KV, m, 0, 2, 0, 2, 8, 2)
	var cuts cutters
	parts := []spec.Part{ // heads, then layers, then a range that begins and ends inside a page
		{LayerHi: 2, HeadHi: 1, TokenHi: 18}, {Index: 1, LayerHi: 2, HeadLo: 1, HeadHi: 2, TokenHi: 18}, {LayerLo: 1, LayerHi: 2, HeadHi: 2, TokenLo: 3, TokenHi: 18},
	}
	for range 2 {
		for _, p := range parts {
			lo, hi := p.PageRange(l)
			for i := lo; i < hi; i++ {
				want, err := p.Segments(l, i, nil)
				require.NoError(t, err)
				got, used, err := cuts.of(p, &l).cut(p, i)
				require.NoError(t, err)
				require.Equal(t, want, got, "part %+v page %d", p, i)
				require.Equal(t, spec.UsedBytes(want), used)
			}
		}
	}
	a, _, _ := cuts.of(parts[0], &l).cut(parts[0], 1)
	b, _, _ := cuts.of(parts[0], &l).cut(parts[0], 2)
	require.Same(t, &a[0], &b[0], "inner pages share their segments")
	_, _, err := cuts.of(spec.Part{Component: spec.Aux}, nil).cut(spec.Part{Component: spec.Aux}, 0)
	require.ErrorIs(t, err, spec.ErrPlan)
	_, _, err = cuts.of(spec.Part{Component: 9}, nil).cut(spec.Part{Component: 9}, 0)
	require.ErrorIs(t, err, spec.ErrPlan)
	_, _, err = cuts.of(parts[0], &l).cut(spec.Part{LayerHi: 9, HeadHi: 1, TokenHi: 4}, 0)
	require.ErrorIs(t, err, spec.ErrPlan)
}

func TestLanding_Digest_OnlyOfWhatLandedWhole(t *testing.T) {
	l := landing{
		records: []transport.Landed{
			{Part: spec.Part{Component: spec.KV, Index: 1}, Lo: 2, Done: []bool{true, false}, Digest: []uint64{7, 8}},
			{Part: spec.Part{Component: spec.Aux}, Done: []bool{true}, Digest: []uint64{9}},
			{Part: spec.Part{Component: spec.KV, Index: 3}, Done: []bool{true}},
		},
		reread: []spec.Part{{Component: spec.KV, Index: 2}},
	}
	for _, c := range []struct {
		c     spec.Component
		part  spec.PartIndex
		index uint32
		want  uint64
		known bool
	}{
		{spec.KV, 1, 2, 7, true}, {spec.KV, 1, 3, 0, false}, {spec.KV, 1, 1, 0, false}, {spec.KV, 1, 4, 0, false}, {spec.KV, 0, 2, 0, false},
		{spec.KV, 1, ^uint32(0), 0, false}, {spec.Aux, 0, 0, 9, true}, {spec.KV, 3, 0, 0, false},
	} {
		got, known := l.digest(c.c, c.part, c.index)
		require.Equal(t, c.want, got, "%+v", c)
		require.Equal(t, c.known, known, "%+v", c)
	}
	_, again := l.again(spec.KV, 2)
	require.True(t, again)
	_, again = l.again(spec.KV, 1)
	require.False(t, again)
}
