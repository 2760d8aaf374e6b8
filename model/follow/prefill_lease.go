package follow

import (
	"slices"

	"kvfence/spec"
)

// prefillLeaseDid takes one action on a lease.
func (f *Follower) prefillLeaseDid(p *prefillRank, l *spec.TraceLine, d *spec.TraceDid) {
	k := p.peers[d.Peer]
	if !f.require(k != nil, d.Name, "k \\in Rank", "nobody has connected as peer %d", d.Peer) {
		return
	}
	if k.to == nil {
		f.foreignLeaseDid(p, k, l, d)
		return
	}
	node := f.s.links[k.to.k].node
	a := Act{Name: d.Name, L: leaseKey(node, d.Lease), K: k.to.k, T: f.transfer(d.Transfer)}
	x := k.leases[d.Lease]
	if d.Name == "Start" || d.Name == "RecvAbort" && x == nil {
		x = &prefillLease{rank: p, id: a.L, job: d.Transfer, epoch: k.epoch, sealed: map[[3]uint64]bool{}, sources: map[uint64]SPage{}}
		k.leases[d.Lease] = x
		if j := p.jobOf(d.Transfer); j != nil {
			j.leases = append(j.leases, x)
		}
	}
	if d.Name != "Gone" && !f.require(x != nil, d.Name, `pst[l, k] # "none"`, "lease %d is not held here", d.Lease) {
		return
	}
	if f.s.links[k.to.k].pull && f.prefillPullDid(p, k, l, d, x, a) {
		return
	}
	switch d.Name {
	case "Start", "Break", "RecvAbort", "AbortAck", "Failed", "Complete":
		if d.Name == "Complete" || d.Name == "AbortAck" || d.Name == "Failed" {
			f.drained(x, d)
		}
		f.do(a)
	case "Gone":
		f.goneDid(k, d, a)
	case "Forget":
		f.do(a)
		f.forgetLease(k, d.Lease, x)
	case "Seal":
	case "Notice":
		for i := range l.Out {
			if o := &l.Out[i]; o.Kind == "Notice" && o.Lease == d.Lease && o.Peer == d.Peer {
				x.notice = o.Number
			}
		}
		f.require(x.notice != 0, "Notice", "it is put out", "lease %d", d.Lease)
		f.do(a)
	default:
		f.say(d.Name, "an action of the prefill rank", "there is none of this name for a pushed lease")
	}
}

// drained is prefill's half as the machine itself can know it: every batch has ended, and the notice is on its way.
func (f *Follower) drained(x *prefillLease, d *spec.TraceDid) {
	f.require(x.posts == 0, d.Name, "AckDrained => PrefillHalf(l, k)", "lease %d: %d batches have not ended", d.Lease, x.posts)
	f.require(x.notice == 0 || x.noticed, d.Name, "AckDrained => PrefillHalf(l, k)", "lease %d: notice %d has not been sent", d.Lease, x.notice)
}

// goneDid: a lease that the follower has forgotten was granted once; nothing more can be said of it.
func (f *Follower) goneDid(k *prefillLink, d *spec.TraceDid, a Act) {
	if x := f.s.links[a.K]; f.s.leases[a.L] == nil && a.L < f.s.nodes[x.node].nextL && a.L < x.pmark {
		f.stats.Believed++
		return
	}
	f.do(a)
}

func (p *prefillRank) jobOf(t spec.TraceTransfer) *sourceJob {
	if j := p.jobs[t]; j != nil {
		return j
	}
	for _, j := range p.jobs {
		if j.transfer == t && !t.IsZero() {
			return j
		}
	}
	return nil
}

// forgetLease drops what is known of an answered lease.
func (f *Follower) forgetLease(k *prefillLink, id spec.LeaseID, x *prefillLease) {
	delete(k.leases, id)
}

// prefillPost takes the n-th batch of a line.
func (f *Follower) prefillPost(p *prefillRank, l *spec.TraceLine, d *spec.TraceDid, n int) {
	k := p.peers[d.Peer]
	var o *spec.TraceOut
	for i := range l.Out {
		if l.Out[i].Kind == "Post" {
			if n == 0 {
				o = &l.Out[i]
				break
			}
			n--
		}
	}
	if !f.require(k != nil && o != nil && o.Lease == d.Lease && o.Peer == d.Peer, "Post", "it is put out", "lease %d, peer %d", d.Lease, d.Peer) {
		return
	}
	x := k.leases[d.Lease]
	if !f.require(x != nil, "Post", `pst[l, k] = "writing"`, "lease %d is not held here", d.Lease) {
		return
	}
	f.require(o.Epoch == x.epoch && o.Epoch == k.epoch, "Post", "a write carries its grant's epoch", "lease %d of epoch %d, the link is in %d, posted in %d", d.Lease, x.epoch, k.epoch, o.Epoch)
	_, twice := p.batches[o.ID]
	f.require(!twice, "Post", "a batch is posted once", "batch %d", o.ID)
	b := &sourceBatch{link: k, lease: x, epoch: o.Epoch}
	p.batches[o.ID] = b
	x.posts++
	for _, it := range o.Items {
		f.postItem(p, k, x, b, it)
	}
}

// postItem takes one write: its source is sealed and the job's, its destination is granted in that generation.
func (f *Follower) postItem(p *prefillRank, k *prefillLink, x *prefillLease, b *sourceBatch, it spec.TraceItem) {
	c, phys := int(it[0]), srcKey(int(it[0]), it[3])
	src := p.phys[phys]
	f.require(src != nil && src.gen == it[4] && src.holder(x.job), "Post", "sown[k, q] = l", "source page %d generation %d is not held for the lease", it[3], it[4])
	shared := src != nil && src.owner != nil && src.owner.key != x.job && src.owner.transfer != x.job || src != nil && src.owner == nil
	f.placed(p, x, it)
	f.require(shared || x.sealed[[3]uint64{it[0], it[1], it[2]}], "Post", `SealedOnly => sst[k, q] = "sealed"`, "component %d part %d index %d", it[0], it[1], it[2])
	delete(x.sealed, [3]uint64{it[0], it[1], it[2]})
	if k.to == nil {
		return
	}
	node := f.s.links[k.to.k].node
	key := pageKey(node, c, it[5])
	y := f.s.lease(x.id)
	if r := f.decodes[k.decode]; r != nil {
		if d := r.leases[spec.LeaseID(x.id&numbers>>subBits)]; d != nil && d.id == x.id {
			f.require(it[2] < uint64(len(d.table[c])) && d.table[c][it[2]] == spec.TracePage{it[5], it[6]}, "Post", "gpage[l, p]: the page of that index", "index %d goes to page %d generation %d", it[2], it[5], it[6])
		}
	}
	f.require(y.at[key] == Gen(it[6]), "Post", "gpage[l, p]", "page %d generation %d, granted is %d", it[5], it[6], y.at[key])
	if o := y.on(k.to.k); o != nil && f.s.current(o) {
		f.require(o.hold, "Post", "AckMeansDrained: nothing is posted after its receipt", "lease %d", x.id&numbers>>subBits)
	}
	q, had := x.sources[phys]
	if !had {
		f.lastQ++
		q = f.lastQ
		x.sources[phys] = q
		a := Act{L: x.id, K: k.to.k, Q: q}
		for _, a.Name = range []string{"TakeSource", "Compute", "Seal"} {
			f.hide(a)
		}
	}
	f.do(Act{Name: "Post", L: x.id, K: k.to.k, P: key, C: 0, Q: q})
	b.pages = append(b.pages, key)
}

// placed: what is sealed, posted or offered of an index is the job's page of that index.
func (f *Follower) placed(p *prefillRank, x *prefillLease, it spec.TraceItem) {
	if j := p.jobOf(x.job); j != nil && it[0] < uint64(spec.ComponentCount) {
		t := j.table[it[0]]
		f.require(it[2] < uint64(len(t)) && t[it[2]] == spec.TracePage{it[3], it[4]}, "Post", "src[l, k, p, c] = q: the source page of that index", "index %d of component %d comes from page %d generation %d", it[2], it[0], it[3], it[4])
	}
}

// prefillJobDid takes what a job does with source pages.
func (f *Follower) prefillJobDid(p *prefillRank, l *spec.TraceLine, d *spec.TraceDid) {
	j := p.jobs[d.Job]
	switch d.Name {
	case "TakeSource":
		f.require(d.Shared == 0 || says(l, "Compute", 0, 0), "Compute", "what is shared was computed before", "job %s", d.Job)
		f.require(j == nil, "TakeSource", "sown[k, q] = 0", "job %s has its pages", d.Job)
		j = &sourceJob{key: d.Job, transfer: d.Transfer, domain: d.Domain, shared: map[uint64]bool{}, table: d.Pages}
		p.jobs[d.Job] = j
		f.adopt(p, j)
		f.takeSources(p, l, d, j)
	case "Compute":
		if f.require(j != nil, "Compute", "sown[k, q] = l", "job %s has no pages", d.Job) {
			f.require(uint64(d.To) > j.computed || d.Last && !j.last, "Compute", `sst[k, q] = "raw"`, "%d tokens, %d are computed", d.To, j.computed)
			j.computed, j.last, j.transfer = uint64(d.To), d.Last, d.Transfer
		}
	case "GiveBack":
		if f.require(j != nil, "GiveBack", "sown[k, q] = l", "job %s has no pages", d.Job) {
			f.giveSources(p, j)
			delete(p.jobs, d.Job)
		}
	}
}

// adopt gives a job the leases of its transfer that have come.
func (f *Follower) adopt(p *prefillRank, j *sourceJob) {
	for _, k := range p.peers {
		for _, x := range k.leases {
			if x.job == j.transfer && !j.transfer.IsZero() && !slices.Contains(j.leases, x) {
				j.leases = append(j.leases, x)
			}
		}
	}
}

func (f *Follower) takeSources(p *prefillRank, l *spec.TraceLine, d *spec.TraceDid, j *sourceJob) {
	voided := map[uint64]bool{}
	for i := range l.Out {
		if l.Out[i].Kind != "VoidTags" {
			continue
		}
		for c, ps := range l.Out[i].Pages {
			for _, pg := range ps {
				voided[srcKey(c, pg[0])] = true
			}
		}
	}
	for c, ps := range d.Pages {
		for i, pg := range ps {
			key := srcKey(c, pg[0])
			src := p.phys[key]
			if c == int(spec.KV) && i < int(d.Shared) {
				if f.require(src != nil && src.gen == pg[1] && src.domain == d.Domain, "TakeSource", "SameTenant, GenCheck: a shared source page is the domain's, in its generation", "page %d generation %d", pg[0], pg[1]) {
					src.sharer = append(src.sharer, j)
					j.shared[key] = true
				}
				continue
			}
			f.require(src == nil || src.owner == nil && len(src.sharer) == 0, "TakeSource", "sown[k, q] = 0", "source page %d is held", pg[0])
			f.require(pg[1] > genOf(src), "TakeSource", "a generation rises with every hand-out", "source page %d in generation %d was in %d before", pg[0], pg[1], genOf(src))
			f.require(voided[key], "TakeSource", "VoidTags: a page's tags are voided at hand-out", "source page %d", pg[0])
			p.phys[key] = &sourcePage{gen: pg[1], owner: j, domain: d.Domain}
			j.pages = append(j.pages, key)
		}
	}
}

func genOf(p *sourcePage) uint64 {
	if p == nil {
		return 0
	}
	return p.gen
}

// giveSources ends a job's hold on its pages: nothing that is queued reads them.
func (f *Follower) giveSources(p *prefillRank, j *sourceJob) {
	for id, b := range p.batches {
		f.require(b.lease.job != j.key && b.lease.job != j.transfer || b.failed && false, "GiveBack", "SrcHold: no write that is queued reads it", "batch %d of job %s has not ended", id, j.key)
	}
	for _, x := range j.leases {
		for _, k := range p.peers {
			if k.to == nil || k.leases[spec.LeaseID(x.id&numbers>>subBits)] != x && f.s.leases[x.id] == nil {
				continue
			}
			if f.s.links[k.to.k].node != Node(x.id>>nodeBits) {
				continue
			}
			for _, q := range x.sources {
				a := Act{Name: "GiveBack", L: x.id, K: k.to.k, Q: q}
				if src := f.s.links[k.to.k].src[q]; src != nil && src.own == x.id {
					f.hidden = true
					f.do(a)
					f.hidden = false
				}
			}
			break
		}
		clear(x.sources)
		if x.offered {
			f.require(x.given, "GiveBack", "l \\in offered => (~ReaderHold \\/ l \\in said \\/ l < mark)", "lease %d is offered, and its reader has not said Read", x.id&numbers>>subBits)
		}
	}
	for _, key := range j.pages {
		if src := p.phys[key]; src != nil && src.owner == j {
			src.owner = nil
		}
	}
	for key := range j.shared {
		if src := p.phys[key]; src != nil {
			src.sharer = slices.DeleteFunc(src.sharer, func(y *sourceJob) bool { return y == j })
		}
	}
}
