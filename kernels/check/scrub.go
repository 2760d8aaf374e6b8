package check

import (
	"bytes"
	"encoding/binary"

	"kvfence/kernels"
	"kvfence/kernels/emulation"
	"kvfence/spec"
)

// Scrub checks kvf_scrub.
func Scrub(d Device, r Draw, big bool) error {
	b := newBench(d, r)
	_, l := b.shapes(big)
	p := b.pool("pages", l, true)
	s := l.Shape
	a := &kernels.ScrubArgs{Pages: p.view, TagSlots: uint32(s.TagSlots), Spans: 1, SpanBytes: uint64(s.PageBytes)}
	if p.layered() {
		a.Spans, a.SpanBytes = uint32(len(p.names)), uint64(s.LayerStride)
	}
	a.Place()
	if b.chance(2, "more slices") {
		a.Slices = uint32(b.r.Int(1, 5, "slices"))
	}
	if b.chance(2, "poison") {
		a.Pattern = b.content.Uint32()
	}
	tags := b.bytes(int(s.Pages) * int(s.TagSlots) * spec.TagBytes)
	if !b.chance(4, "no tags") {
		a.Tags = b.put("tags", tags, 0, true)
	}
	var list []uint32
	for page := range s.Pages {
		if b.chance(2, "scrubbed") {
			list = append(list, page)
			b.scrubbed(p, a, page, tags)
		}
	}
	if b.chance(4, "beyond") {
		list = append(list, s.Pages+uint32(b.r.Int(0, 9, "how far")))
	}
	a.N, a.List = uint32(len(list)), b.table("list", list)
	b.expect("tags", tags)
	p.expect(b)
	b.launch(kernels.NameScrub, a.Grid(), a)
	b.compare()
	return b.end()
}

// scrubbed is what becomes of one page: its tags void before any of its bytes is other than it was.
func (b *bench) scrubbed(p *pages, a *kernels.ScrubArgs, page uint32, tags []byte) {
	var pattern [4]byte
	binary.LittleEndian.PutUint32(pattern[:], a.Pattern)
	n := uint32(a.SpanBytes)
	for span := range a.Spans {
		bytesOf := p.end[page][span*n : (span+1)*n]
		copy(bytesOf, bytes.Repeat(pattern[:], len(bytesOf)/4+1))
	}
	if a.Tags == 0 {
		return
	}
	size := int(a.TagSlots) * spec.TagBytes
	slots := tags[int(page)*size:][:size]
	clear(slots)
	for span := range a.Spans {
		b.watch(b.address(p, page, span*n), uint64(n), true, emulation.Watched{At: a.Tags + kernels.Addr(int(page)*size), Expected: bytes.Clone(slots)})
	}
}

// TagPut checks kvf_tagput.
func TagPut(d Device, r Draw, _ bool) error {
	b := newBench(d, r)
	n, wants := b.r.Int(1, 150, "slots"), b.r.Int(0, 40, "wants")
	a := &kernels.PutArgs{NTags: uint32(n), NWants: uint32(wants)}
	tags, want := b.bytes(n*spec.TagBytes), b.bytes(wants*spec.TagBytes)
	a.Tags, a.Wants = b.put("tags", tags, 0, true), b.put("wants", want, 0, false)
	var puts []kernels.Put
	for slot := range n {
		if !b.chance(2, "put") {
			continue
		}
		p := kernels.Put{Slot: uint32(slot), Want: uint32(b.r.Int(0, wants+1, "want"))}
		at := tags[slot*spec.TagBytes:][:spec.TagBytes]
		switch {
		case p.Want > uint32(wants):
			p.Want = kernels.None
			clear(at)
		case p.Want < uint32(wants):
			copy(at, want[p.Want*spec.TagBytes:])
		}
		puts = append(puts, p)
	}
	if b.chance(3, "beyond") {
		puts = append(puts, kernels.Put{Slot: uint32(n + b.r.Int(0, 5, "how far")), Want: kernels.None})
	}
	a.N, a.Puts = uint32(len(puts)), b.table("puts", puts)
	b.expect("tags", tags)
	b.launch(kernels.NameTagPut, a.Grid(), a)
	b.compare()
	return b.end()
}
