package follow

import (
	"slices"

	"kvfence/spec"
)

// What decode hands out.

func (f *Follower) decodeGrant(r *decodeRank, l *spec.TraceLine, d *spec.TraceDid) {
	id := leaseKey(r.node, d.Lease)
	n := f.s.nodes[r.node]
	fork := l.Event.Kind == "Side" && l.Event.Message == "Fork"
	if !f.require(id >= n.nextL && r.leases[d.Lease] == nil, "Grant", "l = nextL", "lease %d, the next is %d", d.Lease, n.nextL&numbers>>subBits) {
		return
	}
	f.require(fork || d.Lease == r.taken, "Grant", "pages are taken before they are granted", "lease %d, taken is %d", d.Lease, r.taken)
	n.nextL = id
	x := &decodeLease{id: id, name: d.Transfer, subs: map[Page]Lease{}, filler: map[Page]Lease{}, said: map[uint32]*saidReceipt{}, allow: map[uint32]bool{}, jobs: map[uint64]uint32{}}
	shared := 0
	for i := range l.Did {
		if y := &l.Did[i]; y.Name == "Share" && y.Lease == d.Lease {
			shared++
		}
	}
	a := Act{Name: "Grant", Node: r.node, T: f.transfer(d.Transfer), L: id, N: domainOf(d.Domain)}
	x.t = a.T
	owed := f.grantParts(r, d, &a, shared)
	for c, ps := range d.Pages {
		for _, p := range ps {
			key := pageKey(r.node, c, p[0])
			f.handOut(r, d.Lease, key, p)
			if owed[key] {
				a.S = append(a.S, key)
				f.generation(r, key, p)
			} else {
				f.require(r.signed[key] == p[1], "Grant", "decode signs the pages that it fills itself", "page %d generation %d, signed %d", p[0], p[1], r.signed[key])
				x.local = append(x.local, localPage{c, p})
			}
		}
		if c == int(spec.KV) && shared > 0 {
			x.table[c] = make([]spec.TracePage, shared, shared+len(ps))
		}
		x.table[c] = append(x.table[c], ps...)
	}
	f.leaderWord(r, l, &a, fork)
	f.stats.Leases++
	r.leases[d.Lease] = x
	r.taken = 0
}

// grantParts says who owes what: parts name page indexes of the lease.
func (f *Follower) grantParts(r *decodeRank, d *spec.TraceDid, a *Act, shared int) map[Page]bool {
	owed := map[Page]bool{}
	for _, part := range d.Parts {
		k := r.links[uint32(part[0])]
		if !f.require(k != nil && part[1] < uint64(spec.ComponentCount), "Grant", "k \\in Rank", "link %d is not configured", part[0]) {
			continue
		}
		if !slices.Contains(a.Ks, k.k) {
			a.Ks = append(a.Ks, k.k)
		}
		skip := uint64(0)
		if part[1] == uint64(spec.KV) {
			skip = uint64(shared)
		}
		for i := part[3]; i < part[4]; i++ {
			if !f.require(i >= skip && i-skip < uint64(len(d.Pages[part[1]])), "Grant", "PlanCovers", "part %d of component %d is of page index %d, the lease has %d from %d", part[2], part[1], i, len(d.Pages[part[1]]), skip) {
				break
			}
			key := pageKey(r.node, int(part[1]), d.Pages[part[1]][i-skip][0])
			owed[key] = true
			a.Parts = append(a.Parts, Part{k.k, key})
		}
	}
	return owed
}

// handOut judges that a page came out of the pool for this lease: its tags were voided when it was taken.
func (f *Follower) handOut(r *decodeRank, lease spec.LeaseID, key Page, p spec.TracePage) {
	owner, out := r.phys[key]
	f.require(out && owner == 0 || r.voided[key] && !out, "Grant", "VoidTags: a page's tags are voided at hand-out", "page %d of lease %d: out %t, owner %d", p[0], lease, out, owner)
	r.phys[key] = lease
}

// generation raises a page's generation to just below the one that is handed out now: it was taken and given back without a grant.
func (f *Follower) generation(r *decodeRank, key Page, p spec.TracePage) {
	pg := f.s.page(r.node, key)
	if f.require(Gen(p[1]) > pg.gen, "Grant", "gen' = [gen EXCEPT ![p] = gen[p] + 1]", "page %d in generation %d was in %d before", p[0], p[1], pg.gen) && pg.own == 0 {
		pg.gen = Gen(p[1]) - 1
	}
}

// leaderWord takes the grant where its leader's word stands: the verdict may have come since, and the two change places.
func (f *Follower) leaderWord(r *decodeRank, l *spec.TraceLine, a *Act, fork bool) {
	t := f.s.transfer(a.T)
	known := f.leaders[l.Did[0].Transfer.Leader] != nil || t.lead != leadNew
	switch {
	case fork && t.lead == leadNew, !known && !f.strict: // a further sample has no leader yet; or its leader writes no trace
		t.lead, t.pask = leadOpen, true
		f.stats.Hidden += 4
	case t.lead == leadFailed && f.word(a.T, "Go"):
		t.lead = leadOpen
		f.do(*a)
		t.lead = leadFailed
		return
	}
	f.do(*a)
}

// growPage takes a page that decode fills itself.
func (f *Follower) growPage(r *decodeRank, x *decodeLease, c int, p spec.TracePage) {
	key := pageKey(r.node, c, p[0])
	f.generation(r, key, p)
	x.nsub++
	sub := x.id + x.nsub
	if x.nsub >= 1<<subBits {
		f.say("Grow", "l \\in Lease", "more pages than the follower has numbers for")
		return
	}
	if f.do(Act{Name: "Grow", L: x.id, X: sub, P: key}) {
		x.subs[key] = sub
	}
}

// decodePageDid takes what is about one page of a lease.
func (f *Follower) decodePageDid(r *decodeRank, l *spec.TraceLine, d *spec.TraceDid, x *decodeLease) {
	c, p := onePage(d.Pages)
	if !f.require(c >= 0, d.Name, "p \\in Page", "it names no page") {
		return
	}
	key := pageKey(r.node, c, p[0])
	switch d.Name {
	case "Grow":
		if _, out := r.phys[key]; f.require(!out && r.voided[key], "Grow", "VoidTags: a page's tags are voided at hand-out", "page %d: out %t, voided %t", p[0], out, r.voided[key]) {
			r.phys[key] = d.Lease
		}
		f.growPage(r, x, c, p)
		if !replaced(l, x, c, p) {
			x.table[c] = append(x.table[c], p)
		}
	case "Share":
		filler := leaseKey(r.node, d.Filler)
		i := len(x.filler)
		if f.require(i < len(x.table[c]), "Share", "Fills(l, p, x)", "lease %d shares more pages than it says", d.Lease) {
			x.table[c][i] = p
		}
		x.filler[key] = filler
		f.shareTaken(r, Act{Name: "Share", L: x.id, P: key, G: Gen(p[1]), X: filler})
	case "Publish":
		f.require(p[1] == uint64(f.s.page(r.node, key).gen), "Publish", "AddPublished(l, p, gen[p])", "generation %d, the page is in %d", p[1], f.s.page(r.node, key).gen)
		f.do(Act{Name: "Publish", L: x.id, P: key})
	case "Append":
		f.require(p[1] == uint64(f.s.page(r.node, key).gen), "Append", "gen[p] = g", "page %d generation %d, it is in %d", p[0], p[1], f.s.page(r.node, key).gen)
		if i := int(l.Event.Pos / max(r.tokens, 1)); l.Event.Kind == "ReadBegin" && r.tokens > 0 {
			f.require(i < len(x.table[c]) && x.table[c][i] == p, "Append", "the page of the position", "position %d, page %d", l.Event.Pos, p[0])
		}
		owner := x.id
		if sub, ok := x.subs[key]; ok {
			owner = sub
		}
		f.do(Act{Name: "Append", L: owner, P: key})
	}
}

// shareTaken takes a share that was held since the pages were taken: its publication may have ended since.
func (f *Follower) shareTaken(r *decodeRank, a Act) {
	pg := f.s.page(r.node, a.P)
	was := endedPub{a.P, published{a.G, a.X}}
	if slices.Contains(r.ended, was) && !slices.Contains(pg.pubs, was.published) {
		pg.pubs = append(pg.pubs, was.published)
		f.do(a)
		pg.pubs = pg.pubs[:len(pg.pubs)-1]
		return
	}
	f.do(a)
}

func (f *Follower) decodeUnpublish(r *decodeRank, d *spec.TraceDid) {
	c, p := onePage(d.Pages)
	if !f.require(c >= 0, d.Name, "p \\in Page", "it names no page") {
		return
	}
	a := Act{Name: "Unpublish", Node: r.node, P: pageKey(r.node, c, p[0]), G: Gen(p[1]), X: leaseKey(r.node, d.Filler)}
	f.do(a)
	if r.taken != 0 {
		r.ended = append(r.ended, endedPub{a.P, published{a.G, a.X}})
	}
}

// replaced puts a page that is a copy of another in its place in the block table: the copies of this line's read say so.
func replaced(l *spec.TraceLine, x *decodeLease, c int, p spec.TracePage) bool {
	for i := range l.Out {
		for _, cp := range l.Out[i].Copies {
			if cp[0] != uint64(c) || cp[5] != p[0] {
				continue
			}
			at := slices.Index(x.table[c], spec.TracePage{cp[3], cp[4]})
			if at >= 0 {
				x.table[c] = slices.Clone(x.table[c])
				x.table[c][at] = p
				return true
			}
		}
	}
	return false
}

func onePage(ps spec.TracePages) (int, spec.TracePage) {
	for c, l := range ps {
		if len(l) == 1 {
			return c, l[0]
		}
	}
	return -1, spec.TracePage{}
}
