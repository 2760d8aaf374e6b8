package model

// The actions of a prefill rank on source pages and on writes from them.
func sourceActions() []Action {
	return []Action{actTakeSource(), actCompute(), actSeal(), actGiveBack(), actPost(), actNotice()}
}

func sourceParams() []Param { return params("l", "Lease", "k", "Rank", "q", "SPage") }

func guardOwnsSource() Guard {
	return Guard{`sown[k, q] = l`, func(w *Settings, s *State, a *Args) bool { return s.Sown[a.K][a.Q] == a.L }}
}

func guardSst(text string, is uint8) Guard {
	return Guard{text, func(w *Settings, s *State, a *Args) bool { return s.Sst[a.K][a.Q] == is }}
}

func setSst(text string, to uint8) Update {
	return Update{text, func(w *Settings, s *State, a *Args, n *State) { n.Sst[a.K][a.Q] = to }}
}

func actTakeSource() Action {
	return Action{
		Name: "TakeSource", Params: sourceParams(),
		Guards: []Guard{
			guardPst(`pst[l, k] = "writing"`, PstWriting),
			{`pview[l, k] # "short"`, func(w *Settings, s *State, a *Args) bool { return s.Pview[a.L][a.K] != ViewShort }},
			{`sown[k, q] = 0`, func(w *Settings, s *State, a *Args) bool { return s.Sown[a.K][a.Q] == 0 }},
		},
		Updates: []Update{
			{`sown' = [sown EXCEPT ![k, q] = l]`, func(w *Settings, s *State, a *Args, n *State) { n.Sown[a.K][a.Q] = a.L }},
			setSst(`sst' = [sst EXCEPT ![k, q] = "raw"]`, SrcRaw),
		},
	}
}

func actCompute() Action {
	return Action{
		Name: "Compute", Params: sourceParams(),
		Guards: []Guard{guardOwnsSource(), guardSst(`sst[k, q] = "raw"`, SrcRaw)},
		Updates: []Update{
			{`sdat' = [sdat EXCEPT ![k, q] = IF pview[l, k] = "same" THEN l ELSE 0]`, func(w *Settings, s *State, a *Args, n *State) {
				if n.Sdat[a.K][a.Q] = 0; s.Pview[a.L][a.K] == ViewSame {
					n.Sdat[a.K][a.Q] = a.L
				}
			}},
			setSst(`sst' = [sst EXCEPT ![k, q] = "computed"]`, SrcComputed),
		},
	}
}

func actSeal() Action {
	return Action{
		Name: "Seal", Params: sourceParams(),
		Guards:  []Guard{guardOwnsSource(), guardSst(`sst[k, q] = "computed"`, SrcComputed)},
		Updates: []Update{setSst(`sst' = [sst EXCEPT ![k, q] = "sealed"]`, SrcSealed)},
	}
}

func actGiveBack() Action {
	return Action{
		Name: "GiveBack", Params: sourceParams(),
		Guards: []Guard{
			guardOwnsSource(),
			{`SrcHold => \A x \in Lease : \A p \in Page : \A c \in Chan : ~(<<x, k, p, c, pinc[k]>> \in queued /\ src[x, k, p, c] = q)`, func(w *Settings, s *State, a *Args) bool {
				return !w.SrcHold || everyWrite(w, func(x, k, p, c, i uint8) bool {
					return k != a.K || i != s.Pinc[k] || !s.Queued.has(writeAt(x, k, p, c, i)) || s.Src[x][k][p][c] != a.Q
				})
			}},
		},
		Updates: []Update{
			{`sown' = [sown EXCEPT ![k, q] = 0]`, func(w *Settings, s *State, a *Args, n *State) { n.Sown[a.K][a.Q] = 0 }},
		},
	}
}

// own is the write of the action's parameters from the present incarnation of its rank.
func own(s *State, a *Args) uint { return writeAt(a.L, a.K, a.P, a.C, s.Pinc[a.K]) }

func actPost() Action {
	return Action{
		Name: "Post", Params: params("l", "Lease", "k", "Rank", "p", "Page", "c", "Chan", "q", "SPage"),
		Guards: []Guard{
			guardPst(`pst[l, k] = "writing"`, PstWriting),
			guardOwnsSource(),
			{`SealedOnly => sst[k, q] = "sealed"`, func(w *Settings, s *State, a *Args) bool { return !w.SealedOnly || s.Sst[a.K][a.Q] == SrcSealed }},
			{`Owed(l, k, p) \/ (~OneWriter /\ p \in Aux /\ gpage[l, p] # 0)`, func(w *Settings, s *State, a *Args) bool {
				return owed(w, s, a.L, a.K, a.P) || !w.OneWriter && w.aux(a.P) && s.Gpage[a.L][a.P] != 0
			}},
			{`<<l, k, c, pinc[k]>> \notin nsent`, func(w *Settings, s *State, a *Args) bool { return !s.Nsent.has(noticeAt(a.L, a.K, a.C, s.Pinc[a.K])) }},
			{`<<l, k, p, c, pinc[k]>> \notin sent`, func(w *Settings, s *State, a *Args) bool { return !s.Sent.has(own(s, a)) }},
			{`\A d \in Chan : <<l, k, p, d, pinc[k]>> \in sent => (~RetryDrained /\ <<l, k, p, d, pinc[k]>> \in lost)`, func(w *Settings, s *State, a *Args) bool {
				for d := range w.chans() {
					if at := writeAt(a.L, a.K, a.P, d, s.Pinc[a.K]); s.Sent.has(at) && (w.RetryDrained || !s.Lost.has(at)) {
						return false
					}
				}
				return true
			}},
		},
		Updates: []Update{
			{`src' = [src EXCEPT ![l, k, p, c] = q]`, func(w *Settings, s *State, a *Args, n *State) { n.Src[a.L][a.K][a.P][a.C] = a.Q }},
			{`sent' = sent \cup {<<l, k, p, c, pinc[k]>>}`, func(w *Settings, s *State, a *Args, n *State) { n.Sent.add(own(s, a)) }},
			{`queued' = queued \cup {<<l, k, p, c, pinc[k]>>}`, func(w *Settings, s *State, a *Args, n *State) { n.Queued.add(own(s, a)) }},
		},
	}
}

func actNotice() Action {
	return Action{
		Name: "Notice", Params: params("l", "Lease", "k", "Rank", "c", "Chan"),
		Guards: []Guard{
			{`pst[l, k] \in {"writing", "closing"}`, func(w *Settings, s *State, a *Args) bool {
				return s.Pst[a.L][a.K] == PstWriting || s.Pst[a.L][a.K] == PstClosing
			}},
			{`pst[l, k] = "writing" => Posted(l, k)`, func(w *Settings, s *State, a *Args) bool {
				return s.Pst[a.L][a.K] != PstWriting || posted(w, s, a.L, a.K)
			}},
			{`\E p \in Page : <<l, k, p, c, pinc[k]>> \in sent`, func(w *Settings, s *State, a *Args) bool {
				for p := range w.pages() {
					if s.Sent.has(writeAt(a.L, a.K, p, a.C, s.Pinc[a.K])) {
						return true
					}
				}
				return false
			}},
			{`<<l, k, c, pinc[k]>> \notin nsent`, func(w *Settings, s *State, a *Args) bool { return !s.Nsent.has(noticeAt(a.L, a.K, a.C, s.Pinc[a.K])) }},
		},
		Updates: []Update{
			{`nsent' = nsent \cup {<<l, k, c, pinc[k]>>}`, func(w *Settings, s *State, a *Args, n *State) { n.Nsent.add(noticeAt(a.L, a.K, a.C, s.Pinc[a.K])) }},
		},
	}
}
