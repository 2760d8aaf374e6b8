package core

import (
	"fmt"

	"kvfence/spec"
)

// finish completes a lease of which everything is posted and drained (push), or offered (pull).
func (r *PrefillRank) finish(l *prefillLease) {
	if l.state != leaseWriting || l.job == nil || !l.job.last || l.sealing != 0 {
		return
	}
	for i := range l.parts {
		p := &l.parts[i]
		if l.link.pull && !p.offered || p.sealed < p.hi || !l.link.pull && p.posted < p.hi {
			return
		}
	}
	if l.link.state != linkOpen && l.link.pull || !r.drained(l) {
		return
	}
	c := spec.Complete{Transfer: l.transfer, Lease: l.id, GrantEpoch: l.epoch, Tokens: l.job.tokens, Request: l.job.request, Channels: l.channels}
	for i := range l.parts {
		c.Parts = append(c.Parts, r.done(l, &l.parts[i]))
	}
	if l.link.pull {
		c.SourceLease = uint64(l.job.owner)
	}
	r.did("Complete", l.transfer, l.id, l.link.peer)
	r.answer(l, c)
}

// done describes a finished part.
func (r *PrefillRank) done(l *prefillLease, p *prefillPart) spec.PartDone {
	d := spec.PartDone{Component: p.part.Component, Index: p.part.Index, Digests: p.digests}
	if l.link.pull {
		for i := p.lo; i < p.hi; i++ {
			d.Source = append(d.Source, spec.SourcePage(l.job.pages[p.part.Component][i]))
		}
	}
	return d
}

// drained is prefill's half of the drain: no batch of the lease is pending, and each channel that carried one has been sent a
// notice behind it. Its callers have posted all that will ever be posted, so the notice is sent at once, behind the last batch,
// whether or not the batches are over; decode waits for it, prefill waits for both.
func (r *PrefillRank) drained(l *prefillLease) bool {
	if l.posted && l.notice == 0 {
		r.numbers.notice++
		l.notice = r.numbers.notice
		r.did("Notice", l.transfer, l.id, l.link.peer)
		r.do(Notice{Peer: l.link.peer, Epoch: l.epoch, Lease: l.id, Number: l.notice})
	}
	return l.posts == 0 && (!l.posted || l.noticed)
}

// noticed takes the channels that carry a lease's drain notice.
func (r *PrefillRank) noticed(e Noticed) error {
	if e.Number == 0 || e.Number > r.numbers.notice {
		return fmt.Errorf("%w: no notice %d was sent", ErrContract, e.Number)
	}
	k := r.links[e.Peer]
	if k == nil || k.epoch != e.Epoch || k.state > linkOpen {
		return nil // of an epoch that is over
	}
	l := k.leases[e.Lease]
	if l == nil || l.notice != e.Number || l.noticed {
		return nil // its lease has died meanwhile
	}
	if e.Err != "" {
		r.failLease(l, spec.CauseTransport, e.Err)
		r.fenceLink(k, spec.CauseTransport)
		return nil
	}
	l.noticed, l.channels = true, e.Channels
	if l.state == leaseClosing {
		r.drain(l)
	} else {
		r.finish(l)
	}
	return nil
}

// failLease is prefill's own failure: reported at once, nothing more is posted, the receipt follows the drain.
func (r *PrefillRank) failLease(l *prefillLease, c spec.Cause, detail string) {
	if l.state != leaseWriting {
		return
	}
	r.did("Break", l.transfer, l.id, l.link.peer)
	l.state = leaseClosing
	l.failing = &spec.Failing{Transfer: l.transfer, Lease: l.id, Cause: c, Detail: detail}
	r.send(l.link, *l.failing)
	j := l.job
	r.drain(l)
	if j != nil {
		r.jobStopped(j, c, detail)
	}
}

// drain answers a closing lease when nothing of it is pending.
func (r *PrefillRank) drain(l *prefillLease) {
	if l.state != leaseClosing || !r.drained(l) {
		return
	}
	if f := l.failing; f != nil {
		r.did("Failed", l.transfer, l.id, l.link.peer)
		r.answer(l, spec.Failed{Transfer: l.transfer, Lease: l.id, GrantEpoch: l.epoch, Cause: f.Cause, Detail: f.Detail, Channels: l.channels})
		return
	}
	r.did("AbortAck", l.transfer, l.id, l.link.peer)
	r.answer(l, spec.AbortAck{Transfer: l.transfer, Lease: l.id, GrantEpoch: l.epoch, Channels: l.channels})
}

// answer closes a lease with its one answer, which is kept until a mark passes it.
func (r *PrefillRank) answer(l *prefillLease, m spec.Message) {
	k := l.link
	if l.posts > 0 || l.posted && (!l.noticed || len(l.channels) == 0) || k.state > linkOpen || l.epoch != k.epoch {
		r.broken(9, "a receipt of lease %d would leave before its drain", l.id)
		return
	}
	l.state, l.answer = leaseClosed, m
	k.active--
	k.answers++
	r.send(k, m)
	if _, complete := m.(spec.Complete); complete && k.pull && l.offered > 0 {
		l.repeat = r.cfg.OfferFirst
		l.repeatAt = r.now + Time(l.repeat)
		r.at(l.repeatAt)
	}
	if l.offered == 0 {
		r.detach(l)
	}
	r.boundAnswers(k)
}

// killLease ends a lease without a receipt: its epoch is over, or nobody holds anything for it any more. What is posted keeps its
// pages by itself; what a reader was offered keeps them until it is given back.
func (r *PrefillRank) killLease(l *prefillLease, why spec.Cause) {
	k, was := l.link, l.state
	switch was {
	case leaseWriting, leaseClosing:
		k.active--
	case leaseClosed:
		k.answers--
	case leaseDead:
		return
	}
	l.state, l.repeatAt = leaseDead, 0
	if l.offered == 0 {
		r.remove(l)
		r.detach(l)
	}
	if was != leaseClosed && l.job != nil {
		r.jobStopped(l.job, why, "the link's epoch is over")
	}
}
