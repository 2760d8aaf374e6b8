package mem

import (
	"bytes"
	"fmt"

	"kvfence/impl/device"
	"kvfence/impl/transport"
	"kvfence/spec"
)

// write is one write of a batch under way.
type write struct {
	opBase
	f   *Fabric
	l   *pushLink
	b   *batch
	w   transport.Write
	buf []byte // what was read at the source

	acked   bool // over verbs: the source will not be read again
	granted bool // p is the grant table's; else it was made up (Faults.Unchecked)
	p       transport.Placement
}

func (w *write) can(d Do) bool {
	switch d {
	case Advance:
		return w.State != Launched || w.l.dead || w.l.dst != nil && (!w.f.verbs.On || w.first())
	case Duplicate:
		return w.State != Queued && (!w.f.verbs.On || w.f.verbs.Windows) // a queue pair takes each packet once: only a rogue writes again
	case Lose:
		return w.State != Queued
	case Fail:
		return w.State == Queued
	case Flip:
		return w.State >= Launched && w.State <= Half && len(w.buf) > 0
	case Tear:
		return w.State == Half
	}
	return false
}

func (w *write) step(d Do) {
	switch d {
	case Advance:
		w.advance()
	case Lose:
		w.drop()
		if w.f.verbs.On { // retries are spent
			w.f.breakRail(w.l, w.Channel)
			w.flush()
		}
	case Duplicate:
		again := &write{opBase: opBase{Op: w.Op}, f: w.f, l: w.l, b: w.b, w: w.w, buf: bytes.Clone(w.buf), acked: true}
		again.State, again.Again, again.Held = Launched, true, false
		w.f.add(again)
	case Fail:
		if w.f.verbs.On {
			defer w.f.breakRail(w.l, w.Channel)
		}
		w.fail(fmt.Errorf("write %d: %w", w.Index, ErrFailed))
	case Flip:
		w.buf[len(w.buf)-1] ^= 0x10
	case Tear:
		w.State = Copied
	}
}

// fail ends a write at its post: it never comes to the fabric.
func (w *write) fail(err error) {
	w.over = true
	w.b.queue--
	if w.b.err == nil {
		w.b.err = err
	}
}

// drop ends a write where it is, with what it has stored so far.
func (w *write) drop() {
	w.over = true
	if w.granted && w.State >= Checked {
		w.l.dst.grants.End(w.p, false, 0)
	}
}

func (w *write) advance() {
	switch w.State {
	case Queued:
		w.launch()
	case Launched:
		if w.f.verbs.On {
			w.take()
			return
		}
		w.check()
	case Checked:
		place(w.p.Page, w.p.Segs, w.buf, 0, len(w.buf)/2)
		w.State = Half
	case Half:
		place(w.p.Page, w.p.Segs, w.buf, len(w.buf)/2, len(w.buf))
		w.State = Copied
	case Copied:
		device.PutTag(w.p.Slot, w.w.Tag)
		w.over = true
		if w.granted {
			var digest uint64
			if w.p.Digest {
				digest = device.DigestSegments(w.p.Page, w.p.Segs, w.p.Header)
			}
			w.l.dst.grants.End(w.p, true, digest)
		}
	}
}

// launch reads the source page: from here on it is not read again.
func (w *write) launch() {
	b, err := w.source()
	if err != nil {
		w.fail(fmt.Errorf("write %d: %w", w.Index, err))
		return
	}
	w.buf, w.State = b, Launched
	if w.over = w.l.dead; !w.f.verbs.On || w.over {
		w.acked = true
		w.b.queue--
	}
}

// source reads the source page.
func (w *write) source() ([]byte, error) {
	pool := poolOf(w.l.src.mem, w.w.Component)
	if pool == nil || uint32(w.w.Src) >= pool.Layout.Shape.Pages {
		return nil, fmt.Errorf("source page %d %w", w.w.Src, ErrJob)
	}
	return gather(pool.Page(w.w.Src), w.w.SrcSegs)
}

// check asks the grant table, as the placer of a stream does before its copy.
func (w *write) check() {
	t := w.l.dst
	if w.l.dead || t.gone || t.fencing {
		w.over = true
		return
	}
	p, why := t.grants.Begin(w.Link.Epoch, w.Lease, w.w.Component, w.w.Part, w.w.Index, w.w.Dst, uint32(len(w.buf)))
	if why == "" {
		w.p, w.granted, w.State = p, true, Checked
		return
	}
	if w.f.faults.Unchecked && w.madeUp() {
		w.State = Checked
		return
	}
	w.over = true
	t.sink.Refused(w.Lease, why)
}

// madeUp gives a write that the table refused a place all the same, if there is such a page.
func (w *write) madeUp() bool {
	pool := poolOf(w.l.dst.mem, w.w.Component)
	if pool == nil || uint32(w.w.Dst.Page) >= pool.Layout.Shape.Pages || uint32(w.w.Part) >= uint32(pool.Layout.Shape.TagSlots) {
		return false
	}
	page := pool.Page(w.w.Dst.Page)
	if _, err := gather(page, w.w.SrcSegs); err != nil {
		return false
	}
	w.p = transport.Placement{Page: page, Slot: pool.Slot(w.w.Dst.Page, w.w.Part), Segs: w.w.SrcSegs, Bytes: uint32(len(w.buf))}
	return true
}

func poolOf(m device.Memory, c spec.Component) *device.Pool {
	if c >= spec.ComponentCount {
		return nil
	}
	return m[c]
}

// notice is a drain notice on one channel.
type notice struct {
	opBase
	f *Fabric
	l *pushLink

	flushed bool // its queue pair failed: it was not sent
}

func (n *notice) can(d Do) bool {
	switch d {
	case Advance:
		return n.f.faults.NoticesFirst || n.clear()
	case Overtake, Duplicate:
		return d == Overtake || n.State == Launched
	case Lose:
		return n.State == Launched
	}
	return false
}

// clear reports that nothing on the channel stands before the notice any more: queued ones for its launch, any for its delivery.
// A target that was not opened yet keeps it waiting.
func (n *notice) clear() bool {
	for _, o := range n.f.ops {
		b := o.base()
		if b.Ref >= n.Ref {
			break
		}
		if (b.Kind == Write || b.Kind == Notice) && b.Link == n.Link && b.Channel == n.Channel && !b.over && (b.State == Queued || n.State == Launched) && !(n.f.verbs.On && b.Again) {
			return false
		}
	}
	return n.State == Queued || n.l.dst != nil || n.l.dead
}

func (n *notice) step(d Do) {
	switch d {
	case Lose:
		n.over = true
	case Duplicate:
		again := &notice{opBase: opBase{Op: n.Op}, f: n.f, l: n.l}
		again.Again, again.Held = true, false
		n.f.add(again)
	case Overtake:
		n.State = Launched
		n.deliver()
	case Advance:
		if n.State == Queued {
			n.State = Launched
			return
		}
		n.deliver()
	}
}

func (n *notice) deliver() {
	n.over = true
	if t := n.l.dst; t != nil && !t.gone && !t.fencing && (!n.f.verbs.On || n.l.rails[n.Channel].state < railError) {
		t.sink.NoticeIn(n.Channel, n.Lease, n.ID)
	}
}
