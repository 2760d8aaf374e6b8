package mem

import (
	"slices"

	"kvfence/spec"
)

// fence is the fence of a target over verbs: for each rail in turn the move to error, the query, the marker, the end of the windows, the
// flush read. Each is a step that waits for what it must see.
type fence struct {
	opBase
	t     *Target
	rail  int
	stage fenceStage
}

type fenceStage uint8

const (
	fenceAsk  fenceStage = iota // the queue pair is to go to error
	fenceSee                    // a query says that it is there
	fenceMark                   // the marker is flushed: the queue pair has nothing in hand
	fenceFree                   // windows and queue pair are freed, or the queue pair is kept
	fenceRead                   // the flush read is back: nothing is on the bus
)

func (c *fence) can(d Do) bool {
	f, l := c.t.f, c.t.l
	v := f.verbs
	if d != Advance || c.shortened() {
		return d == Advance
	}
	ch := uint32(c.rail)
	switch c.stage {
	case fenceSee:
		return v.NoQuery || l.rails[c.rail].state >= railError
	case fenceMark:
		return v.OneMarker && c.rail > 0 || !f.busy(l, ch, Checked, Checked)
	case fenceRead:
		return v.NoFlushRead || !f.busy(l, ch, Half, Copied)
	}
	return true
}

// shortened reports a fence that leaves out its steps: a planted bug.
func (c *fence) shortened() bool {
	v := c.t.f.verbs
	return v.SocketOnly || v.Unseen || v.LocalError && c.t.l.broken
}

func (c *fence) step(Do) {
	f, l := c.t.f, c.t.l
	if c.shortened() {
		for ch := range l.rails {
			if !f.verbs.SocketOnly {
				f.toError(l, uint32(ch))
			}
		}
		c.end()
		return
	}
	r := &l.rails[c.rail]
	switch c.stage {
	case fenceAsk:
		f.toError(l, uint32(c.rail))
	case fenceFree:
		c.t.freeWindows(c.rail)
		if f.verbs.Windows || f.verbs.NumberFree {
			r.state = railGone
		}
	}
	if c.stage++; c.stage <= fenceRead {
		return
	}
	c.stage = fenceAsk
	if c.rail++; c.rail == len(l.rails) {
		c.end()
	}
}

func (c *fence) end() {
	c.over = true
	c.t.gone = true
	for ch := range c.t.l.rails {
		c.t.freeWindows(ch)
	}
	c.t.sink.Fenced()
}

// right is a lease's windows, one on each rail.
type right struct {
	lease   spec.LeaseID
	pages   [spec.ComponentCount][]spec.GrantedPage
	bound   []bool
	release func()
}

// Grant binds a lease's windows: see transport.Windows.
func (t *Target) Grant(m spec.Grant, release func()) {
	w := &right{lease: m.Lease, pages: m.Pages, bound: make([]bool, len(t.l.rails)), release: release}
	for i := range w.bound {
		w.bound[i] = true
	}
	if t.gone || t.fencing {
		release() // nothing is bound for it
		return
	}
	t.rights = append(t.rights, w)
}

// Revoke queues a lease's invalidates, one for each rail, each behind the lease's writes there: see transport.Windows.
// An invalidate waits for the writes before it, so it makes no difference here whether the writer has said that it is done.
func (t *Target) Revoke(lease spec.LeaseID, _ bool) {
	i := slices.IndexFunc(t.rights, func(w *right) bool { return w.lease == lease })
	if i < 0 {
		return
	}
	if t.f.verbs.WindowsStay {
		t.rights[i].release()
		return
	}
	for ch := range t.l.rails {
		t.f.add(&invalidate{opBase: opBase{Op: Op{Kind: Invalidate, Link: t.l.info, Lease: lease, Channel: uint32(ch)}}, t: t, w: t.rights[i]})
	}
}

// invalidate takes one window of a lease back, or is flushed, which proves nothing.
type invalidate struct {
	opBase
	t *Target
	w *right
}

func (v *invalidate) can(d Do) bool {
	if d != Advance || v.t.l.rails[v.Channel].state != railWorks {
		return d == Advance
	}
	for _, o := range v.t.f.ops {
		if b := o.base(); b.Kind == Write && b.Link == v.Link && b.Channel == v.Channel && b.Lease == v.Lease && !b.over && (!b.Again || b.State >= Checked) {
			return false
		}
	}
	return true
}

func (v *invalidate) step(Do) {
	v.over = true
	if v.t.l.rails[v.Channel].state == railWorks {
		v.t.free(v.w, int(v.Channel))
	} else if v.t.f.verbs.FlushedIsDone {
		v.w.release()
	}
}

// free frees one window; the lease's rights are over with the last.
func (t *Target) free(w *right, ch int) {
	w.bound[ch] = false
	if !slices.Contains(w.bound, true) {
		t.rights = slices.DeleteFunc(t.rights, func(x *right) bool { return x == w })
		w.release()
	}
}

// freeWindows frees the windows of all leases on a rail, whose queue pair is in error.
func (t *Target) freeWindows(ch int) {
	for _, w := range slices.Clone(t.rights) {
		t.free(w, ch)
	}
}

// opens reports whether a write's key opens its page.
func (t *Target) opens(w *write) bool {
	if !t.f.verbs.Windows {
		return true
	}
	for _, r := range t.rights {
		if r.lease == w.Lease && r.bound[w.Channel] && int(w.w.Component) < len(r.pages) && slices.Contains(r.pages[w.w.Component], w.w.Dst) {
			return true
		}
	}
	return false
}

// Settle takes the rights of these leases back at once; where that cannot be done the link's queue pairs are put in error and made
// quiet: see transport.Settler and transport.Cutter. What is being placed comes to its end first. The losses are queued.
func (t *Target) Settle(leases []spec.LeaseID) {
	var cut bool
	for _, o := range slices.Clone(t.f.ops) {
		if v, is := o.(*invalidate); is && v.t == t && !v.over && slices.Contains(leases, v.Lease) {
			if cut = cut || !v.can(Advance) || t.l.rails[v.Channel].state != railWorks; !cut {
				v.step(Advance)
			}
		}
	}
	if cut {
		for ch := range t.l.rails {
			t.f.breakRail(t.l, uint32(ch))
			t.l.rails[ch].state = max(t.l.rails[ch].state, railError)
		}
		for _, o := range slices.Clone(t.f.ops) {
			for w, is := o.(*write); is && w.l == t.l && w.State >= Checked && !w.over; {
				w.step(Advance)
			}
		}
		for ch := range t.l.rails {
			t.freeWindows(ch)
		}
	}
	t.f.sweep()
}
