package follow

import "slices"

// Decode rank: leases and receipts.

func (s *State) leaseDo(a *Act) (done, known bool) {
	l := s.lease(a.L)
	switch a.Name {
	case "Grant":
		return s.grant(a), true
	case "Grow":
		return s.grow(a, l), true
	case "Abort":
		return s.need(l.dst == dstFilling || l.dst == dstVerified, `dst[l] \in {"filling", "verified"}`) && s.setDst(l, dstRevoking), true
	case "RecvComplete":
		return s.need(a.Kind == kindComplete || a.Kind == kindMisnamed, `c \in {"complete", "misnamed"}`) && s.receive(a, l), true
	case "RecvReceipt":
		return s.need(a.Kind >= kindAck && a.Kind <= kindGone, `c \in {"ack", "failed", "gone"}`) && s.receive(a, l), true
	case "NoticeIn":
		return s.noticeIn(a, l), true
	case "Take":
		return s.take(a, l), true
	case "Verify":
		return s.need(l.dst == dstFilling, `dst[l] = "filling"`) && s.need(allGot(l), `AllGot(l)`) && s.need(s.verifyGood(l), `VerifyGood(l)`) && s.setDst(l, dstVerified), true
	case "BadVerify":
		return s.badVerify(l), true
	case "Ready":
		ok := s.need(l.dst == dstVerified, `dst[l] = "verified"`) && s.setDst(l, dstReady)
		l.ready = l.ready || ok
		return ok, true
	}
	return false, false
}

func (s *State) setDst(l *lease, dst uint8) bool {
	l.dst = dst
	s.touch(l)
	return true
}

func (s *State) grant(a *Act) bool {
	n, t := s.nodes[a.Node], s.transfer(a.T)
	if !(s.need(a.L == n.nextL, `l = nextL`) && s.need(t.lead == leadOpen, `lead[t] = "open"`) && s.need((len(a.S) == 0) == (len(a.Ks) == 0), `(S = {}) = (K = {})`)) {
		return false
	}
	for _, k := range a.Ks {
		if !s.need(s.links[k].up, `\A k \in Rank : k \in K => up[k]`) {
			return false
		}
	}
	for _, p := range a.S {
		covered := slices.ContainsFunc(a.Parts, func(x Part) bool { return x.P == p })
		if !(s.need(covered, `PlanCovers => \A p \in Page : p \in S => \E k \in Rank : k \in K /\ Has(k, p)`) &&
			s.need(s.page(a.Node, p).own == 0, `\A p \in Page : p \in S => own[p] = 0`) && s.need(s.free(a.Node, p), `\A p \in Page : p \in S => Free(p)`)) {
			return false
		}
	}
	l := s.newLease(a.Node, a.L, a.T, a.S)
	l.ten, l.ada, l.pre, l.dst = a.N, a.A, a.F, dstFilling
	for _, k := range n.links {
		o := s.with(l, k)
		o.owes = slices.Contains(a.Ks, k)
		o.hold, o.gep, o.ginc = o.owes, s.links[k].ep, s.links[k].linc
		if !o.owes {
			continue
		}
		o.owed = map[Page]bool{}
		s.links[k].owed[l.id] = o
	}
	for _, x := range a.Parts {
		if o := l.on(x.K); o != nil && o.owed != nil {
			o.owed[x.P] = true
		}
	}
	n.nextL = a.L + s.step()
	return true
}

// step is from one lease number to the next.
func (s *State) step() Lease {
	if s.apart {
		return 1 << subBits
	}
	return 1
}

// newLease hands pages out to a new lease.
func (s *State) newLease(n Node, id Lease, t Transfer, pages []Page) *lease {
	l := &lease{id: id, node: n, dof: s.nodes[n].dinc, tof: t, at: make(map[Page]Gen, len(pages)), krn: map[kernel]int{}, tok: map[token]bool{}}
	s.leases[id], s.nodes[n].leases[id] = l, l
	s.transfer(t).leases = append(s.transfer(t).leases, id)
	for _, p := range pages {
		pg := s.page(n, p)
		pg.own, pg.app = id, false
		pg.gen++
		for i := range pg.slots {
			pg.slots[i].tag = 0
		}
		l.plan = append(l.plan, planned{p, pg.gen})
		l.at[p] = pg.gen
	}
	s.touch(l)
	return l
}

func (s *State) grow(a *Act, l *lease) bool {
	n := s.nodes[l.node]
	if !(s.need(s.apart || a.X == n.nextL, `x = nextL`) && s.need(l.dst == dstReady, `dst[l] = "ready"`) && s.need(s.page(l.node, a.P).own == 0, `own[p] = 0`) &&
		s.need(s.free(l.node, a.P), `Free(p)`)) {
		return false
	}
	x := s.newLease(l.node, a.X, l.tof, []Page{a.P})
	x.ten, x.ada, x.pre, x.dst, x.ready = l.ten, l.ada, l.pre, dstReady, true
	s.page(l.node, a.P).app = true
	if !s.apart {
		n.nextL = a.X + 1
	}
	l.sub = append(l.sub, a.X)
	return true
}

// receive keeps a receipt of lease l; it is believed because it names the lease, comes from the incarnation that was granted, and the
// hold stands.
func (s *State) receive(a *Act, l *lease) bool {
	o := l.on(a.K)
	if !(s.need(o != nil && o.ans&(1<<a.Kind) != 0 && a.I == o.ginc, `Arrives(<<c, x, k, i>> \in ans)`) && s.need(a.X == a.L && o != nil && a.I == o.ginc && o.hold, `Believed(x, l, k, i)`)) {
		return false
	}
	s.with(l, a.K).rec |= 1 << a.Kind
	return true
}

func (s *State) noticeIn(a *Act, l *lease) bool {
	o := s.with(l, a.K)
	mine := a.I == o.ginc
	if !(s.need(mine && slices.Contains(o.nsent, a.C), `Arrives(<<l, k, c, i>> \in nsent)`) && s.need(!slices.Contains(o.nin, a.C), `<<l, k, c, i>> \notin nin`) &&
		s.need(o.hold, `hold[l, k]`) && s.need(o.behind(a.C), `Behind(l, k, c, i)`)) {
		return false
	}
	o.nin = append(o.nin, a.C)
	return true
}

func (s *State) take(a *Act, l *lease) bool {
	o := s.with(l, a.K)
	if !(s.need(o.rec&(1<<a.Kind) != 0 && a.I == o.ginc, `<<c, l, k, i>> \in rec`) && s.need(o.hold, `hold[l, k]`) &&
		s.need(o.decodeHalf(), `(IF c = "complete" THEN CompleteVisible ELSE TakeDrained) => DecodeHalf(c, l, k, i)`)) {
		return false
	}
	o.hold, o.got, o.rec = false, a.Kind == kindComplete && l.dst == dstFilling, 0
	if a.Kind != kindComplete && l.dst == dstFilling {
		l.dst = dstRevoking
	}
	s.touch(l)
	return true
}

func (s *State) badVerify(l *lease) bool {
	if !(s.need(l.dst == dstFilling, `dst[l] = "filling"`) && s.need(allGot(l), `AllGot(l)`) && s.need(!s.verifyGood(l), `~VerifyGood(l)`)) {
		return false
	}
	s.quarantine(l)
	return s.setDst(l, dstBad)
}

// quarantine: the pages stay with l until a fence begun after now.
func (s *State) quarantine(l *lease) {
	for _, k := range s.nodes[l.node].links {
		s.with(l, k).qep = s.links[k].ep
	}
}
