package core

import (
	"fmt"
	"slices"

	"kvfence/spec"
)

// submit admits a request or refuses it before anything of it exists.
func (l *DecodeLeader) submit(s Submit) {
	cause, detail, limits, maxNew := l.judge(s)
	if cause != "" {
		l.refuse(s, cause, detail, limits)
		return
	}
	l.arrivals++
	t := l.tenant(s.Tenant)
	q := &drequest{id: s.Req, sub: s, tenant: t, arrival: l.arrivals, maxNew: maxNew, since: l.now,
		domain: spec.DomainOf(s.Tenant, s.Salt, s.Adapter, l.cfg.Revision)}
	q.digest = spec.DigestRequest(s.Prompt, q.domain)
	if l.cfg.Sharing {
		q.contents = spec.ContentIDs(s.Prompt, q.domain, l.perPage)
	}
	l.requests[s.Req] = q
	t.queue = append(t.queue, q)
	l.queued++
	if s.TimeLeft > 0 {
		q.deadline = l.now + Time(min(s.TimeLeft, 1<<61))
		l.clock.set(q.deadline, timeDeadline, uint64(q.id), 0)
	}
	if l.pick(q) == nil {
		l.peerWait(l.patience(q))
		l.refuseAtOnce(q)
	}
}

// refuse answers a request that is not admitted: no lease, page, grant or write of it exists (I8). A prefill-first half is dropped.
func (l *DecodeLeader) refuse(s Submit, cause spec.Cause, detail string, limits Limits) {
	if l.requests[s.Req] != nil {
		l.broken(8, "request %d is refused and stands", s.Req)
		return
	}
	l.do(Did{Name: "Submit", Req: s.Req}) // no name is minted for what is refused
	l.didFor(cause, Did{Name: "Refuse", Req: s.Req})
	l.didFor(cause, Did{Name: "Answer", Req: s.Req})
	l.dropHalf(s.Source, cause)
	a := Answer{Req: s.Req, Cause: cause, Detail: detail, PromptTokens: uint32(len(s.Prompt)), Limits: limits}
	if cause == spec.CauseOverCapacity {
		a.RetryAfter = l.cfg.RetryAfter
	}
	l.failed++
	l.do(a)
}

// dropHalf tells prefill that nobody will ask for a prefill-first half.
func (l *DecodeLeader) dropHalf(s spec.SourceName, cause spec.Cause) {
	if s == (spec.SourceName{}) {
		return
	}
	for _, p := range l.sides {
		if p.leader == s.Leader {
			l.do(SendLeader{Peer: p.peers[0], Body: spec.Drop{Source: s, Cause: cause}})
		}
	}
}

// judge is admission, before anything else exists: what could ever fit, not what is free now.
func (l *DecodeLeader) judge(s Submit) (cause spec.Cause, detail string, limits Limits, maxNew uint32) {
	switch {
	case l.draining && l.ended == "":
		return spec.CauseShutdown, "this node is draining", limits, 0
	case l.draining:
		return l.ended, "this node takes no new request", limits, 0
	case len(s.Prompt) == 0:
		return spec.CauseInvalid, "the prompt has no tokens", limits, 0
	case uint64(len(s.Prompt)) > spec.MaxPrompt && uint64(len(s.Prompt)) <= uint64(l.cfg.Window):
		return spec.CauseInvalid, fmt.Sprintf("the prompt has %d tokens, a message carries %d", len(s.Prompt), spec.MaxPrompt), limits, 0
	case s.TimeLeft < 0:
		return spec.CauseDeadline, "the deadline has passed", limits, 0
	}
	if l.cfg.Vocabulary != 0 {
		for i, t := range s.Prompt {
			if t < 0 || uint32(t) >= l.cfg.Vocabulary {
				return spec.CauseInvalid, fmt.Sprintf("token %d of the prompt is %d, the vocabulary has %d", i, t, l.cfg.Vocabulary), limits, 0
			}
		}
	}
	limits, maxNew = l.measure(s)
	if limits.Limiting != "" {
		return spec.CauseTooLong, tooLong(limits), limits, 0
	}
	t := l.byTenant[s.Tenant]
	switch {
	case l.queued >= l.cfg.MaxQueue:
		return spec.CauseOverCapacity, fmt.Sprintf("%d requests wait", l.queued), limits, 0
	case t != nil && len(t.queue) >= l.cfg.MaxTenantQueue:
		return spec.CauseOverCapacity, fmt.Sprintf("%d requests of this tenant wait", len(t.queue)), limits, 0
	}
	return "", "", limits, maxNew
}

// measure compares a request with window and pools, in this order: window, prefill pools, decode pools. Limiting names the first
// that does not hold it. Without a maximum given it is what window and decode pools leave, at least 1.
func (l *DecodeLeader) measure(s Submit) (Limits, uint32) {
	prompt, prefill := uint64(len(s.Prompt)), l.prefillCapacity(s.Source)
	room := min(uint64(l.cfg.Window), uint64(l.capacity))
	maxNew := uint64(s.MaxNew)
	if maxNew == 0 {
		maxNew = 1
		if room > prompt+1 {
			maxNew = room - prompt
		}
	}
	lim := Limits{Prompt: uint32(min(prompt, 1<<32-1)), MaxNew: uint32(maxNew), Window: l.cfg.Window, PrefillPool: prefill, DecodePool: l.capacity}
	switch {
	case prompt+maxNew > uint64(l.cfg.Window):
		lim.Limiting = "window"
	case prefill != 0 && prompt > uint64(prefill):
		lim.Limiting = "prefill pool"
	case prompt+maxNew > uint64(l.capacity):
		lim.Limiting = "decode pool"
	}
	return lim, uint32(maxNew)
}

func tooLong(m Limits) string {
	size := m.Window
	switch m.Limiting {
	case "prefill pool":
		return fmt.Sprintf("the prompt has %d tokens, the prefill pool holds %d", m.Prompt, m.PrefillPool)
	case "decode pool":
		size = m.DecodePool
	}
	return fmt.Sprintf("prompt and new tokens are %d + %d, the %s holds %d", m.Prompt, m.MaxNew, m.Limiting, size)
}

// tenant is a tenant's record, made at its first request.
func (l *DecodeLeader) tenant(name string) *dtenant {
	t := l.byTenant[name]
	if t == nil {
		t = &dtenant{name: name}
		l.byTenant[name] = t
		l.tenants = append(l.tenants, t)
	}
	return t
}

// forget drops a tenant with nothing queued or active.
func (l *DecodeLeader) forget(t *dtenant) {
	if len(t.queue) > 0 || t.active > 0 || l.byTenant[t.name] != t {
		return
	}
	for _, q := range l.again {
		if q.tenant == t {
			return
		}
	}
	delete(l.byTenant, t.name)
	at := slices.Index(l.tenants, t)
	l.tenants = slices.Delete(l.tenants, at, at+1)
	if at < l.turn {
		l.turn--
	}
}

// unqueue takes a waiting request out of its tenant's queue.
func (l *DecodeLeader) unqueue(q *drequest) bool {
	if at := slices.Index(q.tenant.queue, q); at >= 0 {
		q.tenant.queue = slices.Delete(q.tenant.queue, at, at+1)
		l.queued--
		return true
	}
	if at := slices.Index(l.again, q); at >= 0 {
		l.again = slices.Delete(l.again, at, at+1)
		return true
	}
	return false
}

// pump asks for waiting requests while there is room: first those that come back, then one of each tenant in turn.
func (l *DecodeLeader) pump() {
	for !l.stopped && len(l.order) < l.cfg.MaxActive {
		q := l.nextAgain()
		if q == nil {
			q = l.nextQueued()
		}
		if q == nil {
			return
		}
		l.unqueue(q)
		l.start(q)
	}
}

func (l *DecodeLeader) nextAgain() *drequest {
	for _, q := range l.again {
		if l.pick(q) != nil {
			return q
		}
	}
	return nil
}

func (l *DecodeLeader) nextQueued() *drequest {
	n := len(l.tenants)
	waiting := 0
	for _, t := range l.tenants {
		if len(t.queue) > 0 {
			waiting++
		}
	}
	for i := range n {
		t := l.tenants[(l.turn+i)%n]
		if len(t.queue) == 0 {
			continue
		}
		others := waiting > 1
		over := t.active >= l.cfg.MaxTenantActive || (t.active > 0 && t.pages+l.pagesOf(t.queue[0]) > l.cfg.MaxTenantPages)
		if (others && over) || l.pick(t.queue[0]) == nil {
			continue
		}
		l.turn = (l.turn + i + 1) % n
		return t.queue[0]
	}
	return nil
}

// pagesOf is how many KV pages of each rank a request takes first: its prompt and the place of the first token.
func (l *DecodeLeader) pagesOf(q *drequest) uint32 {
	return uint32((uint64(len(q.sub.Prompt)) + uint64(l.perPage)) / uint64(l.perPage)) // PagesFor(prompt + 1)
}
