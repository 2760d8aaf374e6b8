package model

// stepProperties are those of pairs of states.
func stepProperties() []Property {
	releases := func(w *Settings, s, n *State) bool { return holdEndsByProof(w, s, n) && pagesEndByProof(w, s, n) }
	return []Property{
		{Name: "StepsHold", Step: func(w *Settings, s, n *State) bool {
			return ackMeansDrained(w, s, n) && releases(w, s, n) && failedIsFinal(w, s, n) && fresh(w, s, n)
		}},
		{Name: "AckMeansDrainedS", Step: ackMeansDrained},
		{Name: "ReleaseNeedsProofS", Step: releases},
		{Name: "FailedIsFinalS", Step: failedIsFinal},
		{Name: "TagsAtStartS", Step: tagsAtStart},
		{Name: "FreshS", Step: fresh},
	}
}

// ackMeansDrained is I9: a hold that ends while no fence and no restart does leaves nothing pending, and nothing is posted after.
func ackMeansDrained(w *Settings, s, n *State) bool {
	quiet := n.Fencing == s.Fencing && n.Dinc == s.Dinc
	return everyWrite(w, func(l, k, p, c, i uint8) bool {
		if quiet && s.Hold[l][k] && !n.Hold[l][k] && pending(s, l, k, p, c, i) {
			return false
		}
		at := writeAt(l, k, p, c, i)
		return !(s.Owes[l][k] && !s.Hold[l][k] && current(s, l, k) && !s.Sent.has(at)) || !n.Sent.has(at)
	})
}

// holdEndsByProof is I10: a hold ends by a receipt, by a fence behind which nothing lands, or with the process.
func holdEndsByProof(w *Settings, s, n *State) bool {
	return everyLink(w, func(l, k uint8) bool {
		if !s.Hold[l][k] || n.Hold[l][k] || n.Dinc != s.Dinc {
			return true
		}
		for c := range uint8(nKind) {
			if s.Rec.has(receiptAt(c, l, k, s.Ginc[l][k])) {
				return true
			}
		}
		return s.Fencing[k] && !n.Fencing[k] && s.Gep[l][k] < s.Ep[k] && everyWrite(w, func(y, r, p, c, i uint8) bool {
			return y != l || r != k || !mayLand(s, l, k, p, c, i)
		})
	})
}

func pagesEndByProof(w *Settings, s, n *State) bool {
	for p := range w.pages() {
		l := s.Own[p]
		if l == 0 || n.Own[p] == l || n.Dinc != s.Dinc {
			continue
		}
		for k := range w.ranks() {
			if s.Hold[l][k] {
				return false
			}
		}
	}
	return true
}

// failedIsFinal is I11.
func failedIsFinal(w *Settings, s, n *State) bool {
	for t := uint8(1); t <= w.NT; t++ {
		ended := s.Lead[t] == LeadOk || s.Lead[t] == LeadFailed || s.Lead[t] == LeadRefused
		if ended && n.Lead[t] != s.Lead[t] || s.Http[t] != HTTPNone && n.Http[t] != s.Http[t] {
			return false
		}
	}
	return true
}

// fresh is I14 for steps: the bytes and tags of an owned page change by writes of its lease only.
func fresh(w *Settings, s, n *State) bool {
	for p := range w.pages() {
		for k := range w.ranks() {
			l := s.Own[p]
			if l == 0 || n.Mem[p][k] == s.Mem[p][k] && n.Tagl[p][k] == s.Tagl[p][k] {
				continue
			}
			landing := !everyWrite(w, func(y, r, q, c, i uint8) bool { return y != l || r != k || q != p || !lands(s, y, r, q, c, i) })
			if !landing {
				return false
			}
		}
	}
	return true
}

// tagsAtStart is I15 for the step that starts a kernel.
func tagsAtStart(w *Settings, s, n *State) bool {
	return everyKernel(w, n, func(l, p, g, x uint8) bool { return s.Krn.has(kernelAt(l, p, g, x)) || tagOk(w, s, p, x) })
}

// Situations are what must be reached: each State is false where it is.
func Situations() []Property {
	reach := func(name string, reached func(w *Settings, s *State) bool) Property {
		return Property{Name: name, State: func(w *Settings, s *State) bool { return !reached(w, s) }}
	}
	return []Property{
		reach("NeverAnswered", func(w *Settings, s *State) bool {
			return s.Tok != 0 && anyTransfer(w, func(t uint8) bool { return s.Http[t] == HTTP200 })
		}),
		reach("NeverRefused", func(w *Settings, s *State) bool {
			return anyTransfer(w, func(t uint8) bool { return s.Lead[t] == LeadRefused && s.Http[t] == HTTPError })
		}),
		reach("NeverStale", func(w *Settings, s *State) bool {
			return anyWrite(w, func(l, k, p, c, i uint8) bool {
				return s.Flying.has(writeAt(l, k, p, c, i)) && s.Own[p] != 0 && s.Own[p] != l
			})
		}),
		reach("NeverSlow", func(w *Settings, s *State) bool {
			return anyWrite(w, func(l, k, p, c, i uint8) bool {
				return s.Fencing[k] && lands(s, l, k, p, c, i) && s.Gep[l][k] < s.Ep[k]
			})
		}),
		reach("NeverLostLands", func(w *Settings, s *State) bool {
			return anyWrite(w, func(l, k, p, c, i uint8) bool { return s.Lost.has(writeAt(l, k, p, c, i)) && s.Mem[p][k] == l })
		}),
		reach("NeverWaits", func(w *Settings, s *State) bool {
			return anyWrite(w, func(l, k, _, _, i uint8) bool {
				return s.Rec.has(receiptAt(KindAck, l, k, i)) && !decodeHalf(w, s, KindAck, l, k, i)
			})
		}),
		reach("NeverGone", func(w *Settings, s *State) bool {
			return anyWrite(w, func(l, k, _, _, i uint8) bool {
				return s.Ans.has(receiptAt(KindGone, l, k, i)) && s.Dst[l] == DstFailed
			})
		}),
		reach("NeverSecond", func(w *Settings, s *State) bool {
			return anyWrite(w, func(l, k, _, _, _ uint8) bool { return s.Got[l][k] && s.Ginc[l][k] == 1 })
		}),
		reach("NeverNewPool", func(w *Settings, s *State) bool {
			return anyWrite(w, func(l, _, _, _, _ uint8) bool { return s.Dst[l] == DstReady && s.Dof[l] == 1 })
		}),
		reach("NeverShared", func(w *Settings, s *State) bool {
			return !everyShare(w, s, func(l, p, x uint8) bool { return s.Dst[l] != DstReady || s.Own[p] != 0 })
		}),
		reach("NeverFound", func(w *Settings, s *State) bool {
			return anyWrite(w, func(l, _, _, _, _ uint8) bool { return s.Dst[l] == DstBad })
		}),
		reach("NeverCured", func(w *Settings, s *State) bool {
			return anyWrite(w, func(l, k, _, _, _ uint8) bool {
				return s.Dst[l] == DstFailed && s.Spent && s.Got[l][k] && s.Ep[k] > s.Gep[l][k]
			})
		}),
	}
}

func anyTransfer(w *Settings, is func(t uint8) bool) bool {
	for t := uint8(1); t <= w.NT; t++ {
		if is(t) {
			return true
		}
	}
	return false
}

func anyWrite(w *Settings, is func(l, k, p, c, i uint8) bool) bool {
	return !everyWrite(w, func(l, k, p, c, i uint8) bool { return !is(l, k, p, c, i) })
}
