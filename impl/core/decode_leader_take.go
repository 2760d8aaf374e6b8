package core

import (
	"slices"

	"kvfence/spec"
)

// tryTake takes pages for the head of the line, at all ranks or at none. One transfer takes at a time, the oldest first, and who
// is older and grows goes before it: so the oldest cannot starve, and grants leave in the order of lease numbers. Transfers whose
// prefill side is not whole now are passed over; they wait for it within a bound.
func (l *DecodeLeader) tryTake() {
	if l.stopped || l.taking != nil || l.short || len(l.growers) > 0 {
		return
	}
	at := slices.IndexFunc(l.waiting, func(x *dxfer) bool { return x.side.whole })
	if at < 0 {
		return
	}
	x := l.waiting[at]
	if x.holds() > 0 {
		return // an earlier round is still being taken back
	}
	x.state, x.answers, x.short, x.freed = xTaking, 0, false, false
	l.taking = x
	q := x.req
	for k := range x.held {
		x.held[k] = true
		l.toRank(k, Take{Transfer: x.id, Domain: q.domain, Request: q.digest, Tokens: uint32(len(q.sub.Prompt)),
			Prefill: x.side.peers, MaxGrow: uint32(len(q.sub.Prompt)) + q.maxNew, Contents: q.contents})
	}
}

func (l *DecodeLeader) taken(rank spec.Rank, m Taken) {
	x := l.find(m.Transfer)
	if x == nil || !x.held[rank] {
		return
	}
	x.leases[rank] = m.Lease
	l.tookPart(x)
}

func (l *DecodeLeader) noRoom(rank spec.Rank, m NoRoom) {
	x := l.find(m.Transfer)
	if x == nil || !x.held[rank] {
		return
	}
	x.held[rank], x.short = false, true
	l.tookPart(x)
	l.settle(x, false)
}

func (l *DecodeLeader) noPlan(rank spec.Rank, m NoPlan) {
	x := l.find(m.Transfer)
	if x == nil || !x.held[rank] {
		return
	}
	x.held[rank] = false
	cause := m.Cause
	if !cause.Known() {
		cause = spec.CauseIncompatible
	}
	l.failure(x, cause, m.Detail)
	l.settle(x, false)
}

// tookPart counts an answer of the round that takes; with the last one the grants go out, or all is taken back.
func (l *DecodeLeader) tookPart(x *dxfer) {
	if x.state != xTaking {
		return
	}
	if x.answers++; x.answers < len(x.held) {
		return
	}
	l.taking = nil
	if x.short {
		x.state, l.short = xAsked, !x.freed
		for k, held := range x.held {
			if held {
				l.toRank(k, AbortLease{Transfer: x.id, Cause: spec.CauseOverCapacity})
			}
		}
		return
	}
	l.unwait(x)
	x.state = xFilling
	x.room = l.pagesOf(x.req) * l.perPage
	for k := range x.held {
		l.toRank(k, Go{Transfer: x.id})
	}
}

func (l *DecodeLeader) leaseReady(rank spec.Rank, m LeaseReady) {
	x := l.find(m.Transfer)
	if x == nil || x.state != xFilling {
		return
	}
	x.ready[rank] = true
	if !x.readyAll() {
		return
	}
	x.state, x.busy = xFirst, true
	l.did("Run", x.id, "") // every lease of it was granted: the plan is whole
	l.do(ReadFirst{Transfer: x.id, Leases: x.leases})
	l.makeRoom() // it may be preempted now
}

func (l *DecodeLeader) leaseFreed(rank spec.Rank, m LeaseFreed) {
	x := l.find(m.Transfer)
	if x == nil || !x.held[rank] {
		return
	}
	x.held[rank] = false
	if x.state != xEnding && x.state != xAsked {
		l.failure(x, spec.CausePeerFailed, "a rank gave its lease up")
	}
	l.settle(x, false)
}

// pagesFreed: the line moves on, and who grows asks again. For a round that is not over it is noted: a rank says it once, perhaps
// before another one has answered.
func (l *DecodeLeader) pagesFreed() {
	l.short = false
	for _, x := range l.order {
		x.freed = x.freed || (x.state == xTaking || x.state == xGrowing) && x.answers < len(x.held)
	}
	for _, x := range append([]*dxfer(nil), l.growers...) {
		if x.state == xGrowing && x.answers == len(x.held) {
			l.askGrow(x)
		}
	}
}
