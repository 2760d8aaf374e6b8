package core

import (
	"fmt"
	"slices"

	"kvfence/spec"
)

// decide gives a transfer its one verdict (I11). false: it has one already.
func (l *DecodeLeader) decide(x *dxfer, v verdict) bool {
	if x.verdict != verdictOpen {
		l.broken(11, "transfer %s has a verdict already", x.id)
		return false
	}
	x.verdict = v
	return true
}

// succeed records success: the last token has passed its second check, and nothing has failed before.
func (l *DecodeLeader) succeed(x *dxfer, finish string) {
	if x.state != xRunning || x.busy || !x.readyAll() || x.holds() != len(x.held) || x.req.x != x {
		l.broken(12, "transfer %s would succeed in state %d", x.id, x.state)
		return
	}
	if !l.decide(x, verdictOK) {
		return
	}
	l.did("Success", x.id, finish)
	x.answered = true
	l.endTransfer(x)
	l.answer(x.req, finish)
	l.settle(x, false)
}

// failure records that a transfer failed. The first verdict is final; of a failed one only the cause may still change, from
// derived to original, until the answer is given.
func (l *DecodeLeader) failure(x *dxfer, cause spec.Cause, detail string) {
	if x.verdict != verdictOpen {
		if x.verdict == verdictFailed && !x.answered && !x.preempt && spec.Better(x.cause, cause) != x.cause {
			l.recause(x, cause, detail)
			x.retry = x.retry && (x.declined || retryable(cause))
			l.settle(x, false)
		}
		return
	}
	if !l.decide(x, verdictFailed) {
		return
	}
	x.cause, x.detail = cause, detail
	l.didFor(cause, Did{Name: "Failure", Transfer: x.id})
	q := x.req
	again := x.declined || retryable(cause) && q.retries < l.cfg.MaxRetries
	x.retry = again && !q.opened && !l.draining && q.sub.Source == (spec.SourceName{})
	l.endTransfer(x)
	if cause.Derived() && !x.retry {
		l.clock.set(l.now+Time(l.cfg.CauseGrace), timeGrace, x.id.Counter, 0)
	}
	l.settle(x, false)
}

// recause gives a failed transfer the cause that was first; preempted is none, it comes from elsewhere.
func (l *DecodeLeader) recause(x *dxfer, cause spec.Cause, detail string) {
	x.cause, x.detail = cause, detail
	l.didFor(cause, Did{Name: "Recause", Transfer: x.id, Root: x.req.first})
}

// retryable reports whether a request may be tried again after a transfer that failed with c: nothing was wrong with the request,
// a peer or a link was lost. Only before anything was streamed, and only when its leases are drained or fenced.
func retryable(c spec.Cause) bool {
	return c.Derived() || c == spec.CausePeerLost || c == spec.CauseTransport
}

// endTransfer takes a decided transfer out of every line and gives its leases back.
func (l *DecodeLeader) endTransfer(x *dxfer) {
	was := x.state
	l.unwait(x)
	if at := slices.Index(l.growers, x); at >= 0 {
		l.growers = slices.Delete(l.growers, at, at+1)
	}
	if l.taking == x {
		l.taking = nil
	}
	x.state = xEnding
	if was <= xFilling && !x.refused {
		l.do(SendLeader{Peer: x.side.peers[0], Body: spec.Drop{Transfer: x.id, Cause: x.cause}})
	}
	for k, held := range x.held {
		switch {
		case !held:
		case was >= xFirst && was < xEnding:
			l.toRank(k, ReleaseLease{Transfer: x.id})
		default:
			l.toRank(k, AbortLease{Transfer: x.id, Cause: x.cause})
		}
	}
}

// settle goes on with a decided transfer: answers its request as soon as it may be answered, and when nothing of it is held or
// runs any more forgets it, and brings its request back if it is to come back. grace: the wait for an original cause is over.
func (l *DecodeLeader) settle(x *dxfer, grace bool) {
	if x.state != xEnding {
		return
	}
	over := x.holds() == 0 && !x.busy
	if x.verdict == verdictFailed && !x.answered && !x.preempt && !x.retry && (over || grace || !x.cause.Derived()) {
		l.answerFailed(x)
	}
	if !over || l.xfers[x.id.Counter] != x {
		return
	}
	delete(l.xfers, x.id.Counter)
	if at, ok := slices.BinarySearchFunc(l.order, x, byAge); ok {
		l.order = slices.Delete(l.order, at, at+1)
	}
	x.side.active--
	q := x.req
	q.tenant.active--
	q.tenant.pages -= x.pages
	if !x.answered && (x.preempt || x.retry) {
		l.comeBack(q, x)
	}
	l.forget(q.tenant)
	l.pagesFreed()
}

// comeBack puts a request in front of the line again, by its first arrival.
func (l *DecodeLeader) comeBack(q *drequest, x *dxfer) {
	if x.retry {
		q.failedAt = x.side
		if !x.declined {
			q.retries++
		}
		l.retried++
		if q.cause == "" {
			q.cause, q.detail = x.cause, x.detail
		}
	}
	if x.id == q.first {
		q.vague = x.preempt || x.cause.Derived()
	}
	q.x, q.since, q.sub.Source = nil, l.now, spec.SourceName{} // a half is bound once
	at, _ := slices.BinarySearchFunc(l.again, q, func(a, b *drequest) int {
		if a.arrival < b.arrival {
			return -1
		}
		return 1
	})
	l.again = slices.Insert(l.again, at, q)
	l.peerWait(l.patience(q))
}

// answerFailed answers with the first cause: the request's first failed transfer's, if that one is original or this one is not.
func (l *DecodeLeader) answerFailed(x *dxfer) {
	x.answered = true
	q := x.req
	if q.cause == "" || spec.Better(q.cause, x.cause) != q.cause {
		q.cause, q.detail = x.cause, x.detail
	}
	l.answer(q, "")
}

// answer is the one end of a request.
func (l *DecodeLeader) answer(q *drequest, finish string) {
	a := Answer{Req: q.id, Finish: finish, PromptTokens: uint32(len(q.sub.Prompt)), PrefillTokens: q.prefill, NewTokens: uint32(len(q.sent))}
	if finish == "" {
		l.failed++
		a.Cause, a.Detail = q.cause, q.detail
		if q.vague && !q.cause.Derived() {
			l.didFor(q.cause, Did{Name: "Recause", Transfer: q.first, Root: q.first})
		}
		if q.cause == spec.CauseTooLong {
			a.Limits = q.limits
		}
		if q.cause == spec.CauseOverCapacity {
			a.RetryAfter = l.cfg.RetryAfter
		}
	} else {
		l.succeeded++
	}
	if l.requests[q.id] != q {
		l.broken(11, "request %d would be answered twice", q.id)
		return
	}
	delete(l.requests, q.id)
	l.didFor(a.Cause, Did{Name: "Answer", Transfer: q.last, Root: q.first, Req: q.id})
	l.do(a)
	l.forget(q.tenant)
}

// end fails a request wherever it is.
func (l *DecodeLeader) end(q *drequest, cause spec.Cause, detail string) {
	x := q.x
	if x == nil {
		l.failQueued(q, cause, detail)
		return
	}
	if x.state == xEnding {
		// It waits to come back, or for its cause: now it does neither.
		if x.answered {
			return
		}
		x.preempt, x.retry = false, false
		if x.cause == spec.CausePreempted || spec.Better(x.cause, cause) != x.cause {
			l.recause(x, cause, detail)
		}
		l.settle(x, true)
		return
	}
	l.failure(x, cause, detail)
}

// clientGone ends a request that nobody waits for. Writes in flight are not cancelled: its leases come back by proof.
func (l *DecodeLeader) clientGone(e ClientGone) {
	if q := l.requests[e.Req]; q != nil {
		l.end(q, spec.CauseClientGone, "the client is gone")
	}
}

func (l *DecodeLeader) deadline(id RequestID, at Time) {
	if q := l.requests[id]; q != nil && q.deadline == at {
		l.end(q, spec.CauseDeadline, "the deadline has passed")
	}
}

// drain stops admission; what runs is finished. A cause other than "" comes from a rank that is ending: what is not granted yet
// cannot be any more.
func (l *DecodeLeader) drain(cause spec.Cause) {
	if !l.draining || l.ended == "" {
		l.ended = cause
	}
	l.draining = true
	why := cause
	if why == "" {
		why = spec.CauseShutdown
	}
	for _, q := range l.allQueued() {
		if q.opened && cause == "" {
			continue // preempted in mid-stream: it is what runs
		}
		l.failQueued(q, why, "this node is shutting down")
	}
	if cause == "" {
		return
	}
	for _, x := range slices.Clone(l.order) {
		if x.state <= xTaking || cause == spec.CauseInvariant { // a rank that has stopped answers nothing more
			l.failure(x, why, "this node is shutting down")
		}
		l.stay(x, why, "this node is shutting down")
	}
	l.makeRoom()
}

// stay answers the request of a transfer that was to come back when its leases are freed: no rank takes anything any more, one that
// is lost or has stopped would not even say so.
func (l *DecodeLeader) stay(x *dxfer, cause spec.Cause, detail string) {
	if x.state != xEnding || x.answered || !x.preempt && !x.retry || l.xfers[x.id.Counter] != x {
		return
	}
	if x.preempt {
		l.recause(x, cause, detail)
	}
	x.preempt, x.retry = false, false
	l.settle(x, true)
}

// rankLost: its process is over, which is the last fence of its pages. Everything with a lease or part there fails, and a side
// with a rank missing serves nothing any more.
func (l *DecodeLeader) rankLost(rank spec.Rank) {
	if l.lost[rank] {
		return
	}
	l.lost[rank], l.draining = true, true // nothing comes back
	for _, x := range slices.Clone(l.order) {
		if l.xfers[x.id.Counter] != x {
			continue
		}
		x.held[rank] = false
		why := fmt.Sprintf("decode rank %d is lost", rank)
		l.stay(x, spec.CausePeerLost, why)
		l.failure(x, spec.CausePeerLost, why)
		l.settle(x, false)
	}
	l.drain(spec.CauseShutdown)
}

// broken stops the machine over an invariant: every request is answered with it, every lease is given back.
func (l *DecodeLeader) broken(n int, format string, args ...any) {
	if l.stopped {
		return
	}
	l.stopped, l.draining = true, true
	what := fmt.Sprintf(format, args...)
	l.do(Stop{Broken: what, Invariant: n})
	for _, x := range l.order {
		for k, held := range x.held {
			if held {
				l.toRank(k, AbortLease{Transfer: x.id, Cause: spec.CauseInvariant})
			}
		}
	}
	ids := make([]RequestID, 0, len(l.requests))
	for id := range l.requests {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		delete(l.requests, id)
		l.do(Answer{Req: id, Cause: spec.CauseInvariant, Detail: what})
	}
}
