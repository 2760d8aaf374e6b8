package model

// Situations are what must be reached: each State is false where it is.
func Situations() []Property {
	reach := func(name string, reached func(w *Settings, s *State) bool) Property {
		return Property{Name: name, State: func(w *Settings, s *State) bool { return !reached(w, s) }}
	}
	return []Property{
		reach("NeverAnswered", func(w *Settings, s *State) bool {
			return s.Tok != (Set{}) && anyTransfer(w, func(t uint8) bool { return s.Http[t] == HTTP200 })
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
		reach("NeverRetried", func(w *Settings, s *State) bool {
			return anyTransfer(w, func(t uint8) bool { return s.Root[t] != t && s.Http[s.Root[t]] == HTTP200 })
		}),
		reach("NeverRecaused", func(w *Settings, s *State) bool {
			return anyTransfer(w, func(t uint8) bool { return s.Http[s.Root[t]] == HTTPError && s.Cause[t] == CauseDerived })
		}),
		reach("NeverComponents", components),
		reach("NeverSpoiled", spoiled),
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

func owner(s *State, l, p uint8) bool { return s.Own[p] == l }

// components: a lease that is ready owns a page of the component State and one of neither State nor records.
func components(w *Settings, s *State) bool {
	return anyWrite(w, func(l, _, p, _, _ uint8) bool {
		return s.Dst[l] == DstReady && in(w.State, p) && owner(s, l, p) && anyWrite(w, func(x, _, q, _, _ uint8) bool {
			return x == l && !in(w.State, q) && !w.aux(q) && owner(s, l, q)
		})
	})
}

// spoiled: one bad page has failed leases of two transfers.
func spoiled(w *Settings, s *State) bool {
	for l := uint8(1); l <= w.NL; l++ {
		for x := uint8(1); x <= w.NL; x++ {
			if l != x && s.Dst[l] == DstBad && (s.Dst[x] == DstBad || s.Dst[x] == DstRevoking) && s.Tof[l] != s.Tof[x] {
				return true
			}
		}
	}
	return false
}
