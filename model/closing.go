package model

// The actions by which a prefill rank ends a lease, forgets it, fences its own end, and restarts.
func closingActions() []Action {
	return []Action{
		actComplete(), actBreak(), actRecvAbort(), actAbortAck(), actFailed(), actGone(), actForget(), actPrefillFence(), actPrefillCrash(),
	}
}

func closingParams() []Param { return params("l", "Lease", "k", "Rank") }

func guardDrained() Guard {
	return Guard{`AckDrained => PrefillHalf(l, k)`, func(w *Settings, s *State, a *Args) bool { return !w.AckDrained || prefillHalf(w, s, a.L, a.K) }}
}

func sendReceipt(text string, kind uint8) Update {
	return Update{text, func(w *Settings, s *State, a *Args, n *State) { n.Ans.add(receiptAt(kind, a.L, a.K, s.Pinc[a.K])) }}
}

func actComplete() Action {
	return Action{
		Name: "Complete", Params: closingParams(),
		Guards: []Guard{
			guardPst(`pst[l, k] = "writing"`, PstWriting),
			{`CoverAll => (pview[l, k] = "short" \/ Posted(l, k))`, func(w *Settings, s *State, a *Args) bool {
				return !w.CoverAll || s.Pview[a.L][a.K] == ViewShort || posted(w, s, a.L, a.K)
			}},
			guardDrained(), guardNotFenced(),
		},
		Updates: []Update{
			setPst(`pst' = [pst EXCEPT ![l, k] = "closed"]`, PstClosed),
			{`ans' = ans \cup {<<IF pview[l, k] = "same" THEN "complete" ELSE "misnamed", l, k, pinc[k]>>}`, func(w *Settings, s *State, a *Args, n *State) {
				kind := KindMisnamed
				if s.Pview[a.L][a.K] == ViewSame {
					kind = KindComplete
				}
				n.Ans.add(receiptAt(kind, a.L, a.K, s.Pinc[a.K]))
			}},
		},
	}
}

func actBreak() Action {
	return Action{
		Name: "Break", Params: closingParams(),
		Guards: []Guard{
			{`Breaking`, func(w *Settings, s *State, a *Args) bool { return w.Breaking }},
			guardPst(`pst[l, k] = "writing"`, PstWriting),
		},
		Updates: []Update{setPst(`pst' = [pst EXCEPT ![l, k] = "closing"]`, PstClosing)},
	}
}

func actRecvAbort() Action {
	return Action{
		Name: "RecvAbort", Params: closingParams(),
		Guards: []Guard{
			guardHears(),
			{`Aborted(l)`, func(w *Settings, s *State, a *Args) bool { return aborted(s, a.L) }},
			{`pst[l, k] \in {"none", "writing"}`, func(w *Settings, s *State, a *Args) bool {
				return s.Pst[a.L][a.K] == PstNone || s.Pst[a.L][a.K] == PstWriting
			}},
			{`pst[l, k] = "none" => pmark[k] <= l`, func(w *Settings, s *State, a *Args) bool { return s.Pst[a.L][a.K] != PstNone || s.Pmark[a.K] <= a.L }},
		},
		Updates: []Update{setPst(`pst' = [pst EXCEPT ![l, k] = "closing"]`, PstClosing)},
	}
}

func actAbortAck() Action {
	return Action{
		Name: "AbortAck", Params: closingParams(),
		Guards: []Guard{
			guardPst(`pst[l, k] = "closing"`, PstClosing),
			{`Aborted(l)`, func(w *Settings, s *State, a *Args) bool { return aborted(s, a.L) }},
			guardDrained(), guardNotFenced(),
		},
		Updates: []Update{
			setPst(`pst' = [pst EXCEPT ![l, k] = "closed"]`, PstClosed),
			sendReceipt(`ans' = ans \cup {<<"ack", l, k, pinc[k]>>}`, KindAck),
		},
	}
}

func actFailed() Action {
	return Action{
		Name: "Failed", Params: closingParams(),
		Guards: []Guard{guardPst(`pst[l, k] = "closing"`, PstClosing), guardDrained(), guardNotFenced()},
		Updates: []Update{
			setPst(`pst' = [pst EXCEPT ![l, k] = "closed"]`, PstClosed),
			sendReceipt(`ans' = ans \cup {<<"failed", l, k, pinc[k]>>}`, KindFailed),
		},
	}
}

func actGone() Action {
	return Action{
		Name: "Gone", Params: closingParams(),
		Guards: []Guard{
			guardHears(), guardPst(`pst[l, k] = "none"`, PstNone),
			{`l < pmark[k]`, func(w *Settings, s *State, a *Args) bool { return a.L < s.Pmark[a.K] }},
			guardNotFenced(),
		},
		Updates: []Update{sendReceipt(`ans' = ans \cup {<<"gone", l, k, pinc[k]>>}`, KindGone)},
	}
}

func actForget() Action {
	return Action{
		Name: "Forget", Params: closingParams(),
		Guards: []Guard{
			guardPst(`pst[l, k] = "closed"`, PstClosed),
			{`MarkForget => l < pmark[k]`, func(w *Settings, s *State, a *Args) bool { return !w.MarkForget || a.L < s.Pmark[a.K] }},
		},
		Updates: []Update{setPst(`pst' = [pst EXCEPT ![l, k] = "none"]`, PstNone)},
	}
}

func actPrefillFence() Action {
	granted := func(s *State, a *Args, l uint8) bool { return s.Dof[l] == a.D && s.Gep[l][a.K] == a.E }
	return Action{
		Name: "PrefillFence", Params: params("k", "Rank", "d", "DInc", "e", "Epoch"),
		Guards: []Guard{
			{`PFencing`, func(w *Settings, s *State, a *Args) bool { return w.PFencing }},
			{`<<k, d, e>> \notin pfenced`, func(w *Settings, s *State, a *Args) bool { return !s.Pfenced.has(fencedAt(a.K, a.D, a.E)) }},
			{`d < dinc \/ (d = dinc /\ e <= ep[k])`, func(w *Settings, s *State, a *Args) bool { return a.D < s.Dinc || a.D == s.Dinc && a.E <= s.Ep[a.K] }},
		},
		Updates: []Update{
			{`pfenced' = pfenced \cup {<<k, d, e>>}`, func(w *Settings, s *State, a *Args, n *State) { n.Pfenced.add(fencedAt(a.K, a.D, a.E)) }},
			{`queued' = {<<l, r, p, c, i>> \in queued : ~(r = k /\ dof[l] = d /\ gep[l, r] = e)}`, func(w *Settings, s *State, a *Args, n *State) {
				eachWrite(w, func(l, r, p, c, i uint8) {
					if r == a.K && granted(s, a, l) {
						n.Queued.drop(writeAt(l, r, p, c, i))
					}
				})
			}},
			{`pst' = [l \in Lease, r \in Rank |-> IF r = k /\ dof[l] = d /\ gep[l, r] = e /\ pst[l, r] \in {"writing", "closing"} THEN "closed" ELSE pst[l, r]]`,
				func(w *Settings, s *State, a *Args, n *State) {
					for l := uint8(1); l <= w.NL; l++ {
						if granted(s, a, l) && (s.Pst[l][a.K] == PstWriting || s.Pst[l][a.K] == PstClosing) {
							n.Pst[l][a.K] = PstClosed
						}
					}
				}},
		},
	}
}

func actPrefillCrash() Action {
	return Action{
		Name: "PrefillCrash", Params: params("k", "Rank"),
		Guards: []Guard{
			{`pinc[k] + 1 \in Inc`, func(w *Settings, s *State, a *Args) bool { return s.Pinc[a.K]+1 <= w.NI }},
		},
		Updates: []Update{
			{`pinc' = [pinc EXCEPT ![k] = pinc[k] + 1]`, func(w *Settings, s *State, a *Args, n *State) { n.Pinc[a.K] = s.Pinc[a.K] + 1 }},
			{`pst' = [l \in Lease, r \in Rank |-> IF r = k THEN "none" ELSE pst[l, r]]`, func(w *Settings, s *State, a *Args, n *State) {
				for l := uint8(1); l <= w.NL; l++ {
					n.Pst[l][a.K] = PstNone
				}
			}},
			{`pmark' = [pmark EXCEPT ![k] = 0]`, func(w *Settings, s *State, a *Args, n *State) { n.Pmark[a.K] = 0 }},
			{`pfenced' = {<<r, d, e>> \in pfenced : r # k}`, func(w *Settings, s *State, a *Args, n *State) {
				for d := range w.dincs() {
					for e := range w.epochs() {
						n.Pfenced.drop(fencedAt(a.K, d, e))
					}
				}
			}},
			{`sown' = [r \in Rank, q \in SPage |-> IF r = k THEN 0 ELSE sown[r, q]]`, func(w *Settings, s *State, a *Args, n *State) { n.Sown[a.K] = [MaxSPages + 1]uint8{} }},
			{`queued' = {<<l, r, p, c, i>> \in queued : r # k}`, func(w *Settings, s *State, a *Args, n *State) {
				eachWrite(w, func(l, r, p, c, i uint8) {
					if r == a.K {
						n.Queued.drop(writeAt(l, r, p, c, i))
					}
				})
			}},
		},
	}
}
