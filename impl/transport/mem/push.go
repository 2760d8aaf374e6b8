package mem

import (
	"fmt"
	"slices"

	"kvfence/impl/device"
	"kvfence/impl/transport"
	"kvfence/spec"
)

// pushLink is both ends of a push link in one epoch; nil where an end was not opened or has crashed.
type pushLink struct {
	info transport.LinkInfo
	src  *Source
	dst  *Target
	dead bool // the target crashed: nothing can land

	rails  []rail // over verbs: decode's queue pairs, once it is open
	broken bool   // one of prefill's has failed
}

// Source is prefill's end of a push link; it implements transport.Source.
type Source struct {
	f        *Fabric
	l        *pushLink
	mem      device.Memory
	sink     transport.SourceSink
	channels uint32
	next     uint32 // channel of the next write
	used     map[spec.LeaseID][]uint32
	fencing  bool
	gone     bool // fenced or crashed: reads nothing, calls nobody
}

// Target is decode's end of a push link; it implements transport.Target.
type Target struct {
	f       *Fabric
	l       *pushLink
	mem     device.Memory
	grants  *transport.Grants
	sink    transport.TargetSink
	fencing bool
	gone    bool // fenced or crashed

	rights []*right // over verbs with windows
}

var (
	_ transport.Source = (*Source)(nil)
	_ transport.Target = (*Target)(nil)
)

// OpenSource opens prefill's end with a number of channels; writes are spread over them in turn.
func (f *Fabric) OpenSource(info transport.LinkInfo, mem device.Memory, channels uint32, sink transport.SourceSink) (*Source, error) {
	l, err := f.pushLink(info)
	if err != nil {
		return nil, err
	}
	if l.src != nil {
		return nil, fmt.Errorf("%w: source of epoch %d is open", transport.ErrAuth, info.Epoch)
	}
	l.src = &Source{f: f, l: l, mem: mem, sink: sink, channels: max(channels, 1), used: map[spec.LeaseID][]uint32{}}
	return l.src, nil
}

// OpenTarget opens decode's end. mem is the memory behind grants.
func (f *Fabric) OpenTarget(info transport.LinkInfo, mem device.Memory, grants *transport.Grants, sink transport.TargetSink) (*Target, error) {
	l, err := f.pushLink(info)
	if err != nil {
		return nil, err
	}
	if l.dst != nil {
		return nil, fmt.Errorf("%w: target of epoch %d is open", transport.ErrAuth, info.Epoch)
	}
	l.dst = &Target{f: f, l: l, mem: mem, grants: grants, sink: sink}
	if f.verbs.On {
		f.openRails(l)
		if f.verbs.Windows {
			grants.Enforce(info.Epoch, l.dst)
		}
	}
	return l.dst, nil
}

// pushLink finds or makes a link; both ends must hold the same key.
func (f *Fabric) pushLink(info transport.LinkInfo) (*pushLink, error) {
	l := f.push[nameOf(info)]
	if l == nil {
		l = &pushLink{info: info}
		if f.verbs.On {
			l.rails = make([]rail, max(f.verbs.Rails, 1))
		}
		f.push[nameOf(info)] = l
	}
	if l.info != info {
		return nil, fmt.Errorf("%w: key of epoch %d", transport.ErrAuth, info.Epoch)
	}
	return l, nil
}

// batch is the end of a batch at its source.
type batch struct {
	opBase
	s     *Source
	queue int // writes not launched; over verbs not acknowledged

	writes uint32
	err    error
}

func (b *batch) can(d Do) bool {
	return d == Advance && b.queue == 0 || d == Fail || d == Advance && b.oneRail()
}

// oneRail reports a batch of several rails of which one is done: a planted bug.
func (b *batch) oneRail() bool {
	if !b.s.f.verbs.OneCompletion {
		return false
	}
	open := map[uint32]bool{}
	for _, o := range b.s.f.ops {
		if w, is := o.(*write); is && w.b == b && !w.over && !w.acked {
			open[w.Channel] = true
		}
	}
	return len(open) < int(min(b.s.channels, b.writes))
}

func (b *batch) step(d Do) {
	if d == Fail {
		b.err = ErrFailed
	}
	b.over = true
	if d == Fail && b.s.f.verbs.On { // a completion in error is its queue pair's
		b.s.f.breakRail(b.s.l, 0)
	}
	b.s.sink.Posted(b.ID, b.err)
}

// Post queues a batch: see transport.Source.
func (s *Source) Post(t transport.Batch) {
	if s.gone && !s.fencing { // crashed
		return
	}
	b := &batch{opBase: opBase{Op: Op{Kind: Batch, Link: s.l.info, Lease: t.Lease, ID: t.ID}}, s: s}
	if s.fencing {
		b.err = transport.ErrFenced
		s.f.add(b)
		return
	}
	b.queue, b.writes = len(t.Writes), uint32(len(t.Writes))
	for i, w := range t.Writes {
		ch := s.next % s.channels
		s.next++
		s.uses(t.Lease, ch)
		s.f.add(&write{
			opBase: opBase{Op: Op{Kind: Write, Link: s.l.info, Lease: t.Lease, Channel: ch, ID: t.ID, Index: i}}, f: s.f, l: s.l, b: b, w: w,
		})
	}
	s.f.add(b)
	if s.l.broken {
		s.f.flushPosted(s.l)
		s.f.sweep()
	}
}

// uses notes that a write of a lease goes over a channel.
func (s *Source) uses(lease spec.LeaseID, ch uint32) {
	for _, c := range s.used[lease] {
		if c == ch {
			return
		}
	}
	s.used[lease] = append(s.used[lease], ch)
}

// Notice queues a drain notice: see transport.Source.
func (s *Source) Notice(lease spec.LeaseID, number uint64) {
	if s.gone && !s.fencing {
		return
	}
	var sent []*notice
	var channels []spec.Channel
	if !s.fencing {
		used := s.used[lease]
		if s.f.verbs.OneNotice {
			used = used[:min(len(used), 1)]
		}
		for _, ch := range used {
			n := &notice{opBase: opBase{Op: Op{Kind: Notice, Link: s.l.info, Lease: lease, Channel: ch, ID: number}}, f: s.f, l: s.l}
			s.f.add(n)
			sent = append(sent, n)
			channels = append(channels, spec.Channel{ID: ch, Notice: number})
		}
		delete(s.used, lease)
	}
	fenced := s.fencing
	s.f.add(&report{
		opBase: opBase{Op: Op{Kind: Noticed, Link: s.l.info, Lease: lease, ID: number}}, fails: true,
		ready: func() bool {
			for _, n := range sent {
				if n.State == Queued && !n.over { // a flushed one is over
					return false
				}
			}
			return true
		},
		run: func(err error) {
			if fenced || s.gone {
				err = transport.ErrFenced
			}
			if slices.ContainsFunc(sent, func(n *notice) bool { return n.flushed }) && err == nil {
				err = ErrFlushed
			}
			if err != nil {
				channels = nil
			}
			s.sink.Noticed(lease, channels, err)
		},
	})
}

// Fence queues the fence of this end: see transport.Source. When it is stepped, what was not launched never will be.
func (s *Source) Fence() {
	if s.fencing || s.gone {
		return
	}
	s.fencing = true
	s.f.add(&report{opBase: opBase{Op: Op{Kind: SourceFence, Link: s.l.info}}, run: func(error) {
		s.gone = true
		s.unqueue()
		for _, o := range s.f.ops {
			switch b := o.(type) {
			case *batch:
				if b.s == s && !b.over {
					b.err = transport.ErrFenced
					b.step(Advance)
				}
			case *report:
				if b.Kind == Noticed && b.Link == s.l.info && !b.over {
					b.step(Advance)
				}
			}
		}
		s.sink.Fenced()
	}})
}

// unqueue drops what this end has not launched.
func (s *Source) unqueue() {
	for _, o := range s.f.ops {
		if b := o.base(); b.Link == s.l.info && b.State == Queued && (b.Kind == Write || b.Kind == Notice) {
			b.over = true
		}
	}
}

// Crash ends prefill's process: what it has not launched is gone, nobody hears of anything; what is launched may still land. The
// target's loss is queued.
func (s *Source) Crash() {
	if s.gone && !s.fencing {
		return
	}
	s.unqueue()
	for _, o := range s.f.ops {
		switch b := o.base(); b.Kind {
		case Batch, Noticed, SourceFence, SourceLost:
			b.over = b.over || b.Link == s.l.info
		}
	}
	s.gone, s.fencing = true, false
	s.f.sweep()
	s.f.lostTarget(s.l, "source crashed")
}

// Fence queues the fence of this end: see transport.Target.
func (t *Target) Fence() {
	if t.fencing || t.gone {
		return
	}
	t.fencing = true
	if t.f.verbs.On {
		t.f.add(&fence{opBase: opBase{Op: Op{Kind: TargetFence, Link: t.l.info}}, t: t})
		return
	}
	t.f.add(&report{
		opBase: opBase{Op: Op{Kind: TargetFence, Link: t.l.info}},
		ready:  func() bool { return t.f.faults.FenceAtOnce || !t.placing() },
		run: func(error) {
			t.gone = true
			t.sink.Fenced()
		},
	})
}

// placing reports a write that has passed its check and is not over.
func (t *Target) placing() bool {
	for _, o := range t.f.ops {
		if w, is := o.(*write); is && w.l == t.l && w.State >= Checked && !w.over {
			return true
		}
	}
	return false
}

// Crash ends decode's process: nothing lands any more, in memory that nobody has. The source's loss is queued.
func (t *Target) Crash() {
	if t.l.dead {
		return
	}
	for _, o := range t.f.ops {
		b := o.base()
		switch b.Kind {
		case Write, Notice:
			b.over = b.over || b.Link == t.l.info && b.State > Queued
		case TargetFence, TargetLost, Moved, Invalidate:
			b.over = b.over || b.Link == t.l.info
		}
	}
	t.gone, t.l.dead = true, true
	t.f.sweep()
	t.f.lostSource(t.l, "target crashed")
}

// CutPush breaks a link's streams: both ends' losses are queued. It says nothing about what is under way.
func (f *Fabric) CutPush(info transport.LinkInfo) {
	if l := f.push[nameOf(info)]; l != nil {
		for ch := range l.rails {
			f.breakRail(l, uint32(ch))
		}
		f.lostSource(l, "cut")
		f.lostTarget(l, "cut")
		f.sweep()
	}
}

func (f *Fabric) lostSource(l *pushLink, why string) {
	if s := l.src; s != nil && !s.gone {
		f.add(&report{opBase: opBase{Op: Op{Kind: SourceLost, Link: l.info}}, lose: true, run: func(error) {
			if !s.gone {
				s.sink.Lost(fmt.Errorf("%w: %s", transport.ErrStream, why))
			}
		}})
	}
}

func (f *Fabric) lostTarget(l *pushLink, why string) {
	if t := l.dst; t != nil && !t.gone {
		f.add(&report{opBase: opBase{Op: Op{Kind: TargetLost, Link: l.info}}, lose: true, run: func(error) {
			if !t.gone {
				t.sink.Lost(fmt.Errorf("%w: %s", transport.ErrStream, why))
			}
		}})
	}
}
