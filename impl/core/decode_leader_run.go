package core

import (
	"fmt"
	"slices"

	"kvfence/spec"
)

// firstRead takes the verified auxiliary record: the first token, and prefill's own count of the prompt.
func (l *DecodeLeader) firstRead(e FirstRead) {
	x := l.find(e.Transfer)
	if x == nil || !x.busy {
		return
	}
	x.busy = false
	q := x.req
	switch {
	case x.state != xFirst:
		l.settle(x, false)
		return
	case !e.OK:
		l.failure(x, spec.CauseMismatch, "the auxiliary record could not be read")
		return
	case uint64(e.Tokens) != uint64(len(q.sub.Prompt)):
		l.failure(x, spec.CauseMismatch, fmt.Sprintf("prefill computed %d prompt tokens, decode asked for %d", e.Tokens, len(q.sub.Prompt)))
		return
	}
	q.prefill = e.Tokens
	x.state = xRunning
	if !q.opened {
		q.opened = true
		l.do(OpenStream{Req: q.id, PromptTokens: uint32(len(q.sub.Prompt)), PrefillTokens: e.Tokens})
	}
	if len(q.sent) > 0 { // it was preempted: what was sent is forced, not sampled and not sent twice
		x.index = 1
		l.next(x)
		return
	}
	l.sampled(x, e.First)
}

// stepDone takes the outcome of a step, after its second check.
func (l *DecodeLeader) stepDone(e StepDone) {
	x := l.find(e.Transfer)
	if x == nil || !x.busy {
		return
	}
	x.busy = false
	switch {
	case x.state != xRunning:
		l.settle(x, false)
	case !e.OK:
		l.failure(x, spec.CauseCompute, "a decode step failed")
	case x.index < uint32(len(x.req.sent)): // forced
		x.index++
		l.next(x)
	default:
		l.sampled(x, e.Next)
	}
}

// sampled sends a new token out, or ends the answer.
func (l *DecodeLeader) sampled(x *dxfer, t Token) {
	q := x.req
	if q.sub.EOS >= 0 && t.ID == q.sub.EOS {
		l.succeed(x, "stop")
		return
	}
	q.sent = append(q.sent, t.ID)
	l.do(Emit{Req: q.id, Token: t})
	switch {
	case q.stops():
		l.succeed(x, "stop")
	case uint32(len(q.sent)) >= q.maxNew:
		l.succeed(x, "length")
	default:
		x.index = uint32(len(q.sent))
		l.next(x)
	}
}

// stops reports whether the last token completed one of the request's stop sequences.
func (q *drequest) stops() bool {
	for _, s := range q.sub.Stop {
		if n := len(s); n > 0 && n <= len(q.sent) && slices.Equal(q.sent[len(q.sent)-n:], s) {
			return true
		}
	}
	return false
}

// next runs the step that samples token x.index, growing by a page first where its position needs one.
func (l *DecodeLeader) next(x *dxfer) {
	pos := uint32(len(x.req.sub.Prompt)) + x.index - 1
	if pos >= x.room {
		l.askGrow(x)
		return
	}
	x.state, x.busy = xRunning, true
	l.do(RunStep{Transfer: x.id, Leases: x.leases, Token: x.req.sent[x.index-1], Pos: pos, Sampling: x.req.sub.Sampling, Index: x.index})
}

// askGrow asks every rank for the page of the next position. A rank that gave it before says so again.
func (l *DecodeLeader) askGrow(x *dxfer) {
	x.state, x.answers, x.short, x.freed = xGrowing, 0, false, false
	for k := range x.held {
		l.toRank(k, Grow{Transfer: x.id, Pos: x.room})
	}
}

func (l *DecodeLeader) grown(rank spec.Rank, t spec.TransferID, ok bool) {
	x := l.find(t)
	if x == nil || x.state != xGrowing || !x.held[rank] || x.answers >= len(x.held) {
		return
	}
	x.short = x.short || !ok
	if x.answers++; x.answers < len(x.held) {
		return
	}
	at := slices.Index(l.growers, x)
	if x.short {
		if at < 0 {
			i, _ := slices.BinarySearchFunc(l.growers, x, byAge)
			l.growers = slices.Insert(l.growers, i, x)
		}
		if x.freed {
			l.askGrow(x)
			return
		}
		l.makeRoom()
		return
	}
	if at >= 0 {
		l.growers = slices.Delete(l.growers, at, at+1)
	}
	x.room += l.perPage
	x.pages++
	x.req.tenant.pages++
	l.next(x)
}

// makeRoom preempts for the oldest that waits to grow: the youngest ready or running transfer, never a filling one, never the
// oldest of all. While pages of an earlier victim, or of anything else that ends, are on their way, nobody else is preempted.
func (l *DecodeLeader) makeRoom() {
	if len(l.growers) == 0 || l.growers[0].answers < len(l.growers[0].held) {
		return
	}
	if l.ended != "" {
		l.giveUp()
		return
	}
	var victim *dxfer
	older := 0 // transfers with pages that are older than the victim
	for _, x := range l.order {
		switch x.state {
		case xEnding:
			if x.holds() > 0 {
				return
			}
		case xFirst, xRunning, xGrowing:
			if victim != nil {
				older++
			}
			victim = x
		}
	}
	if victim == nil || older == 0 || victim == l.order[0] {
		return
	}
	l.preempt(victim)
}

// giveUp is makeRoom for a side that is ending. What is on its way may stand behind a fence that failed, and never come: when nothing runs
// that ends by itself, the youngest that waits to grow fails, and its pages let the others finish.
func (l *DecodeLeader) giveUp() {
	for _, x := range l.order {
		if x.state == xFirst || x.state == xRunning {
			return
		}
	}
	l.failure(l.growers[len(l.growers)-1], l.ended, "this node is shutting down, and has no page to grow into")
}

// preempt ends a transfer that did nothing wrong; its request comes back as a new one when its leases are freed.
func (l *DecodeLeader) preempt(x *dxfer) {
	l.preempted++
	x.preempt = true
	if !l.decide(x, verdictFailed) {
		return
	}
	x.cause = spec.CausePreempted
	l.didFor(spec.CausePreempted, Did{Name: "Failure", Transfer: x.id})
	l.endTransfer(x)
	l.settle(x, false)
}
