package core

import (
	"fmt"
	"slices"

	"kvfence/spec"
)

// pullHold is what a hold on a pull link knows beside: this rank copies, so the hold is its own copies and ends with them.
type pullHold struct {
	source   uint64 // lease number in the source tags, from the first Offer or Complete
	parts    []pullPart
	running  int  // jobs
	complete bool // the manifest is in and as it should be
}

// pullPart is one owed part on its way.
type pullPart struct {
	part    spec.Part
	offered *spec.PartDone
	done    bool
}

// pullJob is one PullCopy that has not come back.
type pullJob struct {
	hold *dhold
	part int
}

func newPullHold(_ *DecodeRank, ps []spec.Part) *pullHold {
	p := &pullHold{}
	for _, x := range ps {
		p.parts = append(p.parts, pullPart{part: x})
	}
	return p
}

// onOffer starts to copy one sealed part.
func (r *DecodeRank) onOffer(k *dlink, conn ConnID, env spec.Envelope, m spec.Offer) {
	l := r.leases[m.Lease]
	var h *dhold
	if l != nil {
		h = l.hold(k)
	}
	switch {
	case h == nil || l.transfer != m.Transfer || h.pull == nil:
		r.count(spec.RefuseUnknownLease, spec.KindOffer, k.cfg.ID, fmt.Sprintf("lease %d", m.Lease))
		if m.Lease >= r.nextGrant() || m.Lease == 0 || !k.cfg.Pull {
			r.answer(k, conn, env, m.Lease, spec.RefuseUnknownLease, "")
		}
		return
	case env.From != h.inc || env.Epoch != h.epoch:
		r.count(spec.RefuseStaleEpoch, spec.KindOffer, k.cfg.ID, fmt.Sprintf("lease %d", m.Lease))
		return
	case l.state != dleaseFilling || !h.standing:
		r.count(spec.RefuseRevoked, spec.KindOffer, k.cfg.ID, fmt.Sprintf("lease %d", m.Lease))
		return
	}
	h.since = r.now
	if why := r.copyPart(h, m.SourceLease, m.Done); why != "" {
		r.fail(l, spec.CauseProtocol, "Offer differs from the plan: "+why, true)
	}
}

// copyPart starts the copy of an offered part, once. "" or what is wrong with the offer.
func (r *DecodeRank) copyPart(h *dhold, source uint64, d spec.PartDone) string {
	l, p := h.lease, h.pull
	at := slices.IndexFunc(p.parts, func(x pullPart) bool { return x.part.Component == d.Component && x.part.Index == d.Index })
	if at < 0 {
		return fmt.Sprintf("%s part %d is not owed", d.Component, d.Index)
	}
	x := &p.parts[at]
	lo, hi := x.part.PageRange(*r.layouts[d.Component])
	switch {
	case p.source != 0 && source != p.source:
		return fmt.Sprintf("source lease %d, it was %d", source, p.source)
	case len(d.Source) != int(hi-lo):
		return fmt.Sprintf("%s part %d has %d source pages, %d pages", d.Component, d.Index, len(d.Source), hi-lo)
	case len(d.Digests) != r.digestsOf(x.part):
		return fmt.Sprintf("%s part %d has %d digests, %d pages", d.Component, d.Index, len(d.Digests), hi-lo)
	case x.offered != nil && (!slices.Equal(x.offered.Source, d.Source) || !slices.Equal(x.offered.Digests, d.Digests)):
		return fmt.Sprintf("%s part %d was offered otherwise before", d.Component, d.Index)
	case x.offered != nil:
		r.count(spec.RefuseDuplicate, spec.KindOffer, h.link.cfg.ID, fmt.Sprintf("lease %d, %s part %d", l.id, d.Component, d.Index))
		return ""
	}
	p.source = source
	x.offered = &d
	r.lastJob++
	if !r.ledgerAdd(l, jobHold(r.lastJob)) {
		return ""
	}
	r.jobs[r.lastJob] = &pullJob{h, at}
	p.running++
	items := make([]PullItem, 0, hi-lo)
	for i := lo; i < hi; i++ {
		src, has, digest := d.Source[i-lo], len(d.Digests) > 0, uint64(0)
		if has {
			digest = d.Digests[i-lo]
		}
		dst := r.tag(l, x.part, i, digest, has)
		want := dst
		want.Lease, want.Gen = spec.LeaseID(source), src.Gen
		items = append(items, PullItem{Part: x.part, Index: i, Src: src, SrcSlot: SourceSlot(x.part, r.cfg.Identity), SrcTag: want, Dst: l.pages[d.Component][i], DstTag: dst})
	}
	r.didWith(l, h.link, Did{Name: "PullBegin", Inc: h.inc, Epoch: h.epoch, Detail: fmt.Sprintf("%s part %d", d.Component, d.Index)})
	r.do(PullCopy{Peer: h.link.cfg.ID, Epoch: h.epoch, Job: r.lastJob, Lease: l.id, Digests: r.cfg.Digests, Items: items})
	return ""
}

// pullComplete takes the manifest: it must name exactly the owed parts, as they were offered; what was not offered is copied now.
func (r *DecodeRank) pullComplete(h *dhold, c spec.Complete) {
	l := h.lease
	if l.state != dleaseFilling {
		r.count(spec.RefuseRevoked, spec.KindComplete, h.link.cfg.ID, fmt.Sprintf("lease %d", l.id))
		return
	}
	h.since = r.now
	if h.pull.complete {
		r.count(spec.RefuseDuplicate, spec.KindComplete, h.link.cfg.ID, fmt.Sprintf("lease %d", l.id))
		return
	}
	if why := r.strike(h, c); why != "" {
		r.fail(l, spec.CauseProtocol, "Complete differs from the plan: "+why, true)
		return
	}
	h.pull.complete = true
	for _, d := range c.Parts {
		if why := r.copyPart(h, c.SourceLease, d); why != "" {
			r.fail(l, spec.CauseProtocol, "Complete differs from the plan: "+why, true)
			return
		}
	}
	r.pullWhole(h)
}

// pullDone ends one copy job. Source tags and digests were checked after the copy; the epoch is checked now.
func (r *DecodeRank) pullDone(e PullDone) {
	j := r.jobs[e.Job]
	if j == nil {
		r.count(spec.RefuseUnknownLease, 0, e.Peer, fmt.Sprintf("copy job %d", e.Job))
		return
	}
	delete(r.jobs, e.Job)
	h, l := j.hold, j.hold.lease
	h.pull.running--
	h.since = r.now
	r.touch(l)
	r.didWith(l, h.link, Did{Name: "PullCheck", Inc: h.inc, Epoch: h.epoch})
	if l.state == dleaseFilling {
		switch {
		case e.Err != "":
			r.fail(l, spec.CauseTransport, e.Err, true)
		case len(e.Bad) > 0:
			r.alarms++
			r.do(Alarm{Lease: l.id, Peer: e.Peer, Bad: e.Bad})
			r.fail(l, spec.CauseMismatch, "source "+badText(e.Bad), true)
		case h.epoch != h.link.epoch:
			r.fail(l, spec.CauseFenced, "the epoch rose under a copy", true)
		default:
			h.pull.parts[j.part].done = true
		}
	}
	if l.state == dleaseFilling {
		r.pullWhole(h)
	} else {
		r.pullOver(h)
	}
	r.ledgerEnd(l, jobHold(e.Job))
}

// pullWhole ends the hold of a link when all its parts are here.
func (r *DecodeRank) pullWhole(h *dhold) {
	if !h.pull.complete || h.pull.running > 0 || slices.ContainsFunc(h.pull.parts, func(x pullPart) bool { return !x.done }) {
		return
	}
	h.got = true
	r.saidRead(h)
	r.partsIn(h.lease)
}

// pullOver ends the hold of a lease that is over when its last copy has stopped. Nobody's answer is needed.
func (r *DecodeRank) pullOver(h *dhold) {
	if h.standing && h.pull.running == 0 {
		r.saidRead(h)
	}
}

// saidRead: the last copy of the lease on this link has stopped, so prefill's hold may end too.
func (r *DecodeRank) saidRead(h *dhold) {
	r.didWith(h.lease, h.link, Did{Name: "SaidRead", Inc: h.inc, Epoch: h.epoch})
	if h.link.state == dlinkOpen && h.link.inc == h.inc {
		r.say(h.link, spec.Read{Transfer: h.lease.transfer, Lease: h.lease.id})
	}
	r.endHold(h, "own copies")
}
