package node

import (
	"kvfence/impl/core"
	"kvfence/impl/device"
	"kvfence/spec"
)

// cell is one part of one page of a lease.
type cell struct {
	c     spec.Component
	part  spec.PartIndex
	index uint32
}

// landing is what is known of the bytes of a pushed lease: digests as they landed, by cell, and the parts whose record went with
// a fence of their link (they were complete before; nothing writes them now, so the page itself is read).
type landing struct {
	digests map[cell]uint64
	reread  map[cell]spec.Part // cell.index is 0
}

// verify compares every tag of a lease, and for push the digests of the bytes that landed, with the ledger. It runs on a worker;
// the pages stay held until Verified.
func (r *decodeRank) verify(a core.Verify) {
	var land *landing
	if a.Digests && len(a.Links) > 0 {
		land = r.landed(a)
	}
	r.side.work.put(func() {
		v := core.Verified{Lease: a.Lease}
		for _, c := range a.Checks {
			if bad := r.checkPart(c, land); bad.State != spec.TagGood || bad.Digest {
				v.Bad = append(v.Bad, bad)
			}
		}
		for _, c := range a.Void {
			if _, s := device.GetTag(r.mem[c.Component].Slot(c.Page, c.Slot)); s != spec.TagVoid {
				if s == spec.TagGood {
					s = spec.TagForeign // a whole tag where none may be
				}
				v.Bad = append(v.Bad, core.BadPart{Component: c.Component, Part: c.Slot, Index: c.Index, State: s})
			}
		}
		r.side.post(r.host, v)
	})
}

// landed collects the records of all links of a lease; on the loop, before a fence or revoke can take them away.
func (r *decodeRank) landed(a core.Verify) *landing {
	land := &landing{digests: map[cell]uint64{}, reread: map[cell]spec.Part{}}
	for _, l := range a.Links {
		records := r.link(l.Peer).grants.Landed(a.Lease, l.Parts)
		if records == nil {
			for _, p := range l.Parts {
				land.reread[cell{p.Component, p.Index, 0}] = p
			}
		}
		for _, rec := range records {
			for i, done := range rec.Done {
				if done {
					land.digests[cell{rec.Part.Component, rec.Part.Index, rec.Lo + uint32(i)}] = rec.Digest[i]
				}
			}
		}
	}
	return land
}

// checkPart checks one tag and, where land is given, the digest that its bytes have.
func (r *decodeRank) checkPart(c core.TagCheck, land *landing) core.BadPart {
	pool := r.mem[c.Component]
	bad := core.BadPart{Component: c.Component, Part: c.Slot, Index: c.Want.Index}
	bad.State = device.CheckTag(pool.Slot(c.Page, c.Slot), c.Want)
	if land == nil || !c.Want.HasDigest || c.Want.Part == spec.PartLocal {
		return bad
	}
	got, ok := land.digests[cell{c.Component, c.Slot, c.Want.Index}]
	if p, again := land.reread[cell{c.Component, c.Slot, 0}]; again {
		segs, err := p.Segments(pool.Layout, c.Want.Index, nil)
		got, ok = device.DigestSegments(pool.Page(c.Page), segs, device.HeaderOf(p, pool.Layout, c.Want.Index, spec.UsedBytes(segs))), err == nil
	}
	bad.Digest = !ok || got != c.Want.Digest
	return bad
}
