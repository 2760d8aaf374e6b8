package spec

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Every (layer, head) cell of a destination is owed exactly once, by the lowest rank that holds it, or there is no plan.
func TestPlanParts_AnyShapes_EachCellOnceOrNoPlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawMeaning(t)
		var srcs []*Layout
		for range rapid.IntRange(0, 6).Draw(t, "ranks") {
			srcs = append(srcs, drawAnyCut(t, m))
		}
		dst := drawAnyCut(t, m)
		if dst == nil {
			dst = &Layout{}
			*dst = NewDense(KV, m, 0, m.Layers, 0, m.Heads, 8, MaxTagSlots)
		}
		dst.Shape.TagSlots = rapid.Uint16Range(1, 4).Draw(t, "slots")
		parts, err := PlanParts(*dst, srcs, 21, 0)
		if err != nil {
			require.ErrorIs(t, err, ErrPlan)
			require.Nil(t, parts)
			return
		}
		require.LessOrEqual(t, len(parts), int(dst.Shape.TagSlots))
		owed := map[[2]uint32]int{}
		for i, p := range parts {
			require.Equal(t, PartIndex(i), p.Index)
			require.Equal(t, [2]uint32{0, 21}, [2]uint32{p.TokenLo, p.TokenHi})
			for l := p.LayerLo; l < p.LayerHi; l++ {
				for h := p.HeadLo; h < p.HeadHi; h++ {
					owed[[2]uint32{l, h}]++
					require.Equal(t, lowestHolder(srcs, l, h), int(p.Rank))
				}
			}
		}
		for l := dst.Shape.LayerLo; l < dst.Shape.LayerHi; l++ {
			for h := dst.Shape.HeadLo; h < dst.Shape.HeadHi; h++ {
				require.Equal(t, 1, owed[[2]uint32{l, h}])
				delete(owed, [2]uint32{l, h})
			}
		}
		require.Empty(t, owed, "cells outside of the destination")
	})
}

func drawAnyCut(t *rapid.T, m Meaning) *Layout {
	if rapid.IntRange(0, 5).Draw(t, "none") == 0 {
		return nil
	}
	layerLo, headLo := rapid.Uint32Range(0, m.Layers-1).Draw(t, "layer"), rapid.Uint32Range(0, m.Heads-1).Draw(t, "head")
	l := NewDense(KV, m, layerLo, rapid.Uint32Range(layerLo+1, m.Layers).Draw(t, "layer end"), headLo, rapid.Uint32Range(headLo+1, m.Heads).Draw(t, "head end"), 8, MaxTagSlots)
	return &l
}

func lowestHolder(srcs []*Layout, layer, head uint32) int {
	for k, s := range srcs {
		if s != nil && layer >= s.Shape.LayerLo && layer < s.Shape.LayerHi && head >= s.Shape.HeadLo && head < s.Shape.HeadHi {
			return k
		}
	}
	return -1
}

// For regular cuts (the ones that engines make) there always is a plan.
func TestPlanParts_RegularCuts_AlwaysPlan(t *testing.T) {
	m := Meaning{ByteOrder: "little", HeadDim: 1, ElemBytes: 1, KVs: 2, TokensPerPage: 16, Layers: 8, Heads: 8}
	for _, shape := range [][4]uint32{{1, 1, 1, 1}, {1, 4, 1, 2}, {1, 2, 1, 8}, {2, 4, 4, 1}, {4, 2, 1, 16}, {1, 16, 2, 4}} {
		prefill, decode := regularSide(m, shape[0], shape[1]), regularSide(m, shape[2], shape[3])
		for _, dst := range decode {
			parts, err := PlanParts(*dst, prefill, 100, 0)
			require.NoError(t, err, "%v", shape)
			require.NotEmpty(t, parts)
		}
	}
}

func regularSide(m Meaning, pp, tp uint32) (side []*Layout) {
	for p := range pp {
		for k := range tp {
			lo, n := k*m.Heads/tp, max(m.Heads/tp, 1)
			l := NewDense(KV, m, p*m.Layers/pp, (p+1)*m.Layers/pp, lo, lo+n, 8, MaxTagSlots)
			side = append(side, &l)
		}
	}
	return side
}

// The auxiliary record has one declared writer, whoever else could write it.
func TestCaseB12_AuxRecord_HasOneDeclaredWriter(t *testing.T) {
	aux := sampleLayouts()[1]
	srcs := []*Layout{&aux, &aux, &aux, &aux}
	parts, err := PlanParts(aux, srcs, 40, 3)
	require.NoError(t, err)
	require.Equal(t, []Part{{Component: Aux, Rank: 3, LayerHi: 1, HeadHi: 1}}, parts)
	_, err = PlanParts(aux, []*Layout{&aux, nil}, 40, 1)
	require.ErrorIs(t, err, ErrPlan)
	_, err = PlanParts(aux, srcs, 40, 4)
	require.ErrorIs(t, err, ErrPlan)
}

func TestPlanParts_BadShapes_NoPlanAndNoPanic(t *testing.T) {
	kv, aux := sampleLayouts()[0], sampleLayouts()[1]
	for name, edit := range map[string]func(s *Shape){
		"layers reversed": func(s *Shape) { s.LayerLo, s.LayerHi = 4, 0 },
		"heads empty":     func(s *Shape) { s.HeadLo = s.HeadHi },
		"layers huge":     func(s *Shape) { s.LayerHi = 0xffffffff },
		"heads huge":      func(s *Shape) { s.HeadHi = MaxHeads + 1 },
	} {
		dst := kv
		edit(&dst.Shape)
		_, err := PlanParts(dst, []*Layout{&kv}, 40, 0)
		require.ErrorIs(t, err, ErrPlan, name)
	}
	_, err := PlanParts(kv, make([]*Layout, MaxRanks+1), 40, 0)
	require.ErrorIs(t, err, ErrPlan)
	_, err = PlanParts(kv, []*Layout{&aux}, 40, 0)
	require.ErrorIs(t, err, ErrPlan)
}

// What is expected is decided once, by the plan: a side that lacks a component gives no plan, not a wait.
func TestCaseB38_MissingComponent_IsNoPlan(t *testing.T) {
	kv := sampleLayouts()[0]
	state := kv
	state.Component, state.Equal.TokensPerPage = State, 0
	_, err := PlanParts(state, []*Layout{nil}, 40, 0)
	require.ErrorIs(t, err, ErrPlan)
	require.ErrorContains(t, err, "state")
}

func TestPagesFor_AnyLength_HoldsAllTokens(t *testing.T) {
	for _, c := range []struct{ tokens, page, want uint32 }{{0, 16, 0}, {1, 16, 1}, {15, 16, 1}, {16, 16, 1}, {17, 16, 2}, {681280, 16, 42580}, {0xffffffff, 1 << 20, 4096}, {7, 0, 1}, {0, 0, 1}} {
		require.Equal(t, c.want, Layout{Equal: Meaning{TokensPerPage: c.page}}.PagesFor(c.tokens), "%+v", c)
	}
}

func TestCaseB48_NoTokens_IsAPlanWithoutPages(t *testing.T) {
	kv := sampleLayouts()[0]
	parts, err := PlanParts(kv, []*Layout{&kv}, 0, 0)
	require.NoError(t, err)
	lo, hi := parts[0].PageRange(kv)
	require.Equal(t, lo, hi)
	require.Zero(t, kv.PagesFor(0))
}
