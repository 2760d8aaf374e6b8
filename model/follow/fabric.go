package follow

// The fabric, and what may befall it: damage.

func (s *State) fabricDo(a *Act) (done, known bool) {
	if int(a.K) >= len(s.links) {
		return false, false
	}
	if a.Name == "Stray" {
		p := s.page(s.links[a.K].node, a.P)
		ok := s.need(p.own != a.X, `own[p] # x`)
		if ok {
			x := p.slot(a.K)
			x.mem, x.tag = a.X, a.X
		}
		return ok, true
	}
	l := s.lease(a.L)
	o := s.with(l, a.K)
	w := o.sent[at{a.P, a.C}]
	if w == nil || a.I != o.ginc {
		w = &write{}
	}
	return s.writeDo(a, l, o, w)
}

func (s *State) writeDo(a *Act, l *lease, o *owe, w *write) (done, known bool) {
	k := s.links[a.K]
	switch a.Name {
	case "Launch":
		return s.launch(a, k, o, w), true
	case "Check":
		ok := s.need(o.gep == k.ep, `PlaceChecks => gep[l, k] = ep[k]`) && s.need(l.dof == s.nodes[k.node].dinc, `DecodeInc => dof[l] = dinc`) && s.need(w.flying, `<<l, k, p, c, i>> \in flying`)
		if ok {
			w.flying, w.placing = false, true
			s.touch(l)
		}
		return ok, true
	case "Drop":
		ok := s.need(!s.current(o), `~Current(l, k)`) && s.need(w.flying, `<<l, k, p, c, i>> \in flying`)
		w.flying = w.flying && !ok
		return ok, true
	case "Lose":
		ok := s.need(a.I == k.pinc, `i = pinc[k]`) && s.need(w.queued || w.flying, `<<l, k, p, c, i>> \in queued \/ <<l, k, p, c, i>> \in flying`) &&
			s.need(!w.lost, `<<l, k, p, c, i>> \notin lost`)
		if ok {
			w.lost = true
			if o.pst == pstWriting {
				o.pst = pstClosing
			}
		}
		return ok, true
	case "Copy":
		ok := s.need(w.placing, `<<l, k, p, c, i>> \in placing`)
		if ok {
			w.placing, w.unseen = false, true
			s.page(k.node, a.P).slot(a.K).mem = 0
		}
		return ok, true
	case "Visible":
		ok := s.need(w.unseen, `<<l, k, p, c, i>> \in unseen`)
		if ok {
			w.unseen = false
			x := s.page(k.node, a.P).slot(a.K)
			x.mem, x.tag = w.pay, a.L
		}
		return ok, true
	case "Torn":
		ok := s.need(w.unseen, `<<l, k, p, c, i>> \in unseen`)
		if ok {
			w.unseen = false
			s.page(k.node, a.P).slot(a.K).tag = a.L
		}
		return ok, true
	case "Flip":
		ok := s.need(w.flying, `<<l, k, p, c, i>> \in flying`)
		if ok {
			w.pay = 0
		}
		return ok, true
	}
	return false, false
}

func (s *State) launch(a *Act, k *link, o *owe, w *write) bool {
	if !(s.need(w.src == a.Q && a.Q != 0, `src[l, k, p, c] = q`) && s.need(w.queued, `<<l, k, p, c, i>> \in queued`)) {
		return false
	}
	w.queued, w.flying, w.pay = false, true, 0
	if q := k.src[w.src]; q != nil {
		q.queued--
		w.pay = q.dat
	}
	return true
}
