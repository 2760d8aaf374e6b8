package follow

// Decode leader and prefill leader. The second result of each group says that it has an action of that name.

func (s *State) leaderDo(a *Act) (done, known bool) {
	t := s.transfer(a.T)
	switch a.Name {
	case "Submit":
		return s.need(t.lead == leadNew, `lead[t] = "new"`) && s.setLead(t, leadSubmitted), true
	case "Refuse":
		return s.need(t.big, `t \in Big`) &&
			s.need(t.lead == leadSubmitted, `IF Admit THEN lead[t] = "submitted" ELSE lead[t] \in {"submitted", "asking", "open", "run"}`) &&
			s.setLead(t, leadRefused) && s.setCause(t, causeOriginal), true
	case "Ask":
		return s.need(t.lead == leadSubmitted, `lead[t] = "submitted"`) && s.need(!t.big, `Admit => t \notin Big`) && s.setLead(t, leadAsking), true
	case "RecvAsk":
		ok := s.need(t.lead != leadNew && t.lead != leadSubmitted && t.lead != leadRefused, `Arrives(lead[t] \notin {"new", "submitted", "refused"})`) &&
			s.need(!t.pask, `~pask[t]`)
		t.pask = t.pask || ok
		return ok, true
	case "RecvAsked":
		return s.need(t.lead == leadAsking, `lead[t] = "asking"`) && s.need(t.pask, `Arrives(pask[t])`) && s.setLead(t, leadOpen), true
	case "Run":
		return s.need(t.lead == leadOpen, `lead[t] = "open"`) && s.setLead(t, leadRun), true
	case "Success":
		return s.need(t.lead == leadRun, `lead[t] = "run" \/ (lead[t] = "failed" /\ ~FirstVerdict)`) && s.need(s.allReady(t), `AllReady(t)`) &&
			s.need(s.noKernels(t), `\A l, x \in Lease : \A p \in Page : \A g \in Gen : tof[l] = t => <<l, p, g, x>> \notin krn`) && s.setLead(t, leadOk), true
	case "Failure":
		return s.need(a.Cause != causeNone, `c \in Causes`) && s.need(t.lead >= leadSubmitted && t.lead <= leadRun, `lead[t] \in {"submitted", "asking", "open", "run"}`) &&
			s.setLead(t, leadFailed) && s.setCause(t, a.Cause), true
	case "Recause":
		return s.recause(a, t), true
	case "Retry":
		return s.retry(a, t), true
	case "Answer":
		return s.answer(a, t), true
	}
	return false, false
}

func (s *State) setLead(t *transfer, lead uint8) bool {
	t.lead = lead
	return true
}

func (s *State) setCause(t *transfer, c uint8) bool {
	t.cause = c
	return true
}

func (s *State) noKernels(t *transfer) bool {
	for _, l := range t.leases {
		if x := s.leases[l]; x != nil && len(x.krn) > 0 {
			return false
		}
	}
	return true
}

func (s *State) recause(a *Act, t *transfer) bool {
	return s.need(t.lead == leadFailed, `lead[t] = "failed"`) && s.need(t.root == a.R, `root[t] = r`) && s.need(a.Cause != causeNone, `c \in Causes`) &&
		s.need(a.Cause != t.cause, `c # cause[t]`) &&
		s.need(a.Cause == causeOriginal && s.transfer(a.R).http == httpNone, `CauseKept => (c = "original" /\ http[r] = "none")`) && s.setCause(t, a.Cause)
}

func (s *State) retry(a *Act, t *transfer) bool {
	u := s.transfer(a.U)
	over := true
	for _, l := range t.leases {
		x := s.leases[l]
		over = over && (x == nil || !live(x))
	}
	if !(s.need(t.lead == leadFailed, `lead[t] = "failed"`) && s.need(t.root == a.R, `root[t] = r`) && s.need(s.transfer(a.R).http == httpNone, `http[r] = "none"`) &&
		s.need(t.succ == 0, `succ[t] = 0`) && s.need(u.lead == leadNew, `lead[u] = "new"`) && s.need(t.big == u.big, `(t \in Big) = (u \in Big)`) &&
		s.need(over, `RetryOver => \A l \in Lease : tof[l] = t => ~Live(l)`)) {
		return false
	}
	u.lead, u.root, t.succ = leadSubmitted, a.R, a.U
	return true
}

func (s *State) answer(a *Act, t *transfer) bool {
	r := s.transfer(a.R)
	if !(s.need(t.lead == leadOk || t.lead == leadFailed || t.lead == leadRefused, `lead[t] \in {"ok", "failed", "refused"}`) && s.need(t.root == a.R, `root[t] = r`) &&
		s.need(r.http == httpNone, `http[r] = "none"`) && s.need(t.succ == 0, `LastSpeaks => succ[t] = 0`)) {
		return false
	}
	r.http = httpError
	if t.lead == leadOk {
		r.http = http200
	}
	return true
}
