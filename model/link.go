package model

// The actions of a decode rank on its links, and the end of the decode process.
func linkActions() []Action {
	return []Action{actFence(), actFenceEnd(), actConnect(), actRaiseMark(), actDecodeCrash()}
}

func actFence() Action {
	return Action{
		Name: "Fence", Params: params("k", "Rank"),
		Guards: []Guard{
			{`ep[k] + 1 \in Epoch`, func(w *Settings, s *State, a *Args) bool { return s.Ep[a.K]+1 <= w.NE }},
		},
		Updates: []Update{
			{`ep' = [ep EXCEPT ![k] = IF FenceRaises THEN ep[k] + 1 ELSE ep[k]]`, func(w *Settings, s *State, a *Args, n *State) {
				if w.FenceRaises {
					n.Ep[a.K] = s.Ep[a.K] + 1
				}
			}},
			{`fencing' = [fencing EXCEPT ![k] = TRUE]`, func(w *Settings, s *State, a *Args, n *State) { n.Fencing[a.K] = true }},
			{`up' = [up EXCEPT ![k] = FALSE]`, func(w *Settings, s *State, a *Args, n *State) { n.Up[a.K] = false }},
			{`dst' = [l \in Lease |-> IF hold[l, k] /\ dst[l] = "filling" THEN "revoking" ELSE dst[l]]`, func(w *Settings, s *State, a *Args, n *State) {
				for l := uint8(1); l <= w.NL; l++ {
					if s.Hold[l][a.K] && s.Dst[l] == DstFilling {
						n.Dst[l] = DstRevoking
					}
				}
			}},
		},
	}
}

func actFenceEnd() Action {
	return Action{
		Name: "FenceEnd", Params: params("k", "Rank"),
		Guards: []Guard{
			{`fencing[k]`, func(w *Settings, s *State, a *Args) bool { return s.Fencing[a.K] }},
			{`FenceWaits => \A l \in Lease : \A p \in Page : \A c \in Chan : \A i \in Inc : ` +
				`(<<l, k, p, c, i>> \in placing \/ <<l, k, p, c, i>> \in unseen) => Current(l, k)`, func(w *Settings, s *State, a *Args) bool {
				return !w.FenceWaits || everyWrite(w, func(l, k, p, c, i uint8) bool { return k != a.K || !lands(s, l, k, p, c, i) || current(s, l, k) })
			}},
		},
		Updates: []Update{
			{`fencing' = [fencing EXCEPT ![k] = FALSE]`, func(w *Settings, s *State, a *Args, n *State) { n.Fencing[a.K] = false }},
			{`hold' = [l \in Lease, r \in Rank |-> hold[l, r] /\ ~(r = k /\ Older(l, k) /\ dst[l] = "revoking")]`, func(w *Settings, s *State, a *Args, n *State) {
				for l := uint8(1); l <= w.NL; l++ {
					n.Hold[l][a.K] = s.Hold[l][a.K] && !(older(w, s, l, a.K) && s.Dst[l] == DstRevoking)
				}
			}},
		},
	}
}

func actConnect() Action {
	return Action{
		Name: "Connect", Params: params("k", "Rank", "i", "Inc", "d", "DInc", "e", "Epoch"),
		Guards: []Guard{
			{`~up[k]`, func(w *Settings, s *State, a *Args) bool { return !s.Up[a.K] }},
			{`Arrives(<<k, i, d, e>> \in acc)`, func(w *Settings, s *State, a *Args) bool { return arrives(w, s.Acc.has(acceptAt(a.K, a.I, a.D, a.E))) }},
			{`NonceCheck => (d = dinc /\ e = ep[k])`, func(w *Settings, s *State, a *Args) bool { return !w.NonceCheck || a.D == s.Dinc && a.E == s.Ep[a.K] }},
		},
		Updates: []Update{
			{`linc' = [linc EXCEPT ![k] = i]`, func(w *Settings, s *State, a *Args, n *State) { n.Linc[a.K] = a.I }},
			{`up' = [up EXCEPT ![k] = TRUE]`, func(w *Settings, s *State, a *Args, n *State) { n.Up[a.K] = true }},
		},
	}
}

func actRaiseMark() Action {
	return Action{
		Name: "RaiseMark", Params: params("k", "Rank", "m", "Nat"),
		Guards: []Guard{
			{`Marking`, func(w *Settings, s *State, a *Args) bool { return w.Marking }},
			{`dmark[k] < m`, func(w *Settings, s *State, a *Args) bool { return s.Dmark[a.K] < a.M }},
			{`m <= nextL`, func(w *Settings, s *State, a *Args) bool { return a.M <= s.NextL }},
			{`\A l \in Lease : l < m => ~hold[l, k]`, func(w *Settings, s *State, a *Args) bool {
				for l := uint8(1); l <= w.NL; l++ {
					if l < a.M && s.Hold[l][a.K] {
						return false
					}
				}
				return true
			}},
		},
		Updates: []Update{
			{`dmark' = [dmark EXCEPT ![k] = m]`, func(w *Settings, s *State, a *Args, n *State) { n.Dmark[a.K] = a.M }},
		},
	}
}

func actDecodeCrash() Action {
	return Action{
		Name: "DecodeCrash",
		Guards: []Guard{
			{`dinc + 1 \in DInc`, func(w *Settings, s *State, a *Args) bool { return s.Dinc+1 <= w.ND }},
		},
		Updates: append([]Update{
			{`dinc' = dinc + 1`, func(w *Settings, s *State, a *Args, n *State) { n.Dinc = s.Dinc + 1 }},
			{`lead' = [t \in Transfer |-> IF lead[t] \in {"submitted", "asking", "open", "run"} /\ (Asking \/ \E l \in Lease : tof[l] = t) THEN "failed" ELSE lead[t]]`,
				func(w *Settings, s *State, a *Args, n *State) {
					crashed(w, s, func(t uint8) { n.Lead[t] = LeadFailed })
				}},
			{`cause' = [t \in Transfer |-> IF lead[t] \in {"submitted", "asking", "open", "run"} /\ (Asking \/ \E l \in Lease : tof[l] = t) THEN "derived" ELSE cause[t]]`,
				func(w *Settings, s *State, a *Args, n *State) {
					crashed(w, s, func(t uint8) { n.Cause[t] = CauseDerived })
				}},
			{`own' = [p \in Page |-> 0]`, func(w *Settings, s *State, a *Args, n *State) { n.Own = perPage{} }},
			{`gen' = [p \in Page |-> 0]`, func(w *Settings, s *State, a *Args, n *State) { n.Gen = perPage{} }},
			{`dst' = [l \in Lease |-> IF Live(l) THEN "dead" ELSE dst[l]]`, func(w *Settings, s *State, a *Args, n *State) {
				for l := uint8(1); l <= w.NL; l++ {
					if live(s, l) {
						n.Dst[l] = DstDead
					}
				}
			}},
		}, crashMemory()...),
	}
}

// crashed gives every transfer that fails by the crash.
func crashed(w *Settings, s *State, fail func(t uint8)) {
	for t := uint8(1); t <= w.NT; t++ {
		has := w.Asking
		for l := uint8(1); l <= w.NL; l++ {
			has = has || s.Tof[l] == t
		}
		if unfinished(s.Lead[t]) && has {
			fail(t)
		}
	}
}

// crashMemory is what the end of the process takes with it.
func crashMemory() []Update {
	return []Update{
		{`hold' = [l \in Lease, k \in Rank |-> FALSE]`, func(w *Settings, s *State, a *Args, n *State) { n.Hold = flagLR{} }},
		{`rec' = {}`, func(w *Settings, s *State, a *Args, n *State) { n.Rec = Set{} }},
		{`nin' = {}`, func(w *Settings, s *State, a *Args, n *State) { n.Nin = 0 }},
		{`krn' = {}`, func(w *Settings, s *State, a *Args, n *State) { n.Krn = Large{} }},
		{`ep' = [k \in Rank |-> 0]`, func(w *Settings, s *State, a *Args, n *State) { n.Ep = perRank{} }},
		{`up' = [k \in Rank |-> FALSE]`, func(w *Settings, s *State, a *Args, n *State) { n.Up = [MaxRanks]bool{} }},
		{`fencing' = [k \in Rank |-> FALSE]`, func(w *Settings, s *State, a *Args, n *State) { n.Fencing = [MaxRanks]bool{} }},
		{`pubs' = {}`, func(w *Settings, s *State, a *Args, n *State) { n.Pubs = Set{} }},
		{`shr' = {}`, func(w *Settings, s *State, a *Args, n *State) { n.Shr = 0 }},
		{`app' = [p \in Page |-> FALSE]`, func(w *Settings, s *State, a *Args, n *State) { n.App = [MaxPages]bool{} }},
		{`placing' = {}`, func(w *Settings, s *State, a *Args, n *State) { n.Placing = Set{} }},
		{`unseen' = {}`, func(w *Settings, s *State, a *Args, n *State) { n.Unseen = Set{} }},
	}
}
