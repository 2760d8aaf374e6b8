package gpucheck

import (
	"encoding/binary"

	"kvfence/impl/device"
	"kvfence/kernels"
	"kvfence/spec"
)

// pageShape is how the bytes of a page lie: runs of run bytes, stride apart.
type pageShape struct {
	name        string
	run, stride uint32
	runs        uint32
}

func (s pageShape) used() uint32  { return s.run * s.runs }
func (s pageShape) bytes() uint64 { return uint64(s.stride) * uint64(s.runs) }
func (s pageShape) whole() bool   { return s.run == s.stride }
func (s pageShape) segs() (out []spec.Segment) {
	if s.whole() {
		return []spec.Segment{{Bytes: s.used()}}
	}
	for i := range s.runs {
		out = append(out, spec.Segment{Offset: i * s.stride, Bytes: s.run})
	}
	return out
}

func (s pageShape) cut() kernels.Cut {
	c := kernels.Cut{Used: s.used(), Flags: kernels.CutAligned, Run: kernels.NewDiv(s.used()), N: [3]kernels.Div{kernels.NewDiv(1), kernels.NewDiv(1), kernels.NewDiv(1)}}
	if !s.whole() {
		c.Run, c.N[0], c.Stride[0] = kernels.NewDiv(s.run), kernels.NewDiv(s.runs), uint64(s.stride)
	}
	return c
}

// header is what the digests of the check's items cover beside the bytes.
func (s pageShape) header() device.DigestHeader {
	return device.DigestHeader{TokenHi: 16, Used: s.used()}
}

// moving is a move of n pages, one item a page, on the card.
type moving struct {
	args    kernels.MoveArgs
	results kernels.Addr
	tags    kernels.Addr
	n       uint32
}

// move lays out the tables of a move from src to dst; flat is staging for gather and scatter. With tag, each page's slot is written last.
func (b *bench) move(s pageShape, n uint32, src, dst kernels.View, tag bool) (m moving, err error) {
	items := make([]kernels.Item, n)
	wants := make([]byte, int(n)*kernels.TagBytes)
	for i := range items {
		h := s.header()
		items[i] = kernels.Item{Flat: uint64(i) * uint64(s.used()), SrcPage: uint32(i), DstPage: uint32(i), TokenHi: h.TokenHi, Used: s.used(), Slot: kernels.None, Want: uint32(i)}
		if tag {
			items[i].Slot = uint32(i)
		}
		device.PutTag(wants[i*kernels.TagBytes:][:kernels.TagBytes], pageTag(s, uint32(i)))
	}
	m = moving{n: n, args: kernels.MoveArgs{Src: src, Dst: dst, NCuts: 1, NTags: n, NWants: n}}
	values := m.args.Place(items)
	tables := []struct {
		at *kernels.Addr
		v  any
	}{{&m.args.Cuts, []kernels.Cut{s.cut()}}, {&m.args.Items, items}, {&m.args.Values, make([]uint64, values)}, {&m.args.Counters, make([]uint32, n)},
		{&m.args.Results, make([]kernels.Result, n)}, {&m.args.Tags, make([]byte, len(wants))}, {&m.args.Wants, wants}}
	for _, t := range tables {
		if *t.at, err = b.table(t.v); err != nil {
			return m, err
		}
	}
	m.results, m.tags = m.args.Results, m.args.Tags
	return m, nil
}

// pageTag is the tag of page i of the check's lease.
func pageTag(s pageShape, i uint32) spec.Tag {
	return spec.Tag{Lease: 7, Gen: 3, Index: i, Used: s.used()}
}

// finished reads the results: the digests, or nil where an item is not done.
func (b *bench) finished(m moving) ([]uint64, error) {
	raw := make([]byte, 16*m.n)
	if err := b.Read(m.results, raw); err != nil {
		return nil, err
	}
	out := make([]uint64, m.n)
	for i := range out {
		if kernels.ItemState(binary.LittleEndian.Uint32(raw[16*i+8:])) != kernels.ItemDone {
			return nil, nil
		}
		out[i] = binary.LittleEndian.Uint64(raw[16*i:])
	}
	return out, nil
}

// fill writes pages of bytes that a generator gives, and returns page 0.
func (b *bench) fill(at kernels.Addr, s pageShape, n uint32) ([]byte, error) {
	page := make([]byte, s.bytes())
	var first []byte
	x := uint64(1)
	for i := range n {
		if i < 64 { // then they repeat: what is measured does not depend on it
			for k := 0; k+8 <= len(page); k += 8 {
				x = x*6364136223846793005 + 1442695040888963407
				binary.LittleEndian.PutUint64(page[k:], x^x>>29)
			}
		}
		if i == 0 {
			first = append(first, page...)
		}
		if err := b.Write(at+kernels.Addr(uint64(i)*s.bytes()), page); err != nil {
			return nil, err
		}
	}
	return first, nil
}
