//go:build linux

package shm

import (
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"kvfence/impl/device"
	"kvfence/impl/transport"
	"kvfence/spec"
)

// Reader is decode's end of a pull link in one epoch; it implements transport.Reader. Copy, Fence and Close are safe for
// concurrent use. The sink's calls come from two goroutines of the reader, one call at a time.
type Reader struct {
	cfg    ReaderConfig
	conn   *net.UnixConn
	own    *control // this end's control page
	theirs *control // the source's
	maps   [][]byte
	source device.Memory // read-only; the worker's alone
	mover  device.Mover  // the worker's alone

	fenced atomic.Bool
	mu     sync.Mutex
	more   sync.Cond // a job, the fence or the end
	queue  []transport.CopyJob
	closed bool

	calls sync.Mutex // one call of the sink at a time
	lost  sync.Once
	wg    sync.WaitGroup
}

var _ transport.Reader = (*Reader)(nil)

// point is a place in the middle of a copy where tests can stop it.
type point int

const (
	beforeStep point = iota // before a step of the bytes
	afterBytes              // bytes are in place, the source tag was not looked at
	beforeTag               // all checks passed, the destination tag is not written
)

func newReader(cfg ReaderConfig, c *net.UnixConn) *Reader {
	r := &Reader{cfg: cfg, conn: c}
	r.more.L = &r.mu
	r.mover.Stop = func() bool {
		r.at(beforeStep)
		return r.over() != nil
	}
	return r
}

func (r *Reader) start() {
	r.wg.Go(r.watch)
	r.wg.Go(r.work)
}

// Copy queues a job. Jobs are bounded by the leases of which they are part. Not to be called after Close.
func (r *Reader) Copy(j transport.CopyJob) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = append(r.queue, j)
	r.more.Signal()
}

// Fence begins the end: see transport.Reader. It returns at once; Fenced is reported when nothing of this reader can place a byte.
func (r *Reader) Fence() {
	r.fenced.Store(true)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.more.Signal()
}

// Close fences if that was not done, waits until both goroutines have ended, and unmaps the source. Not to be called from the sink.
func (r *Reader) Close() error {
	r.fenced.Store(true)
	r.mu.Lock()
	again := r.closed
	r.closed = true
	r.more.Signal()
	r.mu.Unlock()
	if again {
		r.wg.Wait()
		return nil
	}
	err := r.conn.Close()
	if errors.Is(err, net.ErrClosed) {
		err = nil // by the fence
	}
	r.wg.Wait()
	return errors.Join(err, r.release())
}

func (r *Reader) call(f func(transport.ReaderSink)) {
	r.calls.Lock()
	defer r.calls.Unlock()
	f(r.cfg.Sink)
}

func (r *Reader) at(p point) {
	if r.cfg.hook != nil {
		r.cfg.hook(p)
	}
}

// over is why no further byte may be placed: this end's fence, or the source's word that it has ended the link.
func (r *Reader) over() error {
	if r.fenced.Load() {
		return transport.ErrFenced
	}
	if e := r.theirs.epoch(); e != r.cfg.Link.Epoch {
		return fmt.Errorf("%w: source has ended epoch %d", transport.ErrStream, r.cfg.Link.Epoch)
	}
	return nil
}

// lose reports the loss of the link, once, and not after it was fenced.
func (r *Reader) lose(err error) {
	r.lost.Do(func() {
		if !r.fenced.Load() {
			r.call(func(s transport.ReaderSink) { s.Lost(err) })
		}
	})
}

// watch reports the loss of the socket. The exporter says nothing on it after the handshake.
func (r *Reader) watch() {
	_, files, err := readPacket(r.conn)
	closeAll(files)
	if errors.Is(err, net.ErrClosed) {
		return // by the fence, or by Close
	}
	if err == nil {
		err = errors.New("exporter spoke after the handshake")
	}
	r.lose(fmt.Errorf("%w: exporter %s: %w", transport.ErrStream, r.cfg.Link.Prefill, err))
}

// work runs jobs one after another, then the fence, then ends what still comes until Close.
func (r *Reader) work() {
	debug.SetPanicOnFault(true) // of this goroutine: a source that goes away is an error of its job
	done := false
	for {
		j, has, closed := r.next(done)
		switch {
		case has:
			res := r.run(j)
			r.call(func(s transport.ReaderSink) { s.Copied(res) })
			if errors.Is(res.Err, ErrSource) {
				r.lose(fmt.Errorf("%w: %w", transport.ErrStream, res.Err))
			}
		case !done: // fenced, and every job that was queued before has ended
			done = true
			_ = r.conn.Close() // nothing is sent after the handshake
			r.call(func(s transport.ReaderSink) { s.Fenced() })
		case closed:
			return
		}
	}
}

// next waits for a job, for the fence (until it is done) or for the end.
func (r *Reader) next(done bool) (j transport.CopyJob, has, closed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.queue) == 0 && !r.closed && (done || !r.fenced.Load()) {
		r.more.Wait()
	}
	if len(r.queue) > 0 {
		j, r.queue = r.queue[0], r.queue[1:]
		return j, true, r.closed
	}
	r.queue = nil
	return j, false, r.closed
}

// run carries out one job. It stops at the first copy that fails for another reason than the source's tag or digest.
func (r *Reader) run(j transport.CopyJob) (res transport.CopyResult) {
	res = transport.CopyResult{Job: j.ID, Lease: j.Lease}
	defer func() {
		if p := recover(); p != nil {
			fault, is := p.(interface{ Addr() uintptr })
			if !is {
				panic(p) // a bug, not a fault in mapped memory
			}
			res.Err = fmt.Errorf("lease %d: %w: fault at %#x", j.Lease, ErrSource, fault.Addr())
		}
	}()
	if err := r.over(); err != nil {
		res.Err = fmt.Errorf("lease %d: %w", j.Lease, err)
		return res
	}
	var total uint64
	for i := range j.Copies {
		if err := r.check(&j.Copies[i]); err != nil {
			res.Err = fmt.Errorf("lease %d, copy %d: %w", j.Lease, i, err)
			return res
		}
		total += uint64(spec.UsedBytes(j.Copies[i].DstSegs))
	}
	for i := range j.Copies {
		c := &j.Copies[i]
		r.mover.Stream = total >= r.cfg.StreamBytes && spec.UsedBytes(c.DstSegs) >= device.StreamMin
		bad, err := r.one(c, j.Digests)
		if err != nil {
			res.Err = fmt.Errorf("lease %d, copy %d: %w", j.Lease, i, err)
			return res
		}
		if bad != nil {
			res.Bad = append(res.Bad, *bad)
		}
	}
	return res
}

// check tests that a copy stays within both sides' pools; segments are tested by the Mover.
func (r *Reader) check(c *transport.Copy) error {
	if c.Component >= spec.ComponentCount || r.source[c.Component] == nil || r.cfg.Memory[c.Component] == nil {
		return fmt.Errorf("%w: component %d", ErrJob, c.Component)
	}
	s, d := r.source[c.Component].Layout.Shape, r.cfg.Memory[c.Component].Layout.Shape
	if uint32(c.Src.Page) >= s.Pages || uint32(c.Dst.Page) >= d.Pages || c.SrcSlot >= spec.PartIndex(s.TagSlots) || c.Part >= spec.PartIndex(d.TagSlots) {
		return fmt.Errorf("%w: %s page %d slot %d to page %d slot %d", ErrJob, c.Component, c.Src.Page, c.SrcSlot, c.Dst.Page, c.Part)
	}
	return nil
}

// one copies one part of one page. Order: bytes, then the source tag, then the epoch, then the destination tag.
func (r *Reader) one(c *transport.Copy, digests bool) (*transport.BadCopy, error) {
	src, dst := r.source[c.Component], r.cfg.Memory[c.Component]
	from, to := src.Page(c.Src.Page), dst.Page(c.Dst.Page)
	var err error
	var digest uint64
	if digests {
		digest, err = r.mover.CopyDigest(to, c.DstSegs, from, c.SrcSegs, c.Head)
	} else {
		err = r.mover.Copy(to, c.DstSegs, from, c.SrcSegs)
	}
	if errors.Is(err, device.ErrStopped) {
		err = r.over()
	}
	if err != nil {
		return nil, err
	}
	r.at(afterBytes)
	loadFence()
	state := device.CheckTag(src.Slot(c.Src.Page, c.SrcSlot), c.SrcTag)
	differs := digests && (!c.SrcTag.HasDigest || digest != c.SrcTag.Digest)
	if err := r.over(); err != nil {
		return nil, err
	}
	if state != spec.TagGood || differs {
		return &transport.BadCopy{Component: c.Component, Part: c.Part, Index: c.Index, State: state, Digest: differs}, nil
	}
	r.at(beforeTag)
	device.PutTag(dst.Slot(c.Dst.Page, c.Part), c.DstTag)
	return nil, nil
}
