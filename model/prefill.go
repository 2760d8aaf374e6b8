package model

// The actions of a prefill rank on its links and leases.
func prefillActions() []Action {
	return []Action{actAccept(), actRecvMark(), actOwnMark(), actStart()}
}

func setPst(text string, to uint8) Update {
	return Update{text, func(w *Settings, s *State, a *Args, n *State) { n.Pst[a.L][a.K] = to }}
}

func guardPst(text string, is uint8) Guard {
	return Guard{text, func(w *Settings, s *State, a *Args) bool { return s.Pst[a.L][a.K] == is }}
}

func guardNotFenced() Guard {
	return Guard{`~Fenced(l, k)`, func(w *Settings, s *State, a *Args) bool { return !fenced(s, a.L, a.K) }}
}

func guardHears() Guard {
	return Guard{`Hears(l, k)`, func(w *Settings, s *State, a *Args) bool { return hears(w, s, a.L, a.K) }}
}

func actAccept() Action {
	return Action{
		Name: "Accept", Params: params("k", "Rank"),
		Guards: []Guard{
			{`~up[k]`, func(w *Settings, s *State, a *Args) bool { return !s.Up[a.K] }},
		},
		Updates: []Update{
			{`acc' = acc \cup {<<k, pinc[k], dinc, ep[k]>>}`, func(w *Settings, s *State, a *Args, n *State) {
				n.Acc.add(acceptAt(a.K, s.Pinc[a.K], s.Dinc, s.Ep[a.K]))
			}},
		},
	}
}

func setPmark() []Update {
	return []Update{{`pmark' = [pmark EXCEPT ![k] = m]`, func(w *Settings, s *State, a *Args, n *State) { n.Pmark[a.K] = a.M }}}
}

func actRecvMark() Action {
	return Action{
		Name: "RecvMark", Params: params("k", "Rank", "m", "Nat"),
		Guards: []Guard{
			{`pmark[k] < m`, func(w *Settings, s *State, a *Args) bool { return s.Pmark[a.K] < a.M }},
			{`Arrives(m <= dmark[k])`, func(w *Settings, s *State, a *Args) bool { return arrives(w, a.M <= s.Dmark[a.K]) }},
		},
		Updates: setPmark(),
	}
}

func actOwnMark() Action {
	return Action{
		Name: "OwnMark", Params: params("k", "Rank", "m", "Nat"),
		Guards: []Guard{
			{`OwnMarking`, func(w *Settings, s *State, a *Args) bool { return w.OwnMarking }},
			{`pmark[k] < m`, func(w *Settings, s *State, a *Args) bool { return s.Pmark[a.K] < a.M }},
			{`m <= nextL`, func(w *Settings, s *State, a *Args) bool { return a.M <= s.NextL }},
		},
		Updates: setPmark(),
	}
}

func actStart() Action {
	return Action{
		Name: "Start", Params: params("t", "Transfer", "l", "Lease", "k", "Rank", "v", "View"),
		Guards: []Guard{
			{`tof[l] = t`, func(w *Settings, s *State, a *Args) bool { return s.Tof[a.L] == a.T }},
			{`pask[t]`, func(w *Settings, s *State, a *Args) bool { return s.Pask[a.T] }},
			guardHears(),
			guardPst(`pst[l, k] = "none"`, PstNone),
			{`MarkStart => pmark[k] <= l`, func(w *Settings, s *State, a *Args) bool { return !w.MarkStart || s.Pmark[a.K] <= a.L }},
			guardNotFenced(),
			{`IF t \in Big THEN v = "short" ELSE v \in Views`, func(w *Settings, s *State, a *Args) bool {
				if w.big(a.T) {
					return a.V == ViewShort
				}
				return w.view(a.V)
			}},
		},
		Updates: []Update{
			setPst(`pst' = [pst EXCEPT ![l, k] = "writing"]`, PstWriting),
			{`pview' = [pview EXCEPT ![l, k] = v]`, func(w *Settings, s *State, a *Args, n *State) { n.Pview[a.L][a.K] = a.V }},
		},
	}
}
