//go:build verbs

package verbs

// #include "shim.h"
import "C"

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"unsafe"

	"kvfence/impl/transport"
	"kvfence/spec"
)

// Ids of work requests: those of receives have the high bit.
const recvID = 1 << 63

const (
	noticeBytes = 16 // lease u64, number u64
	inlineBytes = spec.TagBytes
	chunk       = 64 // requests handed over in one call; each chunk's last is signalled
	markerRoom  = 8  // slots of both queues that jobs never take: the fence's markers always find room
)

// job is something to post on a queue, in order. build appends requests, at most room of them, and says whether that was all; end is
// called once, when the last one has completed, or failed, or will never be posted.
type job struct {
	build func(b *batch, room int) (all bool, err error)
	end   func(error)
}

// batch is one chunk of requests with what they point to.
type batch struct {
	wrs    []C.kv_wr
	sges   []C.kv_sge
	inline []byte // arena for inlined bytes, copied by the device's library when posted
	used   int
}

func (b *batch) reset() { b.wrs, b.sges, b.used = b.wrs[:0], b.sges[:0], 0 }

// add appends a request's pieces and returns the request to be filled.
func (b *batch) add(op C.uint8_t) *C.kv_wr {
	b.wrs = append(b.wrs, C.kv_wr{op: op, sge: C.uint32_t(len(b.sges))})
	return &b.wrs[len(b.wrs)-1]
}

func (b *batch) piece(w *C.kv_wr, addr C.uint64_t, bytes uint32, key C.uint32_t) {
	b.sges = append(b.sges, C.kv_sge{addr: addr, bytes: C.uint32_t(bytes), key: key})
	w.sges++
}

// inlined appends a request whose n bytes are copied when it is posted, and returns those bytes.
func (b *batch) inlined(op C.uint8_t, n int) (*C.kv_wr, []byte) {
	w := b.add(op)
	data := b.inline[b.used:][:n]
	b.used += n
	b.piece(w, addressOf(data), uint32(n), 0)
	w.inlined = 1
	return w, data
}

// queue is one queue pair with its completion queue, one goroutine that posts and one that takes completions.
type queue struct {
	rail    *rail
	depth   int
	busy    bool
	channel *C.struct_ibv_comp_channel
	cq      *C.struct_ibv_cq
	qp      *C.struct_ibv_qp
	domain  *C.struct_ibv_pd // its own; nil: the device's, for all links
	wait    *waiter
	recvs   []byte // buffers of notices
	recvMR  region
	notices int // receives that stand

	onFail   func(error)                // first failure; called without locks
	noticeIn func(spec.LeaseID, uint64) // in order; nil: this end takes no notices

	mu      sync.Mutex
	change  sync.Cond // jobs, room, completions, closing
	jobs    []job
	posted  uint64 // requests handed to the device
	done    uint64 // of those, the first done have completed
	ends    []ending
	recvOut int // receives that have not completed
	err     error
	closing bool
	marked  bool // the fence's marker is posted
	arrived chan notice
	posters sync.WaitGroup
	reapers sync.WaitGroup
	tellers sync.WaitGroup // of notices: the owner may be slow to hear, and no fence waits for that
	stopped bool           // it is quiet
	freed   bool
	started bool
}

// ending is a job whose last request is number at.
type ending struct {
	at  uint64
	end func(error)
}

type notice struct {
	lease  spec.LeaseID
	number uint64
	id     uint64
}

// newQueue makes a queue pair in state INIT; notices receives are posted at once, so that a peer may send as soon as it is connected.
// alone gives it a protection domain of its own: a region opens to every queue pair of its domain.
func newQueue(r *rail, notices int, alone bool, onFail func(error), noticeIn func(spec.LeaseID, uint64)) (q *queue, err error) {
	o := r.adapter.opts
	q = &queue{rail: r, depth: o.SendDepth, busy: o.BusyPoll, onFail: onFail, noticeIn: noticeIn, arrived: make(chan notice, max(notices, 1)), notices: notices}
	q.change.L = &q.mu
	defer func() {
		if err != nil {
			err = errors.Join(err, q.free())
			q = nil
		}
	}()
	if q.channel, err = C.kv_channel(r.hca.ctx); q.channel == nil {
		return q, failed("completion channel", err)
	}
	if q.wait, err = newWaiter(C.kv_channel_fd(q.channel), "completions"); err != nil {
		return q, err
	}
	entries := q.depth + 2*markerRoom + notices
	if q.cq, err = C.kv_cq(r.hca.ctx, C.int(entries), q.channel); q.cq == nil {
		return q, failed(fmt.Sprintf("completion queue of %d", entries), err)
	}
	if alone {
		if q.domain, err = C.kv_pd(r.hca.ctx); q.domain == nil {
			return q, failed("protection domain", err)
		}
	}
	if q.qp, err = C.kv_qp(q.pd(), q.cq, C.uint32_t(q.depth+markerRoom), C.uint32_t(notices+markerRoom), C.uint32_t(r.sges), inlineBytes); q.qp == nil {
		return q, failed(fmt.Sprintf("queue pair of %d requests, %d pieces, %d bytes inline", q.depth+markerRoom, r.sges, inlineBytes), err)
	}
	if err = result("queue pair to INIT", C.kv_qp_init(q.qp, C.uint8_t(r.cfg.Port), flag(r.adapter.opts.Target), 0, flag(r.adapter.leases == LeasesWindows))); err != nil {
		return q, err
	}
	if notices == 0 {
		return q, nil
	}
	if q.recvs, err = arena(notices * noticeBytes); err != nil {
		return q, err
	}
	if q.recvMR, err = register(q.pd(), q.recvs, localWrite); err != nil {
		return q, err
	}
	for i := range notices {
		if err = q.receive(recvID | uint64(i)); err != nil {
			return q, err
		}
	}
	return q, nil
}

// pd is the domain whose registrations this queue pair reads and its peer writes.
func (q *queue) pd() *C.struct_ibv_pd {
	if q.domain != nil {
		return q.domain
	}
	return q.rail.hca.pd
}

func flag(v bool) C.int {
	if v {
		return 1
	}
	return 0
}

// receive posts the receive of one buffer; none behind a fence's beginning or a failure.
func (q *queue) receive(id uint64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closing || q.err != nil {
		return nil
	}
	buf := q.recvs[(id&^recvID)*noticeBytes:][:noticeBytes]
	if err := result("post receive", C.kv_recv(q.qp, C.uint64_t(id), addressOf(buf), noticeBytes, q.recvMR.local())); err != nil {
		return err
	}
	q.recvOut++
	return nil
}

// running reports whether start was called.
func (q *queue) running() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.started
}

// start runs the queue, once it is connected.
func (q *queue) start() {
	q.mu.Lock()
	q.started = true
	q.mu.Unlock()
	q.posters.Add(1)
	go func() {
		defer q.posters.Done()
		q.post()
	}()
	q.reapers.Add(1)
	go func() {
		defer q.reapers.Done()
		defer close(q.arrived)
		q.reap()
	}()
	q.tellers.Add(1)
	go func() { // apart from completions: whoever is told may be waiting for one
		defer q.tellers.Done()
		for n := range q.arrived {
			if q.isClosing() {
				continue // nobody waits for it
			}
			q.noticeIn(n.lease, n.number)
			if err := q.receive(n.id); err != nil {
				q.fail(err)
			}
		}
	}()
}

func (q *queue) isClosing() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closing
}

// push queues a job. On a queue that has failed or is closing it ends at once.
func (q *queue) push(j job) {
	q.mu.Lock()
	err := q.refuses()
	if err == nil {
		q.jobs = append(q.jobs, j)
		q.change.Broadcast()
	}
	q.mu.Unlock()
	if err != nil {
		j.end(err)
	}
}

func (q *queue) refuses() error {
	if q.err == nil && q.closing {
		return transport.ErrFenced
	}
	return q.err
}

// post is the goroutine that hands jobs over until the queue fails or closes; then it ends those that are left.
func (q *queue) post() {
	b := &batch{inline: make([]byte, chunk*inlineBytes)}
	var pin runtime.Pinner
	pin.Pin(&b.inline[0])
	defer pin.Unpin()
	for {
		j, err := q.next()
		if err == nil {
			err = q.hand(j, b)
		}
		if err != nil {
			q.abandon(err)
			return
		}
	}
}

func (q *queue) next() (job, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.jobs) == 0 && q.refuses() == nil {
		q.change.Wait()
	}
	if err := q.refuses(); err != nil {
		return job{}, err
	}
	j := q.jobs[0]
	q.jobs = q.jobs[1:]
	return j, nil
}

// hand posts all of one job, chunk by chunk, as there is room.
func (q *queue) hand(j job, b *batch) error {
	for all := false; !all; {
		room, err := q.room()
		if err == nil {
			b.reset()
			all, err = j.build(b, room)
		}
		if err == nil && len(b.wrs) > 0 {
			err = q.give(b, all, j.end)
		} else if err == nil && all {
			j.end(nil)
		}
		if err != nil {
			q.fail(err)
			j.end(err)
			return err
		}
	}
	return nil
}

// room waits until a whole chunk fits, so that every chunk can be signalled and completions stay few.
func (q *queue) room() (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	want := min(chunk, q.depth/2)
	for q.refuses() == nil && q.depth-int(q.posted-q.done) < want {
		q.change.Wait()
	}
	return want, q.refuses()
}

// give posts a chunk; its last request is signalled. Called by the poster alone; a fence posts behind it.
func (q *queue) give(b *batch, last bool, end func(error)) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.giveLocked(b, last, end)
}

func (q *queue) giveLocked(b *batch, last bool, end func(error)) error {
	for i := range b.wrs {
		b.wrs[i].id = C.uint64_t(q.posted + uint64(i) + 1)
	}
	b.wrs[len(b.wrs)-1].signaled = 1
	q.rail.adapter.counts.signalled.Add(1)
	var n C.uint32_t
	code := C.kv_post(q.qp, &b.wrs[0], C.uint32_t(len(b.wrs)), unsafe.SliceData(b.sges), &n)
	q.posted += uint64(n)
	if err := result("post", code); err != nil {
		return err
	}
	if last {
		q.ends = append(q.ends, ending{q.posted, end})
	}
	return nil
}

// fail books the first failure and tells the owner.
func (q *queue) fail(err error) {
	q.mu.Lock()
	first := q.err == nil && !q.closing
	if first {
		q.err = fmt.Errorf("%w: rail %d (%s): %w", transport.ErrStream, q.rail.index, q.rail.cfg.Device, err)
		err = q.err
	}
	q.change.Broadcast()
	q.mu.Unlock()
	if first {
		q.onFail(err)
	}
}

// abandon ends the jobs that will never be posted.
func (q *queue) abandon(err error) {
	q.mu.Lock()
	jobs := q.jobs
	q.jobs = nil
	q.mu.Unlock()
	for _, j := range jobs {
		j.end(err)
	}
}

// reap takes completions until all that was posted has completed on a closing queue.
func (q *queue) reap() {
	wcs := make([]C.kv_wc, chunk)
	for {
		n, err := q.poll(wcs)
		if err != nil {
			q.fail(err)
			return
		}
		for i := range wcs[:n] {
			q.completed(&wcs[i])
		}
		if q.quiet() {
			return
		}
	}
}

// poll waits for completions; none after a wake is no error.
func (q *queue) poll(wcs []C.kv_wc) (int, error) {
	n := C.kv_poll(q.cq, &wcs[0], C.int(len(wcs)))
	if n == 0 && q.busy {
		runtime.Gosched()
		return 0, nil
	}
	if n == 0 {
		if err := result("arm", C.kv_arm(q.cq)); err != nil {
			return 0, err
		}
		if n = C.kv_poll(q.cq, &wcs[0], C.int(len(wcs))); n == 0 { // what came before arming brings no event
			if q.quiet() {
				return 0, nil
			}
			if err := q.wait.take(func() C.int { return C.kv_event(q.channel) }); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
				return 0, fmt.Errorf("wait for completions: %w", err)
			}
			return 0, nil
		}
	}
	if n < 0 {
		return 0, errors.New("completion queue failed")
	}
	return int(n), nil
}

// quiet reports that the queue is closing and everything that was ever posted on it has completed.
func (q *queue) quiet() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closing && q.marked && q.recvOut == 0 && q.done == q.posted
}

// completed books one completion.
func (q *queue) completed(w *C.kv_wc) {
	if uint64(w.id)&recvID != 0 {
		q.received(w)
		return
	}
	var err error
	if w.status != C.IBV_WC_SUCCESS {
		err = fmt.Errorf("%w: %s (vendor %#x)", transport.ErrStream, statusText(w.status), uint32(w.vendor))
	}
	// Requests complete in order: all before this one have succeeded, whatever became of this one.
	ends := q.complete(uint64(w.id))
	for _, e := range ends {
		if e.at == uint64(w.id) {
			e.end(err)
		} else {
			e.end(nil)
		}
	}
	if err != nil {
		q.fail(err)
	}
}

func (q *queue) complete(at uint64) (ends []ending) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.done = max(q.done, at)
	k := 0
	for k < len(q.ends) && q.ends[k].at <= at {
		k++
	}
	ends, q.ends = q.ends[:k:k], q.ends[k:]
	q.change.Broadcast()
	return ends
}

// received books a completed receive: a notice, or a flushed one.
func (q *queue) received(w *C.kv_wc) {
	q.mu.Lock()
	q.recvOut--
	closing := q.closing
	q.change.Broadcast()
	q.mu.Unlock()
	switch {
	case w.status != C.IBV_WC_SUCCESS:
		q.fail(fmt.Errorf("receive: %s", statusText(w.status)))
	case closing: // behind the fence's beginning: nobody waits for it
	case w.bytes != noticeBytes:
		q.fail(fmt.Errorf("%w: a notice of %d bytes", ErrFrame, uint32(w.bytes)))
	default:
		id := uint64(w.id)
		b := q.recvs[(id&^recvID)*noticeBytes:][:noticeBytes]
		q.arrived <- notice{spec.LeaseID(binary.LittleEndian.Uint64(b)), binary.LittleEndian.Uint64(b[8:]), id} // has room for every receive
	}
}
