package core

import (
	"errors"
	"fmt"
	"slices"

	"kvfence/impl/pages"
	"kvfence/spec"
)

// Prefixes that leases share. A full page of a prompt that prefill filled and this rank verified is published under its content id;
// a later lease of the same domain and the same tokens takes a share of it instead of a page, and prefill owes only what is behind.

func shareText(p pages.Publication) string {
	return fmt.Sprintf("kv page %d generation %d of lease %d", p.Page, p.Gen, p.Filler)
}

// didShare records an action about one published page: Publish or Share.
func (r *DecodeRank) didShare(d Did, l *dlease, p pages.Publication) {
	d.Filler, d.Pages, d.Detail = spec.LeaseID(p.Filler), onePage(spec.KV, spec.GrantedPage{Page: p.Page, Gen: p.Gen}), shareText(p)
	r.didWith(l, nil, d)
}

// sharePrefix takes shares of the longest published prefix of a lease's prompt, at most so many pages.
func (r *DecodeRank) sharePrefix(l *dlease, most uint32) {
	kv := r.pools[spec.KV]
	found := kv.Prefix(l.contents[:min(uint32(len(l.contents)), most)], nil)
	if len(found) == 0 {
		return
	}
	g, err := kv.Share(l.owner(), l.domain, found)
	if err != nil { // it does without
		r.count(spec.RefuseNotGranted, 0, 0, err.Error())
		return
	}
	l.shared, l.share = found, g
	for _, p := range found {
		l.sharedTags += len(p.Tags)
	}
	r.hits += uint64(len(found))
}

// endShare ends the hold of a lease on what it shares, and says how many pages are free by it.
func (r *DecodeRank) endShare(l *dlease) uint32 {
	if l.share == 0 {
		return 0
	}
	e, err := r.pools[spec.KV].EndGroup(l.share)
	if err != nil {
		r.broken(10, "shares of lease %d: %v", l.id, err)
	}
	l.share, l.shared, l.sharedTags = 0, nil, 0
	return e.Freed
}

// grantedPages are a lease's pages as prefill sees them: those that it shares are void, number and generation 0. No peer has a right to
// them, and none learns which they are.
func (l *dlease) grantedPages() [spec.ComponentCount][]spec.GrantedPage {
	out := l.pages
	if n := len(l.shared); n > 0 {
		out[spec.KV] = append(make([]spec.GrantedPage, n, len(l.pages[spec.KV])), l.pages[spec.KV][n:]...)
	}
	return out
}

// sharedChecks are the tags that a lease's shared pages must have: their fillers', as the ledger keeps them.
func sharedChecks(l *dlease) (checks []TagCheck) {
	for _, p := range l.shared {
		for _, want := range p.Tags {
			checks = append(checks, TagCheck{Component: spec.KV, Page: p.Page, Slot: want.Part, Want: want})
		}
	}
	return checks
}

// publish makes the full pages of a lease that became ready known: those that prefill filled for it. Neither its tail nor its records.
// false: an invariant broke.
func (r *DecodeRank) publish(l *dlease) bool {
	if r.cfg.MaxPublished == 0 {
		return true
	}
	var granted []uint64
	for _, h := range l.holds {
		if h.standing {
			r.broken(18, "lease %d would be published, and peer %d may write into it", l.id, h.link.cfg.ID)
			return false
		}
		granted = append(granted, uint64(h.link.cfg.ID))
	}
	parts := slices.DeleteFunc(slices.Clone(l.parts), func(p spec.Part) bool { return p.Component != spec.KV })
	full := min(uint32(len(l.contents)), l.tokens/r.layouts[spec.KV].Equal.TokensPerPage)
	for i := uint32(len(l.shared)); i < full; i++ {
		g := l.pages[spec.KV][i]
		p := pages.Publication{Content: l.contents[i], Domain: l.domain, Page: g.Page, Gen: g.Gen, Filler: l.owner(), Tags: r.tagsOf(l, i), Parts: parts, Granted: granted}
		done, err := r.pools[spec.KV].Publish(p)
		if err != nil {
			r.broken(18, "lease %d: %v", l.id, err)
			return false
		}
		if done {
			r.published++
			r.withdrawn()
			r.didShare(Did{Name: "Publish"}, l, p)
		}
	}
	return true
}

// tagsOf is what the slots of KV page index i hold.
func (r *DecodeRank) tagsOf(l *dlease, i uint32) (tags []spec.Tag) {
	for _, p := range l.parts {
		if lo, hi := p.PageRange(*r.layouts[p.Component]); p.Component == spec.KV && lo <= i && i < hi {
			digests := l.digests[partKey{p.Component, p.Index}]
			has, d := i-lo < uint32(len(digests)), uint64(0)
			if has {
				d = digests[i-lo]
			}
			tags = append(tags, r.tag(l, p, i, d, has))
		}
	}
	return tags
}

// withdrawn reports the publications that have ended: their pages were handed out, or room was needed.
func (r *DecodeRank) withdrawn() {
	for _, p := range r.pools[spec.KV].Ended() {
		r.published--
		r.didShare(Did{Name: "Unpublish", Lease: spec.LeaseID(p.Filler)}, nil, p)
	}
}

// store notes that decode is about to store at a position of a ready lease. A page that is published or shared is not stored into:
// the lease takes a page of its own, and the step copies before it appends. false: there is no page for that now.
func (r *DecodeRank) store(l *dlease, pos uint32) bool {
	kv := r.pools[spec.KV]
	index := pos / r.layouts[spec.KV].Equal.TokensPerPage
	err := kv.Store(l.owner(), l.pages[spec.KV][index].Page)
	switch {
	case errors.Is(err, pages.ErrPublished):
		return r.copyFirst(l, index, pos%r.layouts[spec.KV].Equal.TokensPerPage)
	case err != nil:
		r.broken(18, "lease %d would be appended to at %d: %v", l.id, pos, err)
		return false
	}
	return true
}

// copyFirst puts a fresh page in the place of one that others may read. The old one stays this lease's, and the copy runs in the step:
// the read holds both.
func (r *DecodeRank) copyFirst(l *dlease, index, tokens uint32) bool {
	got, ok := r.pools.Take([spec.ComponentCount]uint32{spec.KV: 1}, l.owner())
	r.withdrawn()
	if !ok {
		r.wanted = true
		return false
	}
	fresh, old := got[spec.KV][0], l.pages[spec.KV][index]
	if err := r.pools[spec.KV].Store(l.owner(), fresh.Page); err != nil {
		r.broken(18, "fresh page of lease %d: %v", l.id, err)
		return false
	}
	l.pages[spec.KV] = slices.Clone(l.pages[spec.KV])
	l.pages[spec.KV][index] = fresh
	l.view = nil
	c := PageCopy{Component: spec.KV, Index: index, From: old, To: fresh, Tokens: tokens}
	l.copies, l.old = append(l.copies, c), append(l.old, c)
	r.didWith(l, nil, Did{Name: "Grow", Pages: onePage(spec.KV, fresh), Detail: fmt.Sprintf("kv page %d", fresh.Page)})
	r.do(VoidTags{Component: spec.KV, Pages: []spec.PageID{fresh.Page}})
	r.do(PutTag{Component: spec.KV, Page: fresh.Page, Tag: l.localTag(spec.KV, index)})
	l.checks = append(l.checks, TagCheck{Component: spec.KV, Page: fresh.Page, Want: l.localTag(spec.KV, index)})
	return true
}

// spoil is what a finding in pages means beyond the lease that found it: nobody new reads them, and every lease that holds them fails with
// it. Those that were ready are among the finding's.
func (r *DecodeRank) spoil(f *finding, l *dlease, bad []compPage) {
	for _, p := range bad {
		for _, x := range r.holders(p) {
			if x == l || x.state == dleaseRevoking {
				continue
			}
			if x.state == dleaseReady && slices.Contains(x.pages[p.component], r.present(p)) { // it has the page, and does not only copy it
				x.bad = true
				f.leases = append(f.leases, x)
			}
			within := r.within
			r.within = true
			r.fail(x, spec.CauseMismatch, fmt.Sprintf("%s page %d, which it shares, was found bad by lease %d", p.component, p.page, l.id), true)
			r.within = within
		}
	}
}

// present is a page in its present generation.
func (r *DecodeRank) present(p compPage) spec.GrantedPage {
	return spec.GrantedPage{Page: p.page, Gen: r.pools[p.component].Gen(p.page)}
}

// holders are the leases that have a page in their block table, or are to copy it, by number. A pass over all of them: for findings.
func (r *DecodeRank) holders(p compPage) (out []*dlease) {
	pool := r.pools[p.component]
	owners := append(pool.Sharers(p.page), pool.Owner(p.page))
	for id, x := range r.leases { // in any order: they are sorted
		if slices.ContainsFunc(x.copies, func(c PageCopy) bool { return c.Component == p.component && c.From.Page == p.page }) {
			owners = append(owners, pages.Owner(id))
		}
	}
	slices.Sort(owners)
	for _, o := range slices.Compact(owners) {
		if x := r.leases[spec.LeaseID(o)]; x != nil {
			out = append(out, x)
		}
	}
	return out
}

// writers are the links that were granted any page that a lease holds, its own, shared or still to be copied, each once.
func (r *DecodeRank) writers(l *dlease) (out []*dlink) {
	add := func(k *dlink) {
		if k != nil && !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	for _, h := range l.holds {
		add(h.link)
	}
	for _, p := range l.shared {
		for _, id := range p.Granted {
			add(r.link(PeerID(id)))
		}
	}
	for _, h := range l.from {
		for _, k := range h.writers {
			add(k)
		}
	}
	return out
}
