package model

// The words of the TLA+ text that several actions use, under its names.

func owed(w *Settings, s *State, l, k, p uint8) bool {
	return s.Owes[l][k] && s.Gpage[l][p] != 0 && w.has(k, p)
}

func arrives(w *Settings, sent bool) bool { return !w.Authentic || sent }

func alike(s *State, l, x uint8) bool {
	return s.Ten[x] == s.Ten[l] && s.Ada[x] == s.Ada[l] && s.Pre[x] == s.Pre[l]
}

func current(s *State, l, k uint8) bool { return s.Gep[l][k] == s.Ep[k] && s.Dof[l] == s.Dinc }

func older(w *Settings, s *State, l, k uint8) bool { return s.Gep[l][k] < s.Ep[k] || !w.FenceRaises }

func aborted(s *State, l uint8) bool {
	return s.Dst[l] == DstRevoking || s.Dst[l] == DstBad || s.Dst[l] == DstFailed || s.Dst[l] == DstDead
}

func live(s *State, l uint8) bool {
	d := s.Dst[l]
	return d == DstFilling || d == DstRevoking || d == DstVerified || d == DstReady || d == DstBad
}

func tagOk(w *Settings, s *State, p, x uint8) bool {
	for k := range w.ranks() {
		if owed(w, s, x, k, p) && s.Tagl[p][k] != x {
			return false
		}
	}
	return true
}

func bytesOk(w *Settings, s *State, p, x uint8) bool {
	for k := range w.ranks() {
		if owed(w, s, x, k, p) && s.Mem[p][k] != x {
			return false
		}
	}
	return true
}

func noticesIn(w *Settings, s *State, l, k, i uint8) bool {
	all, none, some := true, true, false
	for c := range w.chans() {
		sent, in := s.Nsent.has(noticeAt(l, k, c, i)), s.Nin.has(noticeAt(l, k, c, i))
		all = all && (!sent || in)
		none = none && !sent
		some = some || in
	}
	if w.ChannelAll {
		return all
	}
	return none || some
}

func flushed(w *Settings, s *State, l, k uint8) bool {
	for p := range w.pages() {
		for c := range w.chans() {
			for i := range w.incs() {
				if w.FlushSeen && s.Unseen.has(writeAt(l, k, p, c, i)) {
					return false
				}
			}
		}
	}
	return true
}

func decodeHalf(w *Settings, s *State, x, l, k, i uint8) bool {
	return x == KindGone && !w.GoneLists || noticesIn(w, s, l, k, i) && flushed(w, s, l, k)
}

func allReady(w *Settings, s *State, t uint8) bool {
	any, all, some := false, true, false
	for l := uint8(1); l <= w.NL; l++ {
		if s.Tof[l] == t {
			any = true
			ready := s.Dst[l] == DstReady || s.Dst[l] == DstDone
			all, some = all && ready, some || ready
		}
	}
	if w.LeadAll {
		return any && all
	}
	return any && some
}

func believed(w *Settings, s *State, x, l, k, i uint8) bool {
	return (x == l || !w.DecodeInc && s.Dof[x] < s.Dof[l] || !w.ByName) && (!w.OnlyGranted || i == s.Ginc[l][k]) && s.Hold[l][k]
}

func allGot(w *Settings, s *State, l uint8) bool {
	all, some := true, false
	for k := range w.ranks() {
		all = all && (!s.Owes[l][k] || s.Got[l][k])
		some = some || s.Got[l][k]
	}
	if w.AllParts {
		return all
	}
	return some
}

func verifyGood(w *Settings, s *State, l uint8) bool {
	for p := range w.pages() {
		if s.Gpage[l][p] != 0 && (w.DigestVerify && !bytesOk(w, s, p, l) || w.TagBefore && !tagOk(w, s, p, l)) {
			return false
		}
	}
	return true
}

func fills(s *State, l, p, x uint8) bool {
	return s.Own[p] == l && x == l || s.Shr.has(sharedAt(l, p, x))
}

// hit says that a page filled by x that went bad under l concerns y, too.
func hit(s *State, y, l, p, x uint8) bool { return y == l || fills(s, y, p, x) }

// behind is what a notice on channel c waits for.
func behind(w *Settings, s *State, l, k, c, i uint8) bool {
	for p := range w.pages() {
		if at := writeAt(l, k, p, c, i); w.InOrder && (s.Queued.has(at) || s.Flying.has(at) || s.Placing.has(at)) {
			return false
		}
	}
	return true
}

// free says that no share of page p stands in the way of a hand-out.
func free(w *Settings, s *State, p uint8) bool {
	for l := uint8(1); l <= w.NL; l++ {
		for x := uint8(1); x <= w.NL; x++ {
			if s.Shr.has(sharedAt(l, p, x)) {
				return false
			}
		}
	}
	return true
}

func noKernel(w *Settings, s *State, l uint8) bool {
	for p := range w.pages() {
		for g := range w.gens() {
			for x := uint8(1); x <= w.NL; x++ {
				if s.Krn.has(kernelAt(l, p, g, x)) {
					return false
				}
			}
		}
	}
	return true
}

func hears(w *Settings, s *State, l, k uint8) bool {
	return (s.Owes[l][k] || !w.OneWriter && s.Dst[l] != DstNew) && (!w.OnlyGranted || s.Ginc[l][k] == s.Pinc[k])
}

func fenced(s *State, l, k uint8) bool { return s.Pfenced.has(fencedAt(k, s.Dof[l], s.Gep[l][k])) }

func prefillHalf(w *Settings, s *State, l, k uint8) bool {
	i := s.Pinc[k]
	for p := range w.pages() {
		for c := range w.chans() {
			at := writeAt(l, k, p, c, i)
			counts := s.Sent.has(at) && (w.RetryDrained || !s.Lost.has(at))
			if counts && (s.Queued.has(at) || !s.Nsent.has(noticeAt(l, k, c, i))) {
				return false
			}
		}
	}
	return true
}

func posted(w *Settings, s *State, l, k uint8) bool {
	for p := range w.pages() {
		some := false
		for c := range w.chans() {
			some = some || s.Sent.has(writeAt(l, k, p, c, s.Pinc[k]))
		}
		if owed(w, s, l, k, p) && !some {
			return false
		}
	}
	return true
}

// freePages takes the pages of l from it in n.
func freePages(w *Settings, s *State, l uint8, n *State) {
	for p := range w.pages() {
		if s.Own[p] == l {
			n.Own[p] = 0
		}
	}
}

// freeShares takes the shares of l out of n.
func freeShares(w *Settings, l uint8, n *State) {
	for p := range w.pages() {
		for x := uint8(1); x <= w.NL; x++ {
			n.Shr.drop(sharedAt(l, p, x))
		}
	}
}
