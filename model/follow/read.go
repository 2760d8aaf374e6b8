package follow

import "slices"

// Decode rank: reads, sharing and the end of a lease.

func (s *State) readDo(a *Act) (done, known bool) {
	l := s.lease(a.L)
	switch a.Name {
	case "Read":
		return s.read(a, l), true
	case "BadRead":
		return s.need(l.dst == dstReady, `dst[l] = "ready"`) && s.need(s.fills(l, a.P, a.X), `Fills(l, p, x)`) &&
			s.need(!s.tagOk(a.P, s.lease(a.X)), `TagBefore /\ ~TagOk(p, x)`) && s.spoil(l, a.P, a.X), true
	case "ReadEnd":
		return s.readEnd(a, l), true
	case "Append":
		p := s.page(l.node, a.P)
		ok := s.need(l.dst == dstReady, `dst[l] = "ready"`) && s.need(p.own == a.L, `own[p] = l`) &&
			s.need(!slices.Contains(p.pubs, published{p.gen, a.L}) && len(p.sharers) == 0, `CopyFirst => (<<p, gen[p], l>> \notin pubs /\ Free(p))`)
		p.app = p.app || ok
		return ok, true
	case "Publish":
		return s.publish(a, l), true
	case "Unpublish":
		return s.unpublish(a), true
	case "Share":
		return s.share(a, l), true
	case "Release":
		return s.release(l), true
	case "QuarantineEnd":
		return s.quarantineEnd(l), true
	}
	return false, false
}

func (s *State) read(a *Act, l *lease) bool {
	t := s.transfer(a.T)
	if !(s.need(l.tof == a.T, `tof[l] = t`) && s.need(t.lead == leadRun || s.apart && t.lead == leadFailed, `lead[t] = "run"`) && s.need(s.allReady(t), `AllReady(t)`) &&
		s.need(l.dst == dstReady, `dst[l] = "ready"`) && s.need(s.fills(l, a.P, a.X), `Fills(l, p, x)`) && s.need(s.tagOk(a.P, s.lease(a.X)), `TagBefore => TagOk(p, x)`)) {
		return false
	}
	if l.krn != nil {
		l.krn[kernel{a.P, s.page(l.node, a.P).gen, a.X}]++
	}
	return true
}

func (s *State) readEnd(a *Act, l *lease) bool {
	k := kernel{a.P, a.G, a.X}
	if !s.need(l.krn[k] > 0, `<<l, p, g, x>> \in krn`) {
		return false
	}
	delete(l.krn, k)
	x := s.lease(a.X)
	if !s.tagOk(a.P, x) {
		return s.spoil(l, a.P, a.X)
	}
	pg := s.page(l.node, a.P)
	for _, o := range x.owes {
		if o.owed[a.P] {
			l.tok[token{a.X, pg.look(o.k).mem}] = true
		}
	}
	return true
}

// spoil: a check of page p, filled by x, failed under l: the page is published no longer, and every lease that reads it fails, l for
// one. Those that are filling only end; l keeps the page until the fences have been.
func (s *State) spoil(l *lease, p Page, x Lease) bool {
	hit := []*lease{l}
	add := func(y *lease) {
		if y != nil && !slices.Contains(hit, y) {
			hit = append(hit, y)
		}
	}
	pg := s.page(l.node, p)
	if pg.own == x {
		add(s.leases[x])
	}
	for _, y := range pg.sharers {
		if y.filler == x {
			add(s.leases[y.lease])
		}
	}
	for _, y := range hit {
		switch y.dst {
		case dstFilling:
			y.dst = dstRevoking
		case dstVerified, dstReady:
			y.dst = dstBad
		}
		s.quarantine(y)
		s.touch(y)
	}
	pg.pubs = slices.DeleteFunc(pg.pubs, func(y published) bool { return y.filler == x })
	return true
}

func (s *State) publish(a *Act, l *lease) bool {
	p := s.page(l.node, a.P)
	if !(s.need(l.dst == dstReady, `dst[l] = "ready"`) && s.need(p.own == a.L, `own[p] = l`) && s.need(!p.app, `CopyFirst => ~app[p]`)) {
		return false
	}
	if x := (published{p.gen, a.L}); !slices.Contains(p.pubs, x) {
		p.pubs = append(p.pubs, x)
	}
	return true
}

func (s *State) unpublish(a *Act) bool {
	p := s.page(a.Node, a.P)
	if !s.need(slices.Contains(p.pubs, published{a.G, a.X}), `<<p, g, x>> \in pubs`) {
		return false
	}
	p.pubs = slices.DeleteFunc(p.pubs, func(y published) bool { return y == published{a.G, a.X} })
	return true
}

func (s *State) share(a *Act, l *lease) bool {
	p, x := s.page(l.node, a.P), s.lease(a.X)
	if !(s.need(l.dst == dstFilling, `dst[l] = "filling"`) && s.need(a.X != a.L, `x # l`) && s.need(slices.Contains(p.pubs, published{a.G, a.X}), `<<p, g, x>> \in pubs`) &&
		s.need(p.gen == a.G, `GenCheck => gen[p] = g`) && s.need(x.ten == l.ten, `SameTenant => ten[x] = ten[l]`) && s.need(x.ada == l.ada, `SameAdapter => ada[x] = ada[l]`) &&
		s.need(x.pre == l.pre, `SameContent => pre[x] = pre[l]`)) {
		return false
	}
	if y := (share{a.L, a.X, a.P}); !slices.Contains(l.shr, y) {
		l.shr = append(l.shr, y)
		p.sharers = append(p.sharers, y)
	}
	return true
}

func (s *State) release(l *lease) bool {
	if !s.need(l.dst == dstRevoking || l.dst == dstReady, `dst[l] \in {"revoking", "ready"}`) {
		return false
	}
	for _, o := range l.owes {
		if !s.need(!o.hold, `IF AllHolds THEN \A k \in Rank : ~hold[l, k] ELSE \E k \in Rank : owes[l, k] /\ ~hold[l, k]`) {
			return false
		}
	}
	if !s.need(len(l.krn) == 0, `LocalHold => NoKernel(l)`) {
		return false
	}
	s.giveUp(l)
	if l.dst == dstReady {
		return s.setDst(l, dstDone)
	}
	return s.setDst(l, dstFailed)
}

// giveUp ends a lease's right to its pages and its shares.
func (s *State) giveUp(l *lease) {
	for _, p := range l.plan {
		if pg := s.page(l.node, p.page); pg.own == l.id {
			pg.own = 0
		}
	}
	for _, y := range l.shr {
		pg := s.page(l.node, y.page)
		pg.sharers = slices.DeleteFunc(pg.sharers, func(z share) bool { return z == y })
	}
	l.shr = nil
}

func (s *State) quarantineEnd(l *lease) bool {
	since := func(k Link) bool {
		o := l.on(k)
		return o != nil && o.qep < s.links[k].ep && !s.links[k].fencing
	}
	if !s.need(l.dst == dstBad, `dst[l] = "bad"`) {
		return false
	}
	for _, o := range l.owes {
		if o.owes && !s.need(!o.hold && since(o.k), `\A k \in Rank : owes[l, k] => (~hold[l, k] /\ qep[l, k] < ep[k] /\ ~fencing[k])`) {
			return false
		}
	}
	for _, y := range l.shr {
		for _, o := range s.lease(y.filler).owes {
			if o.owes && !s.need(since(o.k), `\A k \in Rank : \A p \in Page : \A x \in Lease : (<<l, p, x>> \in shr /\ owes[x, k]) => (qep[l, k] < ep[k] /\ ~fencing[k])`) {
				return false
			}
		}
	}
	if !s.need(len(l.krn) == 0, `LocalHold => NoKernel(l)`) {
		return false
	}
	s.giveUp(l)
	return s.setDst(l, dstFailed)
}
