package spec

import (
	"encoding/binary"
	"hash/fnv"

	"pgregory.net/rapid"
)

// Random pools of unequal shape, and their bytes by address: what the tests compare Segments with.

func drawMeaning(t *rapid.T) Meaning {
	return Meaning{
		ModelRevision: "m", Quantization: "none", DType: "x", ByteOrder: "little",
		HeadDim: rapid.Uint32Range(1, 4).Draw(t, "dim"), ElemBytes: rapid.SampledFrom([]uint32{1, 2, 4}).Draw(t, "elem"),
		KVs: rapid.Uint32Range(1, 2).Draw(t, "kvs"), TokensPerPage: rapid.Uint32Range(1, 9).Draw(t, "tokens per page"),
		Layers: rapid.Uint32Range(1, 5).Draw(t, "layers"), Heads: rapid.Uint32Range(1, 6).Draw(t, "heads"),
	}
}

// drawLayout nests the four dimensions in any order and leaves holes between steps and at the page's end.
func drawLayout(t *rapid.T, m Meaning, layerLo, layerHi, headLo, headHi uint32) Layout {
	l := NewDense(KV, m, layerLo, layerHi, headLo, headHi, 64, MaxTagSlots)
	strides := []*uint32{&l.Shape.TokenStride, &l.Shape.HeadStride, &l.Shape.KVStride, &l.Shape.LayerStride}
	steps := []uint32{m.TokensPerPage, headHi - headLo, m.KVs, layerHi - layerLo}
	extent := m.HeadDim * m.ElemBytes
	for _, k := range rapid.Permutation([]int{0, 1, 2, 3}).Draw(t, "nesting") {
		*strides[k] = extent + rapid.SampledFrom([]uint32{0, 0, 1, 5}).Draw(t, "hole")
		extent += *strides[k] * (steps[k] - 1)
	}
	l.Shape.PageBytes = extent + rapid.Uint32Range(0, 3).Draw(t, "end")
	return l
}

// drawSide cuts layers by pipeline and heads by tensor parallel size, in order of rank; heads fewer than ranks are replicated.
func drawSide(t *rapid.T, m Meaning) []*Layout {
	var side []*Layout
	pp := rapid.Uint32Range(1, min(3, m.Layers)).Draw(t, "pp")
	tp := rapid.SampledFrom([]uint32{1, 2, 3, 4, 6}).Draw(t, "tp")
	cut := func(n, of, k uint32) (lo, hi uint32) { return n * k / of, n * (k + 1) / of }
	for p := range pp {
		layerLo, layerHi := cut(m.Layers, pp, p)
		for k := range tp {
			headLo, headHi := cut(m.Heads, tp, k)
			if headLo == headHi { // more ranks than heads: a replica
				headLo = min(headLo, m.Heads-1)
				headHi = headLo + 1
			}
			l := drawLayout(t, m, layerLo, layerHi, headLo, headHi)
			side = append(side, &l)
		}
	}
	return side
}

// cellAt is the address of one cell within its page: not by Segments.
func cellAt(l Layout, layer, kv, head, token uint32) uint32 {
	s := l.Shape
	return (layer-s.LayerLo)*s.LayerStride + kv*s.KVStride + (head-s.HeadLo)*s.HeadStride + token*s.TokenStride
}

// cellBytes is what stands in a cell of a request: a hash of where it belongs, never zero.
func cellBytes(l Layout, layer, kv, head, position uint32) []byte {
	out := make([]byte, l.Equal.HeadDim*l.Equal.ElemBytes)
	for i := range out {
		h := fnv.New32a()
		var key [20]byte
		for k, v := range []uint32{layer, kv, head, position, uint32(i)} {
			binary.LittleEndian.PutUint32(key[4*k:], v)
		}
		h.Write(key[:])
		out[i] = byte(h.Sum32()>>8) | 1
	}
	return out
}

// eachCell visits the cells of l for positions [lo, hi).
func eachCell(l Layout, lo, hi uint32, visit func(page, at uint32, want []byte)) {
	for layer := l.Shape.LayerLo; layer < l.Shape.LayerHi; layer++ {
		for kv := range l.Equal.KVs {
			for head := l.Shape.HeadLo; head < l.Shape.HeadHi; head++ {
				for pos := lo; pos < hi; pos++ {
					visit(pos/l.Equal.TokensPerPage, cellAt(l, layer, kv, head, pos%l.Equal.TokensPerPage), cellBytes(l, layer, kv, head, pos))
				}
			}
		}
	}
}

// filled is a lease's pages at a source that computed positions 0..tokens-1.
func filled(l Layout, tokens uint32) [][]byte {
	v := blank(l, tokens)
	eachCell(l, 0, tokens, func(page, at uint32, want []byte) { copy(v[page][at:], want) })
	return v
}

func blank(l Layout, tokens uint32) [][]byte {
	v := make([][]byte, l.PagesFor(tokens))
	for i := range v {
		v[i] = make([]byte, l.Shape.PageBytes)
	}
	return v
}
