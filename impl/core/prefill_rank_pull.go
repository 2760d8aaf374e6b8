package core

import "kvfence/spec"

// Pull: the reader copies from this rank's pools. Offer and Complete mean readable and end no hold; the source pages of a lease
// stay held until the reader says Read, decode's mark passes the lease, or the reader's process has ended. A reader that has
// stopped keeps what it was offered, bounded by MaxOffered or one lease, whichever is more, and its link gets no new offers.

// offer offers the parts of a lease that are sealed whole, as far as the link's bound allows.
func (r *PrefillRank) offer(l *prefillLease) {
	k := l.link
	if l.state != leaseWriting || k.state != linkOpen || r.stopped {
		return
	}
	all := l.sourcePages()
	if l.offered == 0 && k.offered > 0 && k.offered+all > r.cfg.MaxOffered {
		return
	}
	for i := range l.parts {
		p := &l.parts[i]
		if p.offered || p.sealed < p.hi {
			continue
		}
		p.offered = true
		if l.offered == 0 { // with its first part a lease counts whole: half offered ones never wait for each other
			l.offered = all
			k.offered += all
		}
		r.did("Offer", l.transfer, l.id, k.peer)
		r.send(k, spec.Offer{Transfer: l.transfer, Lease: l.id, SourceLease: uint64(l.job.owner), Done: r.done(l, p)})
	}
}

// sourcePages is how many source pages all parts of a lease have, a page counted for each part.
func (l *prefillLease) sourcePages() (n int) {
	for i := range l.parts {
		n += int(l.parts[i].hi - l.parts[i].lo)
	}
	return n
}

// offerAll goes on with every lease of a link that waited for it to open, or for pages to come back.
func (r *PrefillRank) offerAll(k *prefillLink) {
	if !k.pull {
		return
	}
	for _, l := range append([]*prefillLease(nil), k.order...) {
		if l.state == leaseWriting {
			r.offer(l)
			r.finish(l)
		}
	}
}

// offerTimers repeats each Complete that nobody has answered with Read: here prefill is who waits.
func (r *PrefillRank) offerTimers(k *prefillLink) {
	if !k.pull || k.state != linkOpen {
		return
	}
	for _, l := range k.order {
		switch {
		case l.repeatAt == 0:
		case r.now < l.repeatAt:
			r.at(l.repeatAt)
		default:
			l.repeat = min(2*l.repeat, r.cfg.OfferMax)
			l.repeatAt = r.now + Time(l.repeat)
			r.at(l.repeatAt)
			r.send(k, l.answer)
		}
	}
}

// recvRead: the reader's last copy of a lease has stopped. It is judged by transfer and lease, not by epoch, like a receipt.
func (r *PrefillRank) recvRead(k *prefillLink, m spec.Read) {
	l := k.leases[m.Lease]
	switch {
	case l == nil:
		r.count(spec.RefuseUnknownLease, spec.KindRead, k.peer, "nothing is held for it")
		return
	case l.transfer != m.Transfer:
		r.refused1(k, spec.KindRead, m.Lease, spec.RefuseUnknownTransfer, "the lease is another transfer's")
		return
	case !k.pull:
		r.refused1(k, spec.KindRead, m.Lease, spec.RefuseWrongState, "not a pull link")
		return
	}
	if l.state == leaseWriting { // it reads no more before everything was offered: decode has given the lease up
		l.state = leaseClosing
		r.did("RecvAbort", l.transfer, l.id, k.peer)
	}
	r.giveBack(l)
	if l.state == leaseClosing {
		r.drain(l)
		if l.job != nil {
			r.jobStopped(l.job, spec.CauseAbortedByPeer, "the reader has stopped reading")
		}
	}
	r.offerAll(k)
}

// giveBack ends the reader's hold on the source pages of a lease.
func (r *PrefillRank) giveBack(l *prefillLease) {
	k := l.link
	if l.offered > 0 {
		k.offered -= l.offered
		l.offered, l.repeatAt = 0, 0
		r.did("GiveBack", l.transfer, l.id, k.peer)
	}
	switch l.state {
	case leaseDead:
		r.remove(l)
		r.detach(l)
		r.reap(k)
	case leaseClosed:
		l.repeatAt = 0
		r.detach(l)
	}
}

// readerEnded: the process behind a pull link has ended; nothing of it reads this pool, and its link never speaks again.
func (r *PrefillRank) readerEnded(e ReaderEnded) {
	k := r.links[e.Peer]
	if k == nil || !k.pull {
		return
	}
	r.closeEpoch(k, linkClosed, 0, spec.CausePeerLost)
	for _, l := range append([]*prefillLease(nil), k.order...) {
		r.giveBack(l)
	}
	r.endLink(k, spec.CausePeerLost)
}
