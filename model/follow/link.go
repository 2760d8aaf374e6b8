package follow

// Decode rank: links.

func (s *State) linkDo(a *Act) (done, known bool) {
	if a.Name == "DecodeCrash" {
		s.decodeCrash(a.Node)
		return true, true
	}
	if int(a.K) >= len(s.links) {
		return false, false
	}
	k := s.links[a.K]
	switch a.Name {
	case "Fence":
		k.ep++
		k.fencing, k.up = true, false
		for _, o := range k.owed {
			if o.hold && o.lease.dst == dstFilling {
				s.setDst(o.lease, dstRevoking)
			}
		}
		return true, true
	case "FenceEnd":
		return s.fenceEnd(k), true
	case "Connect":
		ok := s.need(!k.up, `~up[k]`) && s.need(k.acc[accepted{a.I, a.D, a.E}], `Arrives(<<k, i, d, e>> \in acc)`) &&
			s.need(a.D == s.nodes[k.node].dinc && a.E == k.ep, `NonceCheck => (d = dinc /\ e = ep[k])`)
		if ok {
			k.linc, k.up = a.I, true
		}
		return ok, true
	case "RaiseMark":
		return s.raiseMark(a, k), true
	}
	return false, false
}

func (s *State) fenceEnd(k *link) bool {
	if !s.need(k.fencing, `fencing[k]`) {
		return false
	}
	for _, o := range k.owed {
		for _, w := range o.sent {
			if (w.placing || w.unseen) && !s.need(s.current(o), `FenceWaits => \A l \in Lease : \A p \in Page : \A c \in Chan : \A i \in Inc : (<<l, k, p, c, i>> \in placing \/ <<l, k, p, c, i>> \in unseen) => Current(l, k)`) {
				return false
			}
		}
	}
	k.fencing = false
	for _, o := range k.owed {
		if o.hold && s.older(o) && o.lease.dst == dstRevoking {
			o.hold = false
			s.touch(o.lease)
		}
	}
	return true
}

func (s *State) raiseMark(a *Act, k *link) bool {
	if !(s.need(k.dmark < a.M, `dmark[k] < m`) && s.need(a.M <= s.nodes[k.node].nextL, `m <= nextL`)) {
		return false
	}
	for l, o := range k.owed {
		if l < a.M && !s.need(!o.hold, `\A l \in Lease : l < m => ~hold[l, k]`) {
			return false
		}
	}
	k.dmark = a.M
	return true
}

// decodeCrash: the process ends, and with it whatever placed into its memory.
func (s *State) decodeCrash(n Node) {
	d := s.nodes[n]
	d.dinc++
	for id, t := range s.transfers {
		if t.lead >= leadSubmitted && t.lead <= leadRun && (s.asking || s.ofNode(n, id)) {
			t.lead, t.cause = leadFailed, causeDerived
		}
	}
	for p := range d.pages {
		x := s.pages[p]
		x.own, x.gen, x.app, x.pubs, x.sharers = 0, 0, false, nil, nil
	}
	for _, l := range d.leases {
		if live(l) {
			l.dst = dstDead
		}
		l.shr, l.krn = nil, map[kernel]int{}
		for _, o := range l.owes {
			o.hold, o.rec, o.nin = false, 0, nil
			for _, w := range o.sent {
				w.placing, w.unseen = false, false
			}
		}
	}
	for _, k := range d.links {
		x := s.links[k]
		x.ep, x.up, x.fencing = 0, false, false
	}
}

// ofNode: a transfer has a lease of a node, and so is failed with it.
func (s *State) ofNode(n Node, t Transfer) bool {
	for _, l := range s.transfers[t].leases {
		if x := s.leases[l]; x != nil && x.node == n {
			return true
		}
	}
	return false
}
