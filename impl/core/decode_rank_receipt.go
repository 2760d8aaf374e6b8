package core

import (
	"fmt"
	"slices"

	"kvfence/spec"
)

// receipt is a Complete, Failed, AbortAck or Gone as it came.
type receipt struct {
	kind     spec.Kind
	transfer spec.TransferID
	lease    spec.LeaseID
	epoch    spec.Epoch // of its grant
	channels []spec.Channel
	complete *spec.Complete
	cause    spec.Cause
	detail   string
}

// word is the receipt's kind in the specification. Whether a Complete names what it should is seen when it is taken.
func (m *receipt) word() string {
	switch m.kind {
	case spec.KindComplete:
		return "complete"
	case spec.KindAbortAck:
		return "ack"
	case spec.KindFailed:
		return "failed"
	}
	return "gone"
}

// onReceipt judges a receipt. It is kept until decode's own half of the drain is done: all listed notices are in. Before that it
// ends no hold and counts as not come. A Complete of a pull link is no receipt: it says what is readable.
func (r *DecodeRank) onReceipt(k *dlink, conn ConnID, env spec.Envelope, m receipt) {
	l := r.leases[m.lease]
	var h *dhold
	if l != nil {
		h = l.hold(k)
	}
	if h == nil || l.transfer != m.transfer {
		r.unknownReceipt(k, conn, env, m)
		return
	}
	switch {
	case env.From != h.inc:
		r.count(spec.RefuseWrongIncarnation, m.kind, k.cfg.ID, "only the granted incarnation can answer, this is "+env.From.String())
	case m.epoch != h.epoch:
		r.count(spec.RefuseStaleEpoch, m.kind, k.cfg.ID, fmt.Sprintf("granted in epoch %d, answered for %d", h.epoch, m.epoch))
	case !h.standing:
		r.count(spec.RefuseDuplicate, m.kind, k.cfg.ID, fmt.Sprintf("lease %d: the hold ended by %s", l.id, h.proof))
		if h.pull != nil && m.complete != nil {
			r.say(k, spec.Read{Transfer: l.transfer, Lease: l.id})
		}
	case h.pull != nil && m.complete != nil:
		r.didWith(l, k, Did{Name: "RecvComplete", Receipt: "complete", Inc: env.From, Epoch: m.epoch})
		r.pullComplete(h, *m.complete)
	case h.pull != nil: // prefill reads and writes nothing here: the hold is this rank's own copies, and only their end ends it
		r.didWith(l, k, Did{Name: "RecvReceipt", Receipt: m.word(), Inc: env.From, Epoch: m.epoch, Detail: m.kind.String()})
		h.since, h.answered = r.now, true
		if l.state == dleaseFilling {
			r.fail(l, sane(m.cause), m.detail, true)
		}
	case len(m.channels) > r.cfg.MaxChannels:
		r.count(spec.RefuseFull, m.kind, k.cfg.ID, fmt.Sprintf("%d channels", len(m.channels)))
		r.fence(k, "a receipt lists too many channels")
	case m.complete != nil && len(m.channels) == 0 && len(m.complete.Parts) > 0:
		// It claims written parts and names no channel that carried them: nothing to wait for would be no proof.
		r.count(spec.RefuseOutOfRange, m.kind, k.cfg.ID, "parts written over no channel")
		r.fail(l, spec.CauseProtocol, "Complete names parts and no channel", true)
		r.fence(k, "a receipt without channels")
	default:
		name := "RecvReceipt"
		if m.complete != nil {
			name = "RecvComplete"
		}
		r.didWith(l, k, Did{Name: name, Receipt: m.word(), Inc: env.From, Epoch: m.epoch})
		if h.receipt == nil {
			h.since = r.now
		}
		h.receipt = &m
		r.tryTake(h)
	}
}

// unknownReceipt answers a receipt for a lease that this rank does not hold. Below the mark it is an old one, said again.
func (r *DecodeRank) unknownReceipt(k *dlink, conn ConnID, env spec.Envelope, m receipt) {
	if env.From != k.inc || conn != k.conn {
		r.count(spec.RefuseWrongIncarnation, m.kind, k.cfg.ID, fmt.Sprintf("lease %d, from %s", m.lease, env.From))
		return
	}
	if m.lease != 0 && m.lease < r.nextGrant() && r.leases[m.lease] == nil {
		r.count(spec.RefuseBelowMark, m.kind, k.cfg.ID, fmt.Sprintf("lease %d is over", m.lease))
		if m.complete != nil && k.cfg.Pull {
			r.say(k, spec.Read{Transfer: m.transfer, Lease: m.lease}) // nothing of it is being read, said again
		}
		return
	}
	r.count(spec.RefuseUnknownLease, m.kind, k.cfg.ID, fmt.Sprintf("lease %d", m.lease))
	r.answer(k, conn, env, m.lease, spec.RefuseUnknownLease, "")
}

// noticeIn is decode's half of the drain on one channel.
func (r *DecodeRank) noticeIn(e NoticeIn) {
	k := r.link(e.Peer)
	l := r.leases[e.Lease]
	var h *dhold
	if l != nil {
		h = l.hold(k)
	}
	if h == nil || !h.standing || h.epoch != e.Epoch {
		r.count(spec.RefuseUnknownLease, 0, e.Peer, fmt.Sprintf("notice %d of lease %d", e.Number, e.Lease))
		return
	}
	i := slices.IndexFunc(h.notices, func(c spec.Channel) bool { return c.ID == e.Channel })
	switch {
	case i >= 0 && e.Number <= h.notices[i].Notice:
		r.count(spec.RefuseDuplicate, 0, e.Peer, fmt.Sprintf("notice %d of lease %d", e.Number, e.Lease))
		return
	case i >= 0:
		h.notices[i].Notice = e.Number
	case len(h.notices) >= r.cfg.MaxChannels:
		r.count(spec.RefuseFull, 0, e.Peer, "notices on too many channels")
		return
	default:
		h.notices = append(h.notices, spec.Channel{ID: e.Channel, Notice: e.Number})
	}
	r.didWith(l, k, Did{Name: "NoticeIn", Inc: h.inc, Epoch: h.epoch, Channel: spec.Channel{ID: e.Channel, Notice: e.Number}, Detail: fmt.Sprintf("channel %d number %d", e.Channel, e.Number)})
	r.tryTake(h)
}

// drained reports whether every notice that a receipt lists is in.
func (h *dhold) drained(m *receipt) bool {
	for _, c := range m.channels {
		if !slices.ContainsFunc(h.notices, func(n spec.Channel) bool { return n.ID == c.ID && n.Notice >= c.Notice }) {
			return false
		}
	}
	return true
}

// tryTake takes the kept receipt of a hold when both halves of the drain are done.
func (r *DecodeRank) tryTake(h *dhold) {
	m := h.receipt
	if m == nil || !h.drained(m) {
		return
	}
	l := h.lease
	why := ""
	if m.complete != nil && l.state == dleaseFilling {
		why = r.strike(h, *m.complete)
	}
	took, word := m.kind.String(), m.word()
	if why != "" {
		took, word = "misnamed", "misnamed"
	}
	r.didWith(l, h.link, Did{Name: "Take", Receipt: word, Inc: h.inc, Epoch: h.epoch, Detail: took})
	if m.complete == nil {
		if l.state == dleaseFilling {
			r.failQuiet(h, sane(m.cause), m.detail)
		}
		r.endHold(h, "receipt")
		return
	}
	if l.state == dleaseFilling {
		if why != "" {
			r.failQuiet(h, spec.CauseProtocol, "Complete differs from the plan: "+why)
		} else {
			h.got = true
		}
	}
	r.endHold(h, "receipt")
	r.partsIn(l)
}

// sane is a cause that a peer may give; anything else is its failure.
func sane(c spec.Cause) spec.Cause {
	if !c.Known() || c == spec.CausePreempted {
		return spec.CausePeerFailed
	}
	return c
}

// failQuiet fails the lease of a hold whose receipt is being taken: this link needs no Abort any more, the others do.
func (r *DecodeRank) failQuiet(h *dhold, cause spec.Cause, detail string) {
	h.answered = true
	within := r.within
	r.within = true
	r.fail(h.lease, cause, detail, true)
	r.within = within
}

// strike compares a Complete with decode's own list and its own request, and strikes the parts off. "" means that all is as it
// should be: the parts by name, each once and none missing, length, token digest, and as many byte digests as pages.
func (r *DecodeRank) strike(h *dhold, c spec.Complete) string {
	l := h.lease
	switch {
	case c.Tokens != l.tokens:
		return fmt.Sprintf("%d tokens, asked for %d", c.Tokens, l.tokens)
	case c.Request != l.request:
		return "the digest of tokens, tenant, salt and adapter"
	case len(c.Parts) != len(h.parts):
		return fmt.Sprintf("%d parts, %d are owed", len(c.Parts), len(h.parts))
	}
	struck := make(map[partKey][]uint64, len(h.parts))
	for _, d := range c.Parts {
		key := partKey{d.Component, d.Index}
		p := partOf(h.parts, key)
		if p == nil {
			return fmt.Sprintf("%s part %d is not owed", d.Component, d.Index)
		}
		if _, twice := struck[key]; twice {
			return fmt.Sprintf("%s part %d stands twice", d.Component, d.Index)
		}
		if want := r.digestsOf(*p); len(d.Digests) != want {
			return fmt.Sprintf("%s part %d has %d digests, %d pages", d.Component, d.Index, len(d.Digests), want)
		}
		struck[key] = d.Digests
	}
	for key, digests := range struck { // order does not matter: each key is written once
		l.digests[key] = digests
	}
	return ""
}

// digestsOf is how many byte digests a manifest must have for a part.
func (r *DecodeRank) digestsOf(p spec.Part) int {
	if !r.cfg.Digests {
		return 0
	}
	lo, hi := p.PageRange(*r.layouts[p.Component])
	return int(hi - lo)
}

func partOf(ps []spec.Part, key partKey) *spec.Part {
	for i := range ps {
		if ps[i].Component == key.component && ps[i].Index == key.index {
			return &ps[i]
		}
	}
	return nil
}

// onFailing hears at once that prefill gave up on a lease; the receipt comes later and no hold ends.
func (r *DecodeRank) onFailing(k *dlink, env spec.Envelope, m spec.Failing) {
	l := r.leases[m.Lease]
	var h *dhold
	if l != nil {
		h = l.hold(k)
	}
	switch {
	case h == nil || l.transfer != m.Transfer:
		r.count(spec.RefuseUnknownLease, spec.KindFailing, k.cfg.ID, fmt.Sprintf("lease %d", m.Lease))
		return
	case env.From != h.inc || env.Epoch != h.epoch:
		r.count(spec.RefuseStaleEpoch, spec.KindFailing, k.cfg.ID, fmt.Sprintf("lease %d", m.Lease))
		return
	case !h.standing:
		r.count(spec.RefuseDuplicate, spec.KindFailing, k.cfg.ID, fmt.Sprintf("lease %d", m.Lease))
		return
	}
	h.since = r.now
	if l.state == dleaseFilling {
		r.fail(l, sane(m.Cause), m.Detail, true)
	}
}
