package tcp

import (
	"errors"
	"fmt"
	"net"
	"sync"

	"kvfence/impl/device"
	"kvfence/impl/transport"
	"kvfence/spec"
)

// ErrQueueFull ends a batch that would exceed Options.MaxQueued; nothing of it was or will be sent.
var ErrQueueFull = errors.New("send queue is full")

// ErrWrite is wrapped by the end of a batch with a write outside of the source's memory; nothing of it was or will be sent.
var ErrWrite = errors.New("write is outside of the source pool")

// spreadBytes is what a batch must have before it is spread over several streams.
const spreadBytes = 512 << 10

// source is prefill's end of one link in one epoch. Until decode has attached all streams that it announced, ops wait.
type source struct {
	info transport.LinkInfo
	mem  device.Memory
	opts Options
	rep  *transport.Reporter
	gone func() // takes the source off the listener
	wg   sync.WaitGroup

	mu       sync.Mutex
	streams  []*sender // by index, as many as the first hello announced; nil until attached
	attached int
	early    []op // before all are attached
	queued   int  // writes that have not ended
	turn     int
	// carried has a bit for each stream that carried a write of a lease since its last notice.
	carried map[spec.LeaseID]uint32
	over    error // why the link has ended: ErrFenced, or the first loss
	reading error // why pages may still be read when all senders have ended: their device was lost
	fenced  bool
}

// Post implements transport.Source. The batch's slices belong to the source until Posted.
func (s *source) Post(b transport.Batch) {
	bytes, err := s.check(b)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil:
	case s.over != nil:
		err = s.over
	case s.queued+len(b.Writes) > s.opts.MaxQueued:
		err = fmt.Errorf("%w: %d writes of at most %d", ErrQueueFull, s.queued, s.opts.MaxQueued)
	}
	if err != nil || len(b.Writes) == 0 {
		s.rep.Posted(b.ID, err)
		return
	}
	s.queued += len(b.Writes)
	o := op{batch: &batch{id: b.ID, left: 1}, lease: b.Lease, writes: b.Writes}
	if s.attached == 0 || s.attached < len(s.streams) {
		s.early = append(s.early, o)
		return
	}
	s.spread(o, bytes)
}

// check tests what the sender relies on, and returns the bytes of all writes.
func (s *source) check(b transport.Batch) (total uint64, err error) {
	if b.Lease == 0 {
		return 0, fmt.Errorf("%w: lease 0", ErrWrite)
	}
	for i := range b.Writes {
		w := &b.Writes[i]
		if w.Component >= spec.ComponentCount || s.mem[w.Component] == nil || uint32(w.Src) >= s.mem[w.Component].Layout.Shape.Pages {
			return 0, fmt.Errorf("%w: %s page %d", ErrWrite, w.Component, w.Src)
		}
		page, sum := uint64(s.mem[w.Component].Layout.Shape.PageBytes), uint64(0)
		for _, g := range w.SrcSegs {
			if uint64(g.Offset)+uint64(g.Bytes) > page {
				return 0, fmt.Errorf("%w: bytes %d+%d of a page of %d", ErrWrite, g.Offset, g.Bytes, page)
			}
			sum += uint64(g.Bytes)
		}
		if sum == 0 || sum > spec.MaxPageBytes {
			return 0, fmt.Errorf("%w: a write of %d bytes", ErrWrite, sum)
		}
		total += sum
	}
	return total, nil
}

// spread gives a batch to one stream in turn, or a share of a large one to each.
func (s *source) spread(o op, bytes uint64) {
	n := len(s.streams)
	if bytes < spreadBytes {
		n = 1
	}
	n = min(n, len(o.writes))
	o.batch.left = n
	for k := range n {
		i := s.turn
		s.turn = (s.turn + 1) % len(s.streams)
		share := o
		share.writes = o.writes[len(o.writes)*k/n : len(o.writes)*(k+1)/n]
		s.carried[o.lease] |= 1 << i
		s.streams[i].push(share)
	}
}

// push is called with src.mu held.
func (s *sender) push(o op) {
	s.queue = append(s.queue, o)
	s.ready.Signal()
}

// Notice implements transport.Source. A lease that carried nothing since its last notice gets its notice on every stream: that
// is behind its last write, too.
func (s *source) Notice(lease spec.LeaseID, number uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.over
	if lease == 0 {
		err = fmt.Errorf("%w: lease 0", ErrWrite)
	}
	if err != nil {
		s.rep.Noticed(lease, nil, err)
		return
	}
	o := op{notice: &notice{lease: lease, number: number}}
	if s.attached == 0 || s.attached < len(s.streams) {
		s.early = append(s.early, o)
		return
	}
	s.spreadNotice(o)
}

func (s *source) spreadNotice(o op) {
	n := o.notice
	carried := s.carried[n.lease]
	delete(s.carried, n.lease)
	for i := range s.streams {
		if carried == 0 || carried&(1<<i) != 0 {
			n.channels = append(n.channels, spec.Channel{ID: uint32(i), Notice: n.number})
		}
	}
	n.left = len(n.channels)
	for _, c := range n.channels {
		s.streams[c.ID].push(o)
	}
}

// end ends ops, each once; a batch or notice ends with its last op. A zero op has ended before.
func (s *source) end(ops []op, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endLocked(ops, err)
}

func (s *source) endLocked(ops []op, err error) {
	for i := range ops {
		if b := ops[i].batch; b != nil {
			s.queued -= len(ops[i].writes)
			if b.err == nil {
				b.err = err
			}
			if b.left--; b.left == 0 {
				s.rep.Posted(b.id, b.err)
			}
		}
		if n := ops[i].notice; n != nil {
			if n.err == nil {
				n.err = err
			}
			if n.left--; n.left <= 0 {
				if n.err != nil {
					n.channels = nil
				}
				s.rep.Noticed(n.lease, n.channels, n.err)
			}
		}
		ops[i] = op{}
	}
}

var errStreamTaken = errors.New("stream is attached already, or another number of streams was announced")

// attach takes an authenticated stream; ready is called once it is certain to be used, before anything is sent on it.
func (s *source) attach(h hello, conn net.Conn, w wire, ready func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over != nil {
		return s.over
	}
	if s.streams == nil {
		s.streams = make([]*sender, h.streams)
	}
	if len(s.streams) != h.streams || s.streams[h.stream] != nil {
		return fmt.Errorf("%w: %w", transport.ErrAuth, errStreamTaken)
	}
	if err := ready(); err != nil {
		return err
	}
	x := &sender{src: s, index: h.stream, w: w}
	x.ready.L = &s.mu
	s.streams[h.stream] = x
	s.attached++
	s.wg.Add(2)
	go func() {
		defer s.wg.Done()
		x.run()
	}()
	go func() { // the peer sends nothing: what can be read is its end
		defer s.wg.Done()
		var b [1]byte
		n, err := conn.Read(b[:])
		if n > 0 {
			err = fmt.Errorf("%w: data against the direction of the stream", ErrFrame)
		}
		_ = s.lose(h.stream, err)
	}()
	if s.attached < len(s.streams) {
		return nil
	}
	early := s.early
	s.early = nil
	for _, o := range early {
		if o.notice != nil {
			s.spreadNotice(o)
			continue
		}
		bytes := uint64(0)
		for i := range o.writes {
			bytes += uint64(spec.UsedBytes(o.writes[i].SrcSegs))
		}
		s.spread(o, bytes)
	}
	return nil
}

// lose ends the link because a stream died; it returns what the link ended with.
func (s *source) lose(stream int, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(err, device.ErrLost) {
		s.reading = err
	}
	if s.over != nil {
		return s.over
	}
	err = fmt.Errorf("%w: stream %d of %s to %s in epoch %d: %w", transport.ErrStream, stream, s.info.Prefill, s.info.Decode, s.info.Epoch, err)
	s.rep.Lost(err)
	s.finish(err)
	return err
}

// finish closes all streams, wakes all senders and ends what waits for streams. Called with mu held, once or, after a loss, again by Fence.
func (s *source) finish(err error) {
	s.over = err
	for _, x := range s.streams {
		if x != nil {
			x.w.close()
			x.ready.Broadcast()
		}
	}
	s.endLocked(s.early, err)
	s.early = nil
}

// Fence implements transport.Source. What has not been sent ends with ErrFenced; a link that was lost stays lost.
func (s *source) Fence() {
	s.mu.Lock()
	again := s.fenced
	s.fenced = true
	if !again {
		s.finish(fmt.Errorf("%w: %s to %s in epoch %d", transport.ErrFenced, s.info.Prefill, s.info.Decode, s.info.Epoch))
	}
	s.mu.Unlock()
	if again {
		return
	}
	s.gone()
	go func() {
		s.wg.Wait()
		s.mu.Lock()
		err := s.reading
		s.mu.Unlock()
		if err != nil {
			s.rep.FenceFailed(err)
			return
		}
		s.rep.Fenced()
	}()
}
