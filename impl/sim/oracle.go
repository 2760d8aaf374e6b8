package sim

import (
	"fmt"
	"strings"

	"kvfence/impl/core"
	"kvfence/impl/pages"
	"kvfence/impl/transport/mem"
	"kvfence/spec"
)

// check looks, between any two steps, at what the machines cannot see: the writes under way. A write that is not launched has its
// source page (I6); one that may still land has its destination page, in its generation (I2), whatever the grant table would say.
func (w *World) check() {
	if !w.stirred {
		return
	}
	w.stirred = false
	for i := range w.fabric.Len() {
		switch op := w.fabric.At(i); op.Kind {
		case mem.Write:
			w.checkWrite(op, w.endsOf(op.Link))
		case mem.Job:
			w.checkJob(op, w.endsOf(op.Link))
		}
	}
	for _, p := range w.prefill {
		w.checkKernel(p)
	}
	if w.steps%64 == 0 {
		w.checkLedgers()
	}
}

// checkWrite looks at one write under way.
func (w *World) checkWrite(op *mem.Op, e *ends) {
	if op.State >= mem.Checked && e.dstAlive() && e.dst.fenced {
		w.violate(I16, "the fence of epoch %d is back, and %s %d of lease %d still places", op.Link.Epoch, op.Kind, op.Ref, op.Lease)
	}
	if w.lax || !e.srcAlive() { // its process is dead
		return
	}
	wr := e.src.writes[op.ID][op.Index]
	if op.State == mem.Queued || w.cfg.Verbs.On && op.State == mem.Launched && !op.Again && !e.src.fenced {
		if v := e.srcRank.m.Page(wr.Component, wr.Src); v.State == pages.Free {
			w.violate(I6, "%s %s page %d is free and a write of lease %d still reads it", e.srcRank.host.name, wr.Component, wr.Src, op.Lease)
		}
	}
	if op.Again && op.State < mem.Checked || !e.dstAlive() || e.dst.fenced {
		return // a doubled write stands behind no notice: only the grant table keeps it out (I7)
	}
	v := e.dstRank.m.Page(wr.Component, wr.Dst.Page)
	if op.Again && v.State == pages.Free && v.Gen == wr.Dst.Gen {
		return // nobody has the page, and who gets it sees first that nothing is placed there: see expel
	}
	if v.State == pages.Free || v.Gen != wr.Dst.Gen {
		w.violate(I2, "%s %s page %d generation %d is %s in generation %d, and a write of lease %d may land in it",
			e.dstRank.host.name, wr.Component, wr.Dst.Page, wr.Dst.Gen, v.State, v.Gen, op.Lease)
	}
}

// checkJob: what a reader copies, or will, is still the page that it was offered (I6).
func (w *World) checkJob(op *mem.Op, e *ends) {
	if !e.dstAlive() {
		return
	}
	if e.dst.fenced {
		w.violate(I16, "the fence of epoch %d is back, and %s %d of lease %d still places", op.Link.Epoch, op.Kind, op.Ref, op.Lease)
	}
	if !e.srcAlive() {
		return
	}
	copies := e.dst.copies[op.ID]
	for _, c := range copies[min(op.Index, len(copies)):] {
		if v := e.srcRank.m.Page(c.Component, c.Src.Page); v.State == pages.Free || v.Gen != c.Src.Gen {
			w.violate(I6, "%s %s page %d is %s in generation %d, and lease %d copies generation %d of it", e.srcRank.host.name, c.Component, c.Src.Page, v.State, v.Gen, op.Lease, c.Src.Gen)
		}
	}
}

// checkKernel: what is being computed is computed into pages of its own (I2).
func (w *World) checkKernel(p *prefillSide) {
	if p.running == nil || !p.up || p.lead.dead {
		return
	}
	for k, r := range p.ranks {
		for c, ps := range p.running.Pages[k] {
			for _, g := range ps {
				if v := r.m.Page(spec.Component(c), g.Page); !r.host.dead && (v.State == pages.Free || v.Gen != g.Gen) {
					w.violate(I2, "%s %s page %d is %s in generation %d, and a kernel of %s writes generation %d", r.host.name, spec.Component(c), g.Page, v.State, v.Gen, p.running.Transfer, g.Gen)
				}
			}
		}
	}
}

// checkLedgers walks every ledger: often where pools are small, seldom where they are great.
func (w *World) checkLedgers() {
	if max(w.cfg.PrefillPages, w.cfg.DecodePages) >= bigPool && w.steps%(1<<16) != 0 {
		return
	}
	for _, p := range w.prefill {
		for _, r := range p.ranks {
			if err := r.m.Check(); p.up && err != nil {
				w.violate(I17, "%s: %v", r.host.name, err)
			}
		}
	}
	for _, d := range w.decode {
		for _, r := range d.ranks {
			if err := r.m.Check(); d.up && err != nil {
				w.violate(I17, "%s: %v", r.host.name, err)
			}
		}
	}
}

// Answered reports whether every request has its end.
func (w *World) Answered() bool {
	for _, q := range w.requests {
		if !q.Done && !q.Half {
			return false
		}
	}
	return true
}

// Connected reports whether every decode rank has an open link with every prefill rank.
func (w *World) Connected() bool {
	for _, d := range w.decode {
		for _, r := range d.ranks {
			for _, l := range r.m.Status().Links {
				if l.State != "open" || !d.up {
					return false
				}
			}
		}
	}
	for _, p := range w.prefill {
		for _, r := range p.ranks {
			open := 0
			for _, l := range r.m.Status().Links {
				if l.State == "open" {
					open++
				}
			}
			if want := len(w.decodeRanks()); open < want {
				return false
			}
		}
	}
	return true
}

func (w *World) decodeRanks() (all []*decodeRank) {
	for _, d := range w.decode {
		all = append(all, d.ranks...)
	}
	return all
}

// Clean reports whether the cluster is idle and every page of every live node is free (promise 3).
func (w *World) Clean() bool {
	for _, p := range w.prefill {
		if s := p.l.Status(); !p.up || s.Admitted+s.Halves > 0 {
			return false
		}
		for _, r := range p.ranks {
			if !free(r.m.Status().Pools) || r.m.Status().Jobs > 0 {
				return false
			}
		}
	}
	for _, d := range w.decode {
		if s := d.l.Status(); !d.up || s.Queued+s.Asking+s.Waiting+s.Filling+s.Running+s.Ending > 0 {
			return false
		}
		for _, r := range d.ranks {
			if s := r.m.Status(); !free(s.Pools) || s.Quarantine > 0 || s.Leases != (core.LeaseCounts{}) {
				return false
			}
		}
	}
	return true
}

func free(ps [spec.ComponentCount]core.PoolStatus) bool {
	for _, p := range ps {
		if p.Free != p.Total {
			return false
		}
	}
	return true
}

// FreePages are the free KV pages of each live rank, prefill first.
func (w *World) FreePages() (n []uint32) {
	for _, p := range w.prefill {
		for _, r := range p.ranks {
			n = append(n, r.m.Status().Pools[spec.KV].Free)
		}
	}
	for _, r := range w.decodeRanks() {
		n = append(n, r.m.Status().Pools[spec.KV].Free)
	}
	return n
}

// Dump is the cluster's state for people.
func (w *World) Dump() string {
	var b strings.Builder
	for _, p := range w.prefill {
		fmt.Fprintf(&b, "p%d up=%t paused=%t box=%d %+v\n", p.slot, p.up, p.paused, len(p.box), p.l.Status())
		for _, r := range p.ranks {
			fmt.Fprintf(&b, "  %s %+v\n", r.host.name, r.m.Status())
		}
	}
	for _, d := range w.decode {
		fmt.Fprintf(&b, "d%d up=%t paused=%t box=%d %+v\n", d.slot, d.up, d.paused, len(d.box), d.l.Status())
		for _, r := range d.ranks {
			fmt.Fprintf(&b, "  %s %+v\n", r.host.name, r.m.Status())
		}
	}
	for _, q := range w.requests {
		if !q.Done {
			fmt.Fprintf(&b, "request %d of d%d has no answer\n", q.ID, q.Slot)
		}
	}
	for _, op := range w.fabric.Pending() {
		fmt.Fprintf(&b, "op %d %s %s lease %d ready=%t held=%t\n", op.Ref, op.Kind, op.State, op.Lease, op.Ready, op.Held)
	}
	fmt.Fprintf(&b, "works %d, conns %d\n", len(w.works), len(w.conns))
	return b.String()
}

// noteLate counts a write that comes to its target although its source is dead.
func (w *World) noteLate(ref mem.OpRef) {
	for i := range w.fabric.Len() {
		if op := w.fabric.At(i); op.Ref == ref {
			if e := w.endsOf(op.Link); op.Kind == mem.Write && op.State == mem.Launched && !e.srcAlive() && e.dstAlive() && !e.dst.fenced {
				w.count(WriteLate)
			}
			return
		}
	}
}
