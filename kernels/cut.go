package kernels

import (
	"fmt"
	"math/bits"

	"kvfence/spec"
)

// maxDividend is one more than the largest number that a Div divides.
const maxDividend = 1 << 31

// NewDiv is the division by d, from 1 to 2^31-1, of numbers below 2^31.
func NewDiv(d uint32) Div {
	if d <= 1 {
		return Div{D: 1}
	}
	s := uint32(bits.Len32(d - 1))
	return Div{D: d, M: uint32((uint64(1)<<(31+s) + uint64(d) - 1) / uint64(d)), S: s - 1}
}

// Quo is the quotient as the kernels compute it.
func (v Div) Quo(n uint32) uint32 {
	if v.M == 0 {
		return n
	}
	return uint32(uint64(n)*uint64(v.M)>>32) >> v.S
}

// NewView is pages of stride bytes in one allocation.
func NewView(base Addr, stride uint64, pages uint32) View {
	v := View{Base: base, Stride: stride, Pages: pages}
	if (uint64(base)|stride)%16 == 0 {
		v.Flags = ViewAligned
	}
	return v
}

// NewLayeredView is pages whose layers lie apart: layer k of page p begins at bases[k] + p*stride. table is where the bases stand on
// the device, 8 bytes each.
func NewLayeredView(table Addr, bases []Addr, stride uint64, pages uint32) View {
	v := View{Stride: stride, Layers: table, Pages: pages, Flags: ViewAligned}
	for _, b := range bases {
		if (uint64(b)|stride)%16 != 0 {
			v.Flags = 0
		}
	}
	return v
}

// NewStaging is contiguous memory for gather and scatter; base is a multiple of 16.
func NewStaging(base Addr) View { return View{Base: base, Flags: ViewAligned} }

// NewCut is where the bytes of part p lie in page index i of layout l: the same string as p.Segments(l, i), refused for the same
// reasons. With layered, layers are found by the view's table and l's layer stride is of no meaning.
func NewCut(p spec.Part, l spec.Layout, i uint32, layered bool) (Cut, error) {
	s, m := l.Shape, l.Equal
	c := Cut{Run: NewDiv(1), N: [3]Div{NewDiv(1), NewDiv(1), NewDiv(1)}}
	if p.Component != l.Component || p.LayerLo < s.LayerLo || p.LayerHi > s.LayerHi || p.LayerLo >= p.LayerHi ||
		p.HeadLo < s.HeadLo || p.HeadHi > s.HeadHi || p.HeadLo >= p.HeadHi {
		return c, fmt.Errorf("%w: part %d (layers %d..%d, heads %d..%d) lies outside of the pool", spec.ErrPlan, p.Index, p.LayerLo, p.LayerHi, p.HeadLo, p.HeadHi)
	}
	if layered {
		c.Flags, c.Layer = CutLayered, p.LayerLo-s.LayerLo
	}
	lo, hi := p.Tokens(l, i)
	if lo >= hi {
		return c, nil
	}
	layers := dimension{uint64(p.LayerHi - p.LayerLo), uint64(s.LayerStride)}
	c.Offset = uint64(p.HeadLo-s.HeadLo)*uint64(s.HeadStride) + uint64(lo)*uint64(s.TokenStride)
	if !layered {
		c.Offset += uint64(p.LayerLo-s.LayerLo) * uint64(s.LayerStride)
	}
	dims := []dimension{{uint64(hi - lo), uint64(s.TokenStride)}, {uint64(p.HeadHi - p.HeadLo), uint64(s.HeadStride)}, {uint64(m.KVs), uint64(s.KVStride)}}
	if !layered {
		dims = append(dims, layers)
	}
	run, dims := merged(uint64(m.HeadDim)*uint64(m.ElemBytes), dims)
	last, used := run, run
	for _, d := range dims {
		last += (d.n - 1) * d.stride
		used *= d.n
	}
	if layered {
		used *= layers.n
	}
	if used >= maxDividend || c.Offset+last > uint64(s.PageBytes) {
		return Cut{}, fmt.Errorf("%w: part %d leaves page index %d of %d bytes", spec.ErrPlan, p.Index, i, s.PageBytes)
	}
	c.fill(uint32(used), uint32(run), dims)
	return c, nil
}

// dimension is n steps of stride bytes.
type dimension struct{ n, stride uint64 }

// merged joins neighbours that touch: a dimension whose steps are as long as the run or as all of the one inside it.
func merged(run uint64, dims []dimension) (uint64, []dimension) {
	var out []dimension
	for _, d := range dims {
		switch k := len(out); {
		case d.n == 1:
		case k == 0 && d.stride == run:
			run *= d.n
		case k > 0 && d.stride == out[k-1].n*out[k-1].stride:
			out[k-1].n *= d.n
		default:
			out = append(out, d)
		}
	}
	return run, out
}

func (c *Cut) fill(used, run uint32, dims []dimension) {
	c.Used, c.Run = used, NewDiv(run)
	whole := c.Offset | uint64(run)
	for k, d := range dims {
		c.Stride[k] = d.stride
		whole |= d.stride
		if k < len(c.N) {
			c.N[k] = NewDiv(uint32(d.n))
		}
	}
	if whole%16 == 0 {
		c.Flags |= CutAligned
	}
}
