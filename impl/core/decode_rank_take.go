package core

import (
	"errors"
	"fmt"
	"slices"

	"kvfence/impl/pages"
	"kvfence/spec"
)

// errPeers says that not every link of a prefill side is open, or they are not one side.
var errPeers = errors.New("the prefill side is not whole")

// take hands out the pages of a transfer and plans its parts, all or nothing. Nothing is sent before Go.
func (r *DecodeRank) take(m Take) {
	if l := r.byTransfer[m.Transfer]; l != nil {
		r.count(spec.RefuseDuplicate, 0, 0, "take of "+m.Transfer.String())
		r.tell(Taken{Transfer: m.Transfer, Lease: l.id})
		return
	}
	if r.ending {
		r.tell(NoPlan{Transfer: m.Transfer, Cause: spec.CauseShutdown, Detail: "this rank is ending"})
		return
	}
	side, err := r.wholeSide(m.Prefill)
	if err != nil {
		r.tell(NoPlan{Transfer: m.Transfer, Cause: spec.CausePeerLost, Detail: err.Error()})
		return
	}
	need, err := r.pagesNeeded(m.Tokens)
	if err != nil {
		r.tell(NoPlan{Transfer: m.Transfer, Cause: spec.CauseTooLong, Detail: err.Error()})
		return
	}
	if _, err := r.plan(side, m.Tokens, 0); err != nil {
		r.tell(NoPlan{Transfer: m.Transfer, Cause: spec.CauseIncompatible, Detail: err.Error()})
		return
	}
	l := &dlease{id: r.next, transfer: m.Transfer, domain: m.Domain, request: m.Request, tokens: m.Tokens, side: side, contents: m.Contents, digests: map[partKey][]uint64{}}
	waits := slices.ContainsFunc(side, func(k *dlink) bool { return k.wants != 0 })
	if waits || r.taken != nil || len(r.leases) >= r.cfg.MaxLeases || !r.takePages(l, need) {
		r.wanted = true
		r.tell(NoRoom{Transfer: m.Transfer})
		return
	}
	if l.parts, err = r.plan(side, m.Tokens, uint32(len(l.shared))*r.layouts[spec.KV].Equal.TokensPerPage); err != nil {
		r.broken(4, "no plan behind a shared prefix: %v", err)
		return
	}
	r.next++
	for _, k := range side {
		l.opened = append(l.opened, k.opened)
	}
	r.leases[l.id], r.byTransfer[l.transfer], r.taken = l, l, l
	r.states[dleaseTaken]++
	r.touch(l)
	r.voidPages(l)
	r.tell(Taken{Transfer: l.transfer, Lease: l.id})
}

// takePages takes shares of the longest published prefix and fresh pages for the rest, all or none. It never shares all of the prompt, so
// that every prefill rank that owes a part of it still owes one.
func (r *DecodeRank) takePages(l *dlease, need [spec.ComponentCount]uint32) bool {
	r.sharePrefix(l, (max(l.tokens, 1)-1)/r.layouts[spec.KV].Equal.TokensPerPage)
	return r.takeRest(l, need)
}

// takeRest takes what a lease needs beyond the pages that it shares; if that is not there it gives its shares back.
func (r *DecodeRank) takeRest(l *dlease, need [spec.ComponentCount]uint32) bool {
	need[spec.KV] -= uint32(len(l.shared))
	got, ok := r.pools.Take(need, l.owner())
	r.withdrawn()
	if !ok {
		r.endShare(l)
		return false
	}
	if len(l.shared) > 0 {
		all := make([]spec.GrantedPage, 0, len(l.shared)+len(got[spec.KV]))
		for _, p := range l.shared {
			all = append(all, spec.GrantedPage{Page: p.Page, Gen: p.Gen})
		}
		got[spec.KV] = append(all, got[spec.KV]...)
	}
	l.pages = got
	return true
}

// wholeSide finds the links of a prefill side and checks that they are open and of one side.
func (r *DecodeRank) wholeSide(peers []PeerID) ([]*dlink, error) {
	if len(peers) == 0 {
		return nil, fmt.Errorf("%w: it has no ranks", errPeers)
	}
	side := make([]*dlink, 0, len(peers))
	for rank, p := range peers {
		k := r.link(p)
		switch {
		case k == nil:
			return nil, fmt.Errorf("%w: peer %d is not configured", errPeers, p)
		case k.state != dlinkOpen:
			return nil, fmt.Errorf("%w: link to peer %d is %s", errPeers, p, k.state)
		case int(k.ident.Rank) != rank || len(k.ident.Side) != len(peers):
			return nil, fmt.Errorf("%w: peer %d says that it is rank %d of %d, not %d of %d", errPeers, p, k.ident.Rank, len(k.ident.Side), rank, len(peers))
		case rank > 0 && !slices.Equal(k.ident.Side, side[0].ident.Side):
			return nil, fmt.Errorf("%w: peers %d and %d belong to different sides", errPeers, peers[0], p)
		}
		side = append(side, k)
	}
	return side, nil
}

// voidPages voids every slot of fresh pages and signs those that decode fills itself. Shared ones are nobody's to touch.
func (r *DecodeRank) voidPages(l *dlease) {
	for c, ps := range l.pages {
		if spec.Component(c) == spec.KV {
			ps = ps[len(l.shared):]
		}
		if len(ps) == 0 {
			continue
		}
		ids := make([]spec.PageID, len(ps))
		for i := range ps {
			ids[i] = ps[i].Page
		}
		r.do(VoidTags{Component: spec.Component(c), Pages: ids})
	}
	for _, c := range r.locals(l) {
		r.do(PutTag{Component: c.Component, Page: c.Page, Tag: c.Want})
	}
}

// locals are the tags of the pages that decode fills itself.
func (r *DecodeRank) locals(l *dlease) (checks []TagCheck) {
	for i := r.localFrom(l); i < uint32(len(l.pages[spec.KV])); i++ {
		checks = append(checks, TagCheck{Component: spec.KV, Page: l.pages[spec.KV][i].Page, Want: l.localTag(spec.KV, i)})
	}
	if l.fork && len(l.pages[spec.State]) > 0 {
		checks = append(checks, TagCheck{Component: spec.State, Page: l.pages[spec.State][0].Page, Want: l.localTag(spec.State, 0)})
	}
	return checks
}

// goOn sends the grants of a taken lease. From here its pages come back by proof only.
func (r *DecodeRank) goOn(m Go) {
	l := r.byTransfer[m.Transfer]
	if l == nil || l.state != dleaseTaken {
		r.count(spec.RefuseWrongState, 0, 0, "go for "+m.Transfer.String())
		return
	}
	for i, k := range l.side {
		if k.state != dlinkOpen || k.opened != l.opened[i] {
			r.fail(l, spec.CauseFenced, fmt.Sprintf("link to peer %d changed before the grant", k.cfg.ID), true)
			return
		}
	}
	for rank, k := range l.side {
		ps := l.partsOf(rank)
		if len(ps) == 0 {
			continue
		}
		h := &dhold{lease: l, link: k, epoch: k.epoch, inc: k.inc, parts: ps, standing: true}
		if k.cfg.Pull {
			h.pull = newPullHold(r, ps)
		}
		if !r.ledgerAdd(l, linkHold(k)) {
			return
		}
		l.holds = append(l.holds, h)
		k.owed = append(k.owed, h)
		k.holds++
	}
	if !r.assertWriters(l) {
		return
	}
	r.move(l, dleaseFilling)
	r.taken, l.granted = nil, true
	r.didWith(l, nil, Did{Name: "Grant", Domain: l.domain, Pages: l.freshPages(), Parts: r.owedParts(l), Detail: fmt.Sprintf("%d kv pages, %d links", len(l.pages[spec.KV])-len(l.shared), len(l.holds))})
	for _, p := range l.shared {
		r.didShare(Did{Name: "Share"}, l, p)
	}
	for _, h := range l.holds {
		g := r.grantOf(h)
		if h.pull == nil {
			r.do(Allow{Peer: h.link.cfg.ID, Epoch: h.epoch, Grant: g})
		}
		r.say(h.link, g)
		r.ask(h)
	}
	r.freed() // another take may go on
	r.partsIn(l)
}

// freshPages are a lease's own pages: those that it does not share.
func (l *dlease) freshPages() [spec.ComponentCount][]spec.GrantedPage {
	out := l.pages
	out[spec.KV] = slices.Clip(out[spec.KV][len(l.shared):])
	return out
}

// owedParts says which link owes which pages of a lease.
func (r *DecodeRank) owedParts(l *dlease) (out []OwedPart) {
	for _, h := range l.holds {
		for _, p := range h.parts {
			lo, hi := p.PageRange(*r.layouts[p.Component])
			out = append(out, OwedPart{Peer: h.link.cfg.ID, Component: p.Component, Part: p.Index, Lo: lo, Hi: hi})
		}
	}
	return out
}

func (r *DecodeRank) grantOf(h *dhold) spec.Grant {
	l := h.lease
	return spec.Grant{Transfer: l.transfer, Lease: l.id, Domain: l.domain, Tokens: l.tokens, Pages: l.grantedPages(), Parts: h.parts, Digests: r.cfg.Digests}
}

// ask starts the repeats of a Grant or an Abort.
func (r *DecodeRank) ask(h *dhold) {
	h.asked, h.since, h.wait = r.now, r.now, r.cfg.RepeatFirst
	r.askAgain(h)
}

func (r *DecodeRank) askAgain(h *dhold) {
	h.due = r.now + Time(h.wait)
	r.clock.set(h.due, timeRepeat, uint64(h.lease.id), h.link.index)
	h.wait = min(2*h.wait, r.cfg.RepeatMax)
}

// drainBounds is how many AnswerBounds a peer that lives and says that it drains is waited for after an Abort. Its word ends no hold
// and must not keep the pages for ever either: then the fence is the proof.
const drainBounds = 4

// repeatTime repeats what was not answered, and fences the link when the repeats too stay unanswered, or nothing but words comes.
func (r *DecodeRank) repeatTime(id spec.LeaseID, k *dlink, at Time) {
	l := r.leases[id]
	if l == nil {
		return
	}
	h := l.hold(k)
	if h == nil || !h.standing || h.due != at || k.state != dlinkOpen || h.epoch != k.epoch {
		return
	}
	if r.now-h.since >= Time(r.cfg.AnswerBound) {
		r.fence(k, fmt.Sprintf("lease %d stayed unanswered", id))
		return
	}
	if l.state == dleaseRevoking && r.now-h.asked >= drainBounds*Time(r.cfg.AnswerBound) {
		r.fence(k, fmt.Sprintf("lease %d is not drained in time", id))
		return
	}
	if l.state == dleaseRevoking {
		r.say(k, spec.Abort{Transfer: l.transfer, Lease: l.id, Cause: l.cause})
	} else {
		r.say(k, r.grantOf(h))
	}
	r.askAgain(h)
}

// abortLease revokes a transfer's lease at its leader's word.
func (r *DecodeRank) abortLease(m AbortLease) {
	l := r.byTransfer[m.Transfer]
	if l == nil {
		r.tell(LeaseFreed{Transfer: m.Transfer})
		return
	}
	l.told = true
	r.fail(l, m.Cause, "", false)
}

// releaseLease ends a ready lease: its transfer is over or was preempted.
func (r *DecodeRank) releaseLease(m ReleaseLease) {
	l := r.byTransfer[m.Transfer]
	if l == nil {
		r.tell(LeaseFreed{Transfer: m.Transfer})
		return
	}
	l.told = true
	r.fail(l, spec.CausePreempted, "", false)
}

// fail is the one way by which a lease stops serving its transfer: abort, failure, fence, bad tag and plain release. Nothing is
// freed by it but the request's own hold; the others end by their proofs.
func (r *DecodeRank) fail(l *dlease, cause spec.Cause, detail string, tell bool) {
	if tell && !l.told {
		l.told = true
		r.tell(LeaseFailed{Transfer: l.transfer, Cause: cause, Detail: detail})
	}
	if l.state == dleaseRevoking {
		return
	}
	was := l.state
	l.cause = cause
	r.move(l, dleaseRevoking)
	if r.taken == l {
		r.taken = nil
	}
	if err := r.pools.Revoke(l.owner()); err != nil {
		r.broken(17, "revoke of lease %d: %v", l.id, err)
		return
	}
	if (was == dleaseFilling || was == dleaseVerifying) && !r.within && !l.bad {
		r.didWith(l, nil, Did{Name: "Abort", Cause: cause, Detail: string(cause)})
	}
	for _, h := range l.holds {
		if h.pull == nil && was != dleaseReady {
			r.do(Revoke{Peer: h.link.cfg.ID, Lease: l.id})
		}
		if h.standing && !h.answered && h.link.state == dlinkOpen && h.epoch == h.link.epoch {
			r.say(h.link, spec.Abort{Transfer: l.transfer, Lease: l.id, Cause: cause})
			r.ask(h)
		}
	}
	for _, h := range l.holds {
		if h.pull != nil && h.standing {
			r.pullOver(h)
		}
	}
	r.ledgerEnd(l, pages.RequestHold())
}

// ledgerAdd begins a hold of a lease in all pools.
func (r *DecodeRank) ledgerAdd(l *dlease, h pages.Hold) bool {
	if err := r.pools.AddHold(l.owner(), h); err != nil {
		r.broken(2, "lease %d: %v", l.id, err)
		return false
	}
	return true
}

// ledgerEnd ends a hold of a lease; with the last one the lease is freed.
func (r *DecodeRank) ledgerEnd(l *dlease, h pages.Hold) {
	e, err := r.pools.EndHold(l.owner(), h)
	if err != nil {
		r.broken(10, "lease %d: %v", l.id, err)
		return
	}
	if !e.Over {
		return
	}
	for _, h := range l.holds {
		if h.standing {
			r.broken(13, "the pages of lease %d are free, and peer %d may write into them", l.id, h.link.cfg.ID)
			return
		}
	}
	e.Freed += r.endShare(l)
	r.copied(l)
	if l.granted && !l.bad { // pages that were never granted were never the specification's; bad ones end by QuarantineEnd
		r.did("Release", l, nil, fmt.Sprintf("%d pages", e.Freed))
	}
	r.states[l.state]--
	delete(r.leases, l.id)
	delete(r.byTransfer, l.transfer)
	r.tell(LeaseFreed{Transfer: l.transfer})
	r.freed()
}

// freed tells the leader, if it was told NoRoom, that asking again may help.
func (r *DecodeRank) freed() {
	if r.wanted && r.taken == nil {
		r.wanted = false
		r.tell(PagesFreed{})
	}
}

// leaderLost counts the leader's open transfers as failed: aborts on own links, pages back by proof. Nothing new is taken.
func (r *DecodeRank) leaderLost() {
	r.end("the leader is lost")
	ids := make([]spec.LeaseID, 0, len(r.leases))
	for id := range r.leases {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		if l := r.leases[id]; l != nil {
			r.fail(l, spec.CauseLeaderLost, "", false)
		}
	}
}

// grow adds the page of one position to a ready lease. A page that is there already is an answer, too.
func (r *DecodeRank) grow(m Grow) {
	l := r.byTransfer[m.Transfer]
	kv := r.layouts[spec.KV]
	if l == nil || l.state != dleaseReady || m.Pos/kv.Equal.TokensPerPage > uint32(len(l.pages[spec.KV])) {
		r.count(spec.RefuseWrongState, 0, 0, "grow of "+m.Transfer.String())
		r.tell(GrowNoRoom{Transfer: m.Transfer})
		return
	}
	index := m.Pos / kv.Equal.TokensPerPage
	if index == uint32(len(l.pages[spec.KV])) {
		var need [spec.ComponentCount]uint32
		need[spec.KV] = 1
		got, ok := r.pools.Take(need, l.owner())
		r.withdrawn()
		if !ok {
			r.wanted = true
			r.tell(GrowNoRoom{Transfer: m.Transfer})
			return
		}
		l.pages[spec.KV] = append(l.pages[spec.KV], got[spec.KV][0])
		r.touch(l)
		page := got[spec.KV][0].Page
		r.do(VoidTags{Component: spec.KV, Pages: []spec.PageID{page}})
		r.do(PutTag{Component: spec.KV, Page: page, Tag: l.localTag(spec.KV, index)})
		r.didWith(l, nil, Did{Name: "Grow", Pages: onePage(spec.KV, got[spec.KV][0]), Detail: fmt.Sprintf("kv page %d", page)})
		if err := r.pools[spec.KV].Store(l.owner(), page); err != nil {
			r.broken(18, "grown page of lease %d: %v", l.id, err)
			return
		}
		l.checks = append(l.checks, TagCheck{Component: spec.KV, Page: page, Want: l.localTag(spec.KV, index)})
		l.view = nil
	}
	r.tell(Grown{Transfer: m.Transfer})
}
