//go:build verbs

package verbs

// #include "shim.h"
import "C"

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"kvfence/impl/device"
	"kvfence/impl/transport"
	"kvfence/impl/transport/tcp"
	"kvfence/spec"
)

// source is prefill's end of one link in one epoch. Until decode is connected, and until the keys of a lease are in, its operations wait.
type source struct {
	a      *Adapter
	info   transport.LinkInfo
	rep    *transport.Reporter
	forget func()
	wg     sync.WaitGroup // the stream's reader

	mu      sync.Mutex
	conn    net.Conn
	queues  [MaxRails]*queue
	rails   []int // in use
	remote  [spec.ComponentCount]*poolEnd
	keys    map[spec.LeaseID]*keyTable // with windows
	pool    [MaxRails][spec.ComponentCount]poolKey
	known   int // keys of all leases
	windows bool
	ready   bool
	early   []*waiting                  // operations before decode is connected
	held    map[spec.LeaseID][]*waiting // writes without keys, and what is behind them
	carried map[spec.LeaseID]uint32     // a bit for each rail that carried a write of a lease since its last notice
	turn    int
	queued  atomic.Int64 // writes that have not ended
	over    error
	lost    bool
	fenced  bool
}

// Expect makes the source of a link in one epoch, before its address is announced to decode. It must be fenced in the end.
func (l *Listener) Expect(info transport.LinkInfo, sink transport.SourceSink) (transport.Source, error) {
	s := &source{a: l.adapter, info: info, rep: transport.NewReporter(sink), keys: map[spec.LeaseID]*keyTable{}, held: map[spec.LeaseID][]*waiting{}, carried: map[spec.LeaseID]uint32{}}
	forget, err := l.ExpectStream(info, s.take)
	if err != nil {
		s.rep.Stop()
		return nil, err
	}
	s.forget = forget
	return s, nil
}

// take runs the stream that proved to be decode's.
func (s *source) take(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over != nil {
		_ = conn.Close()
		return
	}
	s.conn = conn
	s.wg.Add(1)
	go func() {
		defer s.wg.Done()
		err := s.serve(conn)
		s.lose(fmt.Errorf("%w: stream of %s to %s in epoch %d: %w", transport.ErrStream, s.info.Prefill, s.info.Decode, s.info.Epoch, err))
	}()
}

// serve answers decode's opening and then takes keys, until the stream ends: that is always an error.
func (s *source) serve(conn net.Conn) error {
	if err := conn.SetDeadline(time.Now().Add(openBound)); err != nil { // an opening that hangs is no link; nothing is released by it
		return err
	}
	if err := s.open(conn); err != nil {
		return err
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return err
	}
	if err := s.begin(); err != nil {
		return err
	}
	for {
		kind, body, err := getFrame(conn)
		if err != nil {
			return err
		}
		switch kind {
		case frameKeys:
			var k leaseKeys
			if k, err = parseKeys(body); err == nil {
				err = s.learn(k)
			}
		case frameGone:
			s.forgetKeys(spec.LeaseID(binary.LittleEndian.Uint64(body)))
		default:
			err = fmt.Errorf("%w: kind %d in the middle", ErrFrame, kind)
		}
		if err != nil {
			return err
		}
	}
}

// openBound is how long the exchange of addresses may take.
const openBound = 20 * time.Second

func (s *source) open(conn net.Conn) error {
	kind, body, err := getFrame(conn)
	if err != nil {
		return err
	}
	if kind != frameOpen {
		return fmt.Errorf("%w: kind %d in place of an opening", ErrFrame, kind)
	}
	theirs, err := parseOpening(body)
	if err != nil {
		return errors.Join(err, refuse(conn, err))
	}
	ours, err := s.answer(theirs)
	if err != nil {
		return errors.Join(err, refuse(conn, err))
	}
	if err := putOpening(conn, ours); err != nil {
		return err
	}
	if kind, _, err = getFrame(conn); err == nil && kind != frameReady {
		err = fmt.Errorf("%w: kind %d in place of ready", ErrFrame, kind)
	}
	return err
}

// answer makes the queue pairs for the rails that both ends have up, and connects them.
func (s *source) answer(theirs opening) (ours opening, err error) {
	ours = opening{Version: openingVersion, Oldest: s.a.opened(s.info)}
	queues, err := s.a.makeQueues(0, s.lose, nil)
	defer func() { s.adopt(queues, ours.Rails, err) }()
	if err != nil {
		return ours, err
	}
	for i, q := range queues {
		if q != nil {
			ours.Rails = append(ours.Rails, s.a.rails[i].end(q))
		}
	}
	for _, p := range s.a.mem {
		if p != nil {
			ours.Pools = append(ours.Pools, poolEnd{Layout: p.Layout})
		}
	}
	rails, err := agree(ours, theirs)
	if err != nil {
		return ours, err
	}
	ours.Rails, err = connectAll(&queues, rails, ours.Rails, theirs.Rails)
	if err == nil {
		err = s.remember(theirs)
	}
	return ours, err
}

// adopt keeps the queues that were connected; after an error none.
func (s *source) adopt(queues [MaxRails]*queue, _ []railEnd, err error) {
	if err != nil {
		for _, q := range queues {
			if q != nil {
				_ = q.free()
			}
		}
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queues = queues
	for i, q := range queues {
		if q != nil {
			s.rails = append(s.rails, i)
		}
	}
}

// remember keeps where decode's pools lie and what opens them.
func (s *source) remember(theirs opening) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.windows = theirs.Windows
	for i := range theirs.Pools {
		s.remote[theirs.Pools[i].Layout.Component] = &theirs.Pools[i]
	}
	for _, r := range theirs.Rails {
		for _, k := range r.Keys {
			if k.Component >= spec.ComponentCount {
				return fmt.Errorf("%w: a key of component %d", ErrFrame, k.Component)
			}
			s.pool[r.Index][k.Component] = k
		}
	}
	return nil
}

// begin starts what waited for decode.
func (s *source) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over != nil {
		return s.over
	}
	for _, i := range s.rails {
		s.queues[i].start()
	}
	s.a.join(s)
	s.ready = true
	early := s.early
	s.early = nil
	for _, w := range early {
		s.when(w)
	}
	return nil
}

// learn takes keys of a lease; behind the last its operations go on.
func (s *source) learn(k leaseKeys) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.windows {
		return fmt.Errorf("%w: keys on a link without windows", ErrFrame)
	}
	t := s.keys[k.Lease]
	if t == nil {
		t = &keyTable{}
		s.keys[k.Lease] = t
	}
	if s.known += len(k.Keys); s.known > maxKeys {
		return fmt.Errorf("%w: more than %d keys", ErrFrame, maxKeys)
	}
	if err := t.add(k); err != nil || !t.full || s.over != nil {
		return err
	}
	held := s.held[k.Lease]
	delete(s.held, k.Lease)
	for _, w := range held {
		s.when(w)
	}
	return nil
}

// forgetKeys drops what opens a lease that decode has taken back; what of it was not posted yet will never be good, and waits for the fence.
func (s *source) forgetKeys(id spec.LeaseID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.keys[id]; t != nil {
		s.known -= t.count
		delete(s.keys, id)
	}
}

// maxKeys bounds the keys of all leases that a source knows: 16 bytes each.
const maxKeys = 1 << 22

// Post implements transport.Source. The batch's slices belong to the source until Posted.
func (s *source) Post(b transport.Batch) {
	bytes, err := check(s.a.mem, b)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil:
	case s.over != nil:
		err = s.over
	case int(s.queued.Load())+len(b.Writes) > s.a.opts.MaxQueued:
		err = fmt.Errorf("%w: %d writes of at most %d", tcp.ErrQueueFull, s.queued.Load(), s.a.opts.MaxQueued)
	}
	if err != nil || len(b.Writes) == 0 {
		s.rep.Posted(b.ID, err)
		return
	}
	s.queued.Add(int64(len(b.Writes)))
	s.a.counts.writes.Add(uint64(len(b.Writes)))
	s.a.counts.bytes.Add(bytes)
	s.when(&waiting{lease: b.Lease, write: true, run: func() { s.spread(b, bytes) }, end: func(err error) { s.ended(b, err) }})
}

// waiting is an operation that may have to wait for decode, or for the keys of its lease.
type waiting struct {
	lease spec.LeaseID
	write bool
	run   func()
	end   func(error)
}

// when runs an operation as soon as it can go out, in order within its lease. Called with mu held.
func (s *source) when(w *waiting) {
	if !s.ready {
		s.early = append(s.early, w)
		return
	}
	if t := s.keys[w.lease]; s.windows && (t == nil || !t.full) && (w.write || len(s.held[w.lease]) > 0) {
		s.held[w.lease] = append(s.held[w.lease], w)
		return
	}
	w.run()
}

// check tests what the requests rely on, and returns the bytes of all writes.
func check(mem device.Memory, b transport.Batch) (total uint64, err error) {
	if b.Lease == 0 {
		return 0, fmt.Errorf("%w: lease 0", tcp.ErrWrite)
	}
	for i := range b.Writes {
		w := &b.Writes[i]
		if w.Component >= spec.ComponentCount || mem[w.Component] == nil || uint32(w.Src) >= mem[w.Component].Layout.Shape.Pages || w.Of.Component != w.Component || w.Of.Index != w.Part {
			return 0, fmt.Errorf("%w: %s page %d", tcp.ErrWrite, w.Component, w.Src)
		}
		page, sum := uint64(mem[w.Component].Layout.Shape.PageBytes), uint64(0)
		for _, g := range w.SrcSegs {
			if uint64(g.Offset)+uint64(g.Bytes) > page || g.Bytes == 0 {
				return 0, fmt.Errorf("%w: bytes %d+%d of a page of %d", tcp.ErrWrite, g.Offset, g.Bytes, page)
			}
			sum += uint64(g.Bytes)
		}
		if sum == 0 || sum > spec.MaxPageBytes {
			return 0, fmt.Errorf("%w: a write of %d bytes", tcp.ErrWrite, sum)
		}
		total += sum
	}
	return total, nil
}

// Notice implements transport.Source.
func (s *source) Notice(lease spec.LeaseID, number uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.over
	if lease == 0 {
		err = fmt.Errorf("%w: lease 0", tcp.ErrWrite)
	}
	if err != nil {
		s.rep.Noticed(lease, nil, err)
		return
	}
	s.when(&waiting{lease: lease, run: func() { s.spreadNotice(lease, number) }, end: func(err error) { s.rep.Noticed(lease, nil, err) }})
}

// spreadNotice sends it on each rail that carried a write of the lease; on every rail if none did: that is behind its last write, too.
func (s *source) spreadNotice(lease spec.LeaseID, number uint64) {
	carried := s.carried[lease]
	delete(s.carried, lease)
	n := &shared{}
	var channels []spec.Channel
	for _, i := range s.rails {
		if carried == 0 || carried&(1<<i) != 0 {
			channels = append(channels, spec.Channel{ID: uint32(i), Notice: number})
		}
	}
	n.left = len(channels)
	s.a.counts.notices.Add(uint64(n.left))
	for _, c := range channels {
		s.queues[c.ID].push(job{
			build: func(b *batch, _ int) (bool, error) {
				_, data := b.inlined(C.KV_SEND, noticeBytes)
				binary.LittleEndian.PutUint64(data, uint64(lease))
				binary.LittleEndian.PutUint64(data[8:], number)
				s.a.counts.requests.Add(1)
				return true, nil
			},
			end: func(err error) {
				n.end(err, func(err error) {
					if err != nil {
						channels = nil
					}
					s.rep.Noticed(lease, channels, err)
				})
			},
		})
	}
}

// shared ends once all that share it have ended, with the first error.
type shared struct {
	mu   sync.Mutex
	left int
	err  error
}

func (n *shared) end(err error, all func(error)) {
	n.mu.Lock()
	if n.err == nil {
		n.err = err
	}
	n.left--
	last, err := n.left == 0, n.err
	n.mu.Unlock()
	if last {
		all(err)
	}
}

// spreadBytes is what a batch must have before it is spread over several rails.
const spreadBytes = 256 << 10

// spread gives a batch to one rail in turn, or a share of a large one to each.
func (s *source) spread(b transport.Batch, bytes uint64) {
	n := len(s.rails)
	if bytes < spreadBytes {
		n = 1
	}
	n = min(n, len(b.Writes))
	all := &shared{left: n}
	for k := range n {
		i := s.rails[s.turn%len(s.rails)]
		s.turn++
		s.carried[b.Lease] |= 1 << i
		w := &writer{s: s, rail: i, lease: b.Lease, writes: b.Writes[len(b.Writes)*k/n : len(b.Writes)*(k+1)/n], keys: s.keys[b.Lease]}
		s.queues[i].push(job{build: w.build, end: func(err error) {
			all.end(err, func(err error) { s.ended(b, err) })
		}})
	}
}

// ended ends a batch. It needs no lock: a queue that refuses a job says so at once.
func (s *source) ended(b transport.Batch, err error) {
	s.queued.Add(-int64(len(b.Writes)))
	s.rep.Posted(b.ID, err)
}

// uses implements member.
func (s *source) uses(rail int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queues[rail] != nil
}

// lose ends the link because a rail or the stream died. What was posted may still be read and land.
func (s *source) lose(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over != nil {
		return
	}
	s.rep.Lost(err)
	s.finish(err)
}

// finish ends what waits. Called with mu held.
func (s *source) finish(err error) {
	s.over = err
	for _, w := range s.early {
		w.end(err)
	}
	s.early = nil
	for _, ws := range s.held {
		for _, w := range ws {
			w.end(err)
		}
	}
	clear(s.held)
}

// Fence implements transport.Source.
func (s *source) Fence() {
	s.mu.Lock()
	again := s.fenced
	s.fenced = true
	if !again && s.over == nil {
		s.finish(over(s.info))
	}
	conn := s.conn
	s.mu.Unlock()
	if again {
		return
	}
	s.forget()
	go func() {
		err := s.shut(conn)
		s.a.counts.fences.Add(1)
		if err != nil {
			s.rep.FenceFailed(err)
			return
		}
		s.rep.Fenced()
	}()
}

// shut destroys the queue pairs, seen quiet, tells decode so, and ends the stream.
func (s *source) shut(conn net.Conn) (err error) {
	if conn != nil && !s.begun() { // an opening in progress ends first: it makes queue pairs
		_ = conn.Close()
		s.wg.Wait()
	}
	s.a.leave(s)
	var all, ran []*queue
	for _, q := range s.queues {
		if q != nil {
			all = append(all, q)
			if q.running() {
				ran = append(ran, q)
			}
		}
	}
	if err := stopAll(ran); err != nil {
		return err
	}
	if err := destroyAll(all); err != nil {
		return err
	}
	s.a.closed(s.info)
	if conn != nil {
		// Decode may be gone, or deaf: then it learns of it by the next opening.
		if conn.SetWriteDeadline(time.Now().Add(shutBound)) == nil {
			_ = putFrame(conn, frameShut, nil)
		}
		_ = conn.Close()
	}
	s.wg.Wait()
	return err
}

// shutBound is how long a farewell may wait for room on the stream.
const shutBound = time.Second

func (s *source) begun() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready
}
