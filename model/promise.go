package model

// The promise of TLA/Isolation.tla, each line as a property of steps of the protocol, in the words of TLA/TransferIsolation.tla:
// a request is its first transfer, an attempt a transfer, a claim a lease, a source a rank.

// fate is what an attempt came to, by the lead of its transfer.
func fate(s *State, t uint8) uint8 {
	if ended(s.Lead[t]) {
		return s.Lead[t]
	}
	return LeadOpen
}

// speaks says that t is the last attempt of request r.
func speaks(s *State, t, r uint8) bool { return s.Root[t] == r && s.Succ[t] == 0 }

// mine says that claim l may read what was written for claim m.
func mine(s *State, l, m uint8) bool { return m == l || m != 0 && alike(s, l, m) }

// everyByte says whether holds is true of every claim that reads and of the claim whose bytes it reads; 0 for none.
func everyByte(w *Settings, s *State, holds func(l, m uint8) bool) bool {
	return everyKernel(w, s, func(l, p, _, x uint8) bool {
		for k := range w.ranks() {
			if owed(w, s, x, k, p) && !holds(l, s.Mem[p][k]) {
				return false
			}
		}
		return true
	})
}

// everyToken says whether holds is true of every claim and of every claim, or 0, of whose bytes its answers were made.
func everyToken(w *Settings, s *State, holds func(l, m uint8) bool) bool {
	for l := uint8(1); l <= w.NL; l++ {
		for m := uint8(0); m <= w.NL; m++ {
			if seen(w, s, l, m) && !holds(l, m) {
				return false
			}
		}
	}
	return true
}

func seen(w *Settings, s *State, l, m uint8) bool {
	for x := uint8(1); x <= w.NL; x++ {
		if s.Tok.has(tokenAt(l, x, m)) {
			return true
		}
	}
	return false
}

func everyTransfer(w *Settings, holds func(t uint8) bool) bool {
	return !anyTransfer(w, func(t uint8) bool { return !holds(t) })
}

// whole says that every source that owes to claim l has delivered.
func whole(w *Settings, s *State, l uint8) bool {
	for k := range w.ranks() {
		if s.Owes[l][k] && !completed(s, l, k) {
			return false
		}
	}
	return true
}

// everyClaim says whether holds is true of every lease.
func everyClaim(w *Settings, holds func(l uint8) bool) bool {
	return everyLink(w, func(l, k uint8) bool { return k != 0 || holds(l) })
}

// Promise is the lines of Isolation's Step, in their order there.
func Promise() []Property { return append(isolation(), honesty()...) }

// promised is all of them. (A step that changes none of the promise's words keeps every line that the one before it kept.)
func promised() func(w *Settings, s, n *State) bool {
	lines := Promise()
	return func(w *Settings, s, n *State) bool {
		for _, line := range lines {
			if !line.Step(w, s, n) {
				return false
			}
		}
		return true
	}
}

func isolation() []Property {
	return []Property{
		{Name: "ReadsMine", Step: func(w *Settings, _, n *State) bool {
			return everyByte(w, n, func(l, m uint8) bool { return m == 0 || mine(n, l, m) })
		}},
		{Name: "ReadsKnown", Step: func(w *Settings, _, n *State) bool {
			return everyByte(w, n, func(_, m uint8) bool { return m != 0 })
		}},
		{Name: "ReadsWhole", Step: func(w *Settings, _, n *State) bool {
			return everyByte(w, n, func(_, m uint8) bool { return m == 0 || whole(w, n, m) })
		}},
		{Name: "SeenMine", Step: func(w *Settings, _, n *State) bool {
			return everyToken(w, n, func(l, m uint8) bool { return m == 0 || mine(n, l, m) })
		}},
		{Name: "SeenKnown", Step: func(w *Settings, _, n *State) bool {
			return everyToken(w, n, func(_, m uint8) bool { return m != 0 })
		}},
	}
}

func honesty() []Property {
	return append([]Property{
		{Name: "GoodIsWhole", Step: func(w *Settings, _, n *State) bool {
			return everyClaim(w, func(l uint8) bool { return n.Tof[l] == 0 || fate(n, n.Tof[l]) != LeadOk || whole(w, n, l) })
		}},
		{Name: "GoodIsSome", Step: func(w *Settings, s, n *State) bool {
			return everyTransfer(w, func(t uint8) bool {
				some := !everyClaim(w, func(l uint8) bool { return n.Tof[l] != t })
				return fate(n, t) != LeadOk || fate(s, t) == LeadOk || some
			})
		}},
		{Name: "RefusedNone", Step: func(w *Settings, _, n *State) bool {
			return everyClaim(w, func(l uint8) bool { return n.Tof[l] == 0 || fate(n, n.Tof[l]) != LeadRefused })
		}},
		{Name: "Told200", Step: func(w *Settings, s, n *State) bool {
			return everyTransfer(w, func(r uint8) bool {
				return n.Http[r] != HTTP200 || s.Http[r] == HTTP200 || anyTransfer(w, func(t uint8) bool { return speaks(n, t, r) && fate(s, t) == LeadOk })
			})
		}},
		{Name: "ToldError", Step: func(w *Settings, s, n *State) bool {
			return everyTransfer(w, func(r uint8) bool {
				return n.Http[r] != HTTPError || s.Http[r] == HTTPError || s.Cause[r] != CauseNone && anyTransfer(w, func(t uint8) bool {
					return speaks(n, t, r) && (fate(s, t) == LeadFailed || fate(s, t) == LeadRefused)
				})
			})
		}},
		{Name: "FateStays", Step: func(w *Settings, s, n *State) bool {
			return everyTransfer(w, func(t uint8) bool { return fate(s, t) == LeadOpen || fate(n, t) == fate(s, t) })
		}},
		{Name: "ToldStays", Step: func(w *Settings, s, n *State) bool {
			return everyTransfer(w, func(r uint8) bool { return s.Http[r] == HTTPNone || n.Http[r] == s.Http[r] })
		}},
		{Name: "WhyStays", Step: func(w *Settings, s, n *State) bool {
			return everyTransfer(w, func(r uint8) bool {
				return s.Http[r] == HTTPNone && s.Cause[r] != CauseOriginal || n.Cause[r] == s.Cause[r]
			})
		}},
	}, written()...)
}

// written is the lines that say what stays as it was written.
func written() []Property {
	return []Property{
		{Name: "ClaimStays", Step: func(w *Settings, s, n *State) bool {
			return everyClaim(w, func(l uint8) bool {
				same := n.Ten[l] == s.Ten[l] && n.Ada[l] == s.Ada[l] && n.Pre[l] == s.Pre[l] && n.Owes[l] == s.Owes[l]
				return s.Tof[l] == 0 || n.Tof[l] == s.Tof[l] && same
			})
		}},
		{Name: "CameStays", Step: func(w *Settings, s, n *State) bool {
			return everyLink(w, func(l, k uint8) bool { return !completed(s, l, k) || completed(n, l, k) })
		}},
		{Name: "SeenStays", Step: func(w *Settings, s, n *State) bool {
			return everyToken(w, s, func(l, m uint8) bool { return seen(w, n, l, m) })
		}},
		{Name: "NextIfFailed", Step: func(w *Settings, s, n *State) bool {
			return everyTransfer(w, func(t uint8) bool { return n.Succ[t] == s.Succ[t] || fate(s, t) == LeadFailed && s.Succ[t] == 0 })
		}},
		{Name: "RootIfNext", Step: func(w *Settings, s, n *State) bool {
			return everyTransfer(w, func(t uint8) bool {
				unclaimed := everyClaim(w, func(l uint8) bool { return s.Tof[l] != t })
				follows := anyTransfer(w, func(u uint8) bool { return n.Succ[u] == t && s.Root[u] == n.Root[t] })
				return n.Root[t] == s.Root[t] || fate(s, t) == LeadOpen && unclaimed && follows
			})
		}},
		{Name: "NoneAfter", Step: func(w *Settings, s, n *State) bool {
			return everyTransfer(w, func(t uint8) bool {
				r := n.Root[t]
				return s.Http[r] == HTTPNone || s.Root[t] == r && n.Succ[t] == s.Succ[t]
			})
		}},
	}
}
