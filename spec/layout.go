package spec

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Layout describes one pool of one rank. It has two halves: what decides the meaning of bytes must be equal on both sides
// (Equal), what is needed for planning is exchanged (Shape).
type Layout struct {
	Component Component
	Equal     Meaning
	Shape     Shape
}

// Meaning is the half of a layout that is equal on both sides or refused, field by field.
type Meaning struct {
	ModelRevision string
	Quantization  string
	DType         string // element type, as the serving engine names it
	ByteOrder     string // "little"
	HeadDim       uint32 // elements of one head
	ElemBytes     uint32
	KVs           uint32 // 2 for K and V, 1 for one shared buffer or a state
	TokensPerPage uint32 // 0: one page holds the whole request's record (State, Aux)
	Layers        uint32 // of the whole model
	Heads         uint32 // KV heads of the whole model
}

// Shape is the half of a layout that is exchanged for planning. Page bytes are
// [LayerHi-LayerLo, KVs, HeadHi-HeadLo, tokens, HeadDim] elements with the strides below, or, for TokensPerPage 0, the record's bytes.
type Shape struct {
	LayerLo, LayerHi uint32 // own layers [lo, hi)
	HeadLo, HeadHi   uint32 // own KV heads [lo, hi)
	PageBytes        uint32
	LayerStride      uint32 // bytes from one layer to the next
	KVStride         uint32
	HeadStride       uint32
	TokenStride      uint32
	Pages            uint32 // capacity of the pool
	TagSlots         uint16 // parts that one page can carry tags for
	Shared           bool   // the pool can be mapped read-only by a peer (pull)
}

// ErrLayout is wrapped by every refusal of a layout; the text names the field and both values.
var ErrLayout = errors.New("layouts differ")

// FieldDiff names a field in which two nodes differ, with both values as text.
type FieldDiff struct{ Field, Ours, Theirs string }

// Error makes a FieldDiff usable as an error; errors.Is(err, ErrLayout) holds.
func (d FieldDiff) Error() string {
	return fmt.Sprintf("layouts differ in %s: ours %s, theirs %s", d.Field, d.Ours, d.Theirs)
}

// Is reports ErrLayout.
func (d FieldDiff) Is(target error) bool { return target == ErrLayout }

// Compare returns the first field of m and o that differs, in declaration order, or nil.
func (m Meaning) Compare(c Component, o Meaning) error {
	fields := []struct {
		name         string
		ours, theirs any
	}{
		{"model_revision", m.ModelRevision, o.ModelRevision}, {"quantization", m.Quantization, o.Quantization},
		{"dtype", m.DType, o.DType}, {"byte_order", m.ByteOrder, o.ByteOrder}, {"head_dim", m.HeadDim, o.HeadDim},
		{"elem_bytes", m.ElemBytes, o.ElemBytes}, {"kvs", m.KVs, o.KVs}, {"tokens_per_page", m.TokensPerPage, o.TokensPerPage},
		{"layers", m.Layers, o.Layers}, {"heads", m.Heads, o.Heads},
	}
	for _, f := range fields {
		if f.ours != f.theirs {
			return FieldDiff{c.String() + "." + f.name, fmt.Sprint(f.ours), fmt.Sprint(f.theirs)}
		}
	}
	return nil
}

// NewDense returns a layout without holes: [layers, kvs, heads, tokens, dim].
func NewDense(c Component, m Meaning, layerLo, layerHi, headLo, headHi, pages uint32, tagSlots uint16) Layout {
	tokens := max(m.TokensPerPage, 1)
	s := Shape{LayerLo: layerLo, LayerHi: layerHi, HeadLo: headLo, HeadHi: headHi, Pages: pages, TagSlots: tagSlots}
	s.TokenStride = m.HeadDim * m.ElemBytes
	s.HeadStride = s.TokenStride * tokens
	s.KVStride = s.HeadStride * (headHi - headLo)
	s.LayerStride = s.KVStride * m.KVs
	s.PageBytes = s.LayerStride * (layerHi - layerLo)
	return Layout{Component: c, Equal: m, Shape: s}
}

// Bounds that a layout read from a peer must keep, so that planning is bounded.
const (
	MaxLayers    = 1024
	MaxHeads     = 1024
	MaxPageBytes = 1 << 30
	MaxRanks     = 256
	MaxTagSlots  = 256
)

// Validate checks that every byte range the layout implies lies within the page and within bounds.
func (l Layout) Validate() error {
	m, s := l.Equal, l.Shape
	bad := func(f string, v any) error {
		return fmt.Errorf("%w: %s.%s = %v is out of range", ErrLayout, l.Component, f, v)
	}
	switch {
	case l.Component >= ComponentCount:
		return bad("component", uint8(l.Component))
	case m.Layers == 0 || m.Layers > MaxLayers:
		return bad("layers", m.Layers)
	case m.Heads == 0 || m.Heads > MaxHeads:
		return bad("heads", m.Heads)
	case m.KVs == 0 || m.KVs > 2:
		return bad("kvs", m.KVs)
	case m.ByteOrder != "little":
		return bad("byte_order", m.ByteOrder)
	case m.HeadDim == 0 || m.ElemBytes == 0 || uint64(m.HeadDim)*uint64(m.ElemBytes) > MaxPageBytes:
		return bad("head_dim", m.HeadDim)
	case l.Component == KV && m.TokensPerPage == 0, l.Component != KV && m.TokensPerPage != 0, m.TokensPerPage > 1<<20:
		return bad("tokens_per_page", m.TokensPerPage)
	case s.LayerLo >= s.LayerHi || s.LayerHi > m.Layers:
		return bad("layer_hi", s.LayerHi)
	case s.HeadLo >= s.HeadHi || s.HeadHi > m.Heads:
		return bad("head_hi", s.HeadHi)
	case s.PageBytes == 0 || s.PageBytes > MaxPageBytes:
		return bad("page_bytes", s.PageBytes)
	case s.TagSlots == 0 || s.TagSlots > MaxTagSlots:
		return bad("tag_slots", s.TagSlots)
	}
	return l.validateStrides()
}

// validateStrides checks that no two cells overlap and the last lies within the page. The dimensions may be nested in any order
// of memory (tokens within heads, or heads within tokens): each stride must step over all that its smaller ones span.
func (l Layout) validateStrides() error {
	m, s := l.Equal, l.Shape
	levels := []level{
		{"token_stride", uint64(s.TokenStride), uint64(max(m.TokensPerPage, 1))}, {"head_stride", uint64(s.HeadStride), uint64(s.HeadHi - s.HeadLo)},
		{"kv_stride", uint64(s.KVStride), uint64(m.KVs)}, {"layer_stride", uint64(s.LayerStride), uint64(s.LayerHi - s.LayerLo)},
	}
	slices.SortStableFunc(levels, func(a, b level) int { return cmp.Compare(a.stride, b.stride) })
	extent := uint64(m.HeadDim) * uint64(m.ElemBytes)
	for _, v := range levels {
		if v.n == 1 {
			continue
		}
		if v.stride < extent {
			return fmt.Errorf("%w: %s.%s = %d is less than the %d bytes it steps over", ErrLayout, l.Component, v.name, v.stride, extent)
		}
		extent += v.stride * (v.n - 1)
	}
	if extent > uint64(s.PageBytes) {
		return fmt.Errorf("%w: %s.page_bytes = %d is less than the %d bytes of its cells", ErrLayout, l.Component, s.PageBytes, extent)
	}
	return nil
}

// level is one dimension of a page: n steps, stride bytes apart.
type level struct {
	name      string
	stride, n uint64
}
