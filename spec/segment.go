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
	cell := uint64(m.HeadDim) * uint64(m.ElemBytes)
	out := segments{buf: buf, start: len(buf), page: uint64(s.PageBytes)}
	for layer := p.LayerLo - s.LayerLo; layer < p.LayerHi-s.LayerLo; layer++ {
		for kv := uint32(0); kv < m.KVs; kv++ {
			for head := p.HeadLo - s.HeadLo; head < p.HeadHi-s.HeadLo; head++ {
				base := uint64(layer)*uint64(s.LayerStride) + uint64(kv)*uint64(s.KVStride) + uint64(head)*uint64(s.HeadStride)
				if !out.run(base+uint64(tLo)*uint64(s.TokenStride), uint64(tHi-tLo), uint64(s.TokenStride), cell) {
					return buf[:out.start], fmt.Errorf("%w: part %d leaves page index %d of %d bytes at layer %d, head %d", ErrPlan, p.Index, i, s.PageBytes, layer+s.LayerLo, head+s.HeadLo)
				}
			}
		}
	}
	return out.buf, nil
}

// segments collects runs, merging each with the one before it where they touch.
type segments struct {
	buf   []Segment
	start int
	page  uint64
}

// run adds n cells from offset at, stride apart. False: a cell leaves the page.
func (v *segments) run(at, n, stride, cell uint64) bool {
	if stride == cell {
		return v.add(at, n*cell)
	}
	for t := range n {
		if !v.add(at+t*stride, cell) {
			return false
		}
	}
	return true
}

func (v *segments) add(at, bytes uint64) bool {
	if at+bytes > v.page {
		return false
	}
	if k := len(v.buf); k > v.start && uint64(v.buf[k-1].Offset)+uint64(v.buf[k-1].Bytes) == at {
		v.buf[k-1].Bytes += uint32(bytes)
		return true
	}
	v.buf = append(v.buf, Segment{uint32(at), uint32(bytes)})
	return true
}

// UsedBytes is the sum of the segments' bytes.
func UsedBytes(v []Segment) (n uint32) {
	for _, s := range v {
		n += s.Bytes
	}
	return n
}
