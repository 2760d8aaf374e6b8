package follow

import (
	"slices"

	"kvfence/spec"
)

// Reads, and what is found by them.

func (f *Follower) decodeReadDid(r *decodeRank, l *spec.TraceLine, d *spec.TraceDid, x *decodeLease) {
	switch d.Name {
	case "Read":
		f.decodeRead(r, d, x)
	case "ReadEnd":
		f.require(x.reads > 0, "ReadEnd", "<<l, p, g, x>> \\in krn", "lease %d is not read", d.Lease)
		x.reads = 0
		f.damage(r, d, x)
		f.readEnds(r, x, d.Pages)
	case "BadVerify":
		if y := f.s.leases[x.id]; y != nil && y.dst == dstRevoking { // given up meanwhile: the specification looks at it no more
			x.found = true
			for c, ps := range d.Pages {
				for _, p := range ps {
					r.bad[pageKey(r.node, c, p[0])] = true
				}
			}
			return
		}
		f.believeWrites(r, x)
		f.damage(r, d, x)
		f.do(Act{Name: "BadVerify", L: x.id})
	}
}

// kernels is each page of a lease's block table with the lease that it is expected to be filled by.
func (f *Follower) kernels(r *decodeRank, x *decodeLease, do func(l Lease, p Page, filler Lease)) {
	for c, ps := range x.table {
		for _, p := range ps {
			key := pageKey(r.node, c, p[0])
			if sub, ok := x.subs[key]; ok {
				do(sub, key, sub)
			} else if filler, ok := x.filler[key]; ok {
				do(x.id, key, filler)
			} else {
				do(x.id, key, x.id)
			}
		}
	}
}

func (f *Follower) decodeRead(r *decodeRank, d *spec.TraceDid, x *decodeLease) {
	t := f.s.transfer(x.t)
	if t.lead == leadOpen && f.leaders[x.name.Leader] == nil || t.lead == leadOpen && x.name.Counter >= outsideCounter { // its leader writes no trace, or it has none
		f.hide(Act{Name: "Run", T: x.t})
	}
	f.require(t.lead != leadFailed || f.word(x.t, "Step"), "Read", `lead[t] = "run"`, "the transfer has failed, and its leader never asked for a step")
	f.require(x.reads == 0, "Read", "a lease is read by one step at a time", "lease %d is read already", d.Lease)
	x.reads++
	f.kernels(r, x, func(l Lease, p Page, filler Lease) {
		f.do(Act{Name: "Read", T: x.t, L: l, P: p, X: filler})
	})
}

// damage is what the specification knows as a stray write: the tag or the bytes of a page are not what was put there.
func (f *Follower) damage(r *decodeRank, d *spec.TraceDid, x *decodeLease) {
	if d.Pages.IsZero() {
		return
	}
	f.stats.Damaged++
	x.found = true
	known := false
	for c, ps := range d.Pages {
		for _, p := range ps {
			r.bad[pageKey(r.node, c, p[0])] = true
			known = f.strayInto(r, pageKey(r.node, c, p[0])) || known
		}
	}
	// Only pages that decode signs itself: their tags are not in the specification. The finding is taken as one in another page of the
	// lease, or, where all others are shared, or what a link wrote there was another lease's, in the lease alone.
	for _, p := range f.s.lease(x.id).plan {
		if known {
			break
		}
		known = f.strayInto(r, p.page)
	}
	if y := f.s.leases[x.id]; y != nil && y.dst == dstReady {
		f.s.setDst(y, dstBad)
		f.s.quarantine(y)
	}
}

// strayInto damages a page that some link has written; false if none has.
func (f *Follower) strayInto(r *decodeRank, key Page) bool {
	pg := f.s.pages[key]
	if pg == nil {
		return false
	}
	for _, x := range pg.slots {
		if x.tag != 0 && f.hide(Act{Name: "Stray", P: key, K: x.k}) {
			return true
		}
	}
	return len(pg.slots) > 0 && !slices.ContainsFunc(pg.slots, func(x slot) bool { return x.tag != 0 })
}

// readEnds ends the kernels of a lease; what was found is found by each of them. Pages that are copied from others are found bad there, too.
func (f *Follower) readEnds(r *decodeRank, x *decodeLease, bad spec.TracePages) {
	mine := map[Page]bool{}
	f.kernels(r, x, func(l Lease, p Page, filler Lease) {
		mine[p] = true
		y := f.s.lease(l)
		for k := range y.krn {
			if k.page == p && k.filler == filler {
				f.do(Act{Name: "ReadEnd", L: l, P: p, G: k.gen, X: filler})
			}
		}
	})
	for _, l := range append([]Lease{x.id}, subsOf(x)...) { // pages that have left the block table within the step
		y := f.s.lease(l)
		for k := range y.krn {
			f.do(Act{Name: "ReadEnd", L: l, P: k.page, G: k.gen, X: k.filler})
		}
	}
	for c, ps := range bad {
		for _, p := range ps {
			if key := pageKey(r.node, c, p[0]); !mine[key] {
				f.foundElsewhere(r, key)
			}
		}
	}
}

func subsOf(x *decodeLease) (out []Lease) {
	for _, s := range x.subs {
		out = append(out, s)
	}
	slices.Sort(out)
	return out
}

// foundElsewhere: the page that a bad one is a copy of fails whoever holds it.
func (f *Follower) foundElsewhere(r *decodeRank, key Page) {
	pg := f.s.page(r.node, key)
	if y := f.s.leases[pg.own]; y != nil && y.dst == dstReady && f.hide(Act{Name: "BadRead", L: y.id, P: key, X: y.id}) {
		return
	}
	for _, y := range slices.Clone(pg.sharers) {
		f.hide(Act{Name: "BadRead", L: y.lease, P: key, X: y.filler})
	}
}
