package core

import (
	"fmt"
	"slices"

	"kvfence/spec"
)

// said takes a message of a decode leader; its header was tested by rank 0.
func (l *PrefillLeader) said(r spec.Rank, m PeerSaid) {
	k := l.links[m.Peer]
	if r != 0 || k == nil {
		l.do(Count{Refusal: spec.RefuseWrongState, About: m.Body.Kind(), Peer: m.Peer, Detail: "no open link of rank 0"})
		return
	}
	switch b := m.Body.(type) {
	case spec.Ask:
		l.recvAsk(m.Peer, k, b)
	case spec.Drop:
		l.recvDrop(m.Peer, b)
	default:
		l.do(Count{Refusal: spec.RefuseUnknownKind, About: m.Body.Kind(), Peer: m.Peer})
	}
}

// recvAsk admits a transfer or says why not. Repeated asks get the same answer and begin nothing twice.
func (l *PrefillLeader) recvAsk(p PeerID, k *leaderLink, a spec.Ask) {
	fail := func(c spec.Cause, limit uint32, detail string) {
		l.do(ReplyLeader{Peer: p, Body: spec.AskFailed{Transfer: a.Transfer, Cause: c, Detail: detail, Limit: limit}})
	}
	if a.Transfer.Leader != k.identity.Incarnation || k.identity.Rank != 0 {
		l.do(Count{Refusal: spec.RefuseWrongIncarnation, About: spec.KindAsk, Peer: p, Detail: "the transfer is not named by this link's leader"})
		return
	}
	domain := spec.DomainOf(a.Tenant, a.Salt, a.Adapter, l.cfg.Revision)
	if j := l.bound[a.Transfer]; j != nil {
		switch {
		case j.request != spec.DigestRequest(a.Prompt, domain):
			l.do(Count{Refusal: spec.RefuseDuplicate, About: spec.KindAsk, Peer: p, Detail: "the same transfer with another prompt"})
		case j.stopped:
			fail(j.cause, 0, j.detail)
		default:
			l.do(ReplyLeader{Peer: p, Body: spec.Asked{Transfer: a.Transfer, Tokens: uint32(len(j.prompt))}})
		}
		return
	}
	if o, ok := l.over[a.Transfer]; ok {
		if o.cause != "" {
			fail(o.cause, 0, o.detail)
		} else {
			l.do(ReplyLeader{Peer: p, Body: spec.Asked{Transfer: a.Transfer, Tokens: o.tokens}})
		}
		return
	}
	if a.Transfer.Counter <= k.floor {
		fail(spec.CausePeerLost, 0, "prefill has forgotten this transfer")
		return
	}
	if c, limit, detail := l.admit(a.Prompt, a.Adapter); c != "" {
		fail(c, limit, detail)
		return
	}
	if c, detail := checkLinks(k.identity, a.Links); c != "" {
		fail(c, 0, detail)
		return
	}
	if a.Source != (spec.SourceName{}) {
		l.bind(p, a, domain, fail)
		return
	}
	if c, detail := l.room(len(a.Prompt)); c != "" {
		fail(c, 0, detail)
		return
	}
	j := &leaderJob{key: a.Transfer, transfer: a.Transfer, peer: p, bound: true, prompt: a.Prompt, domain: domain, adapter: a.Adapter,
		sampling: a.Sampling, links: a.Links, request: spec.DigestRequest(a.Prompt, domain)}
	l.open(j, Duration(min(a.TimeLeft, 1<<62)))
	l.bound[a.Transfer] = j
	l.answerAsked(j)
}

// answerAsked admits: the ranks are told before the decode leader is.
func (l *PrefillLeader) answerAsked(j *leaderJob) {
	l.did("RecvAsk", j)
	l.do(ReplyLeader{Peer: j.peer, Body: spec.Asked{Transfer: j.transfer, Tokens: uint32(len(j.prompt))}})
	j.sayWait = l.cfg.AskedFirst
	l.askedLater(j)
}

// askedLater sets the next repeat of Asked, with back-off.
func (l *PrefillLeader) askedLater(j *leaderJob) {
	j.sayAt = l.now + Time(j.sayWait)
	j.sayWait = min(2*j.sayWait, l.cfg.AskedMax)
	l.at(j.sayAt)
}

// askedAgain repeats Asked for a job whose grants have not come: a decode leader that has given the transfer up answers with Drop,
// so that a lost Drop leaves nothing here.
func (l *PrefillLeader) askedAgain(j *leaderJob) {
	if k := l.links[j.peer]; k != nil && k.up {
		l.do(ReplyLeader{Peer: j.peer, Body: spec.Asked{Transfer: j.transfer, Tokens: uint32(len(j.prompt))}})
	}
	l.askedLater(j)
}

// open enters a job and tells the ranks.
func (l *PrefillLeader) open(j *leaderJob, left Duration) {
	n := len(l.lost)
	j.granted, j.over, j.pages = make([]bool, n), make([]bool, n), make([][spec.ComponentCount][]spec.GrantedPage, n)
	if left > 0 {
		j.deadline = l.now + Time(min(left, Duration(1<<62)-Duration(l.now)))
		l.at(j.deadline)
	}
	j.grantBy = l.now + Time(l.cfg.GrantBound)
	l.at(j.grantBy)
	l.jobs[j.key] = j
	l.order = append(l.order, j)
	l.tokens += len(j.prompt)
	if k := l.links[j.peer]; j.bound && !k.up {
		l.at(k.down + Time(l.cfg.LinkBound))
	}
	j.most = ^uint32(0)
	if l.cfg.Sharing {
		j.contents = spec.ContentIDs(j.prompt, j.domain, l.perPage())
	}
	l.toRanks(Assign{Transfer: j.key, Request: j.request, Domain: j.domain, Tokens: uint32(len(j.prompt)), Links: j.links, Contents: j.contents})
}

// admit judges what could ever run here, before anything exists for it (I8). The cause is "" if it can.
func (l *PrefillLeader) admit(prompt []int32, adapter string) (c spec.Cause, limit uint32, detail string) {
	most := min(l.cfg.Capacity(), l.cfg.Window)
	switch {
	case l.draining:
		return spec.CauseShutdown, 0, "prefill is draining"
	case l.lostN > 0:
		return spec.CauseShutdown, 0, "the prefill side has lost a rank" // peer_lost is said of one transfer, this is the side's end
	case len(prompt) == 0:
		return spec.CauseInvalid, 0, "empty prompt"
	case uint64(len(prompt)) > uint64(most):
		return spec.CauseTooLong, most, fmt.Sprintf("prompt of %d tokens, the prefill pool holds %d, the window %d", len(prompt), l.cfg.Capacity(), l.cfg.Window)
	case adapter != "" && !slices.Contains(l.cfg.Adapters, adapter):
		return spec.CauseInvalid, 0, fmt.Sprintf("unknown adapter %q", adapter)
	}
	for i, t := range prompt {
		if t < 0 || uint32(t) >= l.cfg.Vocabulary {
			return spec.CauseInvalid, 0, fmt.Sprintf("token %d at position %d, the vocabulary has %d", t, i, l.cfg.Vocabulary)
		}
	}
	return "", 0, ""
}

// room judges what is free now in the leader's own bounded tables.
func (l *PrefillLeader) room(tokens int) (spec.Cause, string) {
	switch {
	case len(l.jobs) >= l.cfg.MaxTransfers:
		return spec.CauseOverCapacity, fmt.Sprintf("prefill has %d transfers, its bound", len(l.jobs))
	case l.tokens+tokens > l.cfg.MaxTokens && l.tokens > 0:
		return spec.CauseOverCapacity, fmt.Sprintf("prefill has %d prompt tokens waiting, its bound is %d", l.tokens, l.cfg.MaxTokens)
	}
	return "", ""
}

// checkLinks tests that the announced decode ranks are the side that the leader said it leads.
func checkLinks(id spec.Identity, links []spec.Incarnation) (spec.Cause, string) {
	if len(links) == 0 {
		return spec.CauseProtocol, "no decode rank is named"
	}
	for i, inc := range links {
		if !slices.Contains(id.Side, inc) || slices.Contains(links[:i], inc) {
			return spec.CauseProtocol, "the decode ranks named are not those of the leader's side"
		}
	}
	return "", ""
}

// half opens a prefill-first half: named here, computed ahead, offered to nobody until an Ask binds it.
func (l *PrefillLeader) half(s Submit) {
	refuse := func(c spec.Cause, detail string, limits Limits) {
		l.do(HalfOver{Req: s.Req, Cause: c, Detail: detail, Limits: limits})
	}
	if c, _, detail := l.admit(s.Prompt, s.Adapter); c != "" {
		limits := Limits{}
		if c == spec.CauseTooLong {
			limits = Limits{Prompt: uint32(len(s.Prompt)), Window: l.cfg.Window, PrefillPool: l.cfg.Capacity(), Limiting: "prefill pool"}
			if l.cfg.Window < l.cfg.Capacity() {
				limits.Limiting = "window"
			}
		}
		refuse(c, detail, limits)
		return
	}
	if c, detail := l.room(len(s.Prompt)); c != "" {
		refuse(c, detail, Limits{})
		return
	}
	l.minted++
	name := spec.SourceName{Leader: l.cfg.Identity.Incarnation, Counter: l.minted}
	domain := spec.DomainOf(s.Tenant, s.Salt, s.Adapter, l.cfg.Revision)
	key := spec.TransferID{Leader: name.Leader, Counter: name.Counter}
	j := &leaderJob{key: key, half: true, req: s.Req, prompt: s.Prompt, domain: domain, adapter: s.Adapter, sampling: s.Sampling,
		request: spec.DigestRequest(s.Prompt, domain)}
	left := l.cfg.HalfBound
	if s.TimeLeft > 0 && s.TimeLeft < left {
		left = s.TimeLeft
	}
	l.do(Named{Req: s.Req, Source: name})
	l.open(j, left)
}

// bind gives a half to the first Ask that quotes it.
func (l *PrefillLeader) bind(p PeerID, a spec.Ask, domain spec.Domain, fail func(spec.Cause, uint32, string)) {
	j := l.jobs[spec.TransferID{Leader: a.Source.Leader, Counter: a.Source.Counter}]
	switch {
	case j == nil || !j.half || j.stopped && !j.bound:
		fail(spec.CausePeerLost, 0, "no such source name, or its time was up")
		return
	case j.bound:
		fail(spec.CauseDuplicateLabel, 0, "the source name is bound to another transfer")
		return
	case j.request != spec.DigestRequest(a.Prompt, domain) || j.sampling != a.Sampling:
		fail(spec.CauseProtocol, 0, "the source name was given for another request")
		return
	}
	j.bound, j.transfer, j.peer, j.links = true, a.Transfer, p, a.Links
	j.regranted = make([]bool, len(l.lost))
	j.grantBy = l.now + Time(l.cfg.GrantBound)
	l.at(j.grantBy)
	l.bound[a.Transfer] = j
	j.deadline = 0
	if a.TimeLeft > 0 {
		j.deadline = l.now + Time(min(a.TimeLeft, 1<<62-uint64(l.now)))
		l.at(j.deadline)
	}
	if k := l.links[p]; !k.up {
		l.at(k.down + Time(l.cfg.LinkBound))
	}
	l.toRanks(Bind{Source: j.key, Transfer: a.Transfer, Links: a.Links})
	l.do(HalfOver{Req: j.req})
	l.answerAsked(j)
}

// recvDrop ends what decode has given up: a half that nobody will ask for, or the transfer that it names. A
// bound half is its transfer's, and only the leader that named a transfer can drop it.
func (l *PrefillLeader) recvDrop(p PeerID, d spec.Drop) {
	j := l.jobs[spec.TransferID{Leader: d.Source.Leader, Counter: d.Source.Counter}]
	ok := j != nil && j.half && !j.bound
	if d.Transfer != (spec.TransferID{}) {
		j = l.bound[d.Transfer]
		ok = j != nil && j.peer == p
	}
	if !ok {
		l.do(Count{Refusal: spec.RefuseUnknownTransfer, About: spec.KindDrop, Peer: p})
		return
	}
	l.stop(j, d.Cause, "dropped by decode")
}
