package core

import (
	"fmt"

	"kvfence/impl/pages"
	"kvfence/spec"
)

// fork makes a further sample of a ready lease's prompt: a lease of another transfer that shares the prompt's full pages and copies what
// is not full or not paged by tokens. Prefill owes it nothing. The copies run in its first step; until then it holds what it copies.
func (r *DecodeRank) fork(m Fork) {
	from := r.byTransfer[m.From]
	l := r.byTransfer[m.Transfer]
	switch {
	case l != nil:
		r.count(spec.RefuseDuplicate, 0, 0, "fork "+m.Transfer.String())
		r.tell(Taken{Transfer: m.Transfer, Lease: l.id})
		return
	case r.ending:
		r.tell(NoPlan{Transfer: m.Transfer, Cause: spec.CauseShutdown, Detail: "this rank is ending"})
		return
	case from == nil || from.state != dleaseReady || len(from.copies) > 0:
		r.count(spec.RefuseWrongState, 0, 0, "fork of "+m.From.String())
		r.tell(NoPlan{Transfer: m.Transfer, Cause: spec.CausePeerFailed, Detail: "its first sample is not ready"})
		return
	}
	l = &dlease{id: r.next, transfer: m.Transfer, domain: from.domain, request: from.request, tokens: from.tokens, contents: from.contents, fork: true, digests: map[partKey][]uint64{}}
	if !r.wholePrefix(l) {
		r.tell(NoPlan{Transfer: m.Transfer, Cause: spec.CauseOverCapacity, Detail: "its prompt is not published any more"})
		return
	}
	if r.taken != nil || len(r.leases) >= r.cfg.MaxLeases || !r.forkPages(l) {
		r.wanted = true
		r.tell(NoRoom{Transfer: m.Transfer})
		return
	}
	r.next++
	l.granted = true
	r.leases[l.id], r.byTransfer[l.transfer] = l, l
	r.states[dleaseReady]++
	l.state = dleaseReady
	r.touch(l)
	r.voidPages(l)
	if !r.copyFrom(l, from) || !r.assertShared(l, 0, len(l.shared)) {
		return
	}
	l.checks = append(r.planned(l), sharedChecks(l)...)
	r.didWith(l, nil, Did{Name: "Grant", Domain: l.domain, Detail: "a further sample of lease " + fmt.Sprint(from.id)})
	for _, p := range l.shared {
		r.didShare(Did{Name: "Share"}, l, p)
	}
	r.did("Verify", l, nil, "")
	r.did("Ready", l, nil, "")
	for _, c := range r.locals(l) {
		r.didWith(l, nil, Did{Name: "Grow", Pages: onePage(c.Component, spec.GrantedPage{Page: c.Page, Gen: c.Want.Gen})})
	}
	r.tell(Taken{Transfer: l.transfer, Lease: l.id})
	r.tell(LeaseReady{Transfer: l.transfer})
}

// wholePrefix reports whether all full pages of a prompt are published.
func (r *DecodeRank) wholePrefix(l *dlease) bool {
	full := l.tokens / r.layouts[spec.KV].Equal.TokensPerPage
	if uint64(len(l.contents)) < uint64(full) {
		return false
	}
	return len(r.pools[spec.KV].Prefix(l.contents[:full], nil)) == int(full)
}

// forkPages takes shares of all full pages of the prompt and fresh pages for the rest, all or none.
func (r *DecodeRank) forkPages(l *dlease) bool {
	kv := r.layouts[spec.KV]
	full := l.tokens / kv.Equal.TokensPerPage
	need := [spec.ComponentCount]uint32{spec.KV: kv.PagesFor(l.tokens + 1)}
	if r.layouts[spec.State] != nil {
		need[spec.State] = 1
	}
	r.sharePrefix(l, full)
	if uint32(len(l.shared)) == full {
		return r.takeRest(l, need)
	}
	r.endShare(l)
	return false
}

// copyFrom plans the copies of a fork and holds what they read: the tail of the prompt and the state record, as prefill left it. The
// auxiliary record is the first sample's alone.
func (r *DecodeRank) copyFrom(l, from *dlease) bool {
	full := uint32(len(l.shared))
	tail := l.tokens % r.layouts[spec.KV].Equal.TokensPerPage
	if tail > 0 {
		l.copies = append(l.copies, PageCopy{Component: spec.KV, Index: full, From: from.pages[spec.KV][full], To: l.pages[spec.KV][full], Tokens: tail})
	}
	if len(l.pages[spec.State]) > 0 {
		l.copies = append(l.copies, PageCopy{Component: spec.State, From: from.pages[spec.State][0], To: l.pages[spec.State][0]})
	}
	for _, c := range l.copies {
		pool := r.pools[c.Component]
		g, err := pool.HoldPages(from.owner(), []spec.PageID{c.From.Page})
		if err != nil {
			r.broken(2, "fork of lease %d: %v", from.id, err)
			return false
		}
		l.from = append(l.from, copyHold{c.Component, g, r.writers(from)})
		for _, k := range from.checks {
			if k.Component == c.Component && k.Page == c.From.Page {
				l.before = append(l.before, k)
			}
		}
	}
	for i := full; i < uint32(len(l.pages[spec.KV])); i++ {
		if err := r.pools[spec.KV].Store(l.owner(), l.pages[spec.KV][i].Page); err != nil {
			r.broken(18, "fork of lease %d: %v", from.id, err)
			return false
		}
	}
	return true
}

// copyHold is a hold on a page of another lease that is still to be copied.
type copyHold struct {
	component spec.Component
	group     pages.Group
	writers   []*dlink // that were granted it
}

// copied ends what a lease holds of others for its copies: they are done, or never will be.
func (r *DecodeRank) copied(l *dlease) {
	for _, h := range l.from {
		e, err := r.pools[h.component].EndGroup(h.group)
		if err != nil {
			r.broken(10, "copies of lease %d: %v", l.id, err)
			return
		}
		if e.Freed > 0 {
			r.freed()
		}
	}
	l.copies, l.from, l.before = nil, nil, nil
}
