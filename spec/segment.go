package spec

import "fmt"

// Segment is a contiguous run of bytes within one page.
type Segment struct{ Offset, Bytes uint32 }

// Segments are the bytes of part p in page index i of layout l, in canonical order: layer, K before V, head, token. Source and
// destination may cut differently, but the concatenation is the same byte string on both sides. Neighbours are merged. The
// result is appended to buf. A part outside of l, or a run that leaves the page, is an error.
func (p Part) Segments(l Layout, i uint32, buf []Segment) ([]Segment, error) {
	s, m := l.Shape, l.Equal
	if p.Component != l.Component || p.LayerLo < s.LayerLo || p.LayerHi > s.LayerHi || p.LayerLo >= p.LayerHi ||
		p.HeadLo < s.HeadLo || p.HeadHi > s.HeadHi || p.HeadLo >= p.HeadHi {
		return buf, fmt.Errorf("%w: part %d (layers %d..%d, heads %d..%d) lies outside of the pool", ErrPlan, p.Index, p.LayerLo, p.LayerHi, p.HeadLo, p.HeadHi)
	}
	tLo, tHi := p.Tokens(l, i)
	if tLo >= tHi {
		return buf, nil
	}
	cell := m.HeadDim * m.ElemBytes
	start := len(buf)
	for layer := p.LayerLo - s.LayerLo; layer < p.LayerHi-s.LayerLo; layer++ {
		for kv := uint32(0); kv < m.KVs; kv++ {
			for head := p.HeadLo - s.HeadLo; head < p.HeadHi-s.HeadLo; head++ {
				base := uint64(layer)*uint64(s.LayerStride) + uint64(kv)*uint64(s.KVStride) + uint64(head)*uint64(s.HeadStride)
				buf = appendRun(buf, start, base+uint64(tLo)*uint64(s.TokenStride), tHi-tLo, s.TokenStride, cell)
			}
		}
	}
	for _, g := range buf[start:] {
		if uint64(g.Offset)+uint64(g.Bytes) > uint64(s.PageBytes) {
			return buf[:start], fmt.Errorf("%w: part %d leaves page index %d: %d + %d > %d bytes", ErrPlan, p.Index, i, g.Offset, g.Bytes, s.PageBytes)
		}
	}
	return buf, nil
}

// appendRun adds n cells from offset at, stride apart, merging with the last segment where they touch.
func appendRun(buf []Segment, start int, at uint64, n, stride, cell uint32) []Segment {
	add := func(off uint64, bytes uint32) {
		if k := len(buf); k > start && uint64(buf[k-1].Offset)+uint64(buf[k-1].Bytes) == off {
			buf[k-1].Bytes += bytes
			return
		}
		buf = append(buf, Segment{uint32(off), bytes})
	}
	if stride == cell {
		add(at, n*cell)
		return buf
	}
	for t := uint32(0); t < n; t++ {
		add(at+uint64(t)*uint64(stride), cell)
	}
	return buf
}

// UsedBytes is the sum of the segments' bytes.
func UsedBytes(v []Segment) (n uint32) {
	for _, s := range v {
		n += s.Bytes
	}
	return n
}
