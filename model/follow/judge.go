package follow

import "slices"

// judge looks at the properties of the specification, by their names there, on the leases that the line changed. The guards keep them (that is
// proved and checked elsewhere); here they are a second look at the same state.
func (f *Follower) judge() {
	touched := f.s.touched
	f.s.touched = f.s.touched[:0]
	if f.found != nil || len(touched) == 0 {
		return
	}
	slices.Sort(touched)
	for _, id := range slices.Compact(touched) {
		if l := f.s.leases[id]; l != nil && f.found == nil {
			f.judgeLease(l)
		}
	}
}

func (f *Follower) judgeLease(l *lease) {
	num := l.id & numbers >> subBits
	for _, p := range l.plan {
		pg := f.s.pages[p.page]
		if pg != nil && pg.own == l.id {
			f.require(live(l) && pg.gen == p.gen && l.dof == f.s.nodes[l.node].dinc, "Conservation (I17)", `own[p] = l => (Live(l) /\ gpage[l, p] = gen[p] /\ dof[l] = dinc)`, "page %d of lease %d, which is %s", pageNumber(p.page), num, dstNames[l.dst])
		}
	}
	for _, o := range l.owes {
		if o.owes {
			f.judgeWrites(l, o, num)
		}
	}
}

func (f *Follower) judgeWrites(l *lease, o *owe, num Lease) {
	k := f.s.links[o.k]
	for _, w := range o.sent {
		pg, lands := f.s.pages[w.p], w.placing || w.unseen
		if pg == nil || !f.s.mayLand(o, w) {
			continue
		}
		mine := pg.own == l.id && pg.gen == l.at[w.p]
		f.require(mine, "NoReuseWhileInFlight (I2)", `MayLand(l, k, p, c, i) => (own[p] = l /\ gen[p] = gpage[l, p])`, "page %d, lease %d", pageNumber(w.p), num)
		f.require(!pg.app, "TailSafe (I18)", "app[p] => ~MayLand(l, k, p, c, i)", "page %d, lease %d", pageNumber(w.p), num)
		f.require(!lands || f.s.current(o) || k.fencing, "FenceHolds (I16)", `(Lands(l, k, p, c, i) /\ ~fencing[k]) => Current(l, k)`, "page %d, lease %d", pageNumber(w.p), num)
		f.require(o.hold || l.dst == dstDead, "AckMeansDrained (I9)", "a hold that ended leaves nothing pending", "page %d, lease %d", pageNumber(w.p), num)
	}
	if l.dst == dstReady && l.dof == f.s.nodes[l.node].dinc {
		f.require(o.got && o.ans&(1<<kindComplete) != 0 || k.pull && o.got, "Coverage (I4)", `dst[l] = "ready" /\ Owed(l, k, p) => got[l, k] /\ <<"complete", l, k, ginc[l, k]>> \in ans`, "lease %d, link %d", num, o.k)
	}
}

// judgeSuccess is I12 when a transfer succeeds: every part of every lease was taken, from who owed it.
func (f *Follower) judgeSuccess(t *transfer) {
	for _, id := range t.leases {
		l := f.s.leases[id]
		if l == nil {
			continue
		}
		for _, o := range l.owes {
			f.require(!o.owes || o.got, "NoFalseSuccess (I12)", `lead[t] = "ok" /\ tof[l] = t /\ owes[l, k] => got[l, k]`, "lease %d, link %d", id&numbers>>subBits, o.k)
		}
	}
}
