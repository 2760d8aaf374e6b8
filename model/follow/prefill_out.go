package follow

import (
	"slices"

	"kvfence/spec"
)

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
	case "Fence":
		if f.require(k != nil && slices.Contains(k.epochs, o.Old), "Fence", "an epoch that was accepted", "epoch %d", o.Old) {
			k.asked = max(k.asked, o.Old)
		}
	case "ToLeader":
		f.require(o.Message != "JobOver" || p.jobs[o.Transfer] == nil, "JobOver", "GiveBack(l, k, q)", "job %s has its pages", o.Transfer)
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
	offers := 0
	for i := range l.Out {
		if l.Out[i].Message == "offer" {
			offers++
		}
	}
	f.require(offers == count(l, "Offer"), "Offer", "Offer(l, q)", "%d are put out, %d are said", offers, count(l, "Offer"))
	f.prefillMarks(p, l)
	f.prefillAnswered(p, l)
}

// prefillMarks: a mark that came is taken, and what it has passed is forgotten.
func (f *Follower) prefillMarks(p *prefillRank, l *spec.TraceLine) {
	e := &l.Event
	k := p.peers[e.Peer]
	if k == nil || e.Mark == 0 || e.From != k.decode || p.stopped {
		return
	}
	for i := range l.Out {
		if o := &l.Out[i]; o.Kind == "Count" && (o.Refusal == spec.RefuseWrongIncarnation || o.Refusal == spec.RefuseWrongState || e.Kind == "ConnectIn") {
			return
		}
	}
	if e.Kind == "ConnectIn" && !says(l, "Accept", e.Peer, 0) {
		return // it waits, or is refused
	}
	f.require(max(k.took, k.own) >= e.Mark, "RecvMark", "what was given is acted upon", "mark %d came, taken is %d", e.Mark, k.took)
	if k.to != nil && f.s.links[k.to.k].pinc == k.to.life(p.inc) {
		m := leaseKey(f.s.links[k.to.k].node, e.Mark)
		f.require(f.s.links[k.to.k].pmark >= m, "RecvMark", "what was given is acted upon", "mark %d came, taken is %d", e.Mark, f.s.links[k.to.k].pmark&numbers>>subBits)
	}
	for id, x := range k.leases {
		f.require(id >= e.Mark || x.answer == "" || x.epoch <= k.asked, "Forget", "an answer that a mark has passed is forgotten", "lease %d, mark %d", id, e.Mark)
	}
}

func (f *Follower) prefillSeal(p *prefillRank, k *prefillLink, l *spec.TraceLine, o *spec.TraceOut) {
	if !f.require(k != nil && k.leases[o.Lease] != nil && says(l, "Seal", o.Peer, o.Lease), "Seal", "Seal(l, k, q)", "lease %d", o.Lease) {
		return
	}
	p.seals[o.ID] = true
	x := k.leases[o.Lease]
	for _, it := range o.Items {
		src := p.phys[srcKey(int(it[0]), it[3])]
		f.placed(p, x, it)
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
	case "accept":
		f.require(says(l, "Accept", o.Peer, 0), "Send accept", "Accept(k)", "epoch %d", o.Epoch)
	case "offer":
		f.require(says(l, "Offer", o.Peer, o.Lease), "Send offer", "Offer(l, q)", "lease %d", o.Lease)
	}
}

// prefillAnswered: what was given leads to an action of the specification, or is refused by name.
func (f *Follower) prefillAnswered(p *prefillRank, l *spec.TraceLine) {
	e := &l.Event
	k := p.peers[e.Peer]
	if e.Kind == "Side" && e.Message == "ChunkDone" && p.jobs[e.Transfer] != nil {
		f.require(says(l, "Compute", 0, 0), "Compute", "what was given is acted upon", "job %s", e.Transfer)
	}
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
