package model

import "slices"

// Property is an invariant (State) or a property of steps (Step) of TLA/Transfer.tla, or a situation of TLA/MCTransfer.tla
// that must be reached (State, false where it is), under its name there. One of State and Step is nil.
type Property struct {
	Name  string
	State func(w *Settings, s *State) bool
	Step  func(w *Settings, s, n *State) bool
}

// Properties are the invariants of TLA/Transfer.tla, its properties of steps, and Promised of TLA/TransferIsolation.tla.
func Properties() []Property {
	var all []Property
	for _, group := range [][]Property{{{Name: "TypeOK", State: typeOK()}}, pageProperties(), readProperties(), verdictProperties(), stepProperties(), {{Name: "Promised", Step: promised()}}} {
		all = append(all, group...)
	}
	return all
}

// Find is the property, line of the promise or situation of that name; its State and Step are nil if there is none.
func Find(name string) Property {
	for _, p := range slices.Concat(Properties(), Promise(), Situations()) {
		if p.Name == name {
			return p
		}
	}
	return Property{}
}

// typeOK is I1: every cell holds an element of its domain, and every set has tuples of its domains only.
func typeOK() func(w *Settings, s *State) bool {
	variables := Variables()
	return func(w *Settings, s *State) bool {
		for _, v := range variables {
			low, high := w.domain(v.In)
			ok, members := true, 0
			w.Each(v, func(at Index) {
				x := v.Get(s, at)
				ok = ok && low <= x && x <= high
				members += int(x)
			})
			if !ok || v.size != nil && v.size(s) != members {
				return false
			}
		}
		return true
	}
}

// everyKernel says whether holds is true of every running kernel.
func everyKernel(w *Settings, s *State, holds func(l, p, g, x uint8) bool) bool {
	for l := uint8(1); l <= w.NL; l++ {
		for p := range w.pages() {
			for g := range w.gens() {
				for x := uint8(1); x <= w.NL; x++ {
					if s.Krn.has(kernelAt(l, p, g, x)) && !holds(l, p, g, x) {
						return false
					}
				}
			}
		}
	}
	return true
}

// everyLink says whether holds is true of every lease and rank.
func everyLink(w *Settings, holds func(l, k uint8) bool) bool {
	for l := uint8(1); l <= w.NL; l++ {
		for k := range w.ranks() {
			if !holds(l, k) {
				return false
			}
		}
	}
	return true
}

// everyShare says whether holds is true of every share.
func everyShare(w *Settings, s *State, holds func(l, p, x uint8) bool) bool {
	for l := uint8(1); l <= w.NL; l++ {
		for p := range w.pages() {
			for x := uint8(1); x <= w.NL; x++ {
				if s.Shr.has(sharedAt(l, p, x)) && !holds(l, p, x) {
					return false
				}
			}
		}
	}
	return true
}

// owns says that the page of a write is its lease's in the granted generation.
func owns(s *State, l, p uint8) bool { return s.Own[p] == l && s.Gen[p] == s.Gpage[l][p] }

// completed says that the Complete of the granted incarnation of k was sent and taken.
func completed(s *State, l, k uint8) bool {
	return s.Got[l][k] && s.Ans.has(receiptAt(KindComplete, l, k, s.Ginc[l][k]))
}

// everyQueued says whether holds is true of every queued write and its source page.
func everyQueued(w *Settings, s *State, holds func(l, k, q uint8) bool) bool {
	return everyWrite(w, func(l, k, p, c, i uint8) bool {
		q := s.Src[l][k][p][c]
		return !s.Queued.has(writeAt(l, k, p, c, i)) || q == 0 || holds(l, k, q)
	})
}

// pageProperties are those of pages and of the writes into them.
func pageProperties() []Property {
	return []Property{
		{Name: "NoReuseWhileInFlight", State: func(w *Settings, s *State) bool {
			return everyWrite(w, func(l, k, p, c, i uint8) bool { return !mayLand(s, l, k, p, c, i) || owns(s, l, p) })
		}},
		{Name: "NoReuseUnderKernel", State: func(w *Settings, s *State) bool {
			return everyKernel(w, s, func(l, p, g, x uint8) bool {
				return (s.Own[p] == l || s.Shr.has(sharedAt(l, p, x))) && s.Gen[p] == g
			})
		}},
		{Name: "NoSourceReuse", State: func(w *Settings, s *State) bool {
			return everyQueued(w, s, func(l, k, q uint8) bool { return s.Sown[k][q] == l })
		}},
		{Name: "SourceStable", State: func(w *Settings, s *State) bool {
			return everyQueued(w, s, func(l, k, q uint8) bool { return s.Sown[k][q] == l && s.Sst[k][q] == SrcSealed })
		}},
		{Name: "SendsOwnBytes", State: func(w *Settings, s *State) bool {
			return everyWrite(w, func(l, k, p, c, i uint8) bool {
				return s.Pview[l][k] != ViewSame || !s.Flying.has(writeAt(l, k, p, c, i)) || s.Pay[l][k][p][c] == l
			})
		}},
		{Name: "Granted", State: func(w *Settings, s *State) bool {
			return everyWrite(w, func(l, k, p, c, i uint8) bool {
				return !lands(s, l, k, p, c, i) || owns(s, l, p) && s.Dof[l] == s.Dinc && (s.Gep[l][k] == s.Ep[k] || s.Fencing[k])
			})
		}},
		{Name: "OneWriterEach", State: func(w *Settings, s *State) bool {
			return everyWrite(w, func(l, k, p, c, i uint8) bool {
				return !s.Sent.has(writeAt(l, k, p, c, i)) || !w.aux(p) || k == w.AuxWriter
			})
		}},
		{Name: "FenceHolds", State: func(w *Settings, s *State) bool {
			return everyWrite(w, func(l, k, p, c, i uint8) bool { return !lands(s, l, k, p, c, i) || s.Fencing[k] || current(s, l, k) })
		}},
		{Name: "Conservation", State: func(w *Settings, s *State) bool {
			for p := range w.pages() {
				if l := s.Own[p]; l != 0 && !(live(s, l) && s.Gpage[l][p] == s.Gen[p] && s.Dof[l] == s.Dinc) {
					return false
				}
			}
			return true
		}},
		{Name: "TailSafe", State: func(w *Settings, s *State) bool {
			return everyWrite(w, func(l, k, p, c, i uint8) bool { return !s.App[p] || !mayLand(s, l, k, p, c, i) })
		}},
	}
}

// readProperties are those of kernels, tokens and shares.
func readProperties() []Property {
	return []Property{
		{Name: "NoForeignRead", State: func(w *Settings, s *State) bool {
			return everyKernel(w, s, func(l, p, g, x uint8) bool {
				for k := range w.ranks() {
					if owed(w, s, x, k, p) && !(s.Mem[p][k] == x && alike(s, l, x) && s.Gpage[x][p] == g) {
						return false
					}
				}
				return true
			})
		}},
		{Name: "NoForeignAnswer", State: noForeignAnswer},
		{Name: "SharesOwn", State: func(w *Settings, s *State) bool {
			return everyShare(w, s, func(l, p, x uint8) bool {
				return alike(s, l, x) && s.Gpage[x][p] == s.Gen[p] && s.Dof[x] == s.Dinc
			})
		}},
		{Name: "Coverage", State: func(w *Settings, s *State) bool {
			return everyLink(w, func(l, k uint8) bool {
				for p := range w.pages() {
					if s.Dst[l] == DstReady && owed(w, s, l, k, p) && !(completed(s, l, k) && s.Mem[p][k] == l) {
						return false
					}
				}
				return true
			})
		}},
		{Name: "ReadsCovered", State: func(w *Settings, s *State) bool {
			return everyKernel(w, s, func(_, p, _, x uint8) bool {
				some := s.App[p]
				for k := range w.ranks() {
					some = some || owed(w, s, x, k, p)
				}
				return some
			})
		}},
		{Name: "NoEarlyRead", State: func(w *Settings, s *State) bool {
			return everyKernel(w, s, func(_, q, _, _ uint8) bool {
				return everyWrite(w, func(l, k, p, c, i uint8) bool { return p != q || !mayLand(s, l, k, p, c, i) })
			})
		}},
		{Name: "TagsAgree", State: func(w *Settings, s *State) bool {
			return everyKernel(w, s, func(_, p, _, x uint8) bool { return tagOk(w, s, p, x) })
		}},
		{Name: "NoSharedTail", State: func(w *Settings, s *State) bool {
			for p := range w.pages() {
				for x := uint8(1); x <= w.NL; x++ {
					for l := uint8(1); l <= w.NL; l++ {
						if s.App[p] && (s.Pubs.has(publishedAt(p, s.Gen[p], x)) || s.Shr.has(sharedAt(l, p, x))) {
							return false
						}
					}
				}
			}
			return true
		}},
	}
}

func noForeignAnswer(w *Settings, s *State) bool {
	for l := uint8(1); l <= w.NL; l++ {
		for x := uint8(1); x <= w.NL; x++ {
			for m := uint8(0); m <= w.NL; m++ {
				if s.Tok.has(tokenAt(l, x, m)) && !(m == x && alike(s, l, x)) {
					return false
				}
			}
		}
	}
	return true
}

// everyLast says whether holds is true of every last transfer and its request.
func everyLast(w *Settings, s *State, holds func(t, r uint8) bool) bool {
	for t := uint8(1); t <= w.NT; t++ {
		if s.Succ[t] == 0 && !holds(t, s.Root[t]) {
			return false
		}
	}
	return true
}

// ended says that a transfer has its verdict.
func ended(lead uint8) bool { return lead == LeadOk || lead == LeadFailed || lead == LeadRefused }

// verdictProperties are those of transfers and links.
func verdictProperties() []Property {
	return []Property{
		{Name: "RejectLeavesNothing", State: func(w *Settings, s *State) bool {
			for l := uint8(1); l <= w.NL; l++ {
				if t := s.Tof[l]; t != 0 && s.Lead[t] == LeadRefused {
					return false
				}
			}
			return true
		}},
		{Name: "NoFalseSuccess", State: func(w *Settings, s *State) bool {
			return everyLink(w, func(l, k uint8) bool {
				t := s.Tof[l]
				return t == 0 || s.Lead[t] != LeadOk || !s.Owes[l][k] || completed(s, l, k)
			})
		}},
		{Name: "NoFalseAnswer", State: func(w *Settings, s *State) bool {
			return everyLast(w, s, func(t, r uint8) bool { return s.Http[r] != HTTP200 || s.Lead[t] == LeadOk && !w.big(t) })
		}},
		{Name: "AnswerOfLast", State: func(w *Settings, s *State) bool {
			return everyLast(w, s, func(t, r uint8) bool { return s.Http[r] == HTTPNone || ended(s.Lead[t]) })
		}},
		{Name: "OneAttempt", State: func(w *Settings, s *State) bool {
			for l := uint8(1); l <= w.NL; l++ {
				if t := s.Tof[l]; t != 0 && s.Succ[t] != 0 && live(s, l) {
					return false
				}
			}
			return true
		}},
		{Name: "LinkFresh", State: func(w *Settings, s *State) bool {
			for k := range w.ranks() {
				if s.Up[k] && !s.Acc.has(acceptAt(k, s.Linc[k], s.Dinc, s.Ep[k])) {
					return false
				}
			}
			return true
		}},
	}
}
