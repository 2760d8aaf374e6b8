package model

// The actions of a decode rank on its leases: granted, aborted, verified, released.
func leaseActions() []Action { return []Action{actGrant(), actGrow(), actAbort()} }

func actGrant() Action {
	return Action{
		Name: "Grant", Params: params("t", "Transfer", "n", "Tenant", "a", "Adapter", "f", "Prefix", "l", "Lease", "S", "SUBSET Page", "K", "SUBSET Rank"),
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
			{`PlanCovers => \A p \in Page : p \in S => \E k \in Rank : k \in K /\ Has(k, p)`, func(w *Settings, s *State, a *Args) bool {
				return !w.PlanCovers || covers(w, a)
			}},
			{`\A p \in Page : p \in S => own[p] = 0`, func(w *Settings, s *State, a *Args) bool {
				for p := range w.pages() {
					if in(a.S, p) && s.Own[p] != 0 {
						return false
					}
				}
				return true
			}},
			{`\A p \in Page : p \in S => Free(p)`, func(w *Settings, s *State, a *Args) bool {
				for p := range w.pages() {
					if in(a.S, p) && !free(w, s, p) {
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

// covers says that each page of S has a rank of K with a part of it.
func covers(w *Settings, a *Args) bool {
	for p := range w.pages() {
		some := !in(a.S, p)
		for k := range w.ranks() {
			some = some || in(a.Ks, k) && w.has(k, p)
		}
		if !some {
			return false
		}
	}
	return true
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
		{`ada' = [ada EXCEPT ![l] = a]`, func(w *Settings, s *State, a *Args, n *State) { n.Ada[a.L] = a.A }},
		{`pre' = [pre EXCEPT ![l] = f]`, func(w *Settings, s *State, a *Args, n *State) { n.Pre[a.L] = a.F }},
		{`dst' = [dst EXCEPT ![l] = "filling"]`, func(w *Settings, s *State, a *Args, n *State) { n.Dst[a.L] = DstFilling }},
		{`nextL' = l + 1`, func(w *Settings, s *State, a *Args, n *State) { n.NextL = a.L + 1 }},
	}
}

func actGrow() Action {
	return Action{
		Name: "Grow", Params: params("l", "Lease", "x", "Lease", "p", "Page"),
		Guards: []Guard{
			{`Growing`, func(w *Settings, s *State, a *Args) bool { return w.Growing }},
			{`x = nextL`, func(w *Settings, s *State, a *Args) bool { return a.X == s.NextL }},
			{`x + 1 \in Nat`, func(w *Settings, s *State, a *Args) bool { return a.X+1 <= w.NL+1 }},
			guardDst(`dst[l] = "ready"`, DstReady),
			{`own[p] = 0`, func(w *Settings, s *State, a *Args) bool { return s.Own[a.P] == 0 }},
			{`Free(p)`, func(w *Settings, s *State, a *Args) bool { return free(w, s, a.P) }},
			{`p \notin Aux`, func(w *Settings, s *State, a *Args) bool { return !w.aux(a.P) }},
		},
		Updates: []Update{
			{`own' = [own EXCEPT ![p] = x]`, func(w *Settings, s *State, a *Args, n *State) { n.Own[a.P] = a.X }},
			{`gen' = [gen EXCEPT ![p] = gen[p] + 1]`, func(w *Settings, s *State, a *Args, n *State) { n.Gen[a.P] = s.Gen[a.P] + 1 }},
			{`tagl' = [q \in Page, k \in Rank |-> IF q = p /\ VoidTags THEN 0 ELSE tagl[q, k]]`, func(w *Settings, s *State, a *Args, n *State) {
				if w.VoidTags {
					n.Tagl[a.P] = [MaxRanks]uint8{}
				}
			}},
			{`app' = [app EXCEPT ![p] = TRUE]`, func(w *Settings, s *State, a *Args, n *State) { n.App[a.P] = true }},
			{`gpage' = [y \in Lease, q \in Page |-> IF y = x /\ q = p THEN gen[p] + 1 ELSE gpage[y, q]]`, func(w *Settings, s *State, a *Args, n *State) {
				n.Gpage[a.X][a.P] = s.Gen[a.P] + 1
			}},
			{`dof' = [dof EXCEPT ![x] = dinc]`, func(w *Settings, s *State, a *Args, n *State) { n.Dof[a.X] = s.Dinc }},
			{`tof' = [y \in Lease |-> IF y = x THEN tof[l] ELSE tof[y]]`, func(w *Settings, s *State, a *Args, n *State) { n.Tof[a.X] = s.Tof[a.L] }},
			{`ten' = [y \in Lease |-> IF y = x THEN ten[l] ELSE ten[y]]`, func(w *Settings, s *State, a *Args, n *State) { n.Ten[a.X] = s.Ten[a.L] }},
			{`ada' = [y \in Lease |-> IF y = x THEN ada[l] ELSE ada[y]]`, func(w *Settings, s *State, a *Args, n *State) { n.Ada[a.X] = s.Ada[a.L] }},
			{`pre' = [y \in Lease |-> IF y = x THEN pre[l] ELSE pre[y]]`, func(w *Settings, s *State, a *Args, n *State) { n.Pre[a.X] = s.Pre[a.L] }},
			{`dst' = [dst EXCEPT ![x] = "ready"]`, func(w *Settings, s *State, a *Args, n *State) { n.Dst[a.X] = DstReady }},
			{`nextL' = x + 1`, func(w *Settings, s *State, a *Args, n *State) { n.NextL = a.X + 1 }},
		},
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
					freePages(w, s, a.L, n)
				}
			}},
		},
	}
}
