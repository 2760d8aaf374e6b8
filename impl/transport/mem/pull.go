package mem

import (
	"fmt"

	"kvfence/impl/device"
	"kvfence/impl/transport"
	"kvfence/spec"
)

// pullLink is both ends of a pull link in one epoch.
type pullLink struct {
	info transport.LinkInfo
	exp  *Export
	r    *Reader
}

// Export is prefill's end of a pull link.
type Export struct {
	f     *Fabric
	l     *pullLink
	mem   device.Memory
	sink  transport.ExporterSink
	shut  bool
	gone  bool // closed or crashed: calls nobody
	ended bool // ReaderEnded was reported
}

// Reader is decode's end of a pull link; it implements transport.Reader.
type Reader struct {
	f       *Fabric
	l       *pullLink
	mem     device.Memory
	sink    transport.ReaderSink
	fencing bool
	gone    bool // fenced or crashed
	dead    bool // crashed
}

var _ transport.Reader = (*Reader)(nil)

// OpenExport lets a reader that holds the key open the link.
func (f *Fabric) OpenExport(info transport.LinkInfo, mem device.Memory, sink transport.ExporterSink) (*Export, error) {
	if f.pull[nameOf(info)] != nil {
		return nil, fmt.Errorf("%w: epoch %d is exported", transport.ErrAuth, info.Epoch)
	}
	l := &pullLink{info: info}
	l.exp = &Export{f: f, l: l, mem: mem, sink: sink}
	f.pull[nameOf(info)] = l
	return l.exp, nil
}

// OpenReader opens a link that is exported; the exporter's Opened is queued.
func (f *Fabric) OpenReader(info transport.LinkInfo, mem device.Memory, sink transport.ReaderSink) (*Reader, error) {
	l := f.pull[nameOf(info)]
	if l == nil || l.info != info || l.r != nil || l.exp.shut || l.exp.gone {
		return nil, fmt.Errorf("%w: epoch %d is not exported to this reader", transport.ErrAuth, info.Epoch)
	}
	l.r = &Reader{f: f, l: l, mem: mem, sink: sink}
	f.add(l.exp.report(Opened, func(s transport.ExporterSink) { s.Opened() }))
	return l.r, nil
}

// report is an operation that calls the exporter's sink, unless it is gone or its reader's end was reported.
func (x *Export) report(k Kind, call func(transport.ExporterSink)) *report {
	return &report{opBase: opBase{Op: Op{Kind: k, Link: x.l.info}}, lose: k == ExportLost, run: func(error) {
		if !x.gone && !x.ended {
			x.ended = k == ReaderEnded
			call(x.sink)
		}
	}}
}

func (x *Export) lost(why string) {
	x.f.add(x.report(ExportLost, func(s transport.ExporterSink) { s.Lost(fmt.Errorf("%w: %s", transport.ErrStream, why)) }))
}

// Shut gives the link up at this end: the reader's copies end at their next check. It proves nothing.
func (x *Export) Shut() {
	if !x.shut {
		x.shut = true
		x.f.lostReader(x.l, "source has ended the link")
	}
}

// Close shuts the link, and nothing is reported any more.
func (x *Export) Close() {
	x.Shut()
	x.gone = true
}

// Crash ends prefill's process. Its memory stays mapped at the reader, which may go on copying; its loss is queued.
func (x *Export) Crash() {
	if !x.gone {
		x.gone = true
		x.f.lostReader(x.l, "source crashed")
	}
}

func (f *Fabric) lostReader(l *pullLink, why string) {
	if r := l.r; r != nil && !r.gone {
		f.add(&report{opBase: opBase{Op: Op{Kind: ReaderLost, Link: l.info}}, lose: true, run: func(error) {
			if !r.gone {
				r.sink.Lost(fmt.Errorf("%w: %s", transport.ErrStream, why))
			}
		}})
	}
}

// CutPull breaks a link's socket: both ends' losses are queued. Copies go on.
func (f *Fabric) CutPull(info transport.LinkInfo) {
	if l := f.pull[nameOf(info)]; l != nil {
		l.exp.lost("cut")
		f.lostReader(l, "cut")
	}
}

// Copy queues a job: see transport.Reader.
func (r *Reader) Copy(j transport.CopyJob) {
	if !r.dead {
		r.f.add(&job{opBase: opBase{Op: Op{Kind: Job, Link: r.l.info, Lease: j.Lease, ID: j.ID}}, r: r, j: j, res: transport.CopyResult{Job: j.ID, Lease: j.Lease}})
	}
}

// Fence queues the fence of this end: see transport.Reader.
func (r *Reader) Fence() {
	if r.fencing || r.gone {
		return
	}
	r.fencing = true
	r.f.add(&report{
		opBase: opBase{Op: Op{Kind: ReaderFence, Link: r.l.info}},
		ready:  func() bool { return r.f.faults.FenceAtOnce || r.first() == nil },
		run: func(error) {
			r.gone = true
			r.l.exp.lost("reader fenced")
			r.sink.Fenced()
		},
	})
}

// first is the oldest job that is not over: the one that runs.
func (r *Reader) first() *job {
	for _, o := range r.f.ops {
		if j, is := o.(*job); is && j.r == r && !j.over {
			return j
		}
	}
	return nil
}

// Crash ends the reader's process: its copies stop where they are, and the exporter's loss and the end of its reader are queued.
func (r *Reader) Crash() {
	if r.dead {
		return
	}
	r.gone, r.dead = true, true
	for _, o := range r.f.ops {
		switch b := o.base(); b.Kind {
		case Job, ReaderFence, ReaderLost:
			b.over = b.over || b.Link == r.l.info
		}
	}
	r.f.sweep()
	r.l.exp.lost("reader crashed")
	r.f.add(r.l.exp.report(ReaderEnded, func(s transport.ExporterSink) { s.ReaderEnded() }))
}

// over is why no further byte may be placed.
func (r *Reader) over() error {
	switch {
	case r.fencing:
		return transport.ErrFenced
	case r.l.exp.shut:
		return fmt.Errorf("%w: source has ended epoch %d", transport.ErrStream, r.l.info.Epoch)
	}
	return nil
}

// job is a copy job. Index is the copy in hand; State Queued means at a border between pages.
type job struct {
	opBase
	r   *Reader
	j   transport.CopyJob
	res transport.CopyResult
	buf []byte // what was read of the page in hand
}

func (j *job) can(d Do) bool { return j.r.first() == j && (d == Advance || d == Fail) }

func (j *job) step(d Do) {
	if d == Fail {
		j.end(ErrFailed)
		return
	}
	if j.State == Queued {
		if err := j.r.over(); err != nil || j.Index == len(j.j.Copies) {
			j.end(err)
			return
		}
	}
	if err := j.advance(&j.j.Copies[j.Index]); err != nil {
		j.end(err)
	}
}

func (j *job) end(err error) {
	j.over = true
	if j.res.Err = err; err != nil {
		j.res.Err = fmt.Errorf("lease %d, copy %d: %w", j.Lease, j.Index, err)
	}
	j.r.sink.Copied(j.res)
}

// advance takes the copy in hand one step on.
func (j *job) advance(c *transport.Copy) error {
	src, dst := poolOf(j.r.l.exp.mem, c.Component), poolOf(j.r.mem, c.Component)
	switch j.State {
	case Queued, Half:
		return j.bytes(c, src, dst)
	case Copied:
		state := device.CheckTag(src.Slot(c.Src.Page, c.SrcSlot), c.SrcTag)
		whole := []spec.Segment{{Bytes: uint32(len(j.buf))}}
		differs := j.j.Digests && (!c.SrcTag.HasDigest || device.DigestSegments(j.buf, whole, c.Head) != c.SrcTag.Digest)
		if j.r.f.faults.TrustSource {
			state, differs = spec.TagGood, false
		} else if err := j.r.over(); err != nil {
			return err
		}
		j.State = Checked
		if state != spec.TagGood || differs {
			j.res.Bad = append(j.res.Bad, transport.BadCopy{Component: c.Component, Part: c.Part, Index: c.Index, State: state, Digest: differs})
			j.State = Queued
			j.Index++
		}
	case Checked:
		device.PutTag(dst.Slot(c.Dst.Page, c.Part), c.DstTag)
		j.State = Queued
		j.Index++
	}
	return nil
}

// bytes reads one half of the source as it is now, and stores it.
func (j *job) bytes(c *transport.Copy, src, dst *device.Pool) error {
	if src == nil || dst == nil || uint32(c.Src.Page) >= src.Layout.Shape.Pages || uint32(c.Dst.Page) >= dst.Layout.Shape.Pages ||
		uint32(c.SrcSlot) >= uint32(src.Layout.Shape.TagSlots) || uint32(c.Part) >= uint32(dst.Layout.Shape.TagSlots) {
		return ErrJob
	}
	now, err := gather(src.Page(c.Src.Page), c.SrcSegs)
	if err != nil {
		return err
	}
	if old, err := gather(dst.Page(c.Dst.Page), c.DstSegs); err != nil || len(old) != len(now) {
		return fmt.Errorf("%w: segments differ", ErrJob)
	}
	half := len(now) / 2
	if j.State == Queued {
		j.buf = append(j.buf[:0], now[:half]...)
		place(dst.Page(c.Dst.Page), c.DstSegs, now, 0, half)
		j.State = Half
		return nil
	}
	j.buf = append(j.buf, now[half:]...)
	place(dst.Page(c.Dst.Page), c.DstSegs, now, half, len(now))
	j.State = Copied
	return nil
}
