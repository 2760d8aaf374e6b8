package model

// The actions by which receipts and notices reach a decode rank and count.
func receiptActions() []Action {
	return []Action{actRecvComplete(), actRecvReceipt(), actNoticeIn(), actTake(), actGiveUp(), actVerify(), actBadVerify(), actReady()}
}

func isReceipt(c uint8) bool { return c == KindAck || c == KindFailed || c == KindGone }

func actRecvComplete() Action {
	return Action{
		Name: "RecvComplete", Params: params("c", "Kind", "x", "Lease", "l", "Lease", "k", "Rank", "i", "Inc"),
		Guards: []Guard{
			{`c \in {"complete", "misnamed"}`, func(w *Settings, s *State, a *Args) bool { return a.C == KindComplete || a.C == KindMisnamed }},
			{`Arrives(<<c, x, k, i>> \in ans)`, func(w *Settings, s *State, a *Args) bool { return arrives(w, s.Ans.has(receiptAt(a.C, a.X, a.K, a.I))) }},
			{`Believed(x, l, k, i)`, func(w *Settings, s *State, a *Args) bool { return believed(w, s, a.X, a.L, a.K, a.I) }},
		},
		Updates: []Update{
			{`rec' = rec \cup {<<IF CompleteNames THEN c ELSE "complete", l, k, i>>}`, func(w *Settings, s *State, a *Args, n *State) {
				c := KindComplete
				if w.CompleteNames {
					c = a.C
				}
				n.Rec.add(receiptAt(c, a.L, a.K, a.I))
			}},
		},
	}
}

func actRecvReceipt() Action {
	return Action{
		Name: "RecvReceipt", Params: params("c", "Kind", "x", "Lease", "l", "Lease", "k", "Rank", "i", "Inc"),
		Guards: []Guard{
			{`c \in {"ack", "failed", "gone"}`, func(w *Settings, s *State, a *Args) bool { return isReceipt(a.C) }},
			{`Arrives(<<c, x, k, i>> \in ans)`, func(w *Settings, s *State, a *Args) bool { return arrives(w, s.Ans.has(receiptAt(a.C, a.X, a.K, a.I))) }},
			{`Believed(x, l, k, i)`, func(w *Settings, s *State, a *Args) bool { return believed(w, s, a.X, a.L, a.K, a.I) }},
		},
		Updates: []Update{
			{`rec' = rec \cup {<<c, l, k, i>>}`, func(w *Settings, s *State, a *Args, n *State) { n.Rec.add(receiptAt(a.C, a.L, a.K, a.I)) }},
		},
	}
}

func actNoticeIn() Action {
	return Action{
		Name: "NoticeIn", Params: params("l", "Lease", "k", "Rank", "c", "Chan", "i", "Inc"),
		Guards: []Guard{
			{`Arrives(<<l, k, c, i>> \in nsent)`, func(w *Settings, s *State, a *Args) bool {
				return arrives(w, s.Nsent.has(noticeAt(a.L, a.K, a.C, a.I)))
			}},
			{`<<l, k, c, i>> \notin nin`, func(w *Settings, s *State, a *Args) bool { return !s.Nin.has(noticeAt(a.L, a.K, a.C, a.I)) }},
			{`hold[l, k]`, func(w *Settings, s *State, a *Args) bool { return s.Hold[a.L][a.K] }},
			{`Behind(l, k, c, i)`, func(w *Settings, s *State, a *Args) bool { return behind(w, s, a.L, a.K, a.C, a.I) }},
		},
		Updates: []Update{
			{`nin' = nin \cup {<<l, k, c, i>>}`, func(w *Settings, s *State, a *Args, n *State) { n.Nin.add(noticeAt(a.L, a.K, a.C, a.I)) }},
		},
	}
}

func actTake() Action {
	return Action{
		Name: "Take", Params: params("c", "Kind", "l", "Lease", "k", "Rank", "i", "Inc"),
		Guards: []Guard{
			{`<<c, l, k, i>> \in rec`, func(w *Settings, s *State, a *Args) bool { return s.Rec.has(receiptAt(a.C, a.L, a.K, a.I)) }},
			{`hold[l, k]`, func(w *Settings, s *State, a *Args) bool { return s.Hold[a.L][a.K] }},
			{`(IF c = "complete" THEN CompleteVisible ELSE TakeDrained) => DecodeHalf(c, l, k, i)`, func(w *Settings, s *State, a *Args) bool {
				needed := w.TakeDrained
				if a.C == KindComplete {
					needed = w.CompleteVisible
				}
				return !needed || decodeHalf(w, s, a.C, a.L, a.K, a.I)
			}},
		},
		Updates: []Update{
			{`hold' = [hold EXCEPT ![l, k] = FALSE]`, func(w *Settings, s *State, a *Args, n *State) { n.Hold[a.L][a.K] = false }},
			{`got' = [got EXCEPT ![l, k] = (c = "complete" /\ dst[l] = "filling")]`, func(w *Settings, s *State, a *Args, n *State) {
				n.Got[a.L][a.K] = a.C == KindComplete && s.Dst[a.L] == DstFilling
			}},
			{`dst' = [dst EXCEPT ![l] = IF c # "complete" /\ dst[l] = "filling" THEN "revoking" ELSE dst[l]]`, func(w *Settings, s *State, a *Args, n *State) {
				if a.C != KindComplete && s.Dst[a.L] == DstFilling {
					n.Dst[a.L] = DstRevoking
				}
			}},
			{`rec' = {<<d, x, r, j>> \in rec : ~(x = l /\ r = k)}`, func(w *Settings, s *State, a *Args, n *State) {
				for d := range uint8(nKind) {
					for j := range w.incs() {
						n.Rec.drop(receiptAt(d, a.L, a.K, j))
					}
				}
			}},
		},
	}
}

func actGiveUp() Action {
	return Action{
		Name: "GiveUp", Params: params("l", "Lease", "k", "Rank"),
		Guards: []Guard{
			{`~FenceFirst`, func(w *Settings, s *State, a *Args) bool { return !w.FenceFirst }},
			{`hold[l, k]`, func(w *Settings, s *State, a *Args) bool { return s.Hold[a.L][a.K] }},
			{`dst[l] = "revoking"`, func(w *Settings, s *State, a *Args) bool { return s.Dst[a.L] == DstRevoking }},
		},
		Updates: []Update{
			{`hold' = [hold EXCEPT ![l, k] = FALSE]`, func(w *Settings, s *State, a *Args, n *State) { n.Hold[a.L][a.K] = false }},
		},
	}
}

func actVerify() Action {
	return Action{
		Name: "Verify", Params: params("l", "Lease"),
		Guards: []Guard{
			{`dst[l] = "filling"`, func(w *Settings, s *State, a *Args) bool { return s.Dst[a.L] == DstFilling }},
			{`AllGot(l)`, func(w *Settings, s *State, a *Args) bool { return allGot(w, s, a.L) }},
			{`VerifyGood(l)`, func(w *Settings, s *State, a *Args) bool { return verifyGood(w, s, a.L) }},
		},
		Updates: []Update{
			{`dst' = [dst EXCEPT ![l] = "verified"]`, func(w *Settings, s *State, a *Args, n *State) { n.Dst[a.L] = DstVerified }},
		},
	}
}

func actBadVerify() Action {
	return Action{
		Name: "BadVerify", Params: params("l", "Lease"),
		Guards: []Guard{
			{`dst[l] = "filling"`, func(w *Settings, s *State, a *Args) bool { return s.Dst[a.L] == DstFilling }},
			{`AllGot(l)`, func(w *Settings, s *State, a *Args) bool { return allGot(w, s, a.L) }},
			{`~VerifyGood(l)`, func(w *Settings, s *State, a *Args) bool { return !verifyGood(w, s, a.L) }},
		},
		Updates: []Update{
			{`dst' = [dst EXCEPT ![l] = "bad"]`, func(w *Settings, s *State, a *Args, n *State) { n.Dst[a.L] = DstBad }},
			{`qep' = [x \in Lease, k \in Rank |-> IF x = l THEN ep[k] ELSE qep[x, k]]`, func(w *Settings, s *State, a *Args, n *State) {
				for k := range w.ranks() {
					n.Qep[a.L][k] = s.Ep[k]
				}
			}},
		},
	}
}

func actReady() Action {
	return Action{
		Name: "Ready", Params: params("l", "Lease"),
		Guards: []Guard{
			{`dst[l] = "verified"`, func(w *Settings, s *State, a *Args) bool { return s.Dst[a.L] == DstVerified }},
		},
		Updates: []Update{
			{`dst' = [dst EXCEPT ![l] = "ready"]`, func(w *Settings, s *State, a *Args, n *State) { n.Dst[a.L] = DstReady }},
		},
	}
}
