//go:build verbs

package verbs

// #include "shim.h"
import "C"

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"kvfence/impl/transport"
)

// stop makes a queue pair quiet: afterwards the adapter sends nothing of it, takes nothing for it, and reads no memory for it. Each step is seen, not
// hoped for; spec/verbs-fence.md names what is assumed of the adapter. An error means that nothing is proved.
func (q *queue) stop() error {
	q.mu.Lock()
	q.closing = true
	stopped := q.stopped
	q.change.Broadcast()
	q.mu.Unlock()
	if stopped {
		return nil
	}
	q.posters.Wait() // nobody posts behind the marker

	for _, x := range []struct {
		name step
		do   func() error
	}{
		{stepError, func() error { return result("queue pair to ERROR", C.kv_qp_error(q.qp)) }}, // A1: a queue pair in error takes and sends nothing
		{stepQuery, q.inError}, // A2: it is in error once a query says so
		{stepMark, q.mark},     // A3: requests complete in order; the marker is behind them all
		{stepAwait, q.awaitMarker},
	} {
		if err := q.rail.adapter.fenceStep(x.name, x.do); err != nil {
			return err
		}
	}
	if !q.drained() {
		return fmt.Errorf("%w: the completion queue ended before the marker", ErrFence)
	}
	q.mu.Lock()
	q.stopped = true
	q.mu.Unlock()
	return nil
}

// The steps in their order: the first four for each queue pair, then, at a target, the end of rights; the end of each queue pair; at a target the flush
// read on each rail.
const (
	stepError   step = "to error"
	stepQuery   step = "see error"
	stepMark    step = "post marker"
	stepAwait   step = "await marker"
	stepRights  step = "free rights"
	stepDestroy step = "destroy"
	stepFlush   step = "flush read"
)

// fenceStep does one step. An error means that nothing is proved.
func (a *Adapter) fenceStep(name step, do func() error) error {
	var err error
	if f := a.opts.onStep; f != nil {
		err = f(name, do)
	} else {
		err = do()
	}
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrFence, name, err)
	}
	return nil
}

// awaitMarker waits until everything has completed. A driver may forget to flush, or to say so (soft RoCE does, now and then): it is asked to look again, then
// reminded by further markers. However long it takes, nothing but the completions is proof: without them the fence has failed.
func (q *queue) awaitMarker() error {
	over := make(chan struct{})
	go func() {
		q.reapers.Wait()
		close(over)
	}()
	for again := range markerRoom {
		select {
		case <-over:
			return nil
		case <-time.After(remindAfter << again):
		}
		q.wait.wake()
		if again == 0 {
			q.rail.adapter.counts.wakes.Add(1)
			continue
		}
		q.rail.adapter.counts.reminders.Add(1)
		if err := q.remind(); err != nil {
			return err
		}
	}
	select {
	case <-over:
		return nil
	case <-time.After(remindAfter << markerRoom):
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return fmt.Errorf("%d of %d requests and %d receives have not completed in %v", q.posted-q.done, q.posted, q.recvOut, remindAfter<<(markerRoom+1))
}

const remindAfter = 20 * time.Millisecond

// remind posts one marker more: while something has not completed, the reaper is there to see it. Never a receive more: a driver that takes receives without
// a call, as soft RoCE does, would not look at one that comes behind the flush, and it would stay for ever.
func (q *queue) remind() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.done == q.posted && q.recvOut == 0 {
		return nil
	}
	return q.giveLocked(marker(), true, func(error) {})
}

// inError asks the device.
func (q *queue) inError() error {
	var state C.int
	if err := result("query queue pair", C.kv_qp_state(q.qp, &state)); err != nil {
		return err
	}
	if state != stateError {
		return fmt.Errorf("the queue pair is in state %d, not in ERROR", int(state))
	}
	return nil
}

// mark posts the marker: a request that can only be flushed.
func (q *queue) mark() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.giveLocked(marker(), true, func(error) {}); err != nil {
		return err
	}
	q.marked = true
	return nil
}

func marker() *batch {
	b := &batch{}
	b.add(C.KV_SEND)
	return b
}

func (q *queue) drained() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.marked && q.recvOut == 0 && q.done == q.posted
}

// free destroys the queue pair and what belongs to it. A queue that ran must have been stopped. Safe to call again.
func (q *queue) free() (err error) {
	q.mu.Lock()
	again := q.freed
	q.freed = true
	q.mu.Unlock()
	if again {
		return nil
	}
	if q.qp != nil {
		err = result("destroy queue pair", C.kv_qp_free(q.qp))
	}
	if q.wait != nil {
		q.wait.close()
	}
	if q.cq != nil {
		err = errors.Join(err, result("destroy completion queue", C.kv_cq_free(q.cq)))
	}
	if q.channel != nil {
		err = errors.Join(err, result("destroy completion channel", C.kv_channel_free(q.channel)))
	}
	err = errors.Join(err, q.recvMR.free())
	if q.domain != nil {
		err = errors.Join(err, result("free protection domain", C.kv_pd_free(q.domain)))
	}
	if q.recvs != nil {
		err = errors.Join(err, unix.Munmap(q.recvs))
	}
	return err
}

// flusher reads memory of this adapter by the adapter itself, on a pair of queue pairs of its own: the answer to that read cannot overtake
// older writes of the same adapter, so they are in memory when it completes (A5).
type flusher struct {
	reader, server *queue
	sink           []byte
	sinkMR         region
	source         region // remote right for the reader alone; its key leaves this process never
	at             []byte
}

// newFlusher connects a pair on one rail. at is memory of the pools that the adapter may read.
func newFlusher(r *rail, at []byte) (f *flusher, err error) {
	f = &flusher{at: at[:min(len(at), 64)]}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.free())
			f = nil
		}
	}()
	if f.sink, err = arena(4096); err != nil {
		return f, err
	}
	if f.sinkMR, err = r.hca.register(f.sink, localWrite); err != nil {
		return f, err
	}
	if f.source, err = r.hca.register(f.at, remoteRead); err != nil {
		return f, err
	}
	none := func(error) {}
	if f.reader, err = newQueue(r, 0, false, none, nil); err != nil {
		return f, err
	}
	if f.server, err = newQueue(r, 0, false, none, nil); err != nil {
		return f, err
	}
	if err = result("let the flush read", C.kv_qp_init(f.server.qp, C.uint8_t(r.cfg.Port), 0, 1, 0)); err != nil {
		return f, err
	}
	a, b := r.end(f.reader), r.end(f.server)
	if err = errors.Join(f.reader.connect(a, b), f.server.connect(b, a)); err != nil {
		return f, err
	}
	f.reader.start()
	f.server.start()
	return f, nil
}

// flush returns when a read has completed that began after the call.
func (f *flusher) flush() error {
	return do(f.reader, func(b *batch) {
		w := b.add(C.KV_READ)
		w.remote, w.key = addressOf(f.at), f.source.remote()
		b.piece(w, addressOf(f.sink), uint32(len(f.at)), f.sinkMR.local())
	})
}

func (f *flusher) free() (err error) {
	for _, q := range []*queue{f.reader, f.server} {
		if q == nil {
			continue
		}
		if q.running() {
			err = errors.Join(err, q.stop())
		}
	}
	if err != nil { // what is not quiet is not freed
		return err
	}
	for _, q := range []*queue{f.reader, f.server} {
		if q != nil {
			err = errors.Join(err, q.free())
		}
	}
	err = errors.Join(err, f.sinkMR.free(), f.source.free())
	if f.sink != nil {
		err = errors.Join(err, unix.Munmap(f.sink))
	}
	return err
}

// stopAll stops queue pairs of one link, each on its rail.
func stopAll(qs []*queue) (err error) {
	for _, q := range qs {
		err = errors.Join(err, q.stop())
	}
	return err
}

// destroyAll destroys queue pairs that have been stopped.
func destroyAll(qs []*queue) (err error) {
	for _, q := range qs {
		err = errors.Join(err, q.rail.adapter.fenceStep(stepDestroy, q.free))
	}
	return err
}

// flushAll orders what queue pairs that are quiet or gone had placed, on each rail, before what the CPU reads next.
func flushAll(qs []*queue) (err error) {
	for _, q := range qs {
		err = errors.Join(err, q.rail.adapter.fenceStep(stepFlush, q.rail.flush))
	}
	return err
}

// over is the error of operations on a fenced end.
func over(info transport.LinkInfo) error {
	return fmt.Errorf("%w: %s to %s in epoch %d", transport.ErrFenced, info.Prefill, info.Decode, info.Epoch)
}
