package model

// The actions of the decode leader and of prefill's leader.
func leaderActions() []Action {
	return []Action{
		actSubmit(), actRefuse(), actAsk(), actRecvAsk(), actRecvAsked(), actRun(), actSuccess(), actFailure(), actAnswer(),
	}
}

// setLead is the update that most actions of a leader are.
func setLead(text string, to uint8) []Update {
	return []Update{{text, func(w *Settings, s *State, a *Args, n *State) { n.Lead[a.T] = to }}}
}

func unfinished(lead uint8) bool {
	return lead == LeadSubmitted || lead == LeadAsking || lead == LeadOpen || lead == LeadRun
}

func actSubmit() Action {
	return Action{
		Name: "Submit", Params: params("t", "Transfer"),
		Guards: []Guard{
			{`lead[t] = "new"`, func(w *Settings, s *State, a *Args) bool { return s.Lead[a.T] == LeadNew }},
		},
		Updates: setLead(`lead' = [lead EXCEPT ![t] = "submitted"]`, LeadSubmitted),
	}
}

func actRefuse() Action {
	return Action{
		Name: "Refuse", Params: params("t", "Transfer"),
		Guards: []Guard{
			{`t \in Big`, func(w *Settings, s *State, a *Args) bool { return w.big(a.T) }},
			{`IF Admit THEN lead[t] = "submitted" ELSE lead[t] \in {"submitted", "asking", "open", "run"}`, func(w *Settings, s *State, a *Args) bool {
				if w.Admit {
					return s.Lead[a.T] == LeadSubmitted
				}
				return unfinished(s.Lead[a.T])
			}},
		},
		Updates: setLead(`lead' = [lead EXCEPT ![t] = "refused"]`, LeadRefused),
	}
}

func actAsk() Action {
	return Action{
		Name: "Ask", Params: params("t", "Transfer"),
		Guards: []Guard{
			{`lead[t] = "submitted"`, func(w *Settings, s *State, a *Args) bool { return s.Lead[a.T] == LeadSubmitted }},
			{`Admit => t \notin Big`, func(w *Settings, s *State, a *Args) bool { return !w.Admit || !w.big(a.T) }},
		},
		Updates: setLead(`lead' = [lead EXCEPT ![t] = "asking"]`, LeadAsking),
	}
}

func actRecvAsk() Action {
	return Action{
		Name: "RecvAsk", Params: params("t", "Transfer"),
		Guards: []Guard{
			{`lead[t] \notin {"new", "submitted", "refused"}`, func(w *Settings, s *State, a *Args) bool {
				return s.Lead[a.T] != LeadNew && s.Lead[a.T] != LeadSubmitted && s.Lead[a.T] != LeadRefused
			}},
			{`~pask[t]`, func(w *Settings, s *State, a *Args) bool { return !s.Pask[a.T] }},
		},
		Updates: []Update{
			{`pask' = [pask EXCEPT ![t] = TRUE]`, func(w *Settings, s *State, a *Args, n *State) { n.Pask[a.T] = true }},
		},
	}
}

func actRecvAsked() Action {
	return Action{
		Name: "RecvAsked", Params: params("t", "Transfer"),
		Guards: []Guard{
			{`lead[t] = "asking"`, func(w *Settings, s *State, a *Args) bool { return s.Lead[a.T] == LeadAsking }},
			{`pask[t]`, func(w *Settings, s *State, a *Args) bool { return s.Pask[a.T] }},
		},
		Updates: setLead(`lead' = [lead EXCEPT ![t] = "open"]`, LeadOpen),
	}
}

func actRun() Action {
	return Action{
		Name: "Run", Params: params("t", "Transfer"),
		Guards: []Guard{
			{`Running`, func(w *Settings, s *State, a *Args) bool { return w.Running }},
			{`lead[t] = "open"`, func(w *Settings, s *State, a *Args) bool { return s.Lead[a.T] == LeadOpen }},
		},
		Updates: setLead(`lead' = [lead EXCEPT ![t] = "run"]`, LeadRun),
	}
}

func actSuccess() Action {
	return Action{
		Name: "Success", Params: params("t", "Transfer"),
		Guards: []Guard{
			{`lead[t] = "run" \/ (lead[t] = "failed" /\ ~FirstVerdict)`, func(w *Settings, s *State, a *Args) bool {
				return s.Lead[a.T] == LeadRun || s.Lead[a.T] == LeadFailed && !w.FirstVerdict
			}},
			{`AllReady(t)`, func(w *Settings, s *State, a *Args) bool { return allReady(w, s, a.T) }},
			{`\A l, x \in Lease : \A p \in Page : \A g \in Gen : tof[l] = t => <<l, p, g, x>> \notin krn`, func(w *Settings, s *State, a *Args) bool {
				for l := uint8(1); l <= w.NL; l++ {
					if s.Tof[l] == a.T && !noKernel(w, s, l) {
						return false
					}
				}
				return true
			}},
		},
		Updates: setLead(`lead' = [lead EXCEPT ![t] = "ok"]`, LeadOk),
	}
}

func actFailure() Action {
	return Action{
		Name: "Failure", Params: params("t", "Transfer"),
		Guards: []Guard{
			{`Running`, func(w *Settings, s *State, a *Args) bool { return w.Running }},
			{`lead[t] \in {"submitted", "asking", "open", "run"}`, func(w *Settings, s *State, a *Args) bool { return unfinished(s.Lead[a.T]) }},
		},
		Updates: setLead(`lead' = [lead EXCEPT ![t] = "failed"]`, LeadFailed),
	}
}

func actAnswer() Action {
	return Action{
		Name: "Answer", Params: params("t", "Transfer"),
		Guards: []Guard{
			{`lead[t] \in {"ok", "failed", "refused"}`, func(w *Settings, s *State, a *Args) bool {
				return s.Lead[a.T] == LeadOk || s.Lead[a.T] == LeadFailed || s.Lead[a.T] == LeadRefused
			}},
			{`http[t] = "none"`, func(w *Settings, s *State, a *Args) bool { return s.Http[a.T] == HTTPNone }},
		},
		Updates: []Update{
			{`http' = [http EXCEPT ![t] = IF lead[t] = "ok" THEN "200" ELSE "error"]`, func(w *Settings, s *State, a *Args, n *State) {
				if n.Http[a.T] = HTTPError; s.Lead[a.T] == LeadOk {
					n.Http[a.T] = HTTP200
				}
			}},
		},
	}
}
