package core

import (
	"fmt"
	"slices"

	"kvfence/spec"
)

// The invariants of protocol.md as assertions of the decode machines, by number. They are on in production: a broken one stops
// the machine, fences every link, and nothing is served any more. Where a number is asserted:
//
//	2  every move of the ledger (an error is a page that was not what it should be); assertLease: the lease has its pages
//	3  assertOwn: what becomes ready, and the page that a step answers from, is the lease's in the ledger, in its generation;
//	   assertShared: or it is held as a share, and was filled in that generation for the same domain, tokens and position
//	4  assertLease: ready means that every hold got its parts
//	5  assertLease: a read runs on a lease without standing holds
//	7  assertLease: what fills was granted in the link's present epoch and incarnation
//	8  leader: a refused request has no transfer (assertRequest)
//	9  assertLease: got without a standing hold
//	10 endHold and ledgerEnd: each hold ends once, with a proof
//	11 leader: verdicts (verdict)
//	12 leader: success only from a running transfer whose last step passed (succeed)
//	13 assertWriters: at the grant each part is owed by one link; ledgerEnd: pages that become free have no writer
//	15 assertChecks: a step compares the tag of every part of its block table; assertLease: where one differed, nothing is read on
//	16 assertLinks: an epoch that is fenced is below the link's
//	17 assert: the pools add up; assertLease: a lease's pages are those of its block table that it does not share, and those it copied
//	18 assertLease: decode has appended only to a lease without standing holds, and to a page that is not published; publish: nothing
//	   that decode stored into is published (the ledger says so), and nothing that a link may write
//
// 6 and 14 are about what is posted: PrefillRank asserts them (prefill_rank_fill.go). A finding of Verify or of a step's checks is no
// broken invariant: it is what they are for. It ends in quarantine; I15 is broken where it is not heeded.

// assert checks what this step may have broken; its cost does not depend on the pools.
func (r *DecodeRank) assert() {
	for _, l := range r.touched {
		if r.stopped {
			break
		}
		if r.leases[l.id] == l {
			r.assertLease(l)
		}
	}
	clear(r.touched)
	r.touched = r.touched[:0]
	for c, p := range r.pools {
		if p == nil {
			continue
		}
		n := p.Counts()
		if uint64(n.Free)+uint64(n.Held)+uint64(n.Revoking)+uint64(n.Quarantined) != uint64(n.Total) {
			r.broken(17, "%s pool: %+v does not add up", spec.Component(c), n)
		}
	}
	for _, k := range r.links {
		if k.fenced >= k.epoch && k.epoch != 0 {
			r.broken(16, "link to peer %d: epoch %d is fenced and in use", k.cfg.ID, k.epoch)
		}
	}
}

func (r *DecodeRank) assertLease(l *dlease) {
	standing, missing := 0, 0
	for _, h := range l.holds {
		if h.standing {
			standing++
			if h.got {
				r.broken(9, "lease %d: parts taken, the hold of peer %d stands", l.id, h.link.cfg.ID)
			}
			if l.state == dleaseFilling && (h.epoch != h.link.epoch || h.inc != h.link.inc) {
				r.broken(7, "lease %d fills over peer %d in epoch %d, the link is in %d", l.id, h.link.cfg.ID, h.epoch, h.link.epoch)
			}
		} else if h.proof == "" {
			r.broken(10, "lease %d: hold of peer %d ended without proof", l.id, h.link.cfg.ID)
		}
		if !h.got {
			missing++
		}
	}
	switch {
	case (l.state == dleaseReady || l.state == dleaseVerifying) && missing+standing > 0:
		r.broken(4, "lease %d is ready with %d parts missing", l.id, missing)
	case l.read && standing > 0:
		r.broken(5, "lease %d is read with %d standing holds", l.id, standing)
	case l.appended > 0 && standing > 0:
		r.broken(18, "lease %d was appended to with %d standing holds", l.id, standing)
	case l.bad && l.state == dleaseReady:
		r.broken(15, "lease %d is ready, and tags of it differed", l.id)
	case l.appended > 0 && !r.storedAlone(l, l.appended-1):
		r.broken(18, "lease %d was appended to at %d, in a page that others may read", l.id, l.appended-1)
	}
	for c, p := range r.pools {
		if p == nil {
			continue
		}
		n := uint32(len(l.pages[c]))
		if spec.Component(c) == spec.KV {
			n += uint32(len(l.old)) - uint32(len(l.shared))
		}
		if p.Pages(l.owner()) != n {
			r.broken(2, "lease %d has %d %s pages in the ledger, %d by its list", l.id, p.Pages(l.owner()), spec.Component(c), n)
		}
	}
	if (len(l.shared) > 0) != (l.share != 0) {
		r.broken(17, "lease %d shares %d pages and its hold on them is %d", l.id, len(l.shared), l.share)
	}
}

// storedAlone reports that the page of a position was stored into by decode, and that nobody else knows it.
func (r *DecodeRank) storedAlone(l *dlease, pos uint32) bool {
	kv := r.pools[spec.KV]
	page := l.pages[spec.KV][pos/r.layouts[spec.KV].Equal.TokensPerPage].Page
	_, known := kv.Published(page)
	return kv.Stored(page) && !known
}

// assertRead is I3 and I15 at the start of a read: the page of its position; at the first read, all shared ones.
func (r *DecodeRank) assertRead(l *dlease, pos uint32) bool {
	index := int(pos / r.layouts[spec.KV].Equal.TokensPerPage)
	hi := index + 1
	if pos == 0 {
		hi = max(hi, len(l.shared))
	}
	shared := min(hi, len(l.shared))
	return r.assertShared(l, min(index, shared), shared) && r.assertOwn(l, spec.KV, max(index, len(l.shared)), max(hi, len(l.shared))) && r.assertChecks(l)
}

// assertShared is I3 for shared pages lo to hi of a lease: its hold on them stands, they are in the generation that was published, and
// what was published is the lease's own prefix: domain, content, position.
func (r *DecodeRank) assertShared(l *dlease, lo, hi int) bool {
	kv := r.pools[spec.KV]
	for i := lo; i < hi; i++ {
		p := l.shared[i]
		switch {
		case l.pages[spec.KV][i] != spec.GrantedPage{Page: p.Page, Gen: p.Gen}:
			r.broken(3, "lease %d would read kv page %d at index %d, and shares page %d there", l.id, l.pages[spec.KV][i].Page, i, p.Page)
		case !kv.Shares(l.share, uint32(i), p.Page) || kv.Gen(p.Page) != p.Gen:
			r.broken(3, "lease %d would read kv page %d in generation %d without a share of it: it is in %d", l.id, p.Page, p.Gen, kv.Gen(p.Page))
		case p.Domain != l.domain || p.Content != l.contents[i]:
			r.broken(3, "lease %d would read kv page %d, which was filled for another domain or other tokens", l.id, p.Page)
		case slices.ContainsFunc(p.Tags, func(t spec.Tag) bool {
			return t.Domain != l.domain || t.Index != uint32(i) || t.Gen != p.Gen || uint64(t.Lease) != uint64(p.Filler)
		}):
			r.broken(3, "lease %d would read kv page %d by the tags of another page", l.id, p.Page)
		default:
			continue
		}
		return false
	}
	return true
}

// assertOwn is I3 for pages lo to hi of a lease: they are its own in the ledger, in the generation that their tags name.
func (r *DecodeRank) assertOwn(l *dlease, c spec.Component, lo, hi int) bool {
	for _, p := range l.pages[c][lo:hi] {
		if owner, gen := r.pools[c].Owner(p.Page), r.pools[c].Gen(p.Page); owner != l.owner() || gen != p.Gen {
			r.broken(3, "lease %d would read %s page %d in generation %d: it is %d's, in generation %d", l.id, c, p.Page, p.Gen, owner, gen)
			return false
		}
	}
	return true
}

// assertWriters is I13 at the grant: the links owe the parts of the plan, each part one link.
func (r *DecodeRank) assertWriters(l *dlease) bool {
	owed := make(map[partKey]PeerID, len(l.parts))
	for _, h := range l.holds {
		for _, p := range h.parts {
			key := partKey{p.Component, p.Index}
			if first, twice := owed[key]; twice {
				r.broken(13, "lease %d: %s part %d would be written by peers %d and %d", l.id, p.Component, p.Index, first, h.link.cfg.ID)
				return false
			}
			owed[key] = h.link.cfg.ID
		}
	}
	if len(owed) != len(l.parts) {
		r.broken(13, "lease %d: %d parts, %d have a writer", l.id, len(l.parts), len(owed))
		return false
	}
	return true
}

// assertChecks is I15 before a step: the tags that it compares are those of every part and every local page of its block table.
func (r *DecodeRank) assertChecks(l *dlease) bool {
	want := len(l.pages[spec.KV]) - int(r.localFrom(l)) + len(l.old) + l.sharedTags
	if l.fork {
		want += len(l.pages[spec.State])
	}
	for _, p := range l.parts {
		lo, hi := p.PageRange(*r.layouts[p.Component])
		want += int(hi - lo)
	}
	if len(l.checks) != want {
		r.broken(15, "lease %d: a step would compare %d tags, its block table has %d", l.id, len(l.checks), want)
		return false
	}
	return true
}

// broken stops the machine over an invariant.
func (r *DecodeRank) broken(n int, format string, args ...any) {
	r.stop(n, fmt.Sprintf(format, args...))
}

// stop ends all service: one Stop, then a fence of every link.
func (r *DecodeRank) stop(n int, what string) {
	if r.stopped {
		return
	}
	r.stopped, r.ending = true, true
	r.withhold()
	r.do(Stop{Broken: what, Invariant: n})
	for _, k := range r.links {
		old := k.epoch
		k.epoch++
		r.down(k)
		r.do(Fence{Peer: k.cfg.ID, Old: old, New: k.epoch})
	}
	r.tell(RankEnding{Cause: spec.CauseInvariant, Detail: what})
}

// withhold takes back what the present step would have served: what an invariant broke in is not acted upon.
func (r *DecodeRank) withhold() {
	keep := r.out[:0]
	for _, a := range r.out {
		switch a := a.(type) {
		case Send, Allow, PullCopy, Verify, OpenData:
		case ReadPages:
			keep = append(keep, ReadRefused{Lease: a.Lease, Cause: spec.CauseInvariant})
		case ToLeader:
			switch a.Msg.(type) {
			case Taken, LeaseReady, Grown:
			default:
				keep = append(keep, a)
			}
		default:
			keep = append(keep, a)
		}
	}
	r.out = keep
}
