package sim

import (
	"kvfence/impl/core"
	"kvfence/impl/transport/mem"
	"kvfence/spec"
)

// choice is one thing that can happen now: exactly one of its pointers, or an operation of the fabric.
type choice struct {
	conn      *conn // a packet arrives
	toPrefill bool
	at        int // of the packet in its queue, of the work in the list
	op        mem.OpRef
	work      *work
	dialer    *decodeRank
	link      *targetLink
}

// Step takes one thing that can happen now, chosen by the seed, or lets time pass to the next thing. false: nothing will ever happen.
func (w *World) Step() bool {
	w.settle()
	w.check()
	if w.err != nil {
		return false
	}
	w.steps++
	w.now += core.Time(w.chance.pick(jitterTime, 50_000))
	w.choices()
	next := w.chance.pick(orderOf, int64(len(w.run)))
	if len(w.run) == 0 {
		at := w.soonest()
		if at == 0 {
			return false
		}
		w.now = max(w.now, at)
		w.sum.add(sumTime)
		w.sum.add(uint64(w.now))
		return true
	}
	w.take(&w.run[next])
	return true
}

// choices is everything that can happen now.
func (w *World) choices() {
	w.run = w.run[:0]
	w.packets()
	for i := range w.fabric.Len() {
		if op := w.fabric.At(i); !op.Held && w.fabric.Ready(i) && !w.opCut(op) && (w.HoldOp == nil || !w.HoldOp(*op)) {
			w.run = append(w.run, choice{op: op.Ref})
		}
	}
	live := w.works[:0]
	for _, k := range w.works {
		s := k.host.side
		if !k.always && (s.life != k.life || k.host.dead) {
			continue
		}
		if (k.always || !s.paused) && k.at <= w.now {
			w.run = append(w.run, choice{work: k, at: len(live)})
		}
		live = append(live, k)
	}
	clear(w.works[len(live):])
	w.works = live
	for _, d := range w.decode {
		d.dials()
	}
}

// soonest is when something can happen, if nothing can now; 0 if never.
func (w *World) soonest() (next core.Time) {
	soon := func(t core.Time) {
		if t > w.now && (next == 0 || t < next) {
			next = t
		}
	}
	for _, c := range w.conns {
		c.soonest(soon)
	}
	for _, k := range w.works {
		if k.always || !k.host.side.paused {
			soon(k.at)
		}
	}
	for _, s := range w.all {
		for _, h := range s.hosts {
			if s.up && !s.paused && !h.dead {
				soon(h.clock.global(h.due))
			}
		}
	}
	for _, d := range w.decode {
		d.eachDial(func(_ *decodeRank, t *targetLink) { soon(t.dialAt) })
	}
	return next
}

// take does one of the things that can happen.
func (w *World) take(c *choice) {
	switch {
	case c.conn != nil:
		w.sum.add(sumArrive)
		w.sum.add(uint64(c.conn.id)<<8 ^ uint64(c.at))
		c.conn.arrive(c.toPrefill, c.at)
	case c.work != nil:
		w.sum.add(sumWork)
		w.sum.add(c.work.host.id)
		k := c.work
		w.works = append(w.works[:c.at], w.works[c.at+1:]...)
		k.run()
	case c.link != nil:
		w.sum.add(sumDial)
		c.dialer.dial(c.link, w.prefill[c.link.slot].ranks[c.link.rank])
	default:
		w.fabricStep(c.op)
	}
}

// fabricStep moves one operation of the fabric on.
func (w *World) fabricStep(ref mem.OpRef) {
	w.stirred = true
	w.sum.add(sumFabric)
	w.sum.add(uint64(ref))
	w.noteLate(ref)
	if err := w.fabric.Step(ref, mem.Advance); err != nil {
		w.violate(Contract, "fabric: %v", err)
	}
}

// opCut reports an operation that cannot cross a cut network: what has passed its check is at the other side already.
func (w *World) opCut(op *mem.Op) bool {
	if len(w.cuts) == 0 || op.State >= mem.Checked || op.Kind == mem.Batch || op.Kind == mem.Noticed || op.Kind >= mem.SourceFence && op.Kind != mem.Opened {
		return false
	}
	return w.cuts[[2]int{w.slotOf(op.Link.Prefill), w.slotOf(op.Link.Decode)}]
}

// slotOf is the slot of the side that an incarnation lives in; -1 if it is dead.
func (w *World) slotOf(inc spec.Incarnation) int {
	for _, s := range w.all {
		for _, i := range s.incs {
			if i == inc {
				return s.slot
			}
		}
	}
	return -1
}
