package follow

import (
	"slices"

	"kvfence/spec"
)

// What is over is forgotten, so that memory is bounded by what is live. A lease is over when decode has its pages back, nobody shares what
// it filled, and prefill cannot begin it any more: a mark has passed it, or that life of prefill is gone. A transfer is over when its request is
// answered and its leases are forgotten. What comes late about either is below a mark or a counter, and is known to be late by that.

// sweepEvery is how many lines go by between two looks at what is over.
const sweepEvery = 512

func (f *Follower) decodeOver(r *decodeRank) {
	r.over = true
	f.hide(Act{Name: "DecodeCrash", Node: r.node})
	n := f.s.nodes[r.node]
	for id := range n.leases {
		f.overL = append(f.overL, id)
	}
	slices.Sort(f.overL)
	f.overL = slices.Compact(f.overL)
	r.leases, r.phys, r.ended = map[spec.LeaseID]*decodeLease{}, map[Page]spec.LeaseID{}, nil
}

func (f *Follower) prefillOver(p *prefillRank) {
	p.batches, p.jobs, p.phys = map[uint64]*sourceBatch{}, map[spec.TraceTransfer]*sourceJob{}, map[uint64]*sourcePage{}
	for _, k := range p.peers {
		clear(k.leases)
	}
}

func (f *Follower) leaderOver(r *decodeLeader) {
	r.over = true
	for _, t := range r.reqs {
		if x := f.s.transfer(t); x.lead >= leadSubmitted && x.lead <= leadRun {
			x.lead, x.cause = leadFailed, causeDerived
		}
	}
}

// sweep forgets what is over.
func (f *Follower) sweep() {
	if f.line%sweepEvery != 0 {
		return
	}
	kept := f.overL[:0]
	for _, id := range f.overL {
		if l := f.s.leases[id]; l != nil && !f.forgettable(l) {
			kept = append(kept, id)
		} else if l != nil {
			f.drop(l)
		}
	}
	f.overL = kept
	for id, t := range f.s.transfers {
		f.dropTransfer(id, t)
	}
	for _, k := range f.s.links {
		for x := range k.pfenced {
			if x.e+64 < k.ep {
				delete(k.pfenced, x)
			}
		}
		for x := range k.acc {
			if x.e+64 < k.ep {
				delete(k.acc, x)
			}
		}
	}
}

func (f *Follower) forgettable(l *lease) bool {
	for _, p := range l.plan {
		pg := f.s.pages[p.page]
		if pg == nil {
			continue
		}
		if slices.ContainsFunc(pg.pubs, func(x published) bool { return x.filler == l.id }) || slices.ContainsFunc(pg.sharers, func(x share) bool { return x.filler == l.id }) {
			return false
		}
	}
	n := f.s.nodes[l.node]
	for _, o := range l.owes {
		if !o.owes {
			continue
		}
		k := f.s.links[o.k]
		late := l.id < k.pmark || o.ginc != k.pinc
		if n.dinc > l.dof || f.heldBy(o) == nil {
			late = late || n.dinc > l.dof && f.holding(o) == nil || l.id < k.dmark && f.heldBy(o) == nil
		}
		for _, w := range o.sent {
			late = late && !w.queued
		}
		if !late {
			return false
		}
	}
	return true
}

// heldBy is the prefill rank at the other end of what a lease is owed over; nil if it writes no trace or is gone.
func (f *Follower) heldBy(o *owe) *prefillRank {
	for _, r := range f.decodes {
		if r.node != o.lease.node {
			continue
		}
		for _, k := range r.links {
			if k.k == o.k && int(o.ginc) < len(k.incs) {
				if p := f.prefill[k.incs[o.ginc]]; p != nil && !p.over {
					return p
				}
			}
		}
	}
	return nil
}

// holding is prefill's end of a lease of a decode rank that is gone.
func (f *Follower) holding(o *owe) *prefillLease {
	p := f.heldBy(o)
	if p == nil {
		return nil
	}
	for _, k := range p.links {
		if x := k.leases[spec.LeaseID(o.lease.id&numbers>>subBits)]; x != nil && x.id == o.lease.id {
			return x
		}
	}
	return nil
}

func (f *Follower) drop(l *lease) {
	delete(f.s.leases, l.id)
	delete(f.s.nodes[l.node].leases, l.id)
	for _, o := range l.owes {
		delete(f.s.links[o.k].owed, l.id)
	}
	if t := f.s.transfers[l.tof]; t != nil {
		t.leases = slices.DeleteFunc(t.leases, func(x Lease) bool { return x == l.id })
		t.had = true
	}
}

func (f *Follower) dropTransfer(id Transfer, t *transfer) {
	name := f.names[id]
	led := f.leaders[name.Leader]
	outside := t.had && (led == nil || name.Counter >= outsideCounter)
	if len(t.leases) > 0 || !outside && t.lead < leadOk {
		return
	}
	if r := f.s.transfers[t.root]; !outside && r != nil && r.http == httpNone && (led == nil || !led.over) || t.succ != 0 && f.s.transfers[t.succ] != nil {
		return
	}
	delete(f.s.transfers, id)
	delete(f.ids, name)
	delete(f.names, id)
	delete(f.words, id)
}
