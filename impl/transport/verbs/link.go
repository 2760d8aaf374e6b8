//go:build verbs

package verbs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"kvfence/impl/transport"
	"kvfence/spec"
)

// makeQueues makes a queue pair on every rail that is up. With none up it says why.
func (a *Adapter) makeQueues(notices int, onFail func(error), noticeIn func(rail int) func(spec.LeaseID, uint64)) (qs [MaxRails]*queue, err error) {
	var down error
	n := 0
	for i, r := range a.rails {
		if _, e := r.up(); e != nil {
			down = errors.Join(down, e)
			continue
		}
		var in func(spec.LeaseID, uint64)
		if noticeIn != nil {
			in = noticeIn(i)
		}
		if qs[i], err = newQueue(r, notices, a.leases == LeasesRegions, onFail, in); err != nil {
			return qs, err
		}
		n++
	}
	if n == 0 {
		return qs, down
	}
	return qs, nil
}

// connectAll connects the queues of the agreed rails and frees the others; it returns our ends of the former.
func connectAll(qs *[MaxRails]*queue, rails []int, ours, theirs []railEnd) (used []railEnd, err error) {
	find := func(rs []railEnd, i int) railEnd {
		return rs[slices.IndexFunc(rs, func(r railEnd) bool { return r.Index == i })]
	}
	for i, q := range qs {
		if q == nil {
			continue
		}
		if !slices.Contains(rails, i) {
			err = errors.Join(err, q.free())
			qs[i] = nil
			continue
		}
		own := find(ours, i)
		if e := q.connect(own, find(theirs, i)); e != nil {
			return used, errors.Join(err, e)
		}
		used = append(used, own)
	}
	return used, err
}

func putOpening(w io.Writer, o opening) error {
	b, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return putFrame(w, frameOpen, b)
}

// refuse tells the peer why; the link's error is said by the caller.
func refuse(w io.Writer, why error) error {
	if errors.Is(why, ErrMismatch) || errors.Is(why, ErrNoDevice) {
		return putOpening(w, opening{Version: openingVersion, Refused: why.Error()})
	}
	return nil
}

// opened books a source's end of a link and returns the oldest epoch of which this process still has queue pairs with that decode process.
func (a *Adapter) opened(i transport.LinkInfo) spec.Epoch {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open[keyOf(i)] = true
	oldest := i.Epoch
	for k := range a.open {
		if k.prefill == i.Prefill && k.decode == i.Decode {
			oldest = min(oldest, k.epoch)
		}
	}
	return oldest
}

func (a *Adapter) closed(i transport.LinkInfo) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.open, keyOf(i))
}

// keep holds queue pairs in error until the peer says that its end is shut.
func (a *Adapter) keep(i transport.LinkInfo, qs []*queue) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.kept[keyOf(i)] = append(a.kept[keyOf(i)], qs...)
}

// release destroys what was kept for epochs below e of a pair of processes, and for e itself if whole.
func (a *Adapter) release(i transport.LinkInfo, e spec.Epoch, whole bool) (err error) {
	a.mu.Lock()
	var qs []*queue
	for k, kept := range a.kept {
		if k.prefill == i.Prefill && k.decode == i.Decode && (k.epoch < e || whole && k.epoch == e) {
			qs = append(qs, kept...)
			delete(a.kept, k)
		}
	}
	a.mu.Unlock()
	for _, q := range qs {
		err = errors.Join(err, q.free())
	}
	return err
}

// maxKept bounds queue pairs that wait for peers that never say a word again: then no further link opens until this process ends.
const maxKept = 4096

func (a *Adapter) checkKept() error {
	if n := a.Stats().Kept; n > maxKept {
		return fmt.Errorf("%w: %d queue pairs of fenced links wait for peers that have not said that their ends are shut; only a restart frees them", ErrFence, n)
	}
	return nil
}
