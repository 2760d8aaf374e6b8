package model

// stepProperties are those of pairs of states.
func stepProperties() []Property {
	releases := func(w *Settings, s, n *State) bool { return holdEndsByProof(w, s, n) && pagesEndByProof(w, s, n) }
	return []Property{
		{Name: "StepsHold", Step: func(w *Settings, s, n *State) bool {
			return ackMeansDrained(w, s, n) && releases(w, s, n) && failedIsFinal(w, s, n) && causeSettles(w, s, n) && fresh(w, s, n)
		}},
		{Name: "AckMeansDrainedS", Step: ackMeansDrained},
		{Name: "ReleaseNeedsProofS", Step: releases},
		{Name: "FailedIsFinalS", Step: failedIsFinal},
		{Name: "CauseSettlesS", Step: causeSettles},
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
		if ended(s.Lead[t]) && n.Lead[t] != s.Lead[t] || s.Http[t] != HTTPNone && n.Http[t] != s.Http[t] {
			return false
		}
	}
	return true
}

// causeSettles is I12: an original cause stays, and every cause once the client was told.
func causeSettles(w *Settings, s, n *State) bool {
	for t := uint8(1); t <= w.NT; t++ {
		if (s.Cause[t] == CauseOriginal || s.Http[s.Root[t]] != HTTPNone) && n.Cause[t] != s.Cause[t] {
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
