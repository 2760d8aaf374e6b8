package follow

import "kvfence/spec"

// prefillPullDid takes an action on a pulled lease; false: it is one that both directions have.
func (f *Follower) prefillPullDid(p *prefillRank, k *prefillLink, l *spec.TraceLine, d *spec.TraceDid, x *prefillLease, a Act) bool {
	o := f.s.lease(a.L).on(a.K)
	switch d.Name {
	case "Offer":
		f.require(o != nil && o.pst == pstWriting, "Offer", `pst[l] = "working"`, "lease %d", d.Lease)
		f.require(puts(l, "Send", "offer", d.Peer, d.Lease), "Offer", "it is put out", "lease %d", d.Lease)
		f.require(len(x.sealed) > 0, "Offer", `SealedOnly => sst[q] = "sealed"`, "nothing of lease %d is sealed", d.Lease)
		x.offered = true
	case "Complete":
		f.require(o != nil && o.pst == pstWriting, "Complete", `pst[l] = "working"`, "lease %d", d.Lease)
		x.completed = true
		if o != nil {
			f.s.close(o, kindComplete)
		}
	case "GiveBack":
		said := o == nil || !o.hold || a.L < f.s.links[a.K].pmark || l.Event.Kind == "ReaderEnded"
		f.require(!x.given, "GiveBack", "sown[q] = l", "lease %d was given back", d.Lease)
		f.require(said, "GiveBack", `l \in offered => (~ReaderHold \/ l \in said \/ l < mark)`, "lease %d", d.Lease)
		x.given = true
	case "RecvAbort":
		if l.Event.Message == "read" { // it reads no more before everything was offered: decode has given the lease up
			if o != nil {
				f.require(!o.hold && o.pst == pstWriting, "RecvAbort", `l \in said`, "lease %d", d.Lease)
				o.pst = pstClosing
			}
			return true
		}
		return false
	default:
		return false
	}
	return true
}

// foreignLeaseDid takes an action on a lease whose decode rank writes no trace: only what prefill itself may not do is judged.
func (f *Follower) foreignLeaseDid(p *prefillRank, k *prefillLink, l *spec.TraceLine, d *spec.TraceDid) {
	if !f.require(!f.strict && f.decodes[k.decode] == nil, d.Name, "Arrives(owes[l, k])", "the link of peer %d never came up at decode", d.Peer) {
		return
	}
	f.stats.Believed++
	x := k.leases[d.Lease]
	switch d.Name {
	case "Start", "RecvAbort":
		if x == nil {
			x = &prefillLease{rank: p, id: Lease(d.Lease) << subBits, job: d.Transfer, epoch: k.epoch, sealed: map[[3]uint64]bool{}, sources: map[uint64]SPage{}}
			k.leases[d.Lease] = x
			if j := p.jobOf(d.Transfer); j != nil {
				j.leases = append(j.leases, x)
			}
		}
		f.require(x.answer == "", d.Name, `pst[l, k] \in {"none", "writing"}`, "lease %d was answered", d.Lease)
	case "Complete", "AbortAck", "Failed":
		if f.require(x != nil && x.answer == "", d.Name, `pst[l, k] \in {"writing", "closing"}`, "lease %d", d.Lease) {
			f.drained(x, d)
			x.completed = d.Name == "Complete"
		}
	case "Notice":
		for i := range l.Out {
			if o := &l.Out[i]; x != nil && o.Kind == "Notice" && o.Lease == d.Lease && o.Peer == d.Peer {
				x.notice = o.Number
			}
		}
	case "Offer":
		if x != nil {
			x.offered = true
		}
	case "GiveBack":
		if x != nil {
			x.given = true
		}
	case "Forget":
		delete(k.leases, d.Lease)
	}
}
