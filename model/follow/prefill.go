package follow

import "slices"

// Prefill rank.

func (s *State) prefillDo(a *Act) (done, known bool) {
	if int(a.K) >= len(s.links) {
		return false, false
	}
	k := s.links[a.K]
	switch a.Name {
	case "Accept":
		ok := s.need(!k.up, `~up[k]`)
		if ok {
			k.acc[accepted{k.pinc, s.nodes[k.node].dinc, k.ep}] = true
		}
		return ok, true
	case "RecvMark":
		ok := s.need(k.pmark < a.M, `pmark[k] < m`) && s.need(a.M <= k.dmark, `Arrives(m <= dmark[k])`)
		if ok {
			k.pmark = a.M
		}
		return ok, true
	case "OwnMark":
		ok := s.need(k.pmark < a.M, `pmark[k] < m`) && s.need(a.M <= s.nodes[k.node].nextL, `m <= nextL`)
		if ok {
			k.pmark = a.M
		}
		return ok, true
	case "PrefillFence":
		return s.prefillFence(a, k), true
	case "PrefillCrash":
		s.prefillCrash(k)
		return true, true
	}
	if done, known := s.sourceDo(a, k); known {
		return done, true
	}
	return s.closingDo(a, k)
}

func (s *State) sourceDo(a *Act, k *link) (done, known bool) {
	l := s.lease(a.L)
	o := s.with(l, a.K)
	q := k.src[a.Q]
	if q == nil {
		q = &source{}
	}
	switch a.Name {
	case "Start":
		return s.start(a, k, l, o), true
	case "TakeSource":
		ok := s.need(o.pst == pstWriting, `pst[l, k] = "writing"`) && s.need(o.pview != viewShort, `pview[l, k] # "short"`) && s.need(q.own == 0, `sown[k, q] = 0`)
		if ok {
			q.own, q.st = a.L, srcRaw
			k.src[a.Q] = q
		}
		return ok, true
	case "Compute":
		ok := s.need(q.own == a.L, `sown[k, q] = l`) && s.need(q.st == srcRaw, `sst[k, q] = "raw"`)
		if ok {
			q.dat, q.st = 0, srcComputed
			if o.pview == viewSame {
				q.dat = a.L
			}
		}
		return ok, true
	case "Seal":
		ok := s.need(q.own == a.L, `sown[k, q] = l`) && s.need(q.st == srcComputed, `sst[k, q] = "computed"`)
		if ok {
			q.st = srcSealed
		}
		return ok, true
	case "GiveBack":
		ok := s.need(q.own == a.L, `sown[k, q] = l`) &&
			s.need(q.queued == 0, `SrcHold => \A x \in Lease : \A p \in Page : \A c \in Chan : ~(<<x, k, p, c, pinc[k]>> \in queued /\ src[x, k, p, c] = q)`)
		if ok {
			q.own = 0
			if s.apart { // nobody looks at a free page again
				delete(k.src, a.Q)
			}
		}
		return ok, true
	case "Post":
		return s.post(a, k, o, q), true
	}
	return false, false
}

func (s *State) start(a *Act, k *link, l *lease, o *owe) bool {
	t := s.transfer(a.T)
	view := a.View == viewShort
	if !t.big {
		view = a.View <= viewOther
	}
	if !(s.need(l.tof == a.T && a.T != 0, `tof[l] = t`) && s.need(t.pask, `pask[t]`) && s.need(s.hears(o), `Hears(l, k)`) && s.need(o.pst == pstNone, `pst[l, k] = "none"`) &&
		s.need(k.pmark <= a.L, `MarkStart => pmark[k] <= l`) && s.need(!s.fenced(o), `~Fenced(l, k)`) && s.need(view, `IF t \in Big THEN v = "short" ELSE v \in Views`)) {
		return false
	}
	o.pst, o.pview = pstWriting, a.View
	return true
}

func (s *State) post(a *Act, k *link, o *owe, q *source) bool {
	mine := o.ginc == k.pinc
	twice := mine && o.sentTo(a.P)
	if !(s.need(o.pst == pstWriting, `pst[l, k] = "writing"`) && s.need(q.own == a.L, `sown[k, q] = l`) && s.need(q.st == srcSealed, `SealedOnly => sst[k, q] = "sealed"`) &&
		s.need(o.owed[a.P], `Owed(l, k, p) \/ (~OneWriter /\ p \in Aux /\ gpage[l, p] # 0)`) && s.need(!mine || !slices.Contains(o.nsent, a.C), `<<l, k, c, pinc[k]>> \notin nsent`) &&
		s.need(!mine || o.sent[at{a.P, a.C}] == nil, `<<l, k, p, c, pinc[k]>> \notin sent`) &&
		s.need(!twice, `\A d \in Chan : <<l, k, p, d, pinc[k]>> \in sent => (~RetryDrained /\ <<l, k, p, d, pinc[k]>> \in lost)`)) {
		return false
	}
	if o.sent == nil {
		o.sent = map[at]*write{}
	}
	o.sent[at{a.P, a.C}] = &write{at: at{a.P, a.C}, queued: true, src: a.Q}
	q.queued++
	s.touch(o.lease)
	return true
}

func (s *State) closingDo(a *Act, k *link) (done, known bool) {
	l := s.lease(a.L)
	o := s.with(l, a.K)
	half, open := s.prefillHalf(o), !s.fenced(o)
	switch a.Name {
	case "Notice":
		return s.notice(a, k, o), true
	case "Complete":
		ok := s.need(o.pst == pstWriting, `pst[l, k] = "writing"`) && s.need(o.pview == viewShort || s.posted(o), `CoverAll => (pview[l, k] = "short" \/ Posted(l, k))`) &&
			s.need(half, `AckDrained => PrefillHalf(l, k)`) && s.need(open, `~Fenced(l, k)`)
		kind := kindMisnamed
		if o.pview == viewSame {
			kind = kindComplete
		}
		return ok && s.close(o, kind), true
	case "Break":
		ok := s.need(o.pst == pstWriting, `pst[l, k] = "writing"`)
		if ok {
			o.pst = pstClosing
		}
		return ok, true
	case "RecvAbort":
		ok := s.need(s.hears(o), `Hears(l, k)`) && s.need(aborted(l), `Aborted(l)`) && s.need(o.pst == pstNone || o.pst == pstWriting, `pst[l, k] \in {"none", "writing"}`) &&
			s.need(o.pst != pstNone || k.pmark <= a.L, `pst[l, k] = "none" => pmark[k] <= l`)
		if ok {
			o.pst = pstClosing
		}
		return ok, true
	case "AbortAck":
		return s.need(o.pst == pstClosing, `pst[l, k] = "closing"`) && s.need(aborted(l), `Aborted(l)`) && s.need(half, `AckDrained => PrefillHalf(l, k)`) &&
			s.need(open, `~Fenced(l, k)`) && s.close(o, kindAck), true
	case "Failed":
		return s.need(o.pst == pstClosing, `pst[l, k] = "closing"`) && s.need(half, `AckDrained => PrefillHalf(l, k)`) && s.need(open, `~Fenced(l, k)`) && s.close(o, kindFailed), true
	case "Gone":
		ok := s.need(s.hears(o), `Hears(l, k)`) && s.need(o.pst == pstNone, `pst[l, k] = "none"`) && s.need(a.L < k.pmark, `l < pmark[k]`) && s.need(open, `~Fenced(l, k)`)
		if ok {
			o.ans |= 1 << kindGone
		}
		return ok, true
	case "Forget":
		ok := s.need(o.pst == pstClosed, `pst[l, k] = "closed"`) && s.need(a.L < k.pmark, `MarkForget => l < pmark[k]`)
		if ok {
			o.pst = pstNone
		}
		return ok, true
	}
	return false, false
}

// close answers a lease, once.
func (s *State) close(o *owe, kind uint8) bool {
	o.pst = pstClosed
	o.ans |= 1 << kind
	return true
}

func (s *State) notice(a *Act, k *link, o *owe) bool {
	mine := o.ginc == k.pinc
	carried := false
	for x := range o.sent {
		carried = carried || mine && x.c == a.C
	}
	if !(s.need(o.pst == pstWriting || o.pst == pstClosing, `pst[l, k] \in {"writing", "closing"}`) && s.need(o.pst != pstWriting || s.posted(o), `pst[l, k] = "writing" => Posted(l, k)`) &&
		s.need(carried, `\E p \in Page : <<l, k, p, c, pinc[k]>> \in sent`) && s.need(!mine || !slices.Contains(o.nsent, a.C), `<<l, k, c, pinc[k]>> \notin nsent`)) {
		return false
	}
	o.nsent = append(o.nsent, a.C)
	return true
}

// prefillFence: the sending streams have ended, nothing of that epoch is read here any more; what flies may still land.
func (s *State) prefillFence(a *Act, k *link) bool {
	d := s.nodes[k.node].dinc
	if !(s.need(!k.pfenced[fenced{a.D, a.E}], `<<k, d, e>> \notin pfenced`) && s.need(a.D < d || a.D == d && a.E <= k.ep, `d < dinc \/ (d = dinc /\ e <= ep[k])`)) {
		return false
	}
	k.pfenced[fenced{a.D, a.E}] = true
	for _, o := range k.owed {
		if o.lease.dof != a.D || o.gep != a.E {
			continue
		}
		k.unqueue(o)
		if o.pst == pstWriting || o.pst == pstClosing {
			o.pst = pstClosed
		}
	}
	return true
}

// unqueue ends what has not read its source.
func (k *link) unqueue(o *owe) {
	for _, w := range o.sent {
		if w.queued {
			w.queued = false
			if q := k.src[w.src]; q != nil {
				q.queued--
			}
		}
	}
}

// prefillCrash: and restart; what flies or is being placed stays in flight.
func (s *State) prefillCrash(k *link) {
	k.pinc++
	k.pmark = 0
	clear(k.pfenced)
	for _, q := range k.src {
		q.own = 0
	}
	for _, o := range k.owed {
		o.pst = pstNone
		k.unqueue(o)
	}
}
