package check

import (
	"kvfence/kernels"
	"kvfence/spec"
)

// shapes draws two layouts of one meaning whose head ranges differ, each with its own order of dimensions and holes.
func (b *bench) shapes(big bool) (src, dst spec.Layout) {
	pick := func(what string, of ...uint32) uint32 { return of[b.r.Int(0, len(of)-1, what)] }
	m := spec.Meaning{ByteOrder: "little", ElemBytes: pick("elem", 1, 2, 4), KVs: pick("kvs", 1, 2, 2), Layers: pick("layers", 1, 2, 3), Heads: pick("heads", 1, 2, 4, 8)}
	b.odd = b.chance(3, "odd")
	wide := !b.odd || b.chance(2, "odd only in memory")
	if wide {
		m.HeadDim = pick("dim", 16, 64, 128, 128)
	} else {
		m.HeadDim = pick("odd dim", 1, 2, 3, 5, 7, 24)
	}
	m.TokensPerPage = pick("tokens", 1, 2, 16, 17, 32, 64)
	most := uint32(64 << 10)
	if big {
		most = 300 << 10
		m.HeadDim *= pick("longer", 1, 1, 4)
		m.TokensPerPage *= pick("larger", 1, 2, 4)
	}
	for m.TokensPerPage > 1 && m.Layers*m.KVs*m.Heads*m.TokensPerPage*m.HeadDim*m.ElemBytes > most {
		m.TokensPerPage /= 2
	}
	c := spec.KV
	if b.chance(8, "record") {
		c, m.TokensPerPage = spec.Component(b.r.Int(1, 2, "component")), 0
	}
	return b.own(c, m, wide), b.own(c, m, wide)
}

// own draws one side: which heads and layers it has, and how its pages are laid out.
func (b *bench) own(c spec.Component, m spec.Meaning, wide bool) spec.Layout {
	between := func(n uint32, what string) (uint32, uint32) {
		middle := n / 2 // both sides own it, so there is always a part
		return uint32(b.r.Int(0, int(middle), what+" lo")), uint32(b.r.Int(int(middle)+1, int(n), what+" hi"))
	}
	layerLo, layerHi := between(m.Layers, "own layer")
	headLo, headHi := between(m.Heads, "own head")
	l := spec.NewDense(c, m, layerLo, layerHi, headLo, headHi, uint32(b.r.Int(3, 7, "pages")), uint16(b.r.Int(1, 4, "slots")))
	if b.chance(3, "dense") {
		return l
	}
	s := &l.Shape
	strides := []*uint32{&s.TokenStride, &s.HeadStride, &s.KVStride, &s.LayerStride}
	steps := []uint32{max(m.TokensPerPage, 1), s.HeadHi - s.HeadLo, m.KVs, s.LayerHi - s.LayerLo}
	holes := []uint32{0, 0, 16, 48}
	if !wide {
		holes = []uint32{0, 0, 1, 5}
	}
	left := []int{0, 1, 2, 3}
	extent := m.HeadDim * m.ElemBytes
	for len(left) > 0 {
		i := b.r.Int(0, len(left)-1, "nesting")
		k := left[i]
		left = append(left[:i], left[i+1:]...)
		*strides[k] = extent + holes[b.r.Int(0, len(holes)-1, "hole")]
		extent += *strides[k] * (steps[k] - 1)
	}
	s.PageBytes = extent + holes[b.r.Int(0, len(holes)-1, "end")]
	return l
}

// part is what both own, of a token range that covers at least one page, wholly or not.
func (b *bench) part(src, dst spec.Layout) spec.Part {
	s, d := src.Shape, dst.Shape
	p := spec.Part{Component: src.Component, LayerLo: max(s.LayerLo, d.LayerLo), LayerHi: min(s.LayerHi, d.LayerHi), HeadLo: max(s.HeadLo, d.HeadLo), HeadHi: min(s.HeadHi, d.HeadHi)}
	if t := int(src.Equal.TokensPerPage); t != 0 {
		p.TokenLo = uint32(b.r.Int(0, t-1, "token lo"))
		p.TokenHi = uint32(b.r.Int(int(p.TokenLo)+1, 3*t, "token hi"))
	}
	return p
}

// pages is a pool in the device's memory: page bytes, with room between pages, in one allocation or with its layers apart.
type pages struct {
	layout spec.Layout
	view   kernels.View
	// start and end of each page's bytes before and after the launch, by page, without the room between.
	start, end [][]byte
	stride     uint64
	names      []string // the regions: one, or one a layer
}

func (b *bench) pool(name string, l spec.Layout, writable bool) *pages {
	p := &pages{layout: l}
	room, skew := uint64(16*b.r.Int(0, 1, "room")), uint64(16*b.r.Int(0, 1, "skew"))
	if b.odd {
		room, skew = room+uint64(3*b.r.Int(0, 1, "odd room")), skew+uint64(b.r.Int(0, 1, "odd skew"))
	}
	for range l.Shape.Pages {
		v := b.bytes(int(l.Shape.PageBytes))
		p.start, p.end = append(p.start, v), append(p.end, append([]byte(nil), v...))
	}
	s := l.Shape
	if b.chance(3, "layers apart") && outermost(s, l.Equal.KVs, max(l.Equal.TokensPerPage, 1)) {
		return b.layered(p, name, skew, room, writable)
	}
	p.stride = b.stride(s.PageBytes, room)
	p.names = []string{name}
	at := b.put(name, p.flat(p.start, 0, s.PageBytes), skew, writable)
	p.view = kernels.NewView(at, p.stride, s.Pages)
	return p
}

// stride is from one page to the next: odd ones rounded up half of the time, as allocators do.
func (b *bench) stride(n uint32, room uint64) uint64 {
	v := uint64(n) + room
	if b.odd && b.chance(2, "rounded") {
		v = (v + 15) / 16 * 16
	}
	return v
}

// outermost says that the layers of a page lie one after another, so that they can lie apart.
func outermost(s spec.Shape, kvs, tokens uint32) bool {
	return s.LayerStride >= s.TokenStride*tokens && s.LayerStride >= s.HeadStride*(s.HeadHi-s.HeadLo) && s.LayerStride >= s.KVStride*kvs &&
		s.LayerStride*(s.LayerHi-s.LayerLo) <= s.PageBytes
}

func (b *bench) layered(p *pages, name string, skew, room uint64, writable bool) *pages {
	s := p.layout.Shape
	p.stride = b.stride(s.LayerStride, room)
	var bases []kernels.Addr
	for k := range s.LayerHi - s.LayerLo {
		n := name + " layer " + string(rune('0'+k))
		p.names = append(p.names, n)
		bases = append(bases, b.put(n, p.flat(p.start, k*s.LayerStride, s.LayerStride), skew, writable))
	}
	p.view = kernels.NewLayeredView(b.table(name+" bases", bases), bases, p.stride, s.Pages)
	return p
}

func (p *pages) layered() bool { return p.view.Layers != 0 }

// flat is n bytes from offset on of every page, p.stride apart.
func (p *pages) flat(from [][]byte, offset, n uint32) []byte {
	out := make([]byte, p.stride*uint64(len(from)))
	for i, v := range from {
		copy(out[uint64(i)*p.stride:], v[offset:offset+n])
	}
	return out
}

// expect tells the bench what the pages must hold.
func (p *pages) expect(b *bench) {
	s := p.layout.Shape
	if !p.layered() {
		b.expect(p.names[0], p.flat(p.end, 0, s.PageBytes))
		return
	}
	for k, n := range p.names {
		b.expect(n, p.flat(p.end, uint32(k)*s.LayerStride, s.LayerStride))
	}
}

// address is where a byte of a page lies.
func (b *bench) address(p *pages, page, offset uint32) kernels.Addr {
	name, at := p.names[0], offset
	if p.layered() {
		name, at = p.names[offset/p.layout.Shape.LayerStride], offset%p.layout.Shape.LayerStride
	}
	for _, g := range b.regions {
		if g.name == name {
			return g.at + kernels.Addr(uint64(page)*p.stride+uint64(at))
		}
	}
	return 0
}
