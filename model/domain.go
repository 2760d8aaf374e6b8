package model

// Counts of what the settings have; leases, transfers and source pages are 1 to NL, NT and NQ.
func (w *Settings) pages() uint8  { return uint8(len(w.Page)) }
func (w *Settings) ranks() uint8  { return uint8(len(w.Rank)) }
func (w *Settings) chans() uint8  { return uint8(len(w.Chan)) }
func (w *Settings) incs() uint8   { return w.NI + 1 }
func (w *Settings) dincs() uint8  { return w.ND + 1 }
func (w *Settings) epochs() uint8 { return w.NE + 1 }
func (w *Settings) gens() uint8   { return w.NL + 1 }

func (w *Settings) aux(p uint8) bool   { return w.Aux>>p&1 != 0 }
func (w *Settings) big(t uint8) bool   { return w.Big>>t&1 != 0 }
func (w *Settings) view(v uint8) bool  { return w.Views>>v&1 != 0 }
func (w *Settings) fails(c uint8) bool { return w.Causes>>c&1 != 0 }

// has says that rank k has a part of pages like p.
func (w *Settings) has(k, p uint8) bool {
	return (!w.aux(p) || k == w.AuxWriter) && (!in(w.State, p) || in(w.StateRank, k))
}

// domain is the numbers of a set of the TLA+ text, as TLA/MCTransfer.tla bounds it.
func (w *Settings) domain(set string) (low, high uint8) {
	switch set {
	case "Transfer":
		return 1, w.NT
	case "Lease":
		return 1, w.NL
	case "Lease0", "Gen":
		return 0, w.NL
	case "SPage":
		return 1, w.NQ
	case "SPage0":
		return 0, w.NQ
	case "Transfer0":
		return 0, w.NT
	case "BOOLEAN", "Member":
		return 0, 1
	case "Page":
		return 0, w.pages() - 1
	case "Rank":
		return 0, w.ranks() - 1
	case "Chan":
		return 0, w.chans() - 1
	case "Tenant":
		return 0, uint8(len(w.Tenant)) - 1
	case "Adapter":
		return 0, uint8(len(w.Adapter)) - 1
	case "Prefix":
		return 0, uint8(len(w.Prefix)) - 1
	case "FailureCause":
		return CauseDerived, CauseOriginal
	case "SUBSET Page":
		return 0, 1<<w.pages() - 1
	case "SUBSET Rank":
		return 0, 1<<w.ranks() - 1
	case "Inc":
		return 0, w.NI
	case "DInc":
		return 0, w.ND
	case "Epoch":
		return 0, w.NE
	case "Nat":
		return 0, w.NL + 1
	}
	if words := stringsOf(set); words != nil {
		return 0, uint8(len(words) - 1)
	}
	return 1, 0
}

// setters give a parameter its value, by its name.
func setters() map[string]func(*Args, uint8) {
	return map[string]func(*Args, uint8){
		"t": func(a *Args, v uint8) { a.T = v }, "u": func(a *Args, v uint8) { a.U = v },
		"r": func(a *Args, v uint8) { a.R = v }, "a": func(a *Args, v uint8) { a.A = v },
		"f": func(a *Args, v uint8) { a.F = v }, "n": func(a *Args, v uint8) { a.N = v },
		"l": func(a *Args, v uint8) { a.L = v }, "x": func(a *Args, v uint8) { a.X = v },
		"p": func(a *Args, v uint8) { a.P = v }, "k": func(a *Args, v uint8) { a.K = v },
		"c": func(a *Args, v uint8) { a.C = v }, "i": func(a *Args, v uint8) { a.I = v },
		"q": func(a *Args, v uint8) { a.Q = v }, "v": func(a *Args, v uint8) { a.V = v },
		"g": func(a *Args, v uint8) { a.G = v }, "m": func(a *Args, v uint8) { a.M = v },
		"d": func(a *Args, v uint8) { a.D = v }, "e": func(a *Args, v uint8) { a.E = v },
		"S": func(a *Args, v uint8) { a.S = v }, "K": func(a *Args, v uint8) { a.Ks = v },
	}
}

// params reads "t Transfer, l Lease" as parameters and their domains.
func params(list ...string) []Param {
	var out []Param
	for i := 0; i+1 < len(list); i += 2 {
		out = append(out, Param{list[i], list[i+1]})
	}
	return out
}
