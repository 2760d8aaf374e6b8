package node

import (
	"errors"

	"kvfence/impl/core"
	"kvfence/impl/device"
	"kvfence/impl/transport"
	"kvfence/spec"
)

// landing is what is known of the bytes of a pushed lease: digests as they landed, by part, and the parts whose record went with
// a fence of their link (they were complete before; nothing writes them now, so the page itself is read).
type landing struct {
	records []transport.Landed
	reread  []spec.Part
}

// digest is what landed of one part in one page; known is false if that never landed whole.
func (l *landing) digest(c spec.Component, part spec.PartIndex, index uint32) (d uint64, known bool) {
	for i := range l.records {
		rec := &l.records[i]
		if rec.Part.Component != c || rec.Part.Index != part || index < rec.Lo || uint64(index)-uint64(rec.Lo) >= uint64(len(rec.Done)) {
			continue
		}
		if at := index - rec.Lo; rec.Done[at] && rec.Digest != nil {
			return rec.Digest[at], true
		}
	}
	return 0, false
}

// again is the part whose bytes must be read again.
func (l *landing) again(c spec.Component, part spec.PartIndex) (spec.Part, bool) {
	for _, p := range l.reread {
		if p.Component == c && p.Index == part {
			return p, true
		}
	}
	return spec.Part{}, false
}

// verify compares every tag of a lease, and for push the digests of the bytes that landed, with the ledger. More than a few are a worker's;
// the pages stay held until Verified. Where peers hold rights in an adapter the lease's are taken back first: what is compared is what stays.
func (r *decodeRank) verify(a core.Verify) {
	var land *landing
	if a.Digests && len(a.Links) > 0 {
		land = r.landed(a)
	}
	if gone := r.takeBack(a); gone != nil {
		r.side.work.put(func() {
			if err := gone(); err != nil {
				r.side.log.Error("a lease is not verified: it may still be written to", "rank", r.rank, "lease", a.Lease, "err", err)
				r.side.post(r.host, unverified(a))
				return
			}
			r.side.post(r.host, r.verified(a, land))
		})
		return
	}
	if addressable(r.mem) && len(a.Checks)+len(a.Void) <= inlineChecks && (land == nil || len(land.reread) == 0) {
		r.side.later(r.host, r.verified(a, land))
		return
	}
	r.side.work.put(func() { r.side.post(r.host, r.verified(a, land)) })
}

// takeBack revokes a lease on the links whose adapters hold rights for it; nil if none does. What it returns waits until they are gone.
func (r *decodeRank) takeBack(a core.Verify) (gone func() error) {
	var waits []func() error
	lease := []spec.LeaseID{a.Lease}
	for _, part := range a.Links {
		l := r.link(part.Peer)
		l.push.each(func(t transport.Target) {
			s, can := t.(transport.Settler)
			if !can {
				return
			}
			l.grants.TakeBack(a.Lease)
			waits = append(waits, func() error {
				s.Settle(lease)
				return l.grants.WaitLease(a.Lease)
			})
		})
	}
	if waits == nil {
		return nil
	}
	return func() (err error) {
		for _, w := range waits {
			err = errors.Join(err, w())
		}
		return err
	}
}

// unverified finds fault with every slot of a lease, used or not.
func unverified(a core.Verify) core.Verified {
	v := core.Verified{Lease: a.Lease}
	for _, c := range a.Checks {
		v.Bad = append(v.Bad, core.BadPart{Component: c.Component, Part: c.Slot, Index: c.Want.Index, State: spec.TagForeign})
	}
	for _, c := range a.Void {
		v.Bad = append(v.Bad, core.BadPart{Component: c.Component, Part: c.Slot, Index: c.Index, State: spec.TagForeign})
	}
	return v
}

// inlineChecks is how many slots are compared on the loop: so few cost less than the way to a worker and back.
const inlineChecks = 512

// verified does the comparing. Where the device cannot say what is there, nothing is good.
func (r *decodeRank) verified(a core.Verify, land *landing) core.Verified {
	v, err := r.compare(a, land)
	if err != nil {
		r.side.log.Error("a lease cannot be verified", "rank", r.rank, "lease", a.Lease, "err", err)
		return unverified(a)
	}
	return v
}

func (r *decodeRank) compare(a core.Verify, land *landing) (core.Verified, error) {
	v := core.Verified{Lease: a.Lease}
	states, err := tagStates(r.mem, a.Checks)
	if err != nil {
		return v, err
	}
	for i, c := range a.Checks {
		bad, err := r.checkPart(c, states[i], land)
		if err != nil {
			return v, err
		}
		if bad.State != spec.TagGood || bad.Digest {
			v.Bad = append(v.Bad, bad)
		}
	}
	if states, err = voidStates(r.mem, a.Void); err != nil {
		return v, err
	}
	for i, c := range a.Void {
		if states[i] != spec.TagGood { // something where nothing may be
			v.Bad = append(v.Bad, core.BadPart{Component: c.Component, Part: c.Slot, Index: c.Index, State: states[i]})
		}
	}
	return v, nil
}

// landed collects the records of all links of a lease; on the loop, before a fence or revoke can take them away.
func (r *decodeRank) landed(a core.Verify) *landing {
	land := &landing{}
	for _, l := range a.Links {
		var records []transport.Landed
		if r.verbs == nil { // one-sided writes pass no placer: what landed is what the page has
			records = r.link(l.Peer).grants.Landed(a.Lease, l.Parts)
		}
		if records == nil {
			land.reread = append(land.reread, l.Parts...)
		}
		land.records = append(land.records, records...)
	}
	return land
}

// checkPart adds, where land is given, what is wrong with the digest of a part's bytes.
func (r *decodeRank) checkPart(c core.TagCheck, state spec.TagState, land *landing) (core.BadPart, error) {
	bad := core.BadPart{Component: c.Component, Part: c.Slot, Index: c.Want.Index, State: state}
	if land == nil || !c.Want.HasDigest || c.Want.Part == spec.PartLocal {
		return bad, nil
	}
	got, ok := land.digest(c.Component, c.Slot, c.Want.Index)
	if p, again := land.again(c.Component, c.Slot); again {
		var err error
		if got, err = digestOf(r.mem[c.Component], p, c.Want.Index, c.Page); errors.Is(err, device.ErrLost) {
			return bad, err
		}
		ok = err == nil
	}
	bad.Digest = !ok || got != c.Want.Digest
	return bad, nil
}
