package model

// The actions of a decode rank on pages that are full: kernels, appending, sharing, release.
func readActions() []Action {
	return []Action{actRead(), actBadRead(), actReadEnd(), actAppend(), actPublish(), actUnpublish(), actShare(), actRelease(), actQuarantineEnd()}
}

func guardDst(text string, is uint8) Guard {
	return Guard{text, func(w *Settings, s *State, a *Args) bool { return s.Dst[a.L] == is }}
}

func actRead() Action {
	return Action{
		Name: "Read", Params: params("t", "Transfer", "l", "Lease", "p", "Page", "x", "Lease"),
		Guards: []Guard{
			{`tof[l] = t`, func(w *Settings, s *State, a *Args) bool { return s.Tof[a.L] == a.T }},
			{`lead[t] = "run"`, func(w *Settings, s *State, a *Args) bool { return s.Lead[a.T] == LeadRun }},
			{`AllReady(t)`, func(w *Settings, s *State, a *Args) bool { return allReady(w, s, a.T) }},
			guardDst(`dst[l] = "ready"`, DstReady),
			{`Fills(l, p, x)`, func(w *Settings, s *State, a *Args) bool { return fills(s, a.L, a.P, a.X) }},
			{`TagBefore => TagOk(p, x)`, func(w *Settings, s *State, a *Args) bool { return !w.TagBefore || tagOk(w, s, a.P, a.X) }},
		},
		Updates: []Update{
			{`krn' = krn \cup {<<l, p, gen[p], x>>}`, func(w *Settings, s *State, a *Args, n *State) { n.Krn.add(kernelAt(a.L, a.P, s.Gen[a.P], a.X)) }},
		},
	}
}

func actBadRead() Action {
	return Action{
		Name: "BadRead", Params: params("l", "Lease", "p", "Page", "x", "Lease"),
		Guards: []Guard{
			guardDst(`dst[l] = "ready"`, DstReady),
			{`Fills(l, p, x)`, func(w *Settings, s *State, a *Args) bool { return fills(s, a.L, a.P, a.X) }},
			{`TagBefore /\ ~TagOk(p, x)`, func(w *Settings, s *State, a *Args) bool { return w.TagBefore && !tagOk(w, s, a.P, a.X) }},
		},
		Updates: []Update{
			{`dst' = [y \in Lease |-> IF ~Hit(y, l, p, x) THEN dst[y] ELSE IF dst[y] = "filling" THEN "revoking" ` +
				`ELSE IF dst[y] \in {"verified", "ready"} THEN "bad" ELSE dst[y]]`, spoilDst},
			{`qep' = [y \in Lease, k \in Rank |-> IF Hit(y, l, p, x) THEN ep[k] ELSE qep[y, k]]`, spoilQep},
			{`pubs' = {<<q, g, y>> \in pubs : ~(q = p /\ y = x)}`, spoilPubs},
		},
	}
}

// The updates of Spoil(l, p, x).
func spoilDst(w *Settings, s *State, a *Args, n *State) {
	for y := uint8(1); y <= w.NL; y++ {
		if !hit(s, y, a.L, a.P, a.X) {
			continue
		}
		switch s.Dst[y] {
		case DstFilling:
			n.Dst[y] = DstRevoking
		case DstVerified, DstReady:
			n.Dst[y] = DstBad
		}
	}
}

func spoilQep(w *Settings, s *State, a *Args, n *State) {
	for y := uint8(1); y <= w.NL; y++ {
		for k := range w.ranks() {
			if hit(s, y, a.L, a.P, a.X) {
				n.Qep[y][k] = s.Ep[k]
			}
		}
	}
}

func spoilPubs(w *Settings, _ *State, a *Args, n *State) {
	for g := range w.gens() {
		n.Pubs.drop(publishedAt(a.P, g, a.X))
	}
}

func actReadEnd() Action {
	return Action{
		Name: "ReadEnd", Params: params("l", "Lease", "p", "Page", "g", "Gen", "x", "Lease"),
		Guards: []Guard{
			{`<<l, p, g, x>> \in krn`, func(w *Settings, s *State, a *Args) bool { return s.Krn.has(kernelAt(a.L, a.P, a.G, a.X)) }},
		},
		Updates: []Update{
			{`krn' = krn \ {<<l, p, g, x>>}`, func(w *Settings, s *State, a *Args, n *State) { n.Krn.drop(kernelAt(a.L, a.P, a.G, a.X)) }},
			{`IF TagAfter => TagOk(p, x) THEN /\ tok' = tok \cup {<<l, x, mem[p, k]>> : k \in {r \in Rank : Owed(x, r, p)}} /\ UNCHANGED <<dst, qep, pubs>> ` +
				`ELSE /\ UNCHANGED tok /\ Spoil(l, p, x)`, endRead},
		},
	}
}

func endRead(w *Settings, s *State, a *Args, n *State) {
	if !w.TagAfter || tagOk(w, s, a.P, a.X) {
		for r := range w.ranks() {
			if owed(w, s, a.X, r, a.P) {
				n.Tok.add(tokenAt(a.L, a.X, s.Mem[a.P][r]))
			}
		}
		return
	}
	spoilDst(w, s, a, n)
	spoilQep(w, s, a, n)
	spoilPubs(w, s, a, n)
}

func actAppend() Action {
	return Action{
		Name: "Append", Params: params("l", "Lease", "p", "Page"),
		Guards: []Guard{
			{`Appending`, func(w *Settings, s *State, a *Args) bool { return w.Appending }},
			guardDst(`dst[l] = "ready"`, DstReady),
			{`own[p] = l`, func(w *Settings, s *State, a *Args) bool { return s.Own[a.P] == a.L }},
			{`p \notin Aux`, func(w *Settings, s *State, a *Args) bool { return !w.aux(a.P) }},
			{`CopyFirst => (<<p, gen[p], l>> \notin pubs /\ Free(p))`, func(w *Settings, s *State, a *Args) bool {
				return !w.CopyFirst || !s.Pubs.has(publishedAt(a.P, s.Gen[a.P], a.L)) && free(w, s, a.P)
			}},
		},
		Updates: []Update{
			{`app' = [app EXCEPT ![p] = TRUE]`, func(w *Settings, s *State, a *Args, n *State) { n.App[a.P] = true }},
		},
	}
}

func actPublish() Action {
	return Action{
		Name: "Publish", Params: params("l", "Lease", "p", "Page"),
		Guards: []Guard{
			{`Publishing`, func(w *Settings, s *State, a *Args) bool { return w.Publishing }},
			guardDst(`dst[l] = "ready"`, DstReady),
			{`own[p] = l`, func(w *Settings, s *State, a *Args) bool { return s.Own[a.P] == a.L }},
			{`p \notin Aux`, func(w *Settings, s *State, a *Args) bool { return !w.aux(a.P) }},
			{`CopyFirst => ~app[p]`, func(w *Settings, s *State, a *Args) bool { return !w.CopyFirst || !s.App[a.P] }},
		},
		Updates: []Update{
			{`pubs' = pubs \cup {<<p, gen[p], l>>}`, func(w *Settings, s *State, a *Args, n *State) { n.Pubs.add(publishedAt(a.P, s.Gen[a.P], a.L)) }},
		},
	}
}

func guardPublished() Guard {
	return Guard{`<<p, g, x>> \in pubs`, func(w *Settings, s *State, a *Args) bool { return s.Pubs.has(publishedAt(a.P, a.G, a.X)) }}
}

func actUnpublish() Action {
	return Action{
		Name: "Unpublish", Params: params("p", "Page", "g", "Gen", "x", "Lease"),
		Guards: []Guard{guardPublished()},
		Updates: []Update{
			{`pubs' = pubs \ {<<p, g, x>>}`, func(w *Settings, s *State, a *Args, n *State) { n.Pubs.drop(publishedAt(a.P, a.G, a.X)) }},
		},
	}
}

func actShare() Action {
	return Action{
		Name: "Share", Params: params("l", "Lease", "p", "Page", "g", "Gen", "x", "Lease"),
		Guards: []Guard{
			guardDst(`dst[l] = "filling"`, DstFilling),
			{`x # l`, func(w *Settings, s *State, a *Args) bool { return a.X != a.L }},
			guardPublished(),
			{`GenCheck => gen[p] = g`, func(w *Settings, s *State, a *Args) bool { return !w.GenCheck || s.Gen[a.P] == a.G }},
			{`SameTenant => ten[x] = ten[l]`, func(w *Settings, s *State, a *Args) bool { return !w.SameTenant || s.Ten[a.X] == s.Ten[a.L] }},
			{`SameAdapter => ada[x] = ada[l]`, func(w *Settings, s *State, a *Args) bool { return !w.SameAdapter || s.Ada[a.X] == s.Ada[a.L] }},
			{`SameContent => pre[x] = pre[l]`, func(w *Settings, s *State, a *Args) bool { return !w.SameContent || s.Pre[a.X] == s.Pre[a.L] }},
		},
		Updates: []Update{
			{`shr' = shr \cup {<<l, p, x>>}`, func(w *Settings, s *State, a *Args, n *State) { n.Shr.add(sharedAt(a.L, a.P, a.X)) }},
		},
	}
}

// toFree is what release and the end of a quarantine do to pages and shares.
func toFree() []Update {
	return []Update{
		{`own' = [p \in Page |-> IF own[p] = l THEN 0 ELSE own[p]]`, func(w *Settings, s *State, a *Args, n *State) { freePages(w, s, a.L, n) }},
		{`shr' = {<<y, p, x>> \in shr : y # l}`, func(w *Settings, s *State, a *Args, n *State) { freeShares(w, a.L, n) }},
	}
}

func actRelease() Action {
	return Action{
		Name: "Release", Params: params("l", "Lease"),
		Guards: []Guard{
			{`dst[l] \in {"revoking", "ready"}`, func(w *Settings, s *State, a *Args) bool { return s.Dst[a.L] == DstRevoking || s.Dst[a.L] == DstReady }},
			{`IF AllHolds THEN \A k \in Rank : ~hold[l, k] ELSE \E k \in Rank : owes[l, k] /\ ~hold[l, k]`, func(w *Settings, s *State, a *Args) bool {
				all, some := true, false
				for k := range w.ranks() {
					all = all && !s.Hold[a.L][k]
					some = some || s.Owes[a.L][k] && !s.Hold[a.L][k]
				}
				return w.AllHolds && all || !w.AllHolds && some
			}},
			{`LocalHold => NoKernel(l)`, func(w *Settings, s *State, a *Args) bool { return !w.LocalHold || noKernel(w, s, a.L) }},
		},
		Updates: append(toFree(), Update{`dst' = [dst EXCEPT ![l] = IF dst[l] = "ready" THEN "done" ELSE "failed"]`, func(w *Settings, s *State, a *Args, n *State) {
			if n.Dst[a.L] = DstFailed; s.Dst[a.L] == DstReady {
				n.Dst[a.L] = DstDone
			}
		}}),
	}
}

func actQuarantineEnd() Action {
	return Action{
		Name: "QuarantineEnd", Params: params("l", "Lease"),
		Guards: []Guard{
			guardDst(`dst[l] = "bad"`, DstBad),
			{`\A k \in Rank : owes[l, k] => (~hold[l, k] /\ qep[l, k] < ep[k] /\ ~fencing[k])`, func(w *Settings, s *State, a *Args) bool {
				for k := range w.ranks() {
					if s.Owes[a.L][k] && (s.Hold[a.L][k] || s.Qep[a.L][k] >= s.Ep[k] || s.Fencing[k]) {
						return false
					}
				}
				return true
			}},
			{`\A k \in Rank : \A p \in Page : \A x \in Lease : (<<l, p, x>> \in shr /\ owes[x, k]) => (qep[l, k] < ep[k] /\ ~fencing[k])`, fillersFenced},
			{`LocalHold => NoKernel(l)`, func(w *Settings, s *State, a *Args) bool { return !w.LocalHold || noKernel(w, s, a.L) }},
		},
		Updates: append(toFree(), Update{`dst' = [dst EXCEPT ![l] = "failed"]`, func(w *Settings, s *State, a *Args, n *State) { n.Dst[a.L] = DstFailed }}),
	}
}

// fillersFenced says that the links of those who filled what l shares have been fenced since.
func fillersFenced(w *Settings, s *State, a *Args) bool {
	return everyShare(w, s, func(l, _, x uint8) bool {
		for k := range w.ranks() {
			if l == a.L && s.Owes[x][k] && (s.Qep[l][k] >= s.Ep[k] || s.Fencing[k]) {
				return false
			}
		}
		return true
	})
}
