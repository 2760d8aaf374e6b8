package core

import (
	"fmt"
	"slices"

	"kvfence/spec"
)

// start mints a transfer for a request and asks prefill's leader.
func (l *DecodeLeader) start(q *drequest) {
	l.counter++
	n := int(l.cfg.Identity.Size)
	x := &dxfer{id: spec.TransferID{Leader: l.own, Counter: l.counter}, req: q, side: l.pick(q),
		leases: make([]spec.LeaseID, n), held: make([]bool, n), ready: make([]bool, n), pages: l.pagesOf(q)}
	q.x = x
	l.xfers[l.counter] = x
	l.order = append(l.order, x)
	q.tenant.active++
	q.tenant.pages += x.pages
	x.side.active++
	if q.first == (spec.TransferID{}) {
		q.first = x.id
		l.do(Did{Name: "Submit", Transfer: x.id, Req: q.id})
	} else {
		l.do(Did{Name: "Retry", Transfer: x.id, Root: q.first, After: q.last, Req: q.id})
	}
	q.last = x.id
	l.did("Ask", x.id, "")
	l.ask(x)
}

// ask starts or restarts the Ask of a transfer.
func (l *DecodeLeader) ask(x *dxfer) {
	x.state = xAsking
	x.askSince, x.askWait = l.now, l.cfg.AskFirst
	l.sendAsk(x)
}

func (l *DecodeLeader) sendAsk(x *dxfer) {
	q := x.req
	left := uint64(0)
	if q.deadline != 0 {
		left = uint64(max(q.deadline-l.now, 1))
	}
	s := q.sub
	l.do(SendLeader{Peer: x.side.peers[0], Body: spec.Ask{Transfer: x.id, Source: s.Source, Label: s.Label, Tenant: s.Tenant, Salt: s.Salt,
		Adapter: s.Adapter, Prompt: s.Prompt, TimeLeft: left, Sampling: s.Sampling, Links: l.cfg.Identity.Side}})
	x.askDue = l.now + Time(x.askWait)
	l.clock.set(x.askDue, timeAsk, x.id.Counter, 0)
	x.askWait = min(2*x.askWait, l.cfg.AskMax)
}

// askTime repeats an Ask that was not answered, up to its bound.
func (l *DecodeLeader) askTime(x *dxfer, at Time) {
	if x == nil || x.state != xAsking || x.askDue != at {
		return
	}
	if l.now-x.askSince >= Time(l.cfg.AskBound) {
		l.failure(x, spec.CausePeerLost, "prefill did not answer the Ask")
		return
	}
	l.sendAsk(x)
}

// askAgain asks anew for everything that waits on a side whose leader is another life now.
func (l *DecodeLeader) askAgain(p *pside) {
	for _, x := range l.order {
		if x.side == p && (x.state == xAsking || x.state == xAsked) {
			l.unwait(x)
			l.ask(x)
		}
	}
}

// unwait takes a transfer out of the line for pages.
func (l *DecodeLeader) unwait(x *dxfer) {
	if at := slices.Index(l.waiting, x); at >= 0 {
		l.waiting = slices.Delete(l.waiting, at, at+1)
		l.short = false
	}
}

// peerSaid takes an answer of a prefill leader.
func (l *DecodeLeader) peerSaid(m PeerSaid) {
	switch b := m.Body.(type) {
	case spec.Asked:
		x := l.answerOf(m.Peer, b.Transfer, spec.KindAsked)
		if x == nil || x.state == xEnding {
			l.dropAgain(m.Peer, b.Transfer)
			return
		}
		if x.state != xAsking {
			l.do(Count{Refusal: spec.RefuseDuplicate, About: spec.KindAsked, Peer: m.Peer, Detail: b.Transfer.String()})
			return
		}
		if !x.asked { // asked anew of another life of prefill: to the specification it is open already
			x.asked = true
			l.did("RecvAsked", x.id, "")
		}
		if uint64(b.Tokens) != uint64(len(x.req.sub.Prompt)) {
			l.failure(x, spec.CauseMismatch, fmt.Sprintf("prefill counts %d prompt tokens, decode %d", b.Tokens, len(x.req.sub.Prompt)))
			return
		}
		x.state = xAsked
		at, _ := slices.BinarySearchFunc(l.waiting, x, byAge)
		l.waiting = slices.Insert(l.waiting, at, x)
		l.short = false
	case spec.AskFailed:
		x := l.answerOf(m.Peer, b.Transfer, spec.KindAskFailed)
		if x == nil {
			return
		}
		cause := sane(b.Cause)
		if cause == spec.CauseTooLong && x.verdict == verdictOpen {
			x.req.limits, _ = l.measure(x.req.sub)
			x.req.limits.PrefillPool, x.req.limits.Limiting = b.Limit, "prefill pool"
		}
		x.refused = true
		l.declined(x, cause)
		l.failure(x, cause, b.Detail)
	default:
		l.do(Count{Refusal: spec.RefuseUnknownKind, About: m.Body.Kind(), Peer: m.Peer})
	}
}

// dropAgain answers a prefill leader that still waits for the grants of a transfer of ours that is over: the Drop was lost, or
// the link was down when it was due.
func (l *DecodeLeader) dropAgain(p PeerID, t spec.TransferID) {
	if t.Leader == l.cfg.Identity.Incarnation {
		l.do(SendLeader{Peer: p, Body: spec.Drop{Transfer: t, Cause: spec.CauseAbortedByPeer}})
	}
}

// answerOf is the transfer that an answer speaks of, if this peer was asked.
func (l *DecodeLeader) answerOf(p PeerID, t spec.TransferID, kind spec.Kind) *dxfer {
	x := l.find(t)
	if x == nil || x.side.peers[0] != p {
		l.do(Count{Refusal: spec.RefuseUnknownTransfer, About: kind, Peer: p, Detail: t.String()})
		return nil
	}
	return x
}

func byAge(a, b *dxfer) int {
	switch {
	case a.id.Counter < b.id.Counter:
		return -1
	case a.id.Counter > b.id.Counter:
		return 1
	}
	return 0
}
