package core

import (
	"fmt"
	"slices"

	"kvfence/spec"
)

// fence gives a link up: its epoch rises, its connection ends, every transfer of which it still owes a part fails. Pages come
// back when the fence is back. Fencing a link twice is two fences. A connect starts with one.
func (r *DecodeRank) fence(k *dlink, why string) {
	r.didWith(nil, k, Did{Name: "Fence", Epoch: k.epoch, Detail: fmt.Sprintf("epoch %d: %s", k.epoch, why)})
	within := r.within
	r.within = true
	defer func() { r.within = within }()
	old := k.epoch
	k.epoch++
	r.fences++
	wasOpen := k.state == dlinkOpen
	r.down(k)
	k.wants = 0
	k.fencing, k.closing = append(k.fencing, old), true
	for _, f := range r.findings {
		f.begun(k, old)
	}
	r.do(Fence{Peer: k.cfg.ID, Old: old, New: k.epoch})
	if wasOpen {
		r.tell(PeerDown{Peer: k.cfg.ID, Why: why})
	}
	for _, h := range slices.Clone(k.owed) { // fail ends holds of other links, never of this one: it is down
		if h != nil && h.standing && h.lease.state == dleaseFilling {
			r.fail(h.lease, spec.CauseFenced, fmt.Sprintf("link to %q fenced: %s", k.ident.Name, why), true)
		}
	}
	if t := r.taken; t != nil && slices.Contains(t.side, k) {
		r.fail(t, spec.CauseFenced, fmt.Sprintf("link to %q fenced before the grant: %s", k.ident.Name, why), true)
	}
}

// fenceDone ends a fence: nothing of an epoch up to Old lands any more. It ends the holds of this link's older epochs.
func (r *DecodeRank) fenceDone(e FenceDone) {
	k := r.link(e.Peer)
	at := slices.Index(k.fencing, e.Old)
	if at < 0 {
		r.count(spec.RefuseDuplicate, 0, e.Peer, fmt.Sprintf("fence of epoch %d is not under way", e.Old))
		return
	}
	if !e.OK { // it is under way for ever: this link opens no data path any more
		r.fenceFailed = true
		r.end("a fence could not be done")
		return
	}
	k.fencing = slices.Delete(k.fencing, at, at+1)
	k.fenced = max(k.fenced, e.Old)
	if k.closing { // of several fences in a row only the first had grants to end
		k.closing = false
		r.didWith(nil, k, Did{Name: "FenceEnd", Epoch: e.Old, Detail: fmt.Sprintf("epoch %d", e.Old)})
	}
	for _, h := range slices.Clone(k.owed) {
		if h != nil && h.standing && h.epoch <= e.Old {
			if h.lease.state != dleaseRevoking {
				r.broken(10, "lease %d in state %d at the end of its link's fence", h.lease.id, h.lease.state)
				return
			}
			if h.pull != nil && h.pull.running > 0 {
				continue // its copies have not all said that they stopped: they end the hold
			}
			r.endHold(h, "fence")
		}
	}
	r.settleFindings(k, e.Old)
	r.openData(k)
}

// end stops taking anything new and tells the leader once.
func (r *DecodeRank) end(why string) {
	if r.ending {
		return
	}
	r.ending = true
	r.tell(RankEnding{Cause: spec.CauseShutdown, Detail: why})
}

// endHold ends the hold of a lease on a link; how is its proof.
func (r *DecodeRank) endHold(h *dhold, how string) {
	if !h.standing {
		return
	}
	h.standing, h.proof, h.receipt = false, how, nil
	h.link.holds--
	if k := h.link; len(k.owed) > 2*k.holds+32 { // ended ones behind a head that stands long are dropped, too
		k.owed = slices.DeleteFunc(slices.Clone(k.owed), func(x *dhold) bool { return x == nil || !x.standing })
	}
	r.touch(h.lease)
	r.ledgerEnd(h.lease, linkHold(h.link))
	if h.link.wants != 0 && h.link.holds == 0 {
		r.fence(h.link, "quarantine")
	}
}

// finding is a set of pages whose tags or bytes were found wrong, and the leases that failed by it. It ends by a fence, begun after the
// finding, of each link that was granted any page of these leases.
type finding struct {
	leases []*dlease
	pages  []compPage
	waits  []findingWait
}

type compPage struct {
	component spec.Component
	page      spec.PageID
}

type findingWait struct {
	link  *dlink
	begun bool
	old   spec.Epoch
	done  bool
}

func (f *finding) begun(k *dlink, old spec.Epoch) {
	for i := range f.waits {
		if w := &f.waits[i]; w.link == k && !w.begun {
			w.begun, w.old = true, old
		}
	}
}

// quarantine takes the pages of bad parts out of use, for every lease that holds them. Links that were granted them are fenced: at once
// if they are down or owe nothing, else when they next owe nothing or the wait is over, so that bystanders may end well. No new grant
// goes out meanwhile.
func (r *DecodeRank) quarantine(l *dlease, bad []BadPart) {
	f := &finding{}
	for _, b := range bad {
		if b.Component >= spec.ComponentCount || uint64(b.Index) >= uint64(len(l.pages[b.Component])) {
			continue
		}
		p := compPage{b.Component, l.pages[b.Component][b.Index].Page}
		if slices.Contains(f.pages, p) {
			continue
		}
		if err := r.takeOut(l, b, p); err != nil {
			r.broken(2, "quarantine of a page of lease %d: %v", l.id, err)
			return
		}
		f.pages = append(f.pages, p)
		f.pages = append(f.pages, r.takeOutSource(l, b)...)
	}
	r.published -= len(r.pools[spec.KV].Ended())
	r.alarms++
	r.do(Alarm{Lease: l.id, Bad: bad})
	if len(f.pages) == 0 {
		return
	}
	l.bad = true
	r.supersede(f, l)
	f.leases = append(f.leases, l)
	r.spoil(f, l, f.pages)
	for _, x := range f.leases {
		for _, k := range r.writers(x) {
			if !slices.ContainsFunc(f.waits, func(w findingWait) bool { return w.link == k }) {
				f.waits = append(f.waits, findingWait{link: k})
			}
		}
	}
	r.findings = append(r.findings, f)
	for _, w := range slices.Clone(f.waits) {
		r.wantFence(w.link)
	}
	if len(f.waits) == 0 {
		r.settleFindings(nil, 0)
	}
}

// foundIn are the pages of a lease that findings are about, in their present generations, with those that they are copies of.
func (r *DecodeRank) foundIn(l *dlease, bad []BadPart) (out [spec.ComponentCount][]spec.GrantedPage) {
	add := func(c spec.Component, p spec.GrantedPage) {
		if !slices.Contains(out[c], p) {
			out[c] = append(out[c], p)
		}
	}
	for _, b := range bad {
		if b.Component >= spec.ComponentCount || uint64(b.Index) >= uint64(len(l.pages[b.Component])) {
			continue
		}
		add(b.Component, l.pages[b.Component][b.Index])
		for _, c := range append(slices.Clip(l.copies), l.old...) {
			if c.Component == b.Component && c.Index == b.Index {
				add(c.Component, c.From)
			}
		}
	}
	return out
}

// takeOut puts one page into quarantine, the lease's own or one that it shares.
func (r *DecodeRank) takeOut(l *dlease, b BadPart, p compPage) error {
	if p.component == spec.KV && uint64(b.Index) < uint64(len(l.shared)) {
		return r.pools[p.component].QuarantineShared(l.share, b.Index, p.page)
	}
	return r.pools[p.component].Quarantine(l.owner(), p.page)
}

// takeOutSource puts the page into quarantine that this one is a copy of, or will be: the finding may be in either.
func (r *DecodeRank) takeOutSource(l *dlease, b BadPart) (out []compPage) {
	for _, c := range append(slices.Clip(l.copies), l.old...) {
		pool := r.pools[c.Component]
		if p := (compPage{c.Component, c.From.Page}); c.Component != b.Component || c.Index != b.Index || slices.Contains(out, p) {
			continue
		}
		if err := pool.Quarantine(pool.Owner(c.From.Page), c.From.Page); err != nil {
			r.broken(2, "quarantine of a page that lease %d copies: %v", l.id, err)
			return nil
		}
		out = append(out, compPage{c.Component, c.From.Page})
	}
	return out
}

// supersede takes out of older findings what is found anew: it waits for fences begun from now on.
func (r *DecodeRank) supersede(f *finding, l *dlease) {
	for _, old := range r.findings {
		old.pages = slices.DeleteFunc(old.pages, func(p compPage) bool { return slices.Contains(f.pages, p) })
		old.leases = slices.DeleteFunc(old.leases, func(x *dlease) bool { return x == l })
	}
}

func (r *DecodeRank) wantFence(k *dlink) {
	switch {
	case k.state < dlinkOpening || k.holds == 0:
		r.fence(k, "quarantine")
	case k.wants == 0:
		k.wants = r.now + Time(r.cfg.QuarantineWait)
		r.clock.set(k.wants, timeQuarantine, k.index, 0)
	}
}

func (r *DecodeRank) quarantineTime(k *dlink, at Time) {
	if k.wants != 0 && at >= k.wants {
		r.fence(k, "quarantine")
	}
}

// settleFindings ends the quarantines whose fences are all back and whose leases are not read any more.
func (r *DecodeRank) settleFindings(k *dlink, old spec.Epoch) {
	keep := r.findings[:0]
	for _, f := range r.findings {
		open := slices.ContainsFunc(f.leases, func(l *dlease) bool { return l.read })
		for i := range f.waits {
			w := &f.waits[i]
			w.done = w.done || (w.link == k && w.begun && w.old <= old)
			open = open || !w.done
		}
		if open {
			keep = append(keep, f)
			continue
		}
		for _, p := range f.pages {
			if _, err := r.pools[p.component].EndQuarantine(p.page); err != nil {
				r.broken(17, "end of quarantine: %v", err)
				return
			}
		}
		for _, l := range f.leases {
			r.did("QuarantineEnd", l, nil, fmt.Sprintf("%d pages", len(f.pages)))
		}
		r.freed()
	}
	clear(r.findings[len(keep):])
	r.findings = keep
}
