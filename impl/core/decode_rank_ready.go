package core

import (
	"fmt"
	"slices"

	"kvfence/spec"
)

// partsIn starts the verification of a lease of which every owed part was taken.
func (r *DecodeRank) partsIn(l *dlease) {
	if l.state != dleaseFilling {
		return
	}
	for _, h := range l.holds {
		if !h.got {
			return
		}
	}
	if !r.ledgerAdd(l, verifyHold()) {
		return
	}
	r.move(l, dleaseVerifying)
	l.verify = true
	l.checks = r.planned(l)
	v := Verify{Lease: l.id, Checks: l.checks, Void: r.unused(l), Digests: r.cfg.Digests}
	for _, h := range l.holds {
		if h.pull == nil {
			v.Links = append(v.Links, LinkParts{Peer: h.link.cfg.ID, Parts: h.parts})
		}
	}
	r.do(v)
}

// planned is what every planned and local slot of a lease must hold.
func (r *DecodeRank) planned(l *dlease) (checks []TagCheck) {
	for _, p := range l.parts {
		lo, hi := p.PageRange(*r.layouts[p.Component])
		digests := l.digests[partKey{p.Component, p.Index}]
		for i := lo; i < hi; i++ {
			has, d := i-lo < uint32(len(digests)), uint64(0)
			if has {
				d = digests[i-lo]
			}
			checks = append(checks, TagCheck{Component: p.Component, Page: l.pages[p.Component][i].Page, Slot: p.Index, Want: r.tag(l, p, i, d, has)})
		}
	}
	return append(checks, r.locals(l)...)
}

// unused are the slots that the plan does not use: they must be void.
func (r *DecodeRank) unused(l *dlease) (checks []VoidCheck) {
	local := r.localFrom(l)
	for c, ps := range l.pages {
		if len(ps) == 0 {
			continue
		}
		used := 0
		for _, p := range l.parts {
			if p.Component == spec.Component(c) {
				used++
			}
		}
		for i := range ps {
			if spec.Component(c) == spec.KV && i < len(l.shared) {
				continue
			}
			from := used
			if spec.Component(c) == spec.KV && uint32(i) >= local {
				from = 1
			}
			for s := from; s < int(r.layouts[c].Shape.TagSlots); s++ {
				checks = append(checks, VoidCheck{Component: spec.Component(c), Page: ps[i].Page, Slot: spec.PartIndex(s), Index: uint32(i)})
			}
		}
	}
	return checks
}

// verified makes a lease ready, or takes its bad pages out of use.
func (r *DecodeRank) verified(e Verified) {
	l := r.leases[e.Lease]
	if l == nil || !l.verify {
		r.count(spec.RefuseUnknownLease, 0, 0, fmt.Sprintf("verified lease %d", e.Lease))
		return
	}
	l.verify = false
	r.touch(l)
	switch {
	case len(e.Bad) > 0: // also where the lease was given up meanwhile: its bytes were whole when the check began
		r.didWith(l, nil, Did{Name: "BadVerify", Pages: r.foundIn(l, e.Bad), Detail: badText(e.Bad)})
		r.quarantine(l, e.Bad)
		r.fail(l, spec.CauseMismatch, badText(e.Bad), true)
	case l.state == dleaseVerifying:
		r.makeReady(l)
	}
	r.ledgerEnd(l, verifyHold())
}

func (r *DecodeRank) makeReady(l *dlease) {
	if !r.assertShared(l, 0, len(l.shared)) {
		return
	}
	for c := range l.pages {
		lo := 0
		if spec.Component(c) == spec.KV {
			lo = len(l.shared)
		}
		if !r.assertOwn(l, spec.Component(c), lo, len(l.pages[c])) {
			return
		}
	}
	for _, h := range l.holds {
		if h.pull == nil {
			r.do(Revoke{Peer: h.link.cfg.ID, Lease: l.id})
		}
	}
	r.did("Verify", l, nil, "")
	r.move(l, dleaseReady)
	r.did("Ready", l, nil, "")
	l.checks = append(l.checks, sharedChecks(l)...)
	if r.publish(l) {
		r.tell(LeaseReady{Transfer: l.transfer})
	}
}

// badText describes the first finding.
func badText(bad []BadPart) string {
	b := bad[0]
	what := "tag is " + b.State.String()
	if b.Digest {
		what = "digest differs"
	}
	return fmt.Sprintf("%s page index %d part %d: %s (%d findings)", b.Component, b.Index, b.Part, what, len(bad))
}

// readBegin lets one decode step read a ready lease. O(1): the block table and its checks are kept with the lease.
func (r *DecodeRank) readBegin(e ReadBegin) {
	l := r.leases[e.Lease]
	switch {
	case l == nil:
		r.count(spec.RefuseUnknownLease, 0, 0, fmt.Sprintf("read of lease %d", e.Lease))
		r.do(ReadRefused{Lease: e.Lease, Cause: spec.CausePreempted})
		return
	case l.state != dleaseReady || l.read || e.Pos/r.layouts[spec.KV].Equal.TokensPerPage >= uint32(len(l.pages[spec.KV])) || (e.Pos != 0 && e.Pos < l.tokens):
		r.count(spec.RefuseWrongState, 0, 0, fmt.Sprintf("read of lease %d at %d", e.Lease, e.Pos))
		cause := l.cause
		if cause == "" {
			cause = spec.CausePreempted
		}
		r.do(ReadRefused{Lease: e.Lease, Cause: cause})
		return
	}
	if !r.ledgerAdd(l, readHold()) || !r.assertRead(l, e.Pos) {
		r.do(ReadRefused{Lease: e.Lease, Cause: spec.CauseInvariant})
		return
	}
	if e.Pos != 0 && !r.store(l, e.Pos) {
		r.ledgerEnd(l, readHold())
		r.do(ReadRefused{Lease: e.Lease, Cause: spec.CauseOverCapacity})
		return
	}
	l.read = true
	r.touch(l)
	if l.view == nil {
		v := l.pages
		l.view = &v
	}
	out := ReadPages{Lease: l.id, Pages: l.view, Copies: l.copies}
	if !r.cfg.NoStepChecks {
		out.Checks = l.checks
		if len(l.before) > 0 {
			out.Checks = slices.Concat(l.checks, l.before)
		}
	}
	r.did("Read", l, nil, "")
	if e.Pos != 0 {
		if l.appended == 0 || e.Pos+1 < l.appended {
			l.appended = e.Pos + 1
		}
		r.didWith(l, nil, Did{Name: "Append", Pages: onePage(spec.KV, l.pages[spec.KV][e.Pos/r.layouts[spec.KV].Equal.TokensPerPage])})
	}
	r.do(out)
}

// readEnd ends a read; what its second check found makes the lease fail.
func (r *DecodeRank) readEnd(e ReadEnd) {
	l := r.leases[e.Lease]
	if l == nil || !l.read {
		r.count(spec.RefuseUnknownLease, 0, 0, fmt.Sprintf("end of a read of lease %d", e.Lease))
		return
	}
	l.read = false
	r.touch(l)
	r.didWith(l, nil, Did{Name: "ReadEnd", Pages: r.foundIn(l, e.Bad)})
	if len(e.Bad) > 0 {
		r.quarantine(l, e.Bad)
		r.fail(l, spec.CauseMismatch, badText(e.Bad), true)
	}
	if e.Copied { // behind the findings: what was copied may be what is bad
		r.copied(l)
	}
	r.ledgerEnd(l, readHold())
	r.settleFindings(nil, 0)
}
