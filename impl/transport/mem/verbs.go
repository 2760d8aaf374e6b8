package mem

import (
	"errors"
	"fmt"
	"slices"

	"kvfence/impl/transport"
	"kvfence/spec"
)

// ErrFlushed is what a request reports whose queue pair has failed: it may have been done, and may still land.
var ErrFlushed = errors.New("flushed: the queue pair is in error")

// Verbs makes the push links of a fabric those of RDMA verbs: a reliable queue pair for each link, epoch and rail (a channel). Nobody
// checks a write but the adapter: a queue pair that works, and with Windows a window that is bound for its lease. The other fields
// turn guards off: bugs of a fence that an oracle must find. TLA/VerbsFence.tla has the same steps.
type Verbs struct {
	On      bool `yaml:"on,omitempty"`
	Windows bool `yaml:"windows,omitempty"` // a key for each lease; else one for the pool, in all epochs
	Rails   int  `yaml:"rails,omitempty"`

	SocketOnly    bool `yaml:"socket-only,omitempty"`     // a fence ends the stream: queue pairs and the pool's key stay
	Unseen        bool `yaml:"unseen,omitempty"`          // a fence is back when the move to error was asked for
	NoQuery       bool `yaml:"no-query,omitempty"`        // a fence does all but look whether the queue pair is in error
	OneMarker     bool `yaml:"one-marker,omitempty"`      // the first rail's marker is taken for all
	NoFlushRead   bool `yaml:"no-flush-read,omitempty"`   // a fence does not read behind what was placed
	NumberFree    bool `yaml:"number-free,omitempty"`     // a queue pair is destroyed before its peer's end is shut
	LocalError    bool `yaml:"local-error,omitempty"`     // a request that failed at its source is taken for one that will not land
	OneCompletion bool `yaml:"one-completion,omitempty"`  // a batch is over when its requests on one rail are
	FlushedIsDone bool `yaml:"flushed-is-done,omitempty"` // a flushed invalidate is taken for one that was done
	WindowsStay   bool `yaml:"windows-stay,omitempty"`    // a lease's windows are not taken back at its end
	OneNotice     bool `yaml:"one-notice,omitempty"`      // one rail's notice is taken for all
}

// NewVerbs makes an empty fabric whose push links are those of v, if it is on.
func NewVerbs(f Faults, v Verbs) *Fabric {
	x := New(f)
	x.verbs = v
	return x
}

// railState is the state of decode's queue pair on a rail.
type railState uint8

const (
	railWorks  railState = iota
	railMoving           // to error: it still takes packets
	railError
	railGone
)

// rail is a queue pair of a link, both ends.
type rail struct {
	state  railState
	number uint32 // of decode's end, one for each queue pair of its process that stands
	broken bool   // prefill's end is in error: it posts nothing more
}

// openRails makes decode's queue pairs. Numbers are taken lowest first, so that they come back soon.
func (f *Fabric) openRails(l *pushLink) {
	taken := map[uint32]bool{}
	for _, x := range f.links {
		if x.info.Decode != l.info.Decode || x.dead {
			continue
		}
		f.freeKept(x)
		for i := range x.rails {
			if r := &x.rails[i]; r.state != railGone {
				taken[r.number] = true
			}
		}
	}
	n := uint32(0)
	for i := range l.rails {
		for n++; taken[n]; n++ {
		}
		l.rails[i].number = n
	}
	f.links = append(slices.DeleteFunc(f.links, func(x *pushLink) bool { return x.dead }), l)
}

// freeKept destroys the queue pairs of a fenced link whose peer's end is shut; nothing of it is under way then (A8).
func (f *Fabric) freeKept(l *pushLink) {
	if l.dst == nil || !l.dst.gone || l.src != nil && !l.src.gone || f.verbs.SocketOnly {
		return
	}
	for _, o := range f.ops {
		if b := o.base(); b.Kind == Write && b.Link == l.info && !b.over {
			return
		}
	}
	for i := range l.rails {
		l.rails[i].state = railGone
	}
}

// takes reports whether a packet on a rail of l is accepted by whichever queue pair has its number.
func (f *Fabric) takes(l *pushLink, ch uint32) bool {
	r := l.rails[ch]
	if r.state != railGone {
		return r.state < railError
	}
	for _, x := range f.links {
		if x != l && x.info.Decode == l.info.Decode && !x.dead {
			for _, o := range x.rails {
				if o.number == r.number && o.state < railError {
					return !f.verbs.Windows // with windows its key is gone
				}
			}
		}
	}
	return false
}

// breakRail puts prefill's end of a rail in error: whatever is posted on it completes flushed, what is launched stays under way. Both
// ends' losses are queued.
func (f *Fabric) breakRail(l *pushLink, ch uint32) {
	r := &l.rails[ch]
	if r.broken {
		return
	}
	first := !l.broken
	r.broken, l.broken = true, true
	for _, o := range f.ops {
		switch x := o.(type) {
		case *write:
			if x.l == l && x.Channel == ch && !x.over && x.State < Checked {
				x.flush()
			}
		case *notice:
			if x.l == l && x.Channel == ch && !x.over {
				x.over, x.flushed = true, true
			}
		}
	}
	if first {
		f.lostSource(l, "queue pair failed")
		f.lostTarget(l, "queue pair failed")
	}
}

// flush completes a write at its source. One that is launched may still land.
func (w *write) flush() {
	if !w.acked {
		w.acked = true
		w.b.queue--
		if w.b.err == nil {
			w.b.err = fmt.Errorf("write %d: %w", w.Index, ErrFlushed)
		}
	}
	w.over = w.over || w.State == Queued
}

// first reports whether no write stands before this one on its queue pair. A doubled one is its writer's second, posted when it is stepped.
func (w *write) first() bool {
	if w.Again {
		return true
	}
	for _, o := range w.f.ops {
		b := o.base()
		if b.Ref >= w.Ref {
			break
		}
		if b.Kind == Write && b.Link == w.Link && b.Channel == w.Channel && !b.over && !b.Again && b.State <= Launched {
			return false
		}
	}
	return true
}

// take is what decode's adapter does with a packet. The source may be read once more for it until it is acknowledged.
func (w *write) take() {
	l := w.l
	switch {
	case l.dead:
		w.acked, w.over = true, true
		return
	case !w.f.takes(l, w.Channel):
		w.over = true
		if !w.acked {
			w.f.breakRail(l, w.Channel) // nobody acknowledges: retries are spent
			w.flush()
		}
		return
	case !l.dst.opens(w):
		w.over = true
		w.flush()
		w.f.breakRail(l, w.Channel) // remote access error: both ends of the queue pair are in error
		w.f.toError(l, w.Channel)
		return
	}
	if !w.acked {
		w.acked = true
		w.b.queue--
		if b, err := w.source(); err == nil && !l.src.gone {
			w.buf = b
		}
	}
	if !w.placed() {
		w.over = true
		return
	}
	w.State = Checked
}

// placed finds the place that the writer meant; there is one, or the connection would break.
func (w *write) placed() bool {
	pool := poolOf(w.l.dst.mem, w.w.Component)
	if pool == nil || uint32(w.w.Dst.Page) >= pool.Layout.Shape.Pages || uint32(w.w.Part) >= uint32(pool.Layout.Shape.TagSlots) {
		return false
	}
	segs, err := w.w.Of.Segments(pool.Layout, w.w.Index, nil)
	if err != nil || spec.UsedBytes(segs) != uint32(len(w.buf)) {
		return false
	}
	w.p = transport.Placement{Page: pool.Page(w.w.Dst.Page), Slot: pool.Slot(w.w.Dst.Page, w.w.Part), Segs: segs, Bytes: uint32(len(w.buf))}
	return true
}

// toError begins the move of decode's queue pair to error; its end is a step of its own.
func (f *Fabric) toError(l *pushLink, ch uint32) {
	r := &l.rails[ch]
	if r.state != railWorks {
		return
	}
	r.state = railMoving
	f.add(&report{opBase: opBase{Op: Op{Kind: Moved, Link: l.info, Channel: ch}}, run: func(error) {
		if r.state == railMoving {
			r.state = railError
		}
	}})
}

// busy reports whether a write of rail ch of l that was taken in is in one of the states [lo, hi].
func (f *Fabric) busy(l *pushLink, ch uint32, lo, hi State) bool {
	for _, o := range f.ops {
		if b := o.base(); b.Kind == Write && b.Link == l.info && b.Channel == ch && !b.over && b.State >= lo && b.State <= hi {
			return true
		}
	}
	return false
}

// flushPosted completes what was posted on rails that have failed.
func (f *Fabric) flushPosted(l *pushLink) {
	for _, o := range f.ops {
		if w, is := o.(*write); is && w.l == l && !w.over && w.State == Queued && l.rails[w.Channel].broken {
			w.flush()
		}
	}
}
