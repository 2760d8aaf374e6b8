package model

// The actions of a decode rank on its leases: granted, aborted, verified, released.
func leaseActions() []Action { return []Action{actGrant(), actAbort()} }

func actGrant() Action {
	return Action{
		Name: "Grant", Params: params("t", "Transfer", "n", "Tenant", "l", "Lease", "S", "SUBSET Page", "K", "SUBSET Rank"),
		Guards: []Guard{
			{`l = nextL`, func(w *Settings, s *State, a *Args) bool { return a.L == s.NextL }},
			{`l + 1 \in Nat`, func(w *Settings, s *State, a *Args) bool { return a.L+1 <= w.NL+1 }},
			{`lead[t] = "open"`, func(w *Settings, s *State, a *Args) bool { return s.Lead[a.T] == LeadOpen }},
			{`(S = {}) = (K = {})`, func(w *Settings, s *State, a *Args) bool { return (a.S == 0) == (a.Ks == 0) }},
			{`EmptyPlans \/ S # {}`, func(w *Settings, s *State, a *Args) bool { return w.EmptyPlans || a.S != 0 }},
			{`\A k \in Rank : k \in K => up[k]`, func(w *Settings, s *State, a *Args) bool {
				for k := range w.ranks() {
					if in(a.Ks, k) && !s.Up[k] {
						return false
					}
				}
				return true
			}},
			{`\A p \in Page : (p \in S /\ p \in Aux) => AuxWriter \in K`, func(w *Settings, s *State, a *Args) bool {
				return a.S&w.Aux == 0 || in(a.Ks, w.AuxWriter)
			}},
			{`\A p \in Page : p \in S => own[p] = 0`, func(w *Settings, s *State, a *Args) bool {
				for p := range w.pages() {
					if in(a.S, p) && s.Own[p] != 0 {
						return false
					}
				}
				return true
			}},
			{`\A x, y \in Lease : \A p \in Page : p \in S => <<x, p, y>> \notin shr`, func(w *Settings, s *State, a *Args) bool {
				for p := range w.pages() {
					if in(a.S, p) && shared(w, s, p) {
						return false
					}
				}
				return true
			}},
		},
		Updates: append(grantPages(), grantPlan()...),
	}
}

// in says whether element e is in the set whose bits are mask.
func in(mask, e uint8) bool { return mask>>e&1 != 0 }

// shared says whether any lease shares page p.
func shared(w *Settings, s *State, p uint8) bool {
	for x := uint8(1); x <= w.NL; x++ {
		for y := uint8(1); y <= w.NL; y++ {
			if s.Shr.has(sharedAt(x, p, y)) {
				return true
			}
		}
	}
	return false
}

// overPages applies set to every page of S.
func overPages(set func(w *Settings, s *State, a *Args, n *State, p uint8)) func(*Settings, *State, *Args, *State) {
	return func(w *Settings, s *State, a *Args, n *State) {
		for p := range w.pages() {
			if in(a.S, p) {
				set(w, s, a, n, p)
			}
		}
	}
}

// overRanks applies set to every rank.
func overRanks(set func(s *State, a *Args, n *State, k uint8)) func(*Settings, *State, *Args, *State) {
	return func(w *Settings, s *State, a *Args, n *State) {
		for k := range w.ranks() {
			set(s, a, n, k)
		}
	}
}

func grantPages() []Update {
	return []Update{
		{`own' = [p \in Page |-> IF p \in S THEN l ELSE own[p]]`, overPages(func(_ *Settings, _ *State, a *Args, n *State, p uint8) { n.Own[p] = a.L })},
		{`gen' = [p \in Page |-> IF p \in S THEN gen[p] + 1 ELSE gen[p]]`, overPages(func(_ *Settings, s *State, _ *Args, n *State, p uint8) {
			n.Gen[p] = s.Gen[p] + 1
		})},
		{`tagl' = [p \in Page, k \in Rank |-> IF p \in S /\ VoidTags THEN 0 ELSE tagl[p, k]]`, overPages(func(w *Settings, _ *State, _ *Args, n *State, p uint8) {
			if w.VoidTags {
				n.Tagl[p] = [MaxRanks]uint8{}
			}
		})},
		{`app' = [p \in Page |-> app[p] /\ p \notin S]`, overPages(func(_ *Settings, _ *State, _ *Args, n *State, p uint8) { n.App[p] = false })},
		{`gpage' = [x \in Lease, p \in Page |-> IF x = l /\ p \in S THEN gen[p] + 1 ELSE gpage[x, p]]`, overPages(func(_ *Settings, s *State, a *Args, n *State, p uint8) {
			n.Gpage[a.L][p] = s.Gen[p] + 1
		})},
	}
}

func grantPlan() []Update {
	return []Update{
		{`owes' = [x \in Lease, k \in Rank |-> IF x = l THEN k \in K ELSE owes[x, k]]`, overRanks(func(_ *State, a *Args, n *State, k uint8) {
			n.Owes[a.L][k] = in(a.Ks, k)
		})},
		{`hold' = [x \in Lease, k \in Rank |-> IF x = l THEN k \in K ELSE hold[x, k]]`, overRanks(func(_ *State, a *Args, n *State, k uint8) {
			n.Hold[a.L][k] = in(a.Ks, k)
		})},
		{`gep' = [x \in Lease, k \in Rank |-> IF x = l THEN ep[k] ELSE gep[x, k]]`, overRanks(func(s *State, a *Args, n *State, k uint8) { n.Gep[a.L][k] = s.Ep[k] })},
		{`ginc' = [x \in Lease, k \in Rank |-> IF x = l THEN linc[k] ELSE ginc[x, k]]`, overRanks(func(s *State, a *Args, n *State, k uint8) { n.Ginc[a.L][k] = s.Linc[k] })},
		{`dof' = [dof EXCEPT ![l] = dinc]`, func(w *Settings, s *State, a *Args, n *State) { n.Dof[a.L] = s.Dinc }},
		{`tof' = [tof EXCEPT ![l] = t]`, func(w *Settings, s *State, a *Args, n *State) { n.Tof[a.L] = a.T }},
		{`ten' = [ten EXCEPT ![l] = n]`, func(w *Settings, s *State, a *Args, n *State) { n.Ten[a.L] = a.N }},
		{`dst' = [dst EXCEPT ![l] = "filling"]`, func(w *Settings, s *State, a *Args, n *State) { n.Dst[a.L] = DstFilling }},
		{`nextL' = l + 1`, func(w *Settings, s *State, a *Args, n *State) { n.NextL = a.L + 1 }},
	}
}

func actAbort() Action {
	return Action{
		Name: "Abort", Params: params("l", "Lease"),
		Guards: []Guard{
			{`dst[l] \in {"filling", "verified"}`, func(w *Settings, s *State, a *Args) bool {
				return s.Dst[a.L] == DstFilling || s.Dst[a.L] == DstVerified
			}},
		},
		Updates: []Update{
			{`dst' = [dst EXCEPT ![l] = IF DeferRelease THEN "revoking" ELSE "failed"]`, func(w *Settings, s *State, a *Args, n *State) {
				if n.Dst[a.L] = DstFailed; w.DeferRelease {
					n.Dst[a.L] = DstRevoking
				}
			}},
			{`own' = [p \in Page |-> IF own[p] = l /\ ~DeferRelease THEN 0 ELSE own[p]]`, func(w *Settings, s *State, a *Args, n *State) {
				if !w.DeferRelease {
					free(w, s, a.L, n)
				}
			}},
		},
	}
}

// free takes the pages of l from it.
func free(w *Settings, s *State, l uint8, n *State) {
	for p := range w.pages() {
		if s.Own[p] == l {
			n.Own[p] = 0
		}
	}
}
