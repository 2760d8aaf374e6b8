package kernels_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kvfence/kernels"
	"kvfence/spec"
)

func TestDiv_AnyNumbers_EqualsDivision(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.OneOf(rapid.Uint32Range(1, 70), rapid.Uint32Range(1, 1<<31-1)).Draw(t, "d")
		v := kernels.NewDiv(d)
		for _, n := range []uint32{0, 1, d - 1, d, min(d+1, 1<<31-1), 1<<31 - 1, rapid.Uint32Range(0, 1<<31-1).Draw(t, "n")} {
			require.Equal(t, n/d, v.Quo(n), "%d / %d", n, d)
		}
		k := rapid.Uint32Range(0, (1<<31-1)/d).Draw(t, "k") * d // borders
		require.Equal(t, k/d, v.Quo(k))
		if k > 0 {
			require.Equal(t, (k-1)/d, v.Quo(k-1))
		}
	})
}

// drawPart is a layout with its dimensions nested in any order and holes between them, and a part of it.
func drawPart(t *rapid.T) (spec.Layout, spec.Part, uint32) {
	m := spec.Meaning{
		ByteOrder: "little", HeadDim: rapid.SampledFrom([]uint32{1, 2, 3, 8, 16, 64}).Draw(t, "dim"), ElemBytes: rapid.SampledFrom([]uint32{1, 2}).Draw(t, "elem"),
		KVs: rapid.Uint32Range(1, 2).Draw(t, "kvs"), TokensPerPage: rapid.Uint32Range(1, 17).Draw(t, "tokens per page"),
		Layers: rapid.Uint32Range(1, 5).Draw(t, "layers"), Heads: rapid.Uint32Range(1, 6).Draw(t, "heads"),
	}
	between := func(hi uint32, name string) (uint32, uint32) {
		lo := rapid.Uint32Range(0, hi-1).Draw(t, name+" lo")
		return lo, rapid.Uint32Range(lo+1, hi).Draw(t, name+" hi")
	}
	layerLo, layerHi := between(m.Layers, "own layer")
	headLo, headHi := between(m.Heads, "own head")
	l := nested(t, spec.NewDense(spec.KV, m, layerLo, layerHi, headLo, headHi, 64, 4))
	p := spec.Part{Component: spec.KV}
	p.LayerLo, p.LayerHi = between(layerHi-layerLo, "layer")
	p.HeadLo, p.HeadHi = between(headHi-headLo, "head")
	p.LayerLo, p.LayerHi, p.HeadLo, p.HeadHi = p.LayerLo+layerLo, p.LayerHi+layerLo, p.HeadLo+headLo, p.HeadHi+headLo
	p.TokenLo, p.TokenHi = between(5*m.TokensPerPage, "token")
	return l, p, rapid.Uint32Range(0, 4).Draw(t, "page index")
}

func nested(t *rapid.T, l spec.Layout) spec.Layout {
	m, s := l.Equal, &l.Shape
	strides := []*uint32{&s.TokenStride, &s.HeadStride, &s.KVStride, &s.LayerStride}
	steps := []uint32{m.TokensPerPage, s.HeadHi - s.HeadLo, m.KVs, s.LayerHi - s.LayerLo}
	extent := m.HeadDim * m.ElemBytes
	for _, k := range rapid.Permutation([]int{0, 1, 2, 3}).Draw(t, "nesting") {
		*strides[k] = extent + rapid.SampledFrom([]uint32{0, 0, 0, 16, 5}).Draw(t, "hole")
		extent += *strides[k] * (steps[k] - 1)
	}
	s.PageBytes = extent + rapid.SampledFrom([]uint32{0, 0, 3, 16}).Draw(t, "end")
	return l
}

// at is where byte q of the string lies, as part.h computes it.
func at(c kernels.Cut, q uint32) (offset uint64, layer uint32) {
	r := c.Run.Quo(q)
	offset = c.Offset + uint64(q-r*c.Run.D)
	for k := range c.N {
		next := c.N[k].Quo(r)
		offset += uint64(r-next*c.N[k].D) * c.Stride[k]
		r = next
	}
	if c.Flags&kernels.CutLayered != 0 {
		return offset, c.Layer + r
	}
	return offset + uint64(r)*c.Stride[3], 0
}

func TestCut_AnyPart_IsItsSegments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, p, i := drawPart(t)
		segs, err := p.Segments(l, i, nil)
		require.NoError(t, err)
		c, err := kernels.NewCut(p, l, i, false)
		require.NoError(t, err)
		layered, err := kernels.NewCut(p, l, i, true)
		require.NoError(t, err)
		require.Equal(t, spec.UsedBytes(segs), c.Used)
		require.Equal(t, c.Used, layered.Used)
		q := uint32(0)
		for _, g := range segs {
			for k := range g.Bytes {
				o, _ := at(c, q)
				require.Equal(t, uint64(g.Offset+k), o, "byte %d", q)
				o, layer := at(layered, q)
				require.Equal(t, uint64(g.Offset+k), o+uint64(layer)*uint64(l.Shape.LayerStride), "byte %d, layered", q)
				q++
			}
		}
	})
}

func TestCut_PartThatLeavesThePage_IsRefused(t *testing.T) {
	m := spec.Meaning{ByteOrder: "little", HeadDim: 8, ElemBytes: 2, KVs: 2, TokensPerPage: 16, Layers: 2, Heads: 2}
	l := spec.NewDense(spec.KV, m, 0, 2, 0, 2, 4, 1)
	p := spec.Part{Component: spec.KV, LayerHi: 2, HeadHi: 2, TokenHi: 16}
	_, err := kernels.NewCut(p, l, 0, false)
	require.NoError(t, err)
	l.Shape.PageBytes--
	_, err = kernels.NewCut(p, l, 0, false)
	require.ErrorIs(t, err, spec.ErrPlan)
	_, err = p.Segments(l, 0, nil)
	require.ErrorIs(t, err, spec.ErrPlan)
	p.HeadHi = 3
	_, err = kernels.NewCut(p, l, 0, false)
	require.ErrorIs(t, err, spec.ErrPlan)
}
