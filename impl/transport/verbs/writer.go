//go:build verbs

package verbs

// #include "shim.h"
import "C"

import (
	"fmt"

	"kvfence/impl/device"
	"kvfence/impl/transport"
	"kvfence/spec"
)

// writer makes the requests of one rail's share of a batch: for each write its bytes and, behind them, its tag. A write may need
// more requests than one chunk has room for, so it keeps its place.
type writer struct {
	s      *source
	rail   int
	lease  spec.LeaseID
	writes []transport.Write
	keys   *keyTable // nil without windows

	plan    planner
	dst     []spec.Segment
	shape   shapeKey // what dst was made for
	at      int      // write
	begun   bool     // requests of that write are in todo
	todo    []request
	page    uint64 // address of the destination page
	pageKey uint32
}

// shapeKey is all that the segments of a page depend on, for one layout.
type shapeKey struct {
	of     spec.Part
	lo, hi uint32
	set    bool
}

func (w *writer) build(b *batch, room int) (all bool, err error) {
	for w.at < len(w.writes) {
		x := &w.writes[w.at]
		if !w.begun {
			if err := w.begin(x); err != nil {
				return false, err
			}
		}
		w.put(b, x, room)
		if len(b.wrs) >= room || len(w.todo) > 0 {
			return false, nil
		}
		if err := w.tag(b, x); err != nil {
			return false, err
		}
		w.begun = false
		w.at++
	}
	return true, nil
}

// begin finds where a write goes.
func (w *writer) begin(x *transport.Write) error {
	p := w.s.remote[x.Component]
	if p == nil || uint32(x.Dst.Page) >= p.Layout.Shape.Pages || uint32(x.Part) >= uint32(p.Layout.Shape.TagSlots) {
		return fmt.Errorf("%w: page %d slot %d is outside of decode's pool", spec.ErrPlan, x.Dst.Page, x.Part)
	}
	lo, hi := x.Of.Tokens(p.Layout, x.Index)
	if k := (shapeKey{x.Of, lo, hi, true}); w.shape != k {
		var err error
		if w.dst, err = x.Of.Segments(p.Layout, x.Index, w.dst[:0]); err != nil {
			return err
		}
		w.shape = k
	}
	var err error
	if w.todo, err = w.plan.cut(x.SrcSegs, w.dst, w.s.a.rails[w.rail].sges); err != nil {
		return err
	}
	var known bool
	if w.pageKey, known = w.key(x, false); !known {
		return fmt.Errorf("%w: no key for page %d of lease %d", spec.ErrPlan, x.Dst.Page, w.lease)
	}
	w.page = p.Pages + uint64(x.Dst.Page)*uint64(p.Layout.Shape.PageBytes)
	w.begun = true
	return nil
}

func (w *writer) key(x *transport.Write, tags bool) (uint32, bool) {
	if w.keys != nil {
		return w.keys.key(w.rail, x.Component, tags, x.Dst.Page)
	}
	k := w.s.pool[w.rail][x.Component]
	if tags {
		return k.Tags, true
	}
	return k.Pages, true
}

// put appends requests for page bytes, leaving room for the tag.
func (w *writer) put(b *batch, x *transport.Write, room int) {
	mem := w.s.a.mem[x.Component]
	src, key := addressOf(mem.Page(x.Src)), w.s.a.rails[w.rail].pools[x.Component].pages.local()
	for len(w.todo) > 0 && len(b.wrs) < room-1 {
		r := w.todo[0]
		w.todo = w.todo[1:]
		o := b.add(C.KV_WRITE)
		o.remote, o.key = C.uint64_t(w.page+uint64(r.at)), C.uint32_t(w.pageKey)
		for _, p := range r.pieces {
			b.piece(o, src+C.uint64_t(p.Offset), p.Bytes, key)
		}
		w.s.a.counts.requests.Add(1)
	}
}

// tag appends the tag, behind the bytes that it vouches for: the queue pair places in order.
func (w *writer) tag(b *batch, x *transport.Write) error {
	p := w.s.remote[x.Component]
	key, known := w.key(x, true)
	if !known {
		return fmt.Errorf("%w: no key for the tags of page %d of lease %d", spec.ErrPlan, x.Dst.Page, w.lease)
	}
	o, data := b.inlined(C.KV_WRITE, spec.TagBytes)
	device.PutTag(data, x.Tag)
	slot := uint64(x.Dst.Page)*uint64(p.Layout.Shape.TagSlots) + uint64(x.Part)
	o.remote, o.key = C.uint64_t(p.Tags+slot*spec.TagBytes), C.uint32_t(key)
	w.s.a.counts.requests.Add(1)
	return nil
}
