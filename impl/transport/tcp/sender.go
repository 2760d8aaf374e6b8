package tcp

import (
	"sync"

	"golang.org/x/sys/unix"

	"kvfence/impl/device"
	"kvfence/impl/transport"
	"kvfence/spec"
)

// frameMost is where the sender ends a frame: a page is told as landed only at its frame's end.
const frameMost = 16 << 20

// op is one thing to send on one stream: a piece of a batch, or a notice.
type op struct {
	batch  *batch
	lease  spec.LeaseID
	writes []transport.Write
	notice *notice
}

// batch and notice count the ops that are still to end.
type batch struct {
	id   uint64
	left int
	err  error
}

type notice struct {
	lease    spec.LeaseID
	number   uint64
	channels []spec.Channel
	left     int
	err      error
}

// sender is the writing end of one stream: one goroutine, fixed memory. Bytes go from the source page to the kernel in writev.
type sender struct {
	src   *source
	index int
	w     wire

	ready sync.Cond // on src.mu: queue is not empty, or the link has ended
	queue []op

	iov      []unix.Iovec
	bytes    int // in iov
	arena    [64 << 10]byte
	used     int                           // of arena
	fetchers [spec.ComponentCount]*fetcher // of pools that the host cannot address
	taken    []op                          // ops whose last byte may still be in iov
}

// run sends until the link ends; then every op given to this stream has ended.
func (s *sender) run() {
	defer s.closeFetchers()
	var spare []op
	for {
		ops, err := s.take(spare)
		if err == nil {
			err = s.sendAll(ops)
			if err != nil {
				err = s.src.lose(s.index, err)
			}
		}
		if err != nil {
			s.src.end(s.taken, err)
			s.src.end(ops, err)
			s.src.end(s.drain(), err)
			return
		}
		clear(ops)
		spare = ops[:0]
	}
}

// take waits for ops, or for the end of the link, which is an error.
func (s *sender) take(spare []op) ([]op, error) {
	s.src.mu.Lock()
	defer s.src.mu.Unlock()
	for len(s.queue) == 0 && s.src.over == nil {
		s.ready.Wait()
	}
	if s.src.over != nil {
		return nil, s.src.over
	}
	ops := s.queue
	s.queue = spare
	return ops, nil
}

// drain empties the queue; the link has ended, so nothing is added any more.
func (s *sender) drain() []op {
	s.src.mu.Lock()
	defer s.src.mu.Unlock()
	ops := s.queue
	s.queue = nil
	return ops
}

// sendAll sends ops in order and ends each as soon as its last byte was handed to the kernel. With an error, some of ops have
// not ended: they have been marked by clearing those that have.
func (s *sender) sendAll(ops []op) error {
	for i := range ops {
		o := ops[i]
		var err error
		if o.notice != nil {
			err = s.put(frameBytes, func(b []byte) {
				frame{notice: true, lease: o.notice.lease, number: o.notice.number}.put(b)
			})
		} else {
			err = s.writes(o)
		}
		if err != nil {
			return err
		}
		s.taken = append(s.taken, o)
		ops[i] = op{}
	}
	return s.flush()
}

// writes sends one piece of a batch as frames.
func (s *sender) writes(o op) error {
	for rest := o.writes; len(rest) > 0; {
		n, sum := 0, uint64(0)
		for n < len(rest) && n < maxEntries && (n == 0 || sum < frameMost) {
			sum += uint64(spec.UsedBytes(rest[n].SrcSegs))
			n++
		}
		if err := s.frame(o.lease, rest[:n], sum); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

func (s *sender) frame(lease spec.LeaseID, ws []transport.Write, sum uint64) error {
	err := s.put(frameBytes+len(ws)*entryBytes, func(b []byte) {
		frame{count: len(ws), lease: lease, number: sum}.put(b)
		for i := range ws {
			w := &ws[i]
			entry{w.Component, w.Part, w.Index, w.Dst, spec.UsedBytes(w.SrcSegs)}.put(b[frameBytes+i*entryBytes:])
		}
	})
	if err != nil {
		return err
	}
	for i := 0; i < len(ws); {
		pool := s.src.mem[ws[i].Component]
		if pool.Bytes == nil {
			n, err := s.fetched(ws[i:], pool)
			if err != nil {
				return err
			}
			i += n
			continue
		}
		page := pool.Page(ws[i].Src)
		for _, g := range ws[i].SrcSegs {
			if err := s.add(page[g.Offset:][:g.Bytes]); err != nil {
				return err
			}
		}
		i++
	}
	return s.put(len(ws)*spec.TagBytes, func(b []byte) {
		for i := range ws {
			device.PutTag(b[i*spec.TagBytes:], ws[i].Tag)
		}
	})
}

// put adds n bytes of the arena, which encode fills.
func (s *sender) put(n int, encode func(b []byte)) error {
	if s.used+n > len(s.arena) || s.bytes+n > callBytes || len(s.iov) == callIovs {
		if err := s.flush(); err != nil {
			return err
		}
	}
	b := s.arena[s.used:][:n]
	encode(b)
	s.used += n
	s.iov = append(s.iov, iov(b))
	s.bytes += n
	return nil
}

// add adds bytes of a page, sending what no longer fits into one call.
func (s *sender) add(b []byte) error {
	for len(b) > 0 {
		if s.bytes == callBytes || len(s.iov) == callIovs {
			if err := s.flush(); err != nil {
				return err
			}
		}
		k := min(len(b), callBytes-s.bytes)
		s.iov = append(s.iov, iov(b[:k]))
		s.bytes += k
		b = b[k:]
	}
	return nil
}

// flush hands everything gathered to the kernel and ends the ops that were complete with it.
func (s *sender) flush() error {
	err := writeAll(s.w, s.iov)
	clear(s.iov)
	s.iov, s.bytes, s.used = s.iov[:0], 0, 0
	if err != nil {
		return err
	}
	s.src.end(s.taken, nil)
	s.taken = s.taken[:0]
	return nil
}
