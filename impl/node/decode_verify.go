package node

import (
	"kvfence/impl/core"
	"kvfence/impl/device"
	"kvfence/impl/transport"
	"kvfence/spec"
)

// verify compares every tag of a lease, and for push the digests of the bytes as they landed, with the ledger. It runs on a
// worker; the pages stay held until Verified.
func (r *decodeRank) verify(a core.Verify) {
	var landed []transport.Landed
	if a.Digests {
		for _, l := range a.Links {
			landed = append(landed, r.link(l.Peer).grants.Landed(a.Lease, l.Parts)...)
		}
	}
	r.side.work.put(func() {
		v := core.Verified{Lease: a.Lease}
		type cell struct {
			c     spec.Component
			part  spec.PartIndex
			index uint32
		}
		got := map[cell]uint64{}
		for _, l := range landed {
			for i, done := range l.Done {
				if done {
					got[cell{l.Part.Component, l.Part.Index, l.Lo + uint32(i)}] = l.Digest[i]
				}
			}
		}
		push := a.Digests && len(a.Links) > 0
		for _, c := range a.Checks {
			bad := core.BadPart{Component: c.Component, Part: c.Slot, Index: c.Want.Index}
			bad.State = device.CheckTag(r.mem[c.Component].Slot(c.Page, c.Slot), c.Want)
			if push && c.Want.HasDigest {
				d, ok := got[cell{c.Component, c.Slot, c.Want.Index}]
				bad.Digest = !ok || d != c.Want.Digest
			}
			if bad.State != spec.TagGood || bad.Digest {
				v.Bad = append(v.Bad, bad)
			}
		}
		r.side.post(r.host, v)
	})
}
