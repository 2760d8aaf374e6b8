package follow

import "slices"

// The words of the TLA+ text that several actions use, under its names.

func (s *State) current(o *owe) bool {
	k := s.links[o.k]
	return o.gep == k.ep && o.lease.dof == s.nodes[o.lease.node].dinc
}

func (s *State) older(o *owe) bool { return o.gep < s.links[o.k].ep }

func aborted(l *lease) bool {
	return l.dst == dstRevoking || l.dst == dstBad || l.dst == dstFailed || l.dst == dstDead
}

func live(l *lease) bool {
	return l.dst == dstFilling || l.dst == dstRevoking || l.dst == dstVerified || l.dst == dstReady || l.dst == dstBad
}

func alike(l, x *lease) bool { return x.ten == l.ten && x.ada == l.ada && x.pre == l.pre }

// tagOk: each link that owed x its part of p has left its tag there.
func (s *State) tagOk(p Page, x *lease) bool {
	pg := s.page(x.node, p)
	for _, o := range x.owes {
		if o.owed[p] && pg.look(o.k).tag != x.id {
			return false
		}
	}
	return true
}

func (s *State) bytesOk(p Page, x *lease) bool {
	pg := s.page(x.node, p)
	for _, o := range x.owes {
		if o.owed[p] && pg.look(o.k).mem != x.id {
			return false
		}
	}
	return true
}

func (s *State) verifyGood(l *lease) bool {
	for _, p := range l.plan {
		if !s.bytesOk(p.page, l) || !s.tagOk(p.page, l) {
			return false
		}
	}
	return true
}

func allGot(l *lease) bool {
	for _, o := range l.owes {
		if o.owes && !o.got {
			return false
		}
	}
	return true
}

func (o *owe) noticesIn() bool {
	for _, c := range o.nsent {
		if !slices.Contains(o.nin, c) {
			return false
		}
	}
	return true
}

func (o *owe) flushed() bool {
	for _, w := range o.sent {
		if w.unseen {
			return false
		}
	}
	return true
}

// decodeHalf of the drain; i is the incarnation of the receipt: only the granted one has notices and writes.
func (o *owe) decodeHalf() bool { return o.noticesIn() && o.flushed() }

// behind: what a notice on a channel waits for.
func (o *owe) behind(c Chan) bool {
	for _, w := range o.sent {
		if w.c == c && (w.queued || w.flying || w.placing) {
			return false
		}
	}
	return true
}

// allReady: every lease of t has been ready. "Ready" reports are never taken back.
func (s *State) allReady(t *transfer) bool {
	for _, l := range t.leases {
		x := s.leases[l]
		if x != nil && x.dst != dstReady && x.dst != dstDone && !(s.apart && x.ready) {
			return false
		}
	}
	return len(t.leases) > 0
}

func (s *State) fills(l *lease, p Page, x Lease) bool {
	if x == l.id && s.page(l.node, p).own == l.id {
		return true
	}
	return slices.Contains(l.shr, share{l.id, x, p})
}

// free: no share stands in the way of a hand-out.
func (s *State) free(n Node, p Page) bool { return len(s.page(n, p).sharers) == 0 }

func (s *State) hears(o *owe) bool { return o != nil && o.owes && o.ginc == s.links[o.k].pinc }

func (s *State) fenced(o *owe) bool {
	return o != nil && s.links[o.k].pfenced[fenced{o.lease.dof, o.gep}]
}

// prefillHalf of the drain.
func (s *State) prefillHalf(o *owe) bool {
	if o.ginc != s.links[o.k].pinc {
		return true
	}
	for _, w := range o.sent {
		if w.queued || !slices.Contains(o.nsent, w.c) {
			return false
		}
	}
	return true
}

func (s *State) posted(o *owe) bool {
	if o.ginc != s.links[o.k].pinc {
		return len(o.owed) == 0
	}
	for p := range o.owed {
		if !o.sentTo(p) {
			return false
		}
	}
	return true
}

func (o *owe) sentTo(p Page) bool {
	for a := range o.sent {
		if a.p == p {
			return true
		}
	}
	return false
}

// mayLand: no fence stands between a write and its page.
func (s *State) mayLand(o *owe, w *write) bool {
	return w.placing || w.unseen || (w.queued || w.flying) && s.current(o)
}
