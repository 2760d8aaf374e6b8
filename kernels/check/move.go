package check

import (
	"encoding/binary"
	"fmt"

	"kvfence/impl/device"
	"kvfence/kernels"
	"kvfence/kernels/emulation"
	"kvfence/spec"
)

// Digest checks kvf_digest.
func Digest(d Device, r Draw, big bool) error { return move(d, r, big, kernels.NameDigest) }

// Gather checks kvf_gather.
func Gather(d Device, r Draw, big bool) error { return move(d, r, big, kernels.NameGather) }

// Scatter checks kvf_scatter.
func Scatter(d Device, r Draw, big bool) error { return move(d, r, big, kernels.NameScatter) }

// Convert checks kvf_convert.
func Convert(d Device, r Draw, big bool) error { return move(d, r, big, kernels.NameConvert) }

// mover is one case of the four kernels.
type mover struct {
	*bench
	kernel   string
	src, dst *pages // nil: staging, or nothing
	stage    []byte // what staging holds before; gather: after
	stageAt  kernels.Addr
	cuts     []kernels.Cut
	items    []kernels.Item
	results  []kernels.Result
	tags     []byte // after
	tagsAt   kernels.Addr
	wants    []byte
	written  []written
}

// written is what one item stores into pages before its tag.
type written struct {
	slot uint32
	page uint32
	segs []spec.Segment
}

func move(d Device, r Draw, big bool, kernel string) error {
	m := &mover{bench: newBench(d, r), kernel: kernel}
	src, dst := m.shapes(big)
	if kernel != kernels.NameScatter {
		m.src = m.pool("source", src, false)
	}
	if kernel == kernels.NameScatter || kernel == kernels.NameConvert {
		m.dst = m.pool("destination", dst, true)
	}
	p := m.part(src, dst)
	slots := int(dst.Shape.TagSlots)
	m.tags = make([]byte, int(dst.Shape.Pages)*slots*spec.TagBytes)
	free := make([]uint32, 0, dst.Shape.Pages)
	for i := range dst.Shape.Pages {
		free = append(free, i)
	}
	n := m.r.Int(1, int(dst.Shape.Pages), "items")
	for range n {
		k := m.r.Int(0, len(free)-1, "page")
		m.item(p, src, dst, free[k])
		free = append(free[:k], free[k+1:]...)
	}
	args := m.arguments(slots, dst.Shape.Pages)
	m.watches()
	m.launch(kernel, args.Grid(), args)
	m.outcome()
	m.compare()
	return m.end()
}

// item draws one: a page index of the lease, source and destination pages, a tag; now and then one that must be refused.
func (m *mover) item(p spec.Part, src, dst spec.Layout, page uint32) {
	i := uint32(0)
	if src.Equal.TokensPerPage != 0 {
		i = uint32(m.r.Int(0, 3, "page index")) // may lie outside of the part: no bytes at all
	}
	it := kernels.Item{SrcPage: uint32(m.r.Int(0, int(src.Shape.Pages)-1, "source page")), DstPage: page, Slot: kernels.None}
	srcSegs, err := p.Segments(src, i, nil)
	if err != nil && m.err == nil {
		m.err = err
	}
	dstSegs, err := p.Segments(dst, i, nil)
	if err != nil && m.err == nil {
		m.err = err
	}
	it.Used = spec.UsedBytes(srcSegs)
	h := device.HeaderOf(p, src, i, it.Used)
	it.Component, it.TokenLo, it.TokenHi = uint32(h.Component), h.TokenLo, h.TokenHi
	it.SrcCut, it.DstCut = m.cut(p, src, i, m.src), m.cut(p, dst, i, m.dst)
	it.Flat = uint64(len(m.stage))
	m.stage = append(m.stage, m.bytes(int(it.Used+15)/16*16+16*m.r.Int(0, 2, "between"))...)
	var bytes []byte
	if m.src == nil {
		bytes = m.stage[it.Flat : it.Flat+uint64(it.Used)]
	} else {
		for _, g := range srcSegs {
			bytes = append(bytes, m.src.start[it.SrcPage][g.Offset:g.Offset+g.Bytes]...)
		}
	}
	digest := device.DigestSegments(bytes, []spec.Segment{{Bytes: it.Used}}, h)
	if m.refuse(&it) {
		m.items, m.results = append(m.items, it), append(m.results, kernels.Result{State: kernels.ItemRefused})
		return
	}
	state := m.tag(&it, dst, i, digest)
	m.store(it, bytes, dstSegs)
	m.items, m.results = append(m.items, it), append(m.results, kernels.Result{Digest: digest, State: state})
}

// store is what the item leaves in staging or in its page.
func (m *mover) store(it kernels.Item, bytes []byte, segs []spec.Segment) {
	switch {
	case m.kernel == kernels.NameGather:
		copy(m.stage[it.Flat:], bytes) // the start is other bytes: see arguments
	case m.dst != nil:
		for _, g := range segs {
			copy(m.dst.end[it.DstPage][g.Offset:g.Offset+g.Bytes], bytes)
			bytes = bytes[g.Bytes:]
		}
		if it.Slot != kernels.None {
			m.written = append(m.written, written{it.Slot, it.DstPage, segs})
		}
	}
}

func (m *mover) cut(p spec.Part, l spec.Layout, i uint32, in *pages) uint32 {
	if in == nil {
		return 0
	}
	c, err := kernels.NewCut(p, l, i, in.layered())
	if err != nil && m.err == nil {
		m.err = err
	}
	m.cuts = append(m.cuts, c)
	return uint32(len(m.cuts) - 1)
}

// refuse spoils an item now and then.
func (m *mover) refuse(it *kernels.Item) bool {
	if !m.chance(12, "refused") {
		return false
	}
	switch m.r.Int(0, 2, "why refused") {
	case 0:
		if m.src != nil {
			it.SrcPage = m.src.layout.Shape.Pages + uint32(m.r.Int(0, 3, "beyond"))
		} else {
			it.DstPage = m.dst.layout.Shape.Pages
		}
	case 1:
		it.SrcCut, it.DstCut = 1<<20, 1<<20
	default:
		it.Used++
	}
	return true
}

// tag draws the tag that the item is to write, and says what becomes of it.
func (m *mover) tag(it *kernels.Item, dst spec.Layout, i uint32, digest uint64) kernels.ItemState {
	if m.dst == nil || m.chance(4, "no tag") {
		return kernels.ItemDone
	}
	slot := m.r.Int(0, int(dst.Shape.TagSlots)-1, "slot")
	it.Slot = it.DstPage*uint32(dst.Shape.TagSlots) + uint32(slot)
	it.Want = uint32(len(m.wants) / spec.TagBytes)
	t := spec.Tag{Lease: 7, Gen: spec.Generation(m.content.Uint64()), Part: spec.PartIndex(slot), Index: i, Digest: digest, Used: it.Used, HasDigest: true}
	state := kernels.ItemDone
	switch m.r.Int(0, 5, "tag") {
	case 0:
		t.HasDigest = false
	case 1:
		t.Digest ^= 1 << m.r.Int(0, 63, "bit")
		state = kernels.ItemDiffers
	case 2:
		t.Used++
		state = kernels.ItemDiffers
	}
	var slotBytes [spec.TagBytes]byte
	device.PutTag(slotBytes[:], t)
	m.wants = append(m.wants, slotBytes[:]...)
	if state == kernels.ItemDone {
		copy(m.tags[int(it.Slot)*spec.TagBytes:], slotBytes[:])
	}
	return state
}

// arguments lays everything out in the device's memory.
func (m *mover) arguments(slots int, pages uint32) *kernels.MoveArgs {
	a := &kernels.MoveArgs{NCuts: uint32(len(m.cuts)), NTags: pages * uint32(slots), NWants: uint32(len(m.wants) / spec.TagBytes)}
	values := a.Place(m.items)
	if m.chance(2, "other slices") {
		most := a.Slices * a.SliceChunks
		a.SliceChunks = uint32(m.r.Int(1, 4, "chunks of a slice"))
		a.Slices = (most + a.SliceChunks - 1) / a.SliceChunks
	}
	before := m.stage
	if m.kernel == kernels.NameGather {
		before = m.bytes(len(m.stage))
		for _, it := range m.gaps() { // bytes that no item stores stay
			copy(m.stage[it[0]:it[1]], before[it[0]:it[1]])
		}
	}
	m.stageAt = m.put("staging", before, 0, m.kernel == kernels.NameGather)
	m.expect("staging", m.stage)
	flat := kernels.NewStaging(m.stageAt)
	a.Src, a.Dst = flat, flat
	if m.src != nil {
		a.Src = m.src.view
	}
	if m.dst != nil {
		a.Dst = m.dst.view
		m.dst.expect(m.bench)
	}
	a.Cuts, a.Items = m.table("cuts", m.cuts), m.table("items", m.items)
	a.Values = m.put("values", make([]byte, 8*values), 0, true)
	m.expect("values", nil)
	a.Counters = m.put("counters", make([]byte, 4*len(m.items)), 0, true)
	a.Results = m.put("results", make([]byte, 16*len(m.items)), 0, true)
	m.expect("results", encode(m.results))
	m.tagsAt = m.put("tags", make([]byte, len(m.tags)), 0, m.dst != nil)
	m.expect("tags", m.tags)
	a.Tags, a.Wants = m.tagsAt, m.put("wants", m.wants, 0, false)
	return a
}

// gaps are the ranges of staging that no item stores.
func (m *mover) gaps() (out [][2]uint64) {
	at := uint64(0)
	for i, it := range m.items {
		if m.results[i].State == kernels.ItemRefused {
			continue
		}
		out = append(out, [2]uint64{at, it.Flat})
		at = it.Flat + uint64(it.Used)
	}
	return append(out, [2]uint64{at, uint64(len(m.stage))})
}

// watches: a tag is visible only after the bytes that it vouches for. A few segments of each item, the last among them.
func (m *mover) watches() {
	for _, w := range m.written {
		var data []emulation.Watched
		for k, g := range w.segs {
			if k != len(w.segs)-1 && len(w.segs) > 6 && m.content.IntN(len(w.segs)) > 5 {
				continue
			}
			if m.dst.layered() && g.Offset/m.dst.layout.Shape.LayerStride != (g.Offset+g.Bytes-1)/m.dst.layout.Shape.LayerStride {
				continue // a run over a border of layers lies in two places
			}
			data = append(data, emulation.Watched{At: m.address(m.dst, w.page, g.Offset), Expected: m.dst.end[w.page][g.Offset : g.Offset+g.Bytes]})
		}
		m.watch(m.tagsAt+kernels.Addr(int(w.slot)*spec.TagBytes), spec.TagBytes, true, data...)
	}
}

// outcome compares the results field by field first, for a better text than a byte's.
func (m *mover) outcome() {
	for _, g := range m.regions {
		if m.err != nil || g.name != "results" {
			continue
		}
		got := make([]byte, 16*len(m.items))
		if m.err = m.d.Read(g.at, got); m.err != nil {
			return
		}
		for i, want := range m.results {
			digest, state := binary.LittleEndian.Uint64(got[16*i:]), kernels.ItemState(binary.LittleEndian.Uint32(got[16*i+8:]))
			if m.err == nil && (digest != want.Digest || state != want.State) {
				m.err = fmt.Errorf("%w: item %d of %d bytes: digest %016x in state %d, not %016x in state %d", ErrDiffers, i, m.items[i].Used, digest, state, want.Digest, want.State)
			}
		}
	}
}
