package lockstep

import "kvfence/model"

// lens reads and writes the variables of a model.State by their names in the TLA+ text; sets of tuples can be reached only so.
type lens struct{ vars map[string]model.Variable }

func newLens() lens {
	l := lens{map[string]model.Variable{}}
	for _, v := range model.Variables() {
		l.vars[v.Name] = v
	}
	return l
}

// in reports whether a tuple is in a set.
func (l lens) in(s *model.State, name string, at ...uint8) bool {
	return l.vars[name].Get(s, index(at)) != 0
}

// put adds a tuple to a set.
func (l lens) put(s *model.State, name string, at ...uint8) { l.vars[name].Set(s, index(at), 1) }

func index(at []uint8) (x model.Index) {
	copy(x[:], at)
	return x
}

// owed says that rank k owes lease l its part of page p.
func owed(w *model.Settings, s *model.State, l, k, p uint8) bool {
	return s.Owes[l][k] && s.Gpage[l][p] != 0 && has(w, k, p)
}

// has says that rank k has a part of pages like p.
func has(w *model.Settings, k, p uint8) bool {
	return (w.Aux>>p&1 == 0 || k == w.AuxWriter) && (w.State>>p&1 == 0 || w.StateRank>>k&1 != 0)
}

func ranks(w *model.Settings) uint8     { return uint8(len(w.Rank)) }
func pageCount(w *model.Settings) uint8 { return uint8(len(w.Page)) }

// holds says whether a hold of lease l stands on any link.
func holds(w *model.Settings, s *model.State, l uint8) bool {
	for k := range ranks(w) {
		if s.Hold[l][k] {
			return true
		}
	}
	return false
}

// allGot says that the part of every link that owes lease l one was taken.
func allGot(w *model.Settings, s *model.State, l uint8) bool {
	for k := range ranks(w) {
		if s.Owes[l][k] && !s.Got[l][k] {
			return false
		}
	}
	return true
}

// kernel says that a kernel of lease l runs.
func (n lens) kernel(w *model.Settings, s *model.State, l uint8) bool {
	for p := range pageCount(w) {
		for x := uint8(1); x <= w.NL; x++ {
			for g := range w.NL + 1 {
				if n.in(s, "krn", l, p, g, x) {
					return true
				}
			}
		}
	}
	return false
}

// tagOk says that the tags of page p are those of lease x.
func tagOk(w *model.Settings, s *model.State, p, x uint8) bool {
	for k := range ranks(w) {
		if owed(w, s, x, k, p) && s.Tagl[p][k] != x {
			return false
		}
	}
	return true
}

// fills says that lease l expects in page p what was filled for lease x.
func (n lens) fills(s *model.State, l, p, x uint8) bool {
	return s.Own[p] == l && x == l || n.in(s, "shr", l, p, x)
}

// accepted is the highest epoch that the present incarnation of prefill rank k accepted of decode incarnation d; false: none.
func (n lens) accepted(w *model.Settings, s *model.State, k, d uint8) (e uint8, ok bool) {
	for x := range w.NE + 1 {
		if n.in(s, "acc", k, s.Pinc[k], d, x) {
			e, ok = x, true
		}
	}
	return e, ok
}
