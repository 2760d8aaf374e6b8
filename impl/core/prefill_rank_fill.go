package core

import (
	"fmt"
	"slices"

	"kvfence/impl/pages"
	"kvfence/spec"
)

// prefillBatch is one Post: it holds its job's source pages until it is over, or until its epoch is fenced.
type prefillBatch struct {
	id    uint64
	link  *prefillLink
	lease *prefillLease
	job   *prefillJob
	epoch spec.Epoch
}

// final is the first page index of a part that is not final yet: a page is final when its last token of the part is computed, or
// the prompt has ended; a record when everything is computed.
func (r *PrefillRank) final(j *prefillJob, p *prefillPart) uint32 {
	t := layoutOf(r.own, p.part.Component).Equal.TokensPerPage
	switch {
	case j.last, t != 0 && j.computed >= p.part.TokenHi:
		return p.hi
	case t == 0:
		return p.lo
	}
	return min(max(j.computed/t, p.lo), p.hi)
}

// advance seals what is final, one Seal of a lease at a time, and completes a lease of which nothing is left.
func (r *PrefillRank) advance(l *prefillLease) {
	j := l.job
	if l.state != leaseWriting || j == nil || !j.taken || !j.assigned || l.sealing != 0 || r.stopped {
		return
	}
	var items []SealItem
	ready := false
	for i := range l.parts {
		p := &l.parts[i]
		if r.sealShared(l, p, r.final(j, p)) {
			ready = true
		}
		for hi := r.final(j, p); p.toSeal < hi && len(items) < r.cfg.MaxSealItems; p.toSeal++ {
			items = append(items, r.sealItem(l, p, p.toSeal))
		}
	}
	if ready {
		r.did("Seal", l.transfer, l.id, l.link.peer) // long ago, for another job
		r.queue(l)
	}
	if len(items) > 0 {
		r.seal(l, items)
	}
	if ready {
		r.pump(l.link)
	}
	if len(items) == 0 {
		r.finish(l)
	}
}

// seal starts one Seal.
func (r *PrefillRank) seal(l *prefillLease, items []SealItem) {
	r.numbers.seal++
	l.sealing = r.numbers.seal
	r.seals[l.sealing] = l
	r.hold(l.job, sealHold(l.sealing))
	r.did("Seal", l.transfer, l.id, l.link.peer)
	r.do(Seal{Seal: l.sealing, Lease: LeaseKey{l.link.peer, l.id}, Digests: r.cfg.Digests, Pull: l.link.pull, Items: items})
}

func sealHold(seal uint64) pages.Hold { return pages.Hold{Kind: pages.KernelKind, ID: seal} }

func (r *PrefillRank) sealItem(l *prefillLease, p *prefillPart, i uint32) SealItem {
	src := spec.SourcePage(l.job.pages[p.part.Component][i])
	it := SealItem{Part: p.part, Index: i, Src: src, Tag: r.tag(l, p, i)}
	if l.link.pull {
		it.Slot = SourceSlot(p.part, l.link.identity)
	}
	return it
}

// tag is the tag of one page of a part, without its digest: decode's lease and generation at the destination (push), this rank's
// own at the source (pull).
func (r *PrefillRank) tag(l *prefillLease, p *prefillPart, i uint32) spec.Tag {
	own := layoutOf(r.own, p.part.Component)
	lo, hi := p.part.Tokens(*own, i)
	m := own.Equal
	used := (p.part.LayerHi - p.part.LayerLo) * m.KVs * (p.part.HeadHi - p.part.HeadLo) * (hi - lo) * m.HeadDim * m.ElemBytes
	t := spec.Tag{Part: p.part.Index, Index: i, Domain: l.grant.Domain, Used: used, HasDigest: r.cfg.Digests}
	if l.link.pull {
		t.Lease, t.Gen = spec.LeaseID(l.job.owner), l.job.pages[p.part.Component][i].Gen
	} else {
		t.Lease, t.Gen = l.id, l.grant.Pages[p.part.Component][i].Gen
	}
	return t
}

// sealed takes the digests of a Seal. They stay as they are: the source is never hashed again.
func (r *PrefillRank) sealed(e Sealed) error {
	l := r.seals[e.Seal]
	if l == nil || e.Lease != (LeaseKey{l.link.peer, l.id}) {
		return fmt.Errorf("%w: no seal %d of lease %d on link %d is running", ErrContract, e.Seal, e.Lease.Lease, e.Lease.Peer)
	}
	n := 0
	for i := range l.parts {
		n += int(l.parts[i].toSeal - l.parts[i].sealed)
	}
	if r.cfg.Digests && len(e.Digests) != n {
		return fmt.Errorf("%w: seal %d ended with %d digests of %d", ErrContract, e.Seal, len(e.Digests), n)
	}
	delete(r.seals, e.Seal)
	l.sealing = 0
	at := 0
	for i := range l.parts {
		p := &l.parts[i]
		k := int(p.toSeal - p.sealed)
		if r.cfg.Digests {
			p.digests = append(p.digests, e.Digests[at:at+k]...)
			at += k
		}
		r.noteSealed(l, p, p.sealed, p.toSeal)
		p.sealed = p.toSeal
	}
	r.endHold(l.job, sealHold(e.Seal))
	if l.state != leaseWriting {
		r.settle(l.job)
		return nil
	}
	if l.link.pull {
		r.offer(l)
	} else {
		r.queue(l)
		r.pump(l.link)
	}
	r.advance(l)
	return nil
}

// queue puts a lease with something to post into its link's turn.
func (r *PrefillRank) queue(l *prefillLease) {
	if !l.queued && slices.ContainsFunc(l.parts, func(p prefillPart) bool { return p.posted < p.sealed }) {
		l.queued = true
		l.link.sendq = append(l.link.sendq, l)
	}
}

// pump posts sealed pages, lease by lease in turn, as far as the link's bound allows.
func (r *PrefillRank) pump(k *prefillLink) {
	for k.state == linkOpen && !k.pull && k.posts < r.cfg.MaxPosts && len(k.sendq) > 0 && !r.stopped {
		l := k.sendq[0]
		k.sendq = k.sendq[1:]
		l.queued = false
		if l.state == leaseWriting {
			r.post(l)
			r.queue(l)
			r.finish(l)
		}
	}
}

// post posts one batch of a lease.
func (r *PrefillRank) post(l *prefillLease) {
	k, j := l.link, l.job
	var items []PostItem
	for i := range l.parts {
		p := &l.parts[i]
		for ; p.posted < p.sealed && len(items) < r.cfg.MaxPostItems; p.posted++ {
			it := PostItem{Part: p.part, Index: p.posted, Src: spec.SourcePage(j.pages[p.part.Component][p.posted]),
				Dst: l.grant.Pages[p.part.Component][p.posted], Tag: r.tag(l, p, p.posted)}
			if r.cfg.Digests {
				it.Tag.Digest = p.digests[p.posted-p.lo]
			}
			items = append(items, it)
		}
	}
	if len(items) == 0 || !r.mayPost(l, items) {
		return
	}
	r.numbers.batch++
	b := &prefillBatch{id: r.numbers.batch, link: k, lease: l, job: j, epoch: k.epoch}
	r.batches[b.id] = b
	r.batchq = append(r.batchq, b.id)
	r.hold(j, pages.Hold{Kind: pages.OperationKind, ID: b.id})
	l.posts++
	k.posts++
	l.posted = true
	r.did("Post", l.transfer, l.id, k.peer)
	r.do(Post{Peer: k.peer, Epoch: k.epoch, Batch: b.id, Lease: l.id, Items: items})
}

// mayPost asserts, before anything is posted, that the link's epoch is the grant's (I14), that nothing follows the drain notice
// (I9), and that every source page is this job's, in its generation (I6).
func (r *PrefillRank) mayPost(l *prefillLease, items []PostItem) bool {
	switch {
	case l.epoch != l.link.epoch || l.job.transfer != l.transfer:
		r.broken(14, "lease %d of epoch %d would be posted in epoch %d", l.id, l.epoch, l.link.epoch)
		return false
	case l.notice != 0:
		r.broken(9, "lease %d would be posted after its drain notice", l.id)
		return false
	}
	for _, it := range items {
		if !r.ownsSource(l.job, it.Part.Component, it.Index, it.Src) {
			r.broken(6, "source page %d generation %d of lease %d has another owner", it.Src.Page, it.Src.Gen, l.id)
			return false
		}
	}
	return true
}

// posted ends a batch. A failed one may still be read here and may still land there: only this end's fence ends it.
func (r *PrefillRank) posted(e Posted) error {
	b := r.batches[e.Batch]
	if b == nil {
		if e.Batch == 0 || e.Batch > r.numbers.batch {
			return fmt.Errorf("%w: no batch %d was posted", ErrContract, e.Batch)
		}
		return nil // its epoch's fence came first
	}
	if b.link.peer != e.Peer || b.epoch != e.Epoch {
		return fmt.Errorf("%w: batch %d is of link %d epoch %d", ErrContract, e.Batch, b.link.peer, b.epoch)
	}
	l, k := b.lease, b.link
	if e.Err != "" {
		if k.epoch == b.epoch && k.state <= linkOpen {
			r.failLease(l, spec.CauseTransport, e.Err)
			r.fenceLink(k, spec.CauseTransport)
		}
		return nil
	}
	r.batchOver(b)
	switch l.state {
	case leaseWriting:
		r.finish(l)
	case leaseClosing:
		r.drain(l)
	}
	r.pump(k)
	r.reap(k)
	return nil
}

// batchOver ends a batch's hold: its source pages are not read again.
func (r *PrefillRank) batchOver(b *prefillBatch) {
	delete(r.batches, b.id)
	if i, ok := slices.BinarySearch(r.batchq, b.id); ok {
		r.batchq = slices.Delete(r.batchq, i, i+1)
	}
	b.lease.posts--
	if b.epoch == b.link.epoch && b.link.posts > 0 {
		b.link.posts--
	}
	r.endHold(b.job, pages.Hold{Kind: pages.OperationKind, ID: b.id})
	r.settle(b.job)
}
