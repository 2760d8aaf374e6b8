//go:build verbs

package verbs

// #include "shim.h"
import "C"

import (
	"errors"
	"fmt"

	"kvfence/impl/transport"
	"kvfence/spec"
)

// window is one memory window bound to a queue pair of this link.
type window struct {
	rail int
	mw   *C.struct_ibv_mw
	key  C.uint32_t
	of   windowKey
	mr   region
	addr C.uint64_t
	size C.uint64_t
}

// lease is the rights of one lease on this link.
type lease struct {
	id       spec.LeaseID
	windows  []*window
	release  func()
	left     int // rails on which binds are to complete
	noticed  bool
	revoked  bool
	closing  bool // invalidates are posted
	closings int  // rails on which they are to complete
	failed   bool // one was flushed: only the end of the queue pair frees them
}

// Grant implements transport.Windows: windows are bound on each rail, and prefill is told their keys once all are.
func (t *target) Grant(m spec.Grant, release func()) {
	l := &lease{id: m.Lease, release: release}
	var keys []windowKey
	for c, pages := range m.Pages {
		if t.a.mem[c] == nil || len(pages) == 0 || !owes(m, spec.Component(c)) {
			continue
		}
		for _, r := range runs(pages) {
			r.Component = spec.Component(c)
			if uint64(r.First)+uint64(r.Count) > uint64(t.a.mem[c].Layout.Shape.Pages) {
				continue // the core grants none such; no window is the safe answer
			}
			tags := r
			tags.Tags = true
			keys = append(keys, r, tags)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lost || t.fenced {
		release() // nothing is bound for it
		return
	}
	t.leases[m.Lease] = l
	l.left = len(t.rails)
	for _, i := range t.rails {
		if err := t.bind(l, i, keys); err != nil {
			go t.lose(fmt.Errorf("%w: lease %d needs %d windows on rail %d: %w", transport.ErrStream, m.Lease, len(keys), i, err))
			return
		}
	}
}

// owes reports whether a part of a grant lies in a component.
func owes(m spec.Grant, c spec.Component) bool {
	for _, p := range m.Parts {
		if p.Component == c {
			return true
		}
	}
	return false
}

// bind posts a lease's binds on one rail. Called with mu held.
func (t *target) bind(l *lease, rail int, keys []windowKey) error {
	r := t.a.rails[rail]
	var ws []*window
	for _, k := range keys {
		mw, err := C.kv_mw(r.hca.pd)
		if mw == nil {
			return failed("allocate window", err)
		}
		pool, w := t.a.mem[k.Component], &window{rail: rail, mw: mw, of: k}
		w.of.Rail = uint8(rail)
		w.key = next(C.kv_mw_key(mw))
		w.of.Key = uint32(w.key)
		if k.Tags {
			one := uint64(pool.Layout.Shape.TagSlots) * spec.TagBytes
			w.mr, w.addr, w.size = r.pools[k.Component].tags, addressOf(pool.Tags)+C.uint64_t(uint64(k.First)*one), C.uint64_t(uint64(k.Count)*one)
		} else {
			one := uint64(pool.Layout.Shape.PageBytes)
			w.mr, w.addr, w.size = r.pools[k.Component].pages, addressOf(pool.Bytes)+C.uint64_t(uint64(k.First)*one), C.uint64_t(uint64(k.Count)*one)
		}
		ws = append(ws, w)
		l.windows = append(l.windows, w)
	}
	t.a.counts.bound.Add(uint64(len(ws)))
	go t.queues[rail].push(job{
		build: each(ws, func(b *batch, w *window) {
			o := b.add(C.KV_BIND)
			o.mw, o.mr, o.key, o.remote, o.length = pointer(w.mw), pointer(w.mr.mr), w.key, w.addr, w.size
		}),
		end: func(err error) { t.bound(l, err) },
	})
	return nil
}

// each builds one request for each window.
func each(ws []*window, put func(*batch, *window)) func(*batch, int) (bool, error) {
	return func(b *batch, room int) (bool, error) {
		for ; len(ws) > 0 && len(b.wrs) < room; ws = ws[1:] {
			put(b, ws[0])
		}
		return len(ws) == 0, nil
	}
}

// next is a window's key for its next life: the low eight bits are ours.
func next(key C.uint32_t) C.uint32_t { return key&^0xff | (key+1)&0xff }

// bound books the binds of one rail; behind the last one the keys go out.
func (t *target) bound(l *lease, err error) {
	if err != nil {
		return // the queue pair has failed, which ends the link
	}
	t.mu.Lock()
	l.left--
	var out []windowKey
	if l.left == 0 {
		for _, w := range l.windows {
			out = append(out, w.of)
		}
	}
	last := l.left == 0
	late := l.revoked && l.noticed
	t.mu.Unlock()
	if !last {
		return
	}
	for {
		n := min(len(out), keysInFrame)
		select {
		case t.keys <- leaseKeys{l.id, n == len(out), out[:n]}:
		case <-t.done:
			return
		}
		if out = out[n:]; len(out) == 0 {
			break
		}
	}
	if late {
		t.mu.Lock()
		t.invalidate(l)
		t.mu.Unlock()
	}
}

// mark keeps that a notice of a lease has come: its writer says that it is done.
func (t *target) mark(id spec.LeaseID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l := t.leases[id]; l != nil {
		l.noticed = true
	}
}

// Revoke implements transport.Windows. A lease whose notices are in is taken back at once. Of another, aborted in the middle, writes are
// still under way: taking its windows would break the connection under all other leases, so they stand until the writer is done and
// its pages are handed out (Settle), or the link is fenced.
func (t *target) Revoke(id spec.LeaseID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.leases[id]
	if l == nil {
		return
	}
	l.revoked = true
	if l.noticed {
		t.invalidate(l)
	}
}

// invalidate posts the invalidates of a lease, once all its binds have completed. Called with mu held.
func (t *target) invalidate(l *lease) {
	if l.closing || l.left > 0 || t.lost || t.fenced {
		return
	}
	l.closing = true
	byRail := [MaxRails][]*window{}
	for _, w := range l.windows {
		byRail[w.rail] = append(byRail[w.rail], w)
	}
	for _, i := range t.rails {
		if len(byRail[i]) > 0 {
			l.closings++
		}
	}
	if l.closings == 0 {
		t.released(l)
		return
	}
	for _, i := range t.rails {
		if len(byRail[i]) == 0 {
			continue
		}
		go t.queues[i].push(job{
			build: each(byRail[i], func(b *batch, w *window) {
				o := b.add(C.KV_INVALIDATE)
				o.key = w.key
			}),
			end: func(err error) { t.invalidated(l, err) },
		})
	}
}

// invalidated books the invalidates of one rail. One that was flushed proves nothing.
func (t *target) invalidated(l *lease, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l.failed = l.failed || err != nil
	if l.closings--; l.closings == 0 && !l.failed {
		t.released(l)
	}
	t.settle.Broadcast()
}

// released gives the windows of a lease back, with the rights that they stood for. Called with mu held.
func (t *target) released(l *lease) {
	for _, w := range l.windows {
		if err := result("free window", C.kv_mw_free(w.mw)); err != nil {
			l.failed = true // it stays counted as being placed
			go t.lose(fmt.Errorf("%w: lease %d: %w", transport.ErrStream, l.id, err))
			return
		}
		w.mw = nil
	}
	t.a.counts.invalidated.Add(uint64(len(l.windows)))
	delete(t.leases, l.id)
	l.release()
}

// Settle implements transport.Settler.
func (t *target) Settle() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		waits := false
		for _, l := range t.leases {
			if l.revoked {
				t.invalidate(l)
				waits = waits || !l.failed
			}
		}
		if !waits || t.lost || t.fenced {
			return
		}
		t.settle.Wait()
	}
}

// freeWindows frees what is left with the queue pairs, which are gone, and ends the rights.
func (t *target) freeWindows() (err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, l := range t.leases {
		for _, w := range l.windows {
			if w.mw != nil {
				err = errors.Join(err, result("free window", C.kv_mw_free(w.mw)))
				w.mw = nil
			}
		}
		if err == nil {
			delete(t.leases, id)
			l.release()
		}
	}
	return err
}
