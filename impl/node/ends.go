package node

import (
	"context"
	"slices"

	"kvfence/impl/core"
	"kvfence/spec"
)

// end is this node's end of one link's data path in one epoch: opening, open, being fenced, over. Loop only.
type end[T any] struct {
	epoch   spec.Epoch
	cancel  context.CancelFunc // gives up an opening
	path    T
	opened  bool
	fencing bool
	lost    bool
	failed  bool // the fence could not be completed
	waiters []*fenceWaiter
}

// fenceWaiter is one Fence action that waits for the ends it covers.
type fenceWaiter struct {
	left   int
	failed bool // one of them could not be fenced
	done   func(ok bool)
}

// ends are the data ends of one link, by epoch: usually one, two while an old one is being fenced. It keeps the promise that
// every Fence ends in one FenceDone, and that it comes after the last operation of every end it covers. Loop only.
type ends[T any] struct {
	list  []*end[T]
	fence func(T)
}

// open adds an end that is being opened.
func (s *ends[T]) open(epoch spec.Epoch, cancel context.CancelFunc) *end[T] {
	e := &end[T]{epoch: epoch, cancel: cancel}
	s.list = append(s.list, e)
	return e
}

// opened books the result of an opening and returns what DataUp has to say.
func (s *ends[T]) opened(e *end[T], path T, err error) string {
	if err != nil {
		s.over(e)
		return err.Error()
	}
	e.path, e.opened = path, true
	if e.fencing {
		s.fence(path)
		return "fenced while it opened"
	}
	return ""
}

// at returns the open end of an epoch.
func (s *ends[T]) at(epoch spec.Epoch) (path T, ok bool) {
	for _, e := range s.list {
		if e.epoch == epoch && e.opened && !e.fencing {
			return e.path, true
		}
	}
	return path, false
}

// each calls f for every path that is open or being fenced.
func (s *ends[T]) each(f func(T)) {
	for _, e := range s.list {
		if e.opened {
			f(e.path)
		}
	}
}

// stop fences every end up to old and calls done when all of them are over; ok says that each was fenced.
func (s *ends[T]) stop(old spec.Epoch, done func(ok bool)) {
	w := &fenceWaiter{done: done}
	var start []T
	for _, e := range s.list {
		if e.epoch > old {
			continue
		}
		if e.failed { // what could not be fenced once is not fenced by a later fence
			w.failed = true
			continue
		}
		w.left++
		e.waiters = append(e.waiters, w)
		switch {
		case e.fencing:
		case e.opened:
			start = append(start, e.path)
		default:
			e.cancel()
		}
		e.fencing = true
	}
	if w.left == 0 {
		done(!w.failed)
		return
	}
	for _, p := range start {
		s.fence(p)
	}
}

// over takes an end out: its fence is done, or it never opened. One whose fence failed stays: no later fence that covers it can be done either.
func (s *ends[T]) over(e *end[T]) {
	if i := slices.Index(s.list, e); i >= 0 && !e.failed {
		s.list = slices.Delete(s.list, i, i+1)
	}
	e.cancel()
	for _, w := range e.waiters {
		w.failed = w.failed || e.failed
		if w.left--; w.left == 0 {
			w.done(!w.failed)
		}
	}
	e.waiters = nil
}

// loss reports whether an end's loss is news: DataLost is said once, and not of an end that is being fenced.
func (e *end[T]) loss() bool {
	news := e.opened && !e.fencing && !e.lost
	e.lost = true
	return news
}

// dataUp makes the event that ends OpenData or ExpectData.
func dataUp(peer core.PeerID, epoch spec.Epoch, err string) core.DataUp {
	return core.DataUp{Peer: peer, Epoch: epoch, Err: err}
}
