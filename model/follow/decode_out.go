package follow

import (
	"slices"

	"kvfence/spec"
)

// What a decode rank puts out, compared with what it says and with the state.

// decodeVoided notes the pages whose tags this line voids: they come out of the pool.
func (f *Follower) decodeVoided(r *decodeRank, l *spec.TraceLine) {
	taken := spec.LeaseID(0)
	for i := range l.Out {
		if o := &l.Out[i]; o.Kind == "ToLeader" && o.Message == "Taken" && l.Event.Message == "Take" {
			taken = o.Lease
		}
	}
	for i := range l.Out {
		if l.Out[i].Kind != "VoidTags" {
			continue
		}
		for c, ps := range l.Out[i].Pages {
			for _, p := range ps {
				key := pageKey(r.node, c, p[0])
				owner, out := r.phys[key]
				f.require(!out, "VoidTags", "own[p] = 0 /\\ Free(p)", "page %d is lease %d's", p[0], owner)
				if pg := f.s.pages[key]; pg != nil {
					f.require(!slices.ContainsFunc(pg.pubs, func(x published) bool { return x.gen == pg.gen }) || unpublishes(l, p[0]), "VoidTags", "a page that is handed out is published no more", "page %d", p[0])
					f.require(pg.own == 0 && len(pg.sharers) == 0, "VoidTags", "own[p] = 0 /\\ Free(p)", "page %d is lease %d's, with %d shares", p[0], pg.own&numbers>>subBits, len(pg.sharers))
				}
				r.voided[key] = true
				if taken > r.highest {
					r.phys[key] = 0
				}
			}
		}
	}
	f.require(taken == 0 || taken <= r.highest || !r.ending, "Take", "a rank whose fence failed takes nothing new", "lease %d", taken)
	if taken > r.highest { // else it is said again
		f.require(r.taken == 0, "Take", "one lease is taken at a time", "lease %d is taken, now %d", r.taken, taken)
		r.taken, r.takenFor, r.highest, r.ended = taken, l.Event.Transfer, taken, nil
	}
}

func (f *Follower) decodeOut(r *decodeRank, l *spec.TraceLine, o *spec.TraceOut) {
	if r.stopped {
		return
	}
	switch o.Kind {
	case "Send":
		f.decodeSend(r, l, o)
	case "Allow":
		f.decodeAllow(r, l, o)
	case "Revoke":
		if x := r.leases[o.Lease]; x != nil {
			x.allow[o.Peer] = false
			f.s.touch(f.s.lease(x.id))
		}
	case "Fence":
		k := r.links[o.Peer]
		f.require(k != nil && Epoch(o.Epoch) == f.s.links[k.k].ep && o.Old+1 == o.Epoch && says(l, "Fence", o.Peer, 0), "Fence", "ep' = ep[k] + 1, and it is said", "from %d to %d", o.Old, o.Epoch)
	case "OpenData":
		k := r.links[o.Peer]
		f.require(k != nil && Epoch(o.Epoch) == f.s.links[k.k].ep && (r.ending || !f.s.links[k.k].fencing), "OpenData", "~fencing[k]", "epoch %d", o.Epoch)
	case "Verify":
		f.decodeVerify(r, o)
	case "ReadPages":
		f.decodePages(r, l, o)
	case "PutTag":
		c, p := onePage(o.Pages)
		r.signed[pageKey(r.node, max(c, 0), p[0])] = p[1]
		f.require(c >= 0 && r.voided[pageKey(r.node, max(c, 0), p[0])], "PutTag", "VoidTags: a page's tags are voided at hand-out", "page %d was not taken in this step", p[0])
	case "ToLeader":
		f.decodeToLeader(r, l, o)
	case "Stop":
		r.stopped = true
		f.require(o.Broken == 0, "Stop", "no invariant is broken", "the machine says that I%d is", o.Broken)
	}
}

func unpublishes(l *spec.TraceLine, page uint64) bool {
	return slices.ContainsFunc(l.Did, func(d spec.TraceDid) bool {
		c, p := onePage(d.Pages)
		return d.Name == "Unpublish" && c == int(spec.KV) && p[0] == page
	})
}

// says: the line has an action of that name, for the link or lease if one is given.
func says(l *spec.TraceLine, name string, peer uint32, lease spec.LeaseID) bool {
	return slices.ContainsFunc(l.Did, func(d spec.TraceDid) bool {
		return d.Name == name && (peer == 0 || d.Peer == peer) && (lease == 0 || d.Lease == lease)
	})
}

func puts(l *spec.TraceLine, kind, message string, peer uint32, lease spec.LeaseID) bool {
	return slices.ContainsFunc(l.Out, func(o spec.TraceOut) bool {
		return o.Kind == kind && (message == "" || o.Message == message) && (peer == 0 || o.Peer == peer) && (lease == 0 || o.Lease == lease)
	})
}

func (f *Follower) decodeSend(r *decodeRank, l *spec.TraceLine, o *spec.TraceOut) {
	k := r.links[o.Peer]
	if !f.require(k != nil, "Send", "k \\in Rank", "link %d is not configured", o.Peer) {
		return
	}
	link := f.s.links[k.k]
	f.require(Epoch(o.Epoch) == link.ep, "Send "+o.Message, "a message carries its link's epoch", "it carries %d, the link is in %d", o.Epoch, link.ep)
	f.require(o.Mark == 0 || leaseKey(r.node, o.Mark) <= link.dmark, "Send "+o.Message, "Mark(k,m) is sent for every m up to dmark[k]", "mark %d, said is %d", o.Mark, link.dmark&numbers>>subBits)
	if o.Message != "grant" && o.Message != "abort" && o.Message != "read" {
		return
	}
	x := r.leases[o.Lease]
	if x == nil {
		f.require(o.Message == "read" && o.Lease < r.highest+1, "Send "+o.Message, `dst[l] # "new"`, "lease %d was never granted, or is over", o.Lease)
		return
	}
	y, w := f.s.lease(x.id), f.s.lease(x.id).on(k.k)
	switch o.Message {
	case "grant":
		f.require(w != nil && w.owes && w.hold && Epoch(o.Epoch) == w.gep && y.dst == dstFilling, "Send grant", `owes[l, k] /\ hold[l, k] /\ dst[l] = "filling"`, "lease %d is %s", o.Lease, dstNames[y.dst])
		f.require(k.pull || x.allow[o.Peer], "Send grant", "the lease stands in the grant table before its grant is sent", "lease %d, link %d", o.Lease, o.Peer)
	case "abort":
		f.require(w != nil && w.owes && w.hold && aborted(y), "Send abort", "owes[l, k] /\\ l was revoked", "lease %d is %s", o.Lease, dstNames[y.dst])
	case "read":
		f.require(w != nil && !w.hold, "Send read", "SaidRead(l): its last copy has stopped", "lease %d", o.Lease)
	}
}

func (f *Follower) decodeAllow(r *decodeRank, l *spec.TraceLine, o *spec.TraceOut) {
	x, k := r.leases[o.Lease], r.links[o.Peer]
	if !f.require(x != nil && k != nil && says(l, "Grant", 0, o.Lease), "Allow", "Grant(t, n, a, f, l, S, K)", "lease %d is not granted in this step", o.Lease) {
		return
	}
	w := f.s.lease(x.id).on(k.k)
	f.require(w != nil && w.owes && Epoch(o.Epoch) == w.gep, "Allow", "owes[l, k] /\\ gep[l, k] = ep[k]", "lease %d, link %d, epoch %d", o.Lease, o.Peer, o.Epoch)
	for c, ps := range o.Pages {
		f.require(len(ps) == len(x.table[c]), "Allow", "gpage[l, p]", "%d pages of component %d, the lease has %d", len(ps), c, len(x.table[c]))
		for i, p := range ps {
			shared := c == int(spec.KV) && i < len(x.filler)
			want := spec.TracePage{}
			if i < len(x.table[c]) && !shared {
				want = x.table[c][i]
			}
			f.require(p == want, "Allow", "gpage[l, p] = gen[p]", "page %d generation %d at index %d, granted is %d generation %d", p[0], p[1], i, want[0], want[1])
		}
	}
	x.allow[o.Peer] = true
}

func (f *Follower) decodeVerify(r *decodeRank, o *spec.TraceOut) {
	x := r.leases[o.Lease]
	if !f.require(x != nil, "Verify", `dst[l] = "filling"`, "lease %d was never granted, or is over", o.Lease) {
		return
	}
	y := f.s.lease(x.id)
	f.require(y.dst == dstFilling && allGot(y), "Verify", `dst[l] = "filling" /\ AllGot(l)`, "lease %d is %s", o.Lease, dstNames[y.dst])
	f.require(o.Checks > 0, "Verify", "VerifyGood(l)", "nothing is compared")
	x.verify = true
}

// decodePages: the block table of a step is the lease's, page by page and generation by generation.
func (f *Follower) decodePages(r *decodeRank, l *spec.TraceLine, o *spec.TraceOut) {
	x := r.leases[o.Lease]
	if !f.require(x != nil && says(l, "Read", 0, o.Lease), "ReadPages", "Read(t, l, p, x)", "lease %d is not read in this step", o.Lease) {
		return
	}
	if !o.Pages.IsZero() {
		x.shown = o.Pages
	}
	for c := range x.table {
		f.require(slices.Equal(x.table[c], x.shown[c]), "ReadPages", "Fills(l, p, x)", "component %d: it reads %v, the lease has %v", c, x.shown[c], x.table[c])
		for _, p := range x.table[c] {
			g := f.s.page(r.node, pageKey(r.node, c, p[0])).gen
			f.require(Gen(p[1]) == g, "ReadPages", "gen[p] = g", "page %d generation %d, the page is in %d", p[0], p[1], g)
		}
	}
}

func (f *Follower) decodeToLeader(r *decodeRank, l *spec.TraceLine, o *spec.TraceOut) {
	t := f.ids[o.Transfer]
	switch o.Message {
	case "LeaseReady":
		f.require(says(l, "Ready", 0, 0), "LeaseReady", `dst[l] = "ready"`, "no lease became ready in this step")
	case "LeaseFreed":
		if r.taken != 0 && o.Transfer == r.takenFor {
			for p, owner := range r.phys { // taken back before any grant
				if owner == 0 {
					delete(r.phys, p)
				}
			}
			r.taken, r.ended = 0, nil
		}
		for id, x := range r.leases {
			if y := f.s.lease(x.id); t != 0 && x.t == t && f.require(x.found || y.dst == dstBad, "LeaseFreed", "Release(l)", "the lease of %s has not been released", o.Transfer) {
				f.partly(r, id, x, y)
			}
		}
	}
}

// partly gives the good pages of a lease back whose bad ones stay in quarantine. The specification keeps them all until its end
// (QuarantineEnd); the core keeps those that a finding is about. Here only what could go wrong by it is judged: nothing reads them, and nothing may
// land in them.
func (f *Follower) partly(r *decodeRank, id spec.LeaseID, x *decodeLease, y *lease) {
	for _, l := range append([]Lease{x.id}, subsOf(x)...) {
		z := f.s.lease(l)
		f.require(len(z.krn) == 0, "LeaseFreed", "LocalHold => NoKernel(l)", "lease %d is read", id)
		for _, o := range z.owes {
			f.require(!o.hold, "LeaseFreed", "AllHolds: the hold of every link has ended", "lease %d", id)
			for _, w := range o.sent {
				f.require(!f.s.mayLand(o, w), "LeaseFreed", "NoReuseWhileInFlight", "a write may land in page %d of lease %d", pageNumber(w.p), id)
			}
		}
		for _, p := range z.plan {
			if !r.bad[p.page] {
				if pg := f.s.page(r.node, p.page); pg.own == l {
					pg.own = 0
				}
			}
		}
	}
	for p, owner := range r.phys {
		if owner == id && !r.bad[p] {
			delete(r.phys, p)
		}
	}
	_ = y
}

// decodeAfter judges what must have come of the step.
func (f *Follower) decodeAfter(r *decodeRank, l *spec.TraceLine) {
	if r.stopped {
		return
	}
	f.decodeAnswered(r, l)
	if l.Event.Kind == "FenceDone" && !l.Event.Failed {
		f.quarantineDue(r, l)
	}
	for i := range l.Did {
		d := &l.Did[i]
		switch d.Name {
		case "Grant":
			f.grantSent(r, l, d)
		case "Fence":
			f.require(puts(l, "Fence", "", d.Peer, 0), "Fence", "it is put out", "link %d", d.Peer)
		case "Read":
			f.require(puts(l, "ReadPages", "", 0, d.Lease), "Read", "it is put out", "lease %d", d.Lease)
			f.require(l.Event.Pos == 0 || says(l, "Append", 0, d.Lease), "Append", "a step that stores at a position says so", "lease %d at %d", d.Lease, l.Event.Pos)
		case "Grow":
			c, p := onePage(d.Pages)
			f.require(c >= 0 && r.signed[pageKey(r.node, max(c, 0), p[0])] == p[1], "Grow", "decode signs the pages that it fills itself", "lease %d, page %d", d.Lease, p[0])
		case "Abort":
			f.abortSent(r, l, d)
		}
	}
	for _, id := range f.s.touched {
		y := f.s.leases[id]
		if y == nil || y.node != r.node || id&(1<<subBits-1) != 0 {
			continue
		}
		num := spec.LeaseID(id & numbers >> subBits)
		if x := r.leases[num]; x != nil {
			f.leaseAfter(r, num, x, y)
		}
	}
}

// leaseAfter: a lease that fills no more stands in no grant table; one whose parts are all in is verified.
func (f *Follower) leaseAfter(r *decodeRank, num spec.LeaseID, x *decodeLease, y *lease) {
	if y.dst != dstFilling {
		for peer, in := range x.allow {
			f.require(!in, "Revoke", "a lease that fills no more stands in no grant table", "lease %d is %s, link %d", num, dstNames[y.dst], peer)
		}
		return
	}
	for peer, in := range x.allow {
		f.require(in, "Revoke", `dst[l] # "filling"`, "lease %d, link %d", num, peer)
	}
	f.require(!allGot(y) || x.verify, "Verify", "a lease whose parts are all in is verified", "lease %d", num)
	for peer, said := range x.said {
		k := r.links[peer]
		o := y.on(k.k)
		for word := range said.lists {
			if o.rec&(1<<word) == 0 || !o.hold || k.pull {
				continue
			}
			in := true
			for _, c := range said.lists[word] {
				in = in && said.notices[c[0]] >= c[1]
			}
			f.require(!in, "Take", "a receipt is taken when its notices are in", "lease %d, link %d: %s", num, peer, kindNames[word])
		}
	}
}

func partsOf(d *spec.TraceDid, peer uint32) (n int) {
	for _, p := range d.Parts {
		if uint32(p[0]) == peer {
			n++
		}
	}
	return n
}

// abortSent: an abort goes to every link that is up and has not answered.
func (f *Follower) abortSent(r *decodeRank, l *spec.TraceLine, d *spec.TraceDid) {
	x := r.leases[d.Lease]
	if x == nil {
		return
	}
	for peer, k := range r.links {
		o, link := f.s.lease(x.id).on(k.k), f.s.links[k.k]
		if o == nil || !o.owes || !o.hold || !link.up || !f.s.current(o) || o.rec != 0 || x.said[peer] != nil && x.said[peer].answered || says(l, "Fence", peer, 0) {
			continue
		}
		f.require(puts(l, "Send", "abort", peer, d.Lease), "Abort", "Abort(l,k) is sent", "lease %d, link %d", d.Lease, peer)
	}
}

func (f *Follower) grantSent(r *decodeRank, l *spec.TraceLine, d *spec.TraceDid) {
	for _, part := range d.Parts {
		peer := uint32(part[0])
		if k := r.links[peer]; k != nil && f.s.links[k.k].ep > 0 {
			for i := range l.Out {
				if o := &l.Out[i]; o.Kind == "Send" && o.Message == "grant" && o.Peer == peer && o.Lease == d.Lease {
					f.require(o.Checks == partsOf(d, peer), "Grant", "owes[l, k]", "lease %d: the grant on link %d has %d parts, said are %d", d.Lease, peer, o.Checks, partsOf(d, peer))
				}
			}
			f.require(puts(l, "Send", "grant", peer, d.Lease), "Grant", "Grant(l,k) is sent", "lease %d, link %d", d.Lease, peer)
			f.require(k.pull || puts(l, "Allow", "", peer, d.Lease), "Grant", "the lease enters the link's grant table", "lease %d, link %d", d.Lease, peer)
		}
	}
}

// decodeExpects is the action that a receipt for a hold that stands must lead to.
func (f *Follower) decodeExpects(r *decodeRank, e *spec.TraceEvent) string {
	k := r.links[e.Peer]
	if e.Kind != "Recv" || k == nil {
		return ""
	}
	o := f.s.lease(leaseKey(r.node, e.Lease)).on(k.k)
	if o == nil || !o.owes || !o.hold || Epoch(e.Grant) != o.gep || k.life(e.From) != o.ginc || r.leases[e.Lease] == nil || r.leases[e.Lease].name != e.Transfer {
		return ""
	}
	switch e.Message {
	case "complete":
		return "RecvComplete"
	case "failed", "abort_ack", "gone":
		return "RecvReceipt"
	}
	return ""
}

// refusesLife: a message from, or to, another life is refused whatever it says.
func refusesLife(l *spec.TraceLine) bool {
	return slices.ContainsFunc(l.Out, func(o spec.TraceOut) bool { return o.Kind == "Count" && o.Refusal == spec.RefuseWrongIncarnation })
}

// decodeAnswered: what was given leads to an action of the specification, or is refused by name.
func (f *Follower) decodeAnswered(r *decodeRank, l *spec.TraceLine) {
	e := &l.Event
	if r.expect != "" && !refusesLife(l) {
		f.require(says(l, r.expect, e.Peer, e.Lease) || says(l, "Fence", e.Peer, 0), r.expect, "what was given is acted upon", "%s %s of lease %d came to nothing", e.Kind, e.Message, e.Lease)
	}
	if puts(l, "Count", "", 0, 0) {
		return
	}
	ok := true
	switch e.Kind {
	case "DataUp":
		ok = e.Failed || says(l, "Connect", e.Peer, 0)
	case "NoticeIn":
		ok = says(l, "NoticeIn", e.Peer, e.Lease)
	case "Recv":
		switch e.Message {
		case "complete", "failed", "abort_ack", "gone":
			ok = says(l, "RecvComplete", e.Peer, e.Lease) || says(l, "RecvReceipt", e.Peer, e.Lease) || says(l, "Fence", e.Peer, 0)
		}
	case "FenceDone":
		if k := r.links[e.Peer]; k != nil && !e.Failed {
			ok = !f.s.links[k.k].fencing || says(l, "FenceEnd", e.Peer, 0) || says(l, "Fence", e.Peer, 0)
		}
	case "Dialed":
		ok = says(l, "Fence", e.Peer, 0) && puts(l, "Send", "connect", e.Peer, 0)
	case "PullDone":
		ok = says(l, "PullCheck", e.Peer, e.Lease)
	case "ReadBegin":
		ok = says(l, "Read", 0, e.Lease) || puts(l, "ReadRefused", "", 0, e.Lease)
	case "ReadEnd":
		ok = says(l, "ReadEnd", 0, e.Lease)
	case "Verified":
		if x := r.leases[e.Lease]; x != nil {
			y := f.s.lease(x.id)
			ok = y.dst != dstFilling || len(e.Bad) > 0 && says(l, "BadVerify", 0, e.Lease)
		}
	}
	f.require(ok, "Step", "what was given is acted upon, or refused by name", "%s %s of lease %d came to nothing", e.Kind, e.Message, e.Lease)
}

// quarantineDue: a lease whose fences have all been since it was found bad comes out of quarantine.
func (f *Follower) quarantineDue(r *decodeRank, l *spec.TraceLine) {
	for id, x := range r.leases {
		y := f.s.lease(x.id)
		if y.dst != dstBad || len(y.krn) > 0 {
			continue
		}
		due, some := true, false
		for _, o := range y.owes {
			if o.owes {
				some = true
				due = due && !o.hold && o.qep < f.s.links[o.k].ep && !f.s.links[o.k].fencing
			}
		}
		f.require(!due || !some || len(x.filler) > 0 || x.nsub > 0, "QuarantineEnd", "a quarantine ends when its fences have been", "lease %d", id)
	}
}
