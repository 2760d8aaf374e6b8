package follow

import "kvfence/spec"

// prefillOut compares what a prefill rank puts out with what it says and with the state.
func (f *Follower) prefillOut(p *prefillRank, l *spec.TraceLine, o *spec.TraceOut) {
	k := p.peers[o.Peer]
	switch o.Kind {
	case "Seal":
		f.prefillSeal(p, k, l, o)
	case "Notice":
		f.require(says(l, "Notice", o.Peer, o.Lease), "Notice", "Notice(l, k, c)", "lease %d is noticed, and it is not said", o.Lease)
	case "Send":
		if k != nil {
			f.prefillSend(p, k, l, o)
		}
	case "VoidTags":
		f.require(says(l, "TakeSource", 0, 0), "VoidTags", "TakeSource(l, k, q)", "no source page is taken in this step")
	case "Stop":
		p.stopped = true
		f.require(o.Broken == 0, "Stop", "no invariant is broken", "the machine says that I%d is", o.Broken)
	}
}

// prefillAfter: what was said was put out.
func (f *Follower) prefillAfter(p *prefillRank, l *spec.TraceLine, posts int) {
	n := 0
	for i := range l.Out {
		if l.Out[i].Kind == "Post" {
			n++
		}
	}
	f.require(n == posts, "Post", "Post(l, k, p, c, q)", "%d batches are put out, %d are said", n, posts)
	for i := range l.Did {
		d := &l.Did[i]
		if want := map[string]string{"Complete": "complete", "AbortAck": "abort_ack", "Failed": "failed", "Gone": "gone"}[d.Name]; want != "" && p.peers[d.Peer] != nil {
			f.require(puts(l, "Send", want, d.Peer, d.Lease), d.Name, "it is put out", "lease %d", d.Lease)
		}
	}
	f.prefillAnswered(p, l)
}

func (f *Follower) prefillSeal(p *prefillRank, k *prefillLink, l *spec.TraceLine, o *spec.TraceOut) {
	if !f.require(k != nil && k.leases[o.Lease] != nil && says(l, "Seal", o.Peer, o.Lease), "Seal", "Seal(l, k, q)", "lease %d", o.Lease) {
		return
	}
	x := k.leases[o.Lease]
	for _, it := range o.Items {
		src := p.phys[srcKey(int(it[0]), it[3])]
		f.require(src != nil && src.gen == it[4] && src.holder(x.job), "Seal", "sown[k, q] = l", "source page %d generation %d is not held for lease %d", it[3], it[4], o.Lease)
		if j := p.jobOf(x.job); j != nil && p.tokens > 0 {
			f.require(j.last || it[0] == uint64(spec.KV) && (it[2]+1)*p.tokens <= j.computed, "Seal", `sst[k, q] = "computed"`, "index %d of component %d, %d tokens are computed", it[2], it[0], j.computed)
		}
		x.sealed[[3]uint64{it[0], it[1], it[2]}] = true
	}
}

func (f *Follower) prefillSend(p *prefillRank, k *prefillLink, l *spec.TraceLine, o *spec.TraceOut) {
	if o.Message != "connect" && o.Message != "accept" && o.Message != "refuse" && o.Message != "refused" {
		f.require(o.Epoch == k.epoch, "Send "+o.Message, "a message carries its link's epoch", "it carries %d, the link is in %d", o.Epoch, k.epoch)
	}
	x := k.leases[o.Lease]
	switch o.Message {
	case "complete", "failed", "abort_ack":
		name := map[string]string{"complete": "Complete", "failed": "Failed", "abort_ack": "AbortAck"}[o.Message]
		if !f.require(x != nil, "Send "+o.Message, "<<c, l, k, i>> \\in ans", "lease %d is not held here", o.Lease) {
			return
		}
		if says(l, name, o.Peer, o.Lease) {
			x.answer = o.Message
		}
		f.require(x.answer == o.Message, "Send "+o.Message, "<<c, l, k, i>> \\in ans", "lease %d was answered %q", o.Lease, x.answer)
		f.require(o.Grant == x.epoch, "Send "+o.Message, "a receipt carries its grant's epoch", "lease %d of epoch %d, it carries %d", o.Lease, x.epoch, o.Grant)
		f.require(len(o.Channels) == len(x.channels), "Send "+o.Message, "ChannelAll: a receipt lists every channel that carried a write", "lease %d: %d, used are %d", o.Lease, len(o.Channels), len(x.channels))
	case "gone":
		f.require(says(l, "Gone", o.Peer, o.Lease), "Send gone", "<<c, l, k, i>> \\in ans", "lease %d", o.Lease)
	case "failing":
		f.require(x != nil && (says(l, "Break", o.Peer, o.Lease) || x.broke), "Send failing", "Break(l, k)", "lease %d", o.Lease)
		if x != nil {
			x.broke = true
		}
	case "offer":
		f.require(says(l, "Offer", o.Peer, o.Lease), "Send offer", "Offer(l, q)", "lease %d", o.Lease)
	}
}

// prefillAnswered: what was given leads to an action of the specification, or is refused by name.
func (f *Follower) prefillAnswered(p *prefillRank, l *spec.TraceLine) {
	e := &l.Event
	k := p.peers[e.Peer]
	if e.Kind != "Recv" || k == nil || p.stopped || puts(l, "Count", "", 0, 0) {
		return
	}
	ok := true
	switch e.Message {
	case "grant":
		ok = says(l, "Start", e.Peer, e.Lease) || says(l, "Gone", e.Peer, e.Lease)
	case "abort":
		ok = says(l, "RecvAbort", e.Peer, e.Lease) || says(l, "Gone", e.Peer, e.Lease)
	}
	f.require(ok, "Step", "what was given is acted upon, or refused by name", "%s of lease %d came to nothing", e.Message, e.Lease)
}
