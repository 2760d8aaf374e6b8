package model

// The actions of the fabric: a write's source is read, it is checked or dropped, copied, and seen.
func fabricActions() []Action {
	return []Action{actLaunch(), actCheck(), actDrop(), actLose(), actCopy(), actVisible()}
}

// plantActions are the faults of the world.
func plantActions() []Action { return []Action{actStray(), actTorn(), actFlip()} }

func writeParams() []Param {
	return params("l", "Lease", "k", "Rank", "p", "Page", "c", "Chan", "i", "Inc")
}

// write is the write of the action's parameters.
func write(a *Args) uint { return writeAt(a.L, a.K, a.P, a.C, a.I) }

// everyWrite says whether holds is true of every write that the settings have.
func everyWrite(w *Settings, holds func(l, k, p, c, i uint8) bool) bool {
	for l := uint8(1); l <= w.NL; l++ {
		for k := range w.ranks() {
			for p := range w.pages() {
				for c := range w.chans() {
					for i := range w.incs() {
						if !holds(l, k, p, c, i) {
							return false
						}
					}
				}
			}
		}
	}
	return true
}

func eachWrite(w *Settings, do func(l, k, p, c, i uint8)) {
	everyWrite(w, func(l, k, p, c, i uint8) bool { do(l, k, p, c, i); return true })
}

// lands, pending and mayLand are the words of the properties.
func lands(s *State, l, k, p, c, i uint8) bool {
	at := writeAt(l, k, p, c, i)
	return s.Placing.has(at) || s.Unseen.has(at)
}

func pending(s *State, l, k, p, c, i uint8) bool {
	at := writeAt(l, k, p, c, i)
	return s.Queued.has(at) || s.Flying.has(at) || lands(s, l, k, p, c, i)
}

func mayLand(s *State, l, k, p, c, i uint8) bool {
	at := writeAt(l, k, p, c, i)
	return lands(s, l, k, p, c, i) || (s.Queued.has(at) || s.Flying.has(at)) && current(s, l, k)
}

func guardIn(text string, set func(*State) *Set) Guard {
	return Guard{text, func(w *Settings, s *State, a *Args) bool { return set(s).has(write(a)) }}
}

func leave(text string, set func(*State) *Set) Update {
	return Update{text, func(w *Settings, s *State, a *Args, n *State) { set(n).drop(write(a)) }}
}

func enter(text string, set func(*State) *Set) Update {
	return Update{text, func(w *Settings, s *State, a *Args, n *State) { set(n).add(write(a)) }}
}

func queued(s *State) *Set  { return &s.Queued }
func flying(s *State) *Set  { return &s.Flying }
func placing(s *State) *Set { return &s.Placing }
func unseen(s *State) *Set  { return &s.Unseen }

func actLaunch() Action {
	return Action{
		Name: "Launch", Params: append(writeParams(), Param{"q", "SPage"}),
		Guards: []Guard{
			{`src[l, k, p, c] = q`, func(w *Settings, s *State, a *Args) bool { return s.Src[a.L][a.K][a.P][a.C] == a.Q }},
			guardIn(`<<l, k, p, c, i>> \in queued`, queued),
		},
		Updates: []Update{
			leave(`queued' = queued \ {<<l, k, p, c, i>>}`, queued),
			enter(`flying' = flying \cup {<<l, k, p, c, i>>}`, flying),
			{`pay' = [pay EXCEPT ![l, k, p, c] = sdat[k, q]]`, func(w *Settings, s *State, a *Args, n *State) { n.Pay[a.L][a.K][a.P][a.C] = s.Sdat[a.K][a.Q] }},
		},
	}
}

func actCheck() Action {
	return Action{
		Name: "Check", Params: writeParams(),
		Guards: []Guard{
			{`PlaceChecks => gep[l, k] = ep[k]`, func(w *Settings, s *State, a *Args) bool { return !w.PlaceChecks || s.Gep[a.L][a.K] == s.Ep[a.K] }},
			{`DecodeInc => dof[l] = dinc`, func(w *Settings, s *State, a *Args) bool { return !w.DecodeInc || s.Dof[a.L] == s.Dinc }},
			guardIn(`<<l, k, p, c, i>> \in flying`, flying),
		},
		Updates: []Update{
			leave(`flying' = flying \ {<<l, k, p, c, i>>}`, flying),
			enter(`placing' = placing \cup {<<l, k, p, c, i>>}`, placing),
		},
	}
}

func actDrop() Action {
	return Action{
		Name: "Drop", Params: writeParams(),
		Guards: []Guard{
			{`~Current(l, k)`, func(w *Settings, s *State, a *Args) bool { return !current(s, a.L, a.K) }},
			guardIn(`<<l, k, p, c, i>> \in flying`, flying),
		},
		Updates: []Update{leave(`flying' = flying \ {<<l, k, p, c, i>>}`, flying)},
	}
}

func actLose() Action {
	return Action{
		Name: "Lose", Params: writeParams(),
		Guards: []Guard{
			{`Losing`, func(w *Settings, s *State, a *Args) bool { return w.Losing }},
			{`i = pinc[k]`, func(w *Settings, s *State, a *Args) bool { return a.I == s.Pinc[a.K] }},
			{`<<l, k, p, c, i>> \in queued \/ <<l, k, p, c, i>> \in flying`, func(w *Settings, s *State, a *Args) bool {
				return s.Queued.has(write(a)) || s.Flying.has(write(a))
			}},
			{`<<l, k, p, c, i>> \notin lost`, func(w *Settings, s *State, a *Args) bool { return !s.Lost.has(write(a)) }},
		},
		Updates: []Update{
			{`lost' = lost \cup {<<l, k, p, c, i>>}`, func(w *Settings, s *State, a *Args, n *State) { n.Lost.add(write(a)) }},
			{`pst' = [pst EXCEPT ![l, k] = IF RetryDrained /\ pst[l, k] = "writing" THEN "closing" ELSE pst[l, k]]`, func(w *Settings, s *State, a *Args, n *State) {
				if w.RetryDrained && s.Pst[a.L][a.K] == PstWriting {
					n.Pst[a.L][a.K] = PstClosing
				}
			}},
		},
	}
}

func actCopy() Action {
	return Action{
		Name: "Copy", Params: writeParams(),
		Guards: []Guard{guardIn(`<<l, k, p, c, i>> \in placing`, placing)},
		Updates: []Update{
			leave(`placing' = placing \ {<<l, k, p, c, i>>}`, placing),
			enter(`unseen' = unseen \cup {<<l, k, p, c, i>>}`, unseen),
			{`mem' = [mem EXCEPT ![p, k] = 0]`, func(w *Settings, s *State, a *Args, n *State) { n.Mem[a.P][a.K] = 0 }},
		},
	}
}

func actVisible() Action {
	return Action{
		Name: "Visible", Params: writeParams(),
		Guards: []Guard{guardIn(`<<l, k, p, c, i>> \in unseen`, unseen)},
		Updates: []Update{
			leave(`unseen' = unseen \ {<<l, k, p, c, i>>}`, unseen),
			{`mem' = [mem EXCEPT ![p, k] = pay[l, k, p, c]]`, func(w *Settings, s *State, a *Args, n *State) { n.Mem[a.P][a.K] = s.Pay[a.L][a.K][a.P][a.C] }},
			{`tagl' = [tagl EXCEPT ![p, k] = l]`, func(w *Settings, s *State, a *Args, n *State) { n.Tagl[a.P][a.K] = a.L }},
		},
	}
}

func guardUnspent() Guard {
	return Guard{`~spent`, func(w *Settings, s *State, a *Args) bool { return !s.Spent }}
}

func spend() Update {
	return Update{`spent' = TRUE`, func(w *Settings, s *State, a *Args, n *State) { n.Spent = true }}
}

func actStray() Action {
	return Action{
		Name: "Stray", Params: params("p", "Page", "k", "Rank", "x", "Lease0"),
		Guards: []Guard{
			{`own[p] # x`, func(w *Settings, s *State, a *Args) bool { return s.Own[a.P] != a.X }},
			{`PlantStray`, func(w *Settings, s *State, a *Args) bool { return w.PlantStray }},
			guardUnspent(),
		},
		Updates: []Update{
			{`mem' = [mem EXCEPT ![p, k] = x]`, func(w *Settings, s *State, a *Args, n *State) { n.Mem[a.P][a.K] = a.X }},
			{`tagl' = [tagl EXCEPT ![p, k] = x]`, func(w *Settings, s *State, a *Args, n *State) { n.Tagl[a.P][a.K] = a.X }},
			spend(),
		},
	}
}

func actTorn() Action {
	return Action{
		Name: "Torn", Params: writeParams(),
		Guards: []Guard{
			{`PlantTorn`, func(w *Settings, s *State, a *Args) bool { return w.PlantTorn }},
			guardUnspent(), guardIn(`<<l, k, p, c, i>> \in unseen`, unseen),
		},
		Updates: []Update{
			leave(`unseen' = unseen \ {<<l, k, p, c, i>>}`, unseen),
			{`tagl' = [tagl EXCEPT ![p, k] = l]`, func(w *Settings, s *State, a *Args, n *State) { n.Tagl[a.P][a.K] = a.L }},
			spend(),
		},
	}
}

func actFlip() Action {
	return Action{
		Name: "Flip", Params: writeParams(),
		Guards: []Guard{
			{`PlantFlip`, func(w *Settings, s *State, a *Args) bool { return w.PlantFlip }},
			guardUnspent(), guardIn(`<<l, k, p, c, i>> \in flying`, flying),
		},
		Updates: []Update{
			{`pay' = [pay EXCEPT ![l, k, p, c] = 0]`, func(w *Settings, s *State, a *Args, n *State) { n.Pay[a.L][a.K][a.P][a.C] = 0 }},
			spend(),
		},
	}
}
