package model

// The actions of the decode leader and of prefill's leader.
func leaderActions() []Action {
	return []Action{
		actSubmit(), actRefuse(), actAsk(), actRecvAsk(), actRecvAsked(), actRun(), actSuccess(), actFailure(), actRecause(), actRetry(), actAnswer(),
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
		Updates: append(setLead(`lead' = [lead EXCEPT ![t] = "refused"]`, LeadRefused), Update{
			`cause' = [cause EXCEPT ![t] = "original"]`, func(w *Settings, s *State, a *Args, n *State) { n.Cause[a.T] = CauseOriginal },
		}),
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
			{`Arrives(lead[t] \notin {"new", "submitted", "refused"})`, func(w *Settings, s *State, a *Args) bool {
				return arrives(w, s.Lead[a.T] != LeadNew && s.Lead[a.T] != LeadSubmitted && s.Lead[a.T] != LeadRefused)
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
			{`Arrives(pask[t])`, func(w *Settings, s *State, a *Args) bool { return arrives(w, s.Pask[a.T]) }},
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

func guardCause() Guard {
	return Guard{`c \in Causes`, func(w *Settings, s *State, a *Args) bool { return w.fails(a.C) }}
}

func setCause() Update {
	return Update{`cause' = [cause EXCEPT ![t] = c]`, func(w *Settings, s *State, a *Args, n *State) { n.Cause[a.T] = a.C }}
}

func actFailure() Action {
	return Action{
		Name: "Failure", Params: params("t", "Transfer", "c", "FailureCause"),
		Guards: []Guard{
			{`Running`, func(w *Settings, s *State, a *Args) bool { return w.Running }},
			guardCause(),
			{`lead[t] \in {"submitted", "asking", "open", "run"}`, func(w *Settings, s *State, a *Args) bool { return unfinished(s.Lead[a.T]) }},
		},
		Updates: append(setLead(`lead' = [lead EXCEPT ![t] = "failed"]`, LeadFailed), setCause()),
	}
}

func guardFailed() Guard {
	return Guard{`lead[t] = "failed"`, func(w *Settings, s *State, a *Args) bool { return s.Lead[a.T] == LeadFailed }}
}

func guardRoot() Guard {
	return Guard{`root[t] = r`, func(w *Settings, s *State, a *Args) bool { return s.Root[a.T] == a.R }}
}

func guardUntold() Guard {
	return Guard{`http[r] = "none"`, func(w *Settings, s *State, a *Args) bool { return s.Http[a.R] == HTTPNone }}
}

func actRecause() Action {
	return Action{
		Name: "Recause", Params: params("t", "Transfer", "r", "Transfer", "c", "FailureCause"),
		Guards: []Guard{
			guardFailed(), guardRoot(), guardCause(),
			{`c # cause[t]`, func(w *Settings, s *State, a *Args) bool { return a.C != s.Cause[a.T] }},
			{`CauseKept => (c = "original" /\ http[r] = "none")`, func(w *Settings, s *State, a *Args) bool {
				return !w.CauseKept || a.C == CauseOriginal && s.Http[a.R] == HTTPNone
			}},
		},
		Updates: []Update{setCause()},
	}
}

func actRetry() Action {
	return Action{
		Name: "Retry", Params: params("t", "Transfer", "u", "Transfer", "r", "Transfer"),
		Guards: []Guard{
			{`Retrying`, func(w *Settings, s *State, a *Args) bool { return w.Retrying }},
			guardFailed(), guardRoot(), guardUntold(),
			{`succ[t] = 0`, func(w *Settings, s *State, a *Args) bool { return s.Succ[a.T] == 0 }},
			{`lead[u] = "new"`, func(w *Settings, s *State, a *Args) bool { return s.Lead[a.U] == LeadNew }},
			{`(t \in Big) = (u \in Big)`, func(w *Settings, s *State, a *Args) bool { return w.big(a.T) == w.big(a.U) }},
			{`RetryOver => \A l \in Lease : tof[l] = t => ~Live(l)`, func(w *Settings, s *State, a *Args) bool {
				for l := uint8(1); l <= w.NL; l++ {
					if w.RetryOver && s.Tof[l] == a.T && live(s, l) {
						return false
					}
				}
				return true
			}},
		},
		Updates: []Update{
			{`lead' = [lead EXCEPT ![u] = "submitted"]`, func(w *Settings, s *State, a *Args, n *State) { n.Lead[a.U] = LeadSubmitted }},
			{`root' = [root EXCEPT ![u] = r]`, func(w *Settings, s *State, a *Args, n *State) { n.Root[a.U] = a.R }},
			{`succ' = [succ EXCEPT ![t] = u]`, func(w *Settings, s *State, a *Args, n *State) { n.Succ[a.T] = a.U }},
		},
	}
}

func actAnswer() Action {
	return Action{
		Name: "Answer", Params: params("t", "Transfer", "r", "Transfer"),
		Guards: []Guard{
			{`lead[t] \in {"ok", "failed", "refused"}`, func(w *Settings, s *State, a *Args) bool { return ended(s.Lead[a.T]) }},
			guardRoot(), guardUntold(),
			{`LastSpeaks => succ[t] = 0`, func(w *Settings, s *State, a *Args) bool { return !w.LastSpeaks || s.Succ[a.T] == 0 }},
		},
		Updates: []Update{
			{`http' = [http EXCEPT ![r] = IF lead[t] = "ok" THEN "200" ELSE "error"]`, func(w *Settings, s *State, a *Args, n *State) {
				if n.Http[a.R] = HTTPError; s.Lead[a.T] == LeadOk {
					n.Http[a.R] = HTTP200
				}
			}},
		},
	}
}
