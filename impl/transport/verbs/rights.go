//go:build verbs

package verbs

// #include "shim.h"
import "C"

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"kvfence/impl/transport"
	"kvfence/spec"
)

// right is what opens one run of pages, or of their tag slots, on one rail: a window bound to this link's queue pair, or a region in a
// protection domain that only this link's queue pair has. Either way the key opens nothing to another link.
type right struct {
	rail   int
	of     windowKey
	memory []byte // of the pool
	mw     *C.struct_ibv_mw
	parent region // of the window
	region region
}

// free gives it back to the device; afterwards its key opens nothing. A window under a working queue pair has been invalidated before.
func (w *right) free() (err error) {
	if w.mw != nil {
		if err = result("free window", C.kv_mw_free(w.mw)); err == nil {
			w.mw = nil
		}
	}
	if w.region.mr != nil {
		if err = w.region.free(); err == nil {
			w.region = region{}
		}
	}
	return err
}

// lease is the rights of one lease on this link.
type lease struct {
	id      spec.LeaseID
	rights  []*right
	release func()
	left    int // rails on which opening is to complete
	revoked bool
	done    bool // its writer has said that it is
	closing bool // taking back has begun
	takings int  // rails on which it is to complete
	failed  bool // it did not: only the end of the queue pairs frees them
}

// Grant implements transport.Windows: rights are opened on each rail, and prefill is told their keys once all are.
func (t *target) Grant(m spec.Grant, release func()) {
	l := &lease{id: m.Lease, release: release, left: len(t.rails)}
	keys := t.wanted(m)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lost || t.fenced {
		release() // nothing is opened for it
		return
	}
	t.leases[m.Lease] = l
	for _, i := range t.rails {
		t.work.Add(1)
		go func() {
			defer t.work.Done()
			if err := t.open1(l, i, keys); err != nil {
				t.lose(fmt.Errorf("%w: lease %d needs %d rights on rail %d: %w", transport.ErrStream, m.Lease, len(keys), i, err))
			}
		}()
	}
}

// wanted are the runs of pages of a grant, and their tag slots.
func (t *target) wanted(m spec.Grant) (keys []windowKey) {
	for c, pages := range m.Pages {
		if t.a.mem[c] == nil || len(pages) == 0 || !owes(m, spec.Component(c)) {
			continue
		}
		for _, r := range runs(pages) {
			r.Component = spec.Component(c)
			if uint64(r.First)+uint64(r.Count) > uint64(t.a.mem[c].Layout.Shape.Pages) {
				continue // the core grants none such; no right is the safe answer
			}
			tags := r
			tags.Tags = true
			keys = append(keys, r, tags)
		}
	}
	return keys
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

// open1 opens a lease's rights on one rail.
func (t *target) open1(l *lease, rail int, keys []windowKey) error {
	r := t.a.rails[rail]
	ws := make([]*right, 0, len(keys))
	for _, k := range keys {
		k.Rail = uint8(rail)
		w := &right{rail: rail, of: k, memory: r.memory(k), parent: r.pools[k.Component].pages}
		if k.Tags {
			w.parent = r.pools[k.Component].tags
		}
		var err error
		if t.a.leases == LeasesWindows {
			if w.mw, err = C.kv_mw(r.hca.pd); w.mw == nil {
				err = failed("allocate window", err)
			} else {
				err, w.of.Key = nil, t.a.nextKey(C.kv_mw_key(w.mw))
			}
		} else if w.region, err = register(t.queues[rail].pd(), w.memory, localWrite|remoteWrite); err == nil {
			w.of.Key = uint32(w.region.remote())
		}
		t.mu.Lock()
		l.rights = append(l.rights, w)
		t.mu.Unlock()
		if err != nil {
			return err
		}
		ws = append(ws, w)
	}
	t.a.counts.opened.Add(uint64(len(ws)))
	if t.a.leases == LeasesRegions {
		t.opened(l, nil)
		return nil
	}
	t.queues[rail].push(job{
		build: each(ws, func(b *batch, w *right) {
			o := b.add(C.KV_BIND)
			o.mw, o.mr, o.key, o.remote, o.length = pointer(w.mw), pointer(w.parent.mr), C.uint32_t(w.of.Key), addressOf(w.memory), C.uint64_t(len(w.memory))
		}),
		end: func(err error) { t.opened(l, err) },
	})
	return nil
}

// memory is what a key opens.
func (r *rail) memory(k windowKey) []byte {
	p := r.adapter.mem[k.Component]
	b, one := p.Bytes, uint64(p.Layout.Shape.PageBytes)
	if k.Tags {
		b, one = p.Tags, uint64(p.Layout.Shape.TagSlots)*spec.TagBytes
	}
	at, n := uint64(k.First)*one, uint64(k.Count)*one
	return b[at : at+n : at+n]
}

// each builds one request for each right.
func each(ws []*right, put func(*batch, *right)) func(*batch, int) (bool, error) {
	return func(b *batch, room int) (bool, error) {
		for ; len(ws) > 0 && len(b.wrs) < room; ws = ws[1:] {
			put(b, ws[0])
		}
		return len(ws) == 0, nil
	}
}

// nextKey is a window's key for its next life: the low eight bits are ours, and another each time, also when the device gives a number again.
func (a *Adapter) nextKey(key C.uint32_t) uint32 {
	k := uint32(key)&^0xff | uint32(a.keys.Add(1))&0xff
	if k == uint32(key) { // which is how it was allocated: no other life
		k = k&^0xff | (k+1)&0xff
	}
	return k
}

// opened books the rights of one rail; behind the last one the keys go out.
func (t *target) opened(l *lease, err error) {
	if err != nil {
		return // the queue pair has failed, which ends the link
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if l.left--; l.left > 0 {
		return
	}
	var out []windowKey
	for _, w := range l.rights {
		out = append(out, w.of)
	}
	for first := true; first || len(out) > 0; first = false {
		n := min(len(out), keysInFrame)
		t.send(frameKeys, leaseKeys{l.id, n == len(out), out[:n]}.append(nil))
		out = out[n:]
	}
	if l.revoked && l.done {
		t.takeBack(l)
	}
}

// Revoke implements transport.Windows. The rights of a lease whose writer is done are taken back at once. Of another, aborted in the middle, writes are
// still under way: taking its rights would break the connection under all other leases, so they stand until the writer is done and
// its pages are handed out (Settle), or the link is fenced. Notices do not decide it: the first of several rails' says nothing of the others.
func (t *target) Revoke(id spec.LeaseID, done bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.leases[id]
	if l == nil {
		return
	}
	l.revoked, l.done = true, l.done || done
	if l.done {
		t.takeBack(l)
	}
}

// takeBack takes a lease's rights back, once all have been opened. Called with mu held.
func (t *target) takeBack(l *lease) {
	if l.closing || l.left > 0 || t.lost || t.fenced {
		return
	}
	l.closing = true
	byRail := [MaxRails][]*right{}
	for _, w := range l.rights {
		byRail[w.rail] = append(byRail[w.rail], w)
	}
	l.takings = 1 // ours, until all have begun
	for _, i := range t.rails {
		if len(byRail[i]) == 0 {
			continue
		}
		l.takings++
		t.work.Add(1)
		go func() {
			defer t.work.Done()
			t.take(l, i, byRail[i])
		}()
	}
	t.work.Add(1)
	go func() {
		defer t.work.Done()
		t.taken(l, nil)
	}()
}

// take takes the rights of one rail back. A region is gone when its call returns; a window when its invalidate has completed with success.
func (t *target) take(l *lease, rail int, ws []*right) {
	if t.a.leases == LeasesRegions {
		t.taken(l, nil) // freed with the others, in taken
		return
	}
	t.queues[rail].push(job{
		build: each(ws, func(b *batch, w *right) {
			o := b.add(C.KV_INVALIDATE)
			o.key = C.uint32_t(w.of.Key)
		}),
		end: func(err error) { t.taken(l, err) },
	})
}

// taken books one rail. Invalidates that were flushed prove nothing; the end of the queue pairs will. Behind the last the rights are freed, and the lease is released.
func (t *target) taken(l *lease, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l.failed = l.failed || err != nil
	if l.takings--; l.takings == 0 && !l.failed {
		for _, w := range l.rights {
			if err := w.free(); err != nil {
				l.failed = true // it stays counted as being placed
				go t.lose(fmt.Errorf("%w: lease %d: %w", transport.ErrStream, l.id, err))
				break
			}
		}
		if !l.failed {
			t.a.counts.takenBack.Add(uint64(len(l.rights)))
			delete(t.leases, l.id)
			l.release()
			t.send(frameGone, binary.LittleEndian.AppendUint64(nil, uint64(l.id)))
		}
	}
	t.settle.Broadcast()
}

// settleBound is how long an adapter may take to take rights back; then its link is lost, and the fence decides.
const settleBound = time.Second

// Settle implements transport.Settler.
func (t *target) Settle(leases []spec.LeaseID) {
	late := time.AfterFunc(settleBound, func() {
		t.lose(fmt.Errorf("%w: rights of leases %v have not been taken back in %v", transport.ErrStream, leases, settleBound))
	})
	defer late.Stop()
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		waits := false
		for _, id := range leases {
			if l := t.leases[id]; l != nil && l.revoked {
				t.takeBack(l)
				waits = waits || !l.failed
			}
		}
		if !waits || t.lost || t.fenced {
			return
		}
		t.settle.Wait()
	}
}

// freeRights frees what is left, under queue pairs that are in error and quiet. The leases still count as being placed.
func (t *target) freeRights() (err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.leases {
		for _, w := range l.rights {
			err = errors.Join(err, w.free())
		}
	}
	return err
}

// releaseAll releases the leases: their rights are gone, and what those let in is in memory.
func (t *target) releaseAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, l := range t.leases {
		delete(t.leases, id)
		l.release()
	}
}
