package follow

import "kvfence/spec"

// Pulled links (Pull.tla): the receiver copies, its holds are its own copies.

func (f *Follower) decodePullDid(r *decodeRank, k *decodeLink, o *owe, l *spec.TraceLine, d *spec.TraceDid, x *decodeLease) {
	y := f.s.lease(x.id)
	switch d.Name {
	case "RecvComplete", "RecvReceipt": // of a pulled link both say only what is readable, or that nothing more will be
		f.require(Epoch(d.Epoch) == o.gep && k.life(d.Inc) == o.ginc, d.Name, "the receipt carries its grant's epoch, and is the granted incarnation's", "epoch %d, granted in %d", d.Epoch, o.gep)
		x.from(d.Peer).answered = x.from(d.Peer).answered || d.Name == "RecvReceipt"
		if p := f.prefillLeaseOf(k, x.id); p == nil {
			f.require(f.foreign(k) || o.ans&(1<<kindOf(d.Receipt)) != 0, d.Name, "l \\in offered", "prefill does not know lease %d", d.Lease)
		} else if d.Name == "RecvComplete" {
			f.require(p.offered || p.completed, d.Name, "l \\in offered", "prefill offered nothing of lease %d", d.Lease)
		}
	case "PullBegin":
		f.require(y.dst == dstFilling, "PullBegin", `dst[l] = "filling"`, "the lease is %s", dstNames[y.dst])
		f.require(f.s.current(o), "PullBegin", "dep[l] = ep", "granted in epoch %d, the link is in %d", o.gep, f.s.links[k.k].ep)
		f.require(o.hold, "PullBegin", "hold[l, k]", "lease %d", d.Lease)
		if p := f.prefillLeaseOf(k, x.id); p != nil {
			f.require(p.offered, "PullBegin", `l \in offered`, "prefill offered nothing of lease %d", d.Lease)
		}
		f.pullBegin(r, k, o, l, x)
	case "PullCheck":
		pages, running := x.jobs[l.Event.ID]
		if !f.require(running, "PullCheck", `<<l, p>> \in taken`, "copy job %d is not running", l.Event.ID) {
			return
		}
		_ = pages
		delete(x.jobs, l.Event.ID)
		f.pullCheck(k, o, l, x)
	case "SaidRead":
		f.require(o.hold, "SaidRead", `l \notin said`, "lease %d: the hold has ended", d.Lease)
		f.require(f.running(x, d.Peer) == 0, "SaidRead", "ReadLast => NoCopy(l)", "lease %d: %d copies run", d.Lease, f.running(x, d.Peer))
		o.got = y.dst == dstFilling && o.copied()
		f.require(y.dst != dstFilling || o.got, "SaidRead", `dst[l] \in {"revoking", "ready", "failed", "done"}`, "lease %d is filling, and not all of it was copied", d.Lease)
		o.hold, o.said = false, true
		f.s.touch(y)
	default:
		f.say(d.Name, "a link that is pulled", "link %d", d.Peer)
	}
}

func (f *Follower) running(x *decodeLease, peer uint32) (n int) {
	for _, p := range x.jobs {
		if p == peer {
			n++
		}
	}
	return n
}

// pullBegin enters the copies of the job that this line puts out.
func (f *Follower) pullBegin(r *decodeRank, k *decodeLink, o *owe, l *spec.TraceLine, x *decodeLease) {
	for i := range l.Out {
		job := &l.Out[i]
		if job.Kind != "PullCopy" || leaseKey(r.node, job.Lease) != x.id || r.links[job.Peer] != k {
			continue
		}
		if _, twice := x.jobs[job.ID]; twice {
			continue
		}
		x.jobs[job.ID] = job.Peer
		if o.pulled == nil {
			o.pulled = map[at]*write{}
		}
		for _, it := range job.Items {
			key := pageKey(r.node, int(it[0]), it[5])
			gen, planned := f.s.lease(x.id).at[key]
			if !f.require(planned && gen == Gen(it[6]) && o.owed[key], "PullCopy", `<<l, p>> \in dpage`, "page %d generation %d is not of the lease, or not owed by this link", it[5], it[6]) {
				continue
			}
			f.require(it[2] < uint64(len(x.table[it[0]])) && x.table[it[0]][it[2]] == spec.TracePage{it[5], it[6]}, "PullCopy", `<<l, p>> \in dpage: the page of that index`, "index %d goes to page %d", it[2], it[5])
			f.pulledSource(k, x, it)
			o.pulled[at{key, Chan(job.ID)}] = &write{at: at{key, Chan(job.ID)}, placing: true, pay: x.id}
		}
		return
	}
	f.say("PullBegin", "a copy job is put out", "there is none for lease %d in this line", x.id&numbers>>subBits)
}

// pulledSource: what is copied is a source page that prefill holds for this lease, in its generation.
func (f *Follower) pulledSource(k *decodeLink, x *decodeLease, it spec.TraceItem) {
	p := f.prefillLeaseOf(k, x.id)
	if p == nil {
		return
	}
	f.placed(p.rank, p, it)
	src := p.rank.phys[srcKey(int(it[0]), it[3])]
	f.require(src != nil && src.gen == it[4] && src.holder(p.job), "PullCopy", `sown[q] = l /\ sst[q] = "sealed"`, "source page %d generation %d is not held for lease %d", it[3], it[4], x.id&numbers>>subBits)
}

// pullCheck ends a job: what was copied is good, or the lease fails.
func (f *Follower) pullCheck(k *decodeLink, o *owe, l *spec.TraceLine, x *decodeLease) {
	good := !l.Event.Failed && len(l.Event.Bad) == 0
	for a, w := range o.pulled {
		if a.c != Chan(l.Event.ID) || !w.placing {
			continue
		}
		if !good || !f.s.current(o) {
			delete(o.pulled, a)
			continue
		}
		w.placing = false
		y := f.s.page(o.lease.node, a.p).slot(k.k)
		y.mem, y.tag = x.id, x.id
	}
	if !good && f.s.lease(x.id).dst == dstFilling && len(l.Event.Bad) > 0 {
		f.stats.Damaged++
	}
	f.s.touch(o.lease)
}

// copied: all that is owed was copied, and no copy runs.
func (o *owe) copied() bool {
	for p := range o.owed {
		if !o.pulledTo(p) {
			return false
		}
	}
	for _, w := range o.pulled {
		if w.placing {
			return false
		}
	}
	return true
}

func (o *owe) pulledTo(p Page) bool {
	for a := range o.pulled {
		if a.p == p {
			return true
		}
	}
	return false
}

// runs: a copy of it runs.
func (o *owe) runs() bool {
	for _, w := range o.pulled {
		if w.placing {
			return true
		}
	}
	return false
}
