package fuzz

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/spec"
)

// fuzzedLayout is a layout as a peer could announce it: small numbers, so that it is often possible, and now and then any.
func fuzzedLayout(t *Tape, c spec.Component) spec.Layout {
	small := func(n int) uint32 {
		if t.One(32) {
			return uint32(t.Uint64())
		}
		return uint32(t.N(n))
	}
	m := spec.Meaning{ByteOrder: "little", HeadDim: small(3) + 1, ElemBytes: small(3) + 1, KVs: small(2) + 1, Layers: 6, Heads: 4}
	if c == spec.KV {
		m.TokensPerPage = small(5) + 1
	}
	lo, hi := small(6), small(4)
	headLo, headHi := small(4), small(4)
	l := spec.NewDense(c, m, lo, min(lo+1, 1<<30)+hi, headLo, min(headLo+1, 1<<30)+headHi, small(9), uint16(small(5)))
	switch t.N(8) {
	case 6: // heads within tokens
		s := &l.Shape
		s.HeadStride, s.TokenStride = m.HeadDim*m.ElemBytes, m.HeadDim*m.ElemBytes*(s.HeadHi-s.HeadLo)
	case 7: // holes, or lies
		s := &l.Shape
		s.TokenStride, s.HeadStride, s.KVStride, s.LayerStride, s.PageBytes = s.TokenStride+small(4), s.HeadStride+small(9), s.KVStride+small(9), s.LayerStride+small(9), s.PageBytes+small(64)
	}
	return l
}

// FuzzPlan: whatever layouts two sides announce, a plan names each owed cell once, by a rank that has it, or there is none; every byte
// range that it implies lies within its page, no two overlap, and both ends cut the same number of bytes.
func FuzzPlan(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3})
	f.Add([]byte{3, 2, 1, 2, 1, 0, 0, 5, 3, 0, 3, 8, 4, 0, 2, 1, 2, 1, 0, 0, 5, 3, 0, 3, 8, 4, 0, 9})
	f.Fuzz(func(t *testing.T, b []byte) {
		tape := NewTape(b)
		c := spec.Component(tape.N(int(spec.ComponentCount)))
		tokens := uint32(tape.N(24))
		dst := fuzzedLayout(tape, c)
		if err := dst.Validate(); err != nil {
			require.ErrorIs(t, err, spec.ErrLayout)
			return
		}
		var srcs []*spec.Layout
		for range tape.N(5) {
			var src *spec.Layout
			if !tape.One(5) {
				l := fuzzedLayout(tape, c)
				if !tape.One(9) {
					l.Equal, l.Shape.PageBytes = dst.Equal, l.Shape.PageBytes*8
				}
				// A link opens only for layouts that are valid and mean the same.
				if l.Validate() == nil && dst.Equal.Compare(c, l.Equal) == nil {
					src = &l
				}
			}
			srcs = append(srcs, src)
		}
		parts, err := spec.PlanParts(dst, srcs, tokens, spec.Rank(tape.N(4)))
		if err != nil {
			require.ErrorIs(t, err, spec.ErrPlan)
			require.Nil(t, parts)
			return
		}
		requireCovered(t, dst, srcs, parts)
		for _, p := range parts {
			requireSameBytes(t, p, dst, *srcs[p.Rank])
		}
	})
}

// requireCovered: each cell of dst is owed by one part, and its rank has it.
func requireCovered(t *testing.T, dst spec.Layout, srcs []*spec.Layout, parts []spec.Part) {
	s := dst.Shape
	require.LessOrEqual(t, len(parts), int(s.TagSlots))
	owed := map[[2]uint32]int{}
	for i, p := range parts {
		require.Equal(t, spec.PartIndex(i), p.Index)
		require.NotNil(t, srcs[p.Rank])
		from := srcs[p.Rank].Shape
		for l := p.LayerLo; l < p.LayerHi; l++ {
			for h := p.HeadLo; h < p.HeadHi; h++ {
				owed[[2]uint32{l, h}]++
				require.True(t, from.LayerLo <= l && l < from.LayerHi && from.HeadLo <= h && h < from.HeadHi, "rank %d owes what it has not", p.Rank)
			}
		}
	}
	require.Len(t, owed, int((s.LayerHi-s.LayerLo)*(s.HeadHi-s.HeadLo)))
	for cell, n := range owed {
		require.Equal(t, 1, n, "cell %v", cell)
	}
}

// requireSameBytes: a part's bytes lie within the page at both ends, none twice, as many here as there.
func requireSameBytes(t *testing.T, p spec.Part, dst, src spec.Layout) {
	lo, hi := p.PageRange(dst)
	for i := lo; i < hi; i++ {
		tokenLo, tokenHi := p.Tokens(dst, i)
		m := dst.Equal
		want := uint64(p.LayerHi-p.LayerLo) * uint64(p.HeadHi-p.HeadLo) * uint64(m.KVs) * uint64(tokenHi-tokenLo) * uint64(m.HeadDim) * uint64(m.ElemBytes)
		for _, l := range []spec.Layout{dst, src} {
			segments, err := p.Segments(l, i, nil)
			if errors.Is(err, spec.ErrPlan) {
				t.Fatalf("part %+v of a valid layout %+v: %v", p, l, err)
			}
			require.NoError(t, err)
			seen := map[uint32]bool{}
			for _, s := range segments {
				require.LessOrEqual(t, uint64(s.Offset)+uint64(s.Bytes), uint64(l.Shape.PageBytes))
				for at := s.Offset; at < s.Offset+min(s.Bytes, 4096); at++ {
					require.False(t, seen[at], "byte %d of page index %d is sent twice", at, i)
					seen[at] = true
				}
			}
			require.Equal(t, want, uint64(spec.UsedBytes(segments)))
		}
	}
}
