package spec

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// movePart copies part p of one page from a source to a destination, by their segments, as a transport does.
func movePart(t require.TestingT, p Part, src, dst Layout, index uint32, from, to []byte) {
	a, err := p.Segments(src, index, nil)
	require.NoError(t, err)
	b, err := p.Segments(dst, index, nil)
	require.NoError(t, err)
	require.Equal(t, UsedBytes(a), UsedBytes(b))
	var wire []byte
	for _, s := range a {
		wire = append(wire, from[s.Offset:s.Offset+s.Bytes]...)
	}
	for _, s := range b {
		wire = wire[copy(to[s.Offset:s.Offset+s.Bytes], wire):]
	}
	require.Empty(t, wire)
}

// Each side's geometry comes from its own record; with unequal parallel sizes, nestings, holes and prompt lengths, every byte of
// every token arrives at its own place and no other byte changes; another page size is refused by name.
func TestCaseB22_UnequalShapes_SameTokensInTheSamePlaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawMeaning(t)
		prefill, decode := drawSide(t, m), drawSide(t, m)
		tokens := rapid.Uint32Range(0, 30).Draw(t, "tokens")
		for _, dst := range decode {
			require.NoError(t, dst.Validate())
			parts, err := PlanParts(*dst, prefill, tokens, 0)
			if err != nil { // uneven cuts can give overlapping replicas: refused, nothing moved
				require.ErrorIs(t, err, ErrPlan)
				continue
			}
			got := blank(*dst, tokens)
			for _, p := range parts {
				from := filled(*prefill[p.Rank], tokens)
				lo, hi := p.PageRange(*dst)
				for i := lo; i < hi; i++ {
					movePart(t, p, *prefill[p.Rank], *dst, i, from[i], got[i])
				}
			}
			require.Equal(t, filled(*dst, tokens), got)
		}
	})
	small, large := Meaning{TokensPerPage: 4}, Meaning{TokensPerPage: 2}
	require.EqualError(t, small.Compare(KV, large), "layouts differ in kv.tokens_per_page: ours 4, theirs 2")
}

// A partial prefix hit moves the suffix into the suffix: the part names token ranges, not a count from the front.
func TestCaseB19_PartialPrefix_SuffixLandsInSuffix(t *testing.T) {
	m := Meaning{ByteOrder: "little", HeadDim: 2, ElemBytes: 2, KVs: 2, TokensPerPage: 16, Layers: 3, Heads: 2}
	l := NewDense(KV, m, 0, 3, 0, 2, 16, 4)
	parts, err := PlanParts(l, []*Layout{&l}, 96, 0)
	require.NoError(t, err)
	p := parts[0]
	p.TokenLo = 64 // four of six pages are at decode already
	lo, hi := p.PageRange(l)
	require.Equal(t, [2]uint32{4, 6}, [2]uint32{lo, hi})
	from, got := filled(l, 96), blank(l, 96)
	for i := uint32(0); i < 6; i++ {
		movePart(t, p, l, l, i, from[i], got[i])
	}
	want := blank(l, 96)
	eachCell(l, 64, 96, func(page, at uint32, b []byte) { copy(want[page][at:], b) })
	require.Equal(t, want, got)
}

// A range that begins or ends within a page touches the tokens of the range only.
func TestSegments_AnyTokenRange_TouchesItsTokensOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawMeaning(t)
		l := drawLayout(t, m, 0, m.Layers, 0, m.Heads)
		lo := rapid.Uint32Range(0, 20).Draw(t, "lo")
		hi := lo + rapid.Uint32Range(0, 20).Draw(t, "length")
		p := Part{LayerHi: m.Layers, HeadHi: m.Heads, TokenLo: lo, TokenHi: hi}
		want, got := blank(l, 40), blank(l, 40)
		eachCell(l, lo, hi, func(page, at uint32, b []byte) { copy(want[page][at:], b) })
		from := filled(l, 40)
		first, last := p.PageRange(l)
		for i := range l.PagesFor(40) {
			segs, err := p.Segments(l, i, nil)
			require.NoError(t, err)
			require.Equal(t, i >= first && i < last, len(segs) > 0, "page index %d of %d..%d", i, first, last)
			movePart(t, p, l, l, i, from[i], got[i])
		}
		require.Equal(t, want, got)
	})
}

// The unit's own length bounds every run: a page's length on a block, or one piece across two regions, is refused before posting.
func TestCaseB21_PageLengthOnABlock_IsRefused(t *testing.T) {
	m := Meaning{ByteOrder: "little", HeadDim: 16, ElemBytes: 1, KVs: 1, TokensPerPage: 48, Layers: 1, Heads: 1}
	page := NewDense(KV, m, 0, 1, 0, 1, 8, 1) // 12 blocks of 64 bytes
	require.EqualValues(t, 768, page.Shape.PageBytes)
	block := page
	block.Shape.PageBytes = 64 // the pool's unit is a block, the length still a page's
	require.ErrorIs(t, block.Validate(), ErrLayout)
	require.ErrorContains(t, block.Validate(), "kv.page_bytes = 64 is less than the 768 bytes of its cells")
	_, err := Part{LayerHi: 1, HeadHi: 1, TokenHi: 48}.Segments(block, 0, nil)
	require.ErrorIs(t, err, ErrPlan)
}

func TestCaseB21_OverlappingStrides_AreRefused(t *testing.T) {
	m := Meaning{ByteOrder: "little", HeadDim: 4, ElemBytes: 2, KVs: 2, TokensPerPage: 4, Layers: 3, Heads: 2}
	for field, edit := range map[string]func(s *Shape){
		"token_stride": func(s *Shape) { s.TokenStride-- },
		"head_stride":  func(s *Shape) { s.HeadStride-- },
		"kv_stride":    func(s *Shape) { s.KVStride-- },
		"layer_stride": func(s *Shape) { s.LayerStride-- },
		"page_bytes":   func(s *Shape) { s.PageBytes-- },
	} {
		l := NewDense(KV, m, 0, 3, 0, 2, 8, 1)
		require.NoError(t, l.Validate())
		edit(&l.Shape)
		require.ErrorContains(t, l.Validate(), "kv."+field)
	}
}

// A piece never leaves its page, which is the unit of registration: a run across the border is refused whole, and what stood
// in the buffer stays.
func TestCaseB37_RunAcrossTheBorder_IsRefused(t *testing.T) {
	m := Meaning{ByteOrder: "little", HeadDim: 4, ElemBytes: 2, KVs: 2, TokensPerPage: 4, Layers: 3, Heads: 2}
	p := Part{LayerHi: 3, HeadHi: 2, TokenHi: 4}
	for name, edit := range map[string]func(s *Shape){
		"short page":          func(s *Shape) { s.PageBytes-- },
		"layer stride":        func(s *Shape) { s.LayerStride++ },
		"offset past 4 GiB":   func(s *Shape) { s.LayerStride = 1 << 31 },
		"token stride":        func(s *Shape) { s.TokenStride = 1 << 30 },
		"head stride to 0":    func(s *Shape) { s.HeadStride = 0xffffffff },
		"kv stride past page": func(s *Shape) { s.KVStride = s.PageBytes },
	} {
		l := NewDense(KV, m, 0, 3, 0, 2, 8, 1)
		edit(&l.Shape)
		kept := []Segment{{1, 2}}
		got, err := p.Segments(l, 0, kept)
		require.ErrorIs(t, err, ErrPlan, name)
		require.Equal(t, kept, got, name)
	}
}

func TestSegments_PartOutsideOfPool_IsRefused(t *testing.T) {
	m := Meaning{ByteOrder: "little", HeadDim: 4, ElemBytes: 2, KVs: 2, TokensPerPage: 4, Layers: 8, Heads: 8}
	l := NewDense(KV, m, 2, 4, 4, 6, 8, 1)
	for _, p := range []Part{
		{Component: State, LayerLo: 2, LayerHi: 4, HeadLo: 4, HeadHi: 6}, {LayerLo: 1, LayerHi: 4, HeadLo: 4, HeadHi: 6},
		{LayerLo: 2, LayerHi: 5, HeadLo: 4, HeadHi: 6}, {LayerLo: 2, LayerHi: 4, HeadLo: 3, HeadHi: 6},
		{LayerLo: 2, LayerHi: 4, HeadLo: 4, HeadHi: 7}, {LayerLo: 4, LayerHi: 4, HeadLo: 4, HeadHi: 6}, {LayerLo: 2, LayerHi: 4, HeadLo: 6, HeadHi: 6},
	} {
		p.TokenHi = 4
		_, err := p.Segments(l, 0, nil)
		require.ErrorIs(t, err, ErrPlan, "%+v", p)
	}
}

func TestSegments_DensePage_IsOneRun(t *testing.T) {
	m := Meaning{ByteOrder: "little", HeadDim: 4, ElemBytes: 2, KVs: 2, TokensPerPage: 4, Layers: 3, Heads: 2}
	l := NewDense(KV, m, 0, 3, 0, 2, 8, 1)
	got, err := Part{LayerHi: 3, HeadHi: 2, TokenHi: 8}.Segments(l, 1, []Segment{{7, 7}})
	require.NoError(t, err)
	require.Equal(t, []Segment{{7, 7}, {0, l.Shape.PageBytes}}, got)
}

func TestSegments_WholeRecord_IsPageZeroOnly(t *testing.T) {
	l := sampleLayouts()[1]
	p := Part{Component: Aux, LayerHi: 1, HeadHi: 1}
	got, err := p.Segments(l, 0, nil)
	require.NoError(t, err)
	require.Equal(t, []Segment{{0, 64}}, got)
	got, err = p.Segments(l, 1, nil)
	require.NoError(t, err)
	require.Empty(t, got)
}
