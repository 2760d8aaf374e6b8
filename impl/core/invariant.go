package core

import (
	"fmt"

	"kvfence/spec"
)

// The invariants of protocol.md as assertions of the decode machines, by number. They are on in production: a broken one stops
// the machine, fences every link, and nothing is served any more. Where a number is asserted:
//
//	2  every move of the ledger (an error is a page that was not what it should be); assertLease: the lease has its pages
//	4  assertLease: ready means that every hold got its parts
//	5  assertLease: a read runs on a lease without standing holds
//	7  assertLease: what fills was granted in the link's present epoch and incarnation
//	8  leader: a refused request has no transfer (assertRequest)
//	9  assertLease: got without a standing hold
//	10 endHold and ledgerEnd: each hold ends once, with a proof
//	11 leader: verdicts (verdict)
//	12 leader: success only from a running transfer whose last step passed (succeed)
//	13 plan: PlanParts covers each byte once
//	14 recv and onReceipt: incarnation, epoch, lease
//	16 assertLinks: an epoch that is fenced is below the link's
//	17 assert: the pools add up
//	18 assertLease: decode has appended only to a lease without standing holds
//
// 3, 6 and 15 are about bytes: Verify, the step checks and prefill's ledger are their assertions.

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
	}
	for c, p := range r.pools {
		if p != nil && p.Pages(l.owner()) != uint32(len(l.pages[c])) {
			r.broken(2, "lease %d has %d %s pages in the ledger, %d by its list", l.id, p.Pages(l.owner()), spec.Component(c), len(l.pages[c]))
		}
	}
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
	r.do(Stop{Broken: what, Invariant: n})
	for _, k := range r.links {
		old := k.epoch
		k.epoch++
		r.down(k)
		r.do(Fence{Peer: k.cfg.ID, Old: old, New: k.epoch})
	}
	r.tell(RankEnding{Cause: spec.CauseInvariant, Detail: what})
}
