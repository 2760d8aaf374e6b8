package lockstep

import (
	"slices"

	"kvfence/model"
)

// edge is one step of the specification by its action and parameters.
type edge struct {
	name string
	args model.Args
}

// due is the steps of the specification that the engine has taken already when it comes to this state: it does them in one step with
// the one that led here. They come next, in any order but for Releases, and have no stimulus. Chains says which and why.
func (g *Graph) due(s *model.State, h *Hist) (out []edge) {
	released := false
	add := func(name string, a model.Args) {
		if name == "Release" && released {
			return // leases of one fence are free in the order of their grants: so their pages stand in the free list
		}
		released = released || name == "Release"
		out = append(out, edge{name, a})
	}
	n := g.set.lens
	for l := uint8(1); l <= g.w.NL; l++ {
		for k := range ranks(g.w) {
			g.dueSource(s, h, l, k, add)
			if s.Pst[l][k] == model.PstClosed && l < s.Pmark[k] {
				add("Forget", model.Args{L: l, K: k})
			}
		}
		g.dueLease(s, h, l, add)
	}
	for k := range ranks(g.w) {
		if g.wants(s, k) && (!g.owesOn(s, k) || !s.Up[k]) {
			add("Fence", model.Args{K: k})
		}
		if l := g.full(s, k); l != 0 && s.Pmark[k] <= l {
			add("OwnMark", model.Args{K: k, M: l + 1})
		}
	}
	for p := range pageCount(g.w) {
		for x := uint8(1); x <= g.w.NL; x++ {
			for v := range g.w.NL + 1 {
				if n.in(s, "pubs", p, v, x) && v != s.Gen[p] {
					add("Unpublish", model.Args{P: p, G: v, X: x})
				}
			}
		}
	}
	g.duePrefix(s, h, add)
	g.dueLeaders(s, h, add)
	if released { // a fence ends holds first, findings then
		out = slices.DeleteFunc(out, func(e edge) bool { return e.name == "QuarantineEnd" })
	}
	return out
}

// dueSource: a job takes and gives back all its source pages at once; what a failed write leaves is fenced at once.
func (g *Graph) dueSource(s *model.State, h *Hist, l, k uint8, add func(string, model.Args)) {
	for q := uint8(1); q <= g.w.NQ; q++ {
		if h.Source[l][k] == sourceTaking && s.Sown[k][q] == 0 && g.usesSource(k, q) {
			add("TakeSource", model.Args{L: l, K: k, Q: q})
		}
		if h.Source[l][k] == sourceGiving && s.Sown[k][q] == l {
			add("GiveBack", model.Args{L: l, K: k, Q: q})
		}
	}
	if !g.w.Losing || g.set.lens.in(s, "pfenced", k, s.Dof[l], s.Gep[l][k]) {
		return
	}
	for p := range pageCount(g.w) {
		for c := range uint8(len(g.w.Chan)) {
			if g.set.lens.in(s, "lost", l, k, p, c, s.Pinc[k]) {
				add("PrefillFence", model.Args{K: k, D: s.Dof[l], E: s.Gep[l][k]})
				return
			}
		}
	}
}

// dueLease: what holds nothing any more is free at once.
func (g *Graph) dueLease(s *model.State, h *Hist, l uint8, add func(string, model.Args)) {
	switch {
	case s.Dst[l] == model.DstRevoking && !holds(g.w, s, l) && !allGot(g.w, s, l):
		add("Release", model.Args{L: l})
	case s.Dst[l] == model.DstReady && h.Parent[l] != 0 && s.Dst[h.Parent[l]] != model.DstReady:
		add("Release", model.Args{L: l})
	case s.Dst[l] == model.DstBad && g.cured(s, l):
		add("QuarantineEnd", model.Args{L: l})
	}
}

// cured is the guard of QuarantineEnd.
func (g *Graph) cured(s *model.State, l uint8) bool {
	for k := range ranks(g.w) {
		if g.concerns(s, l, k) && (s.Hold[l][k] || s.Qep[l][k] >= s.Ep[k] || s.Fencing[k]) {
			return false
		}
	}
	return !g.set.lens.kernel(g.w, s, l)
}

// concerns says that link k was granted a page of l, its own or one that it shares.
func (g *Graph) concerns(s *model.State, l, k uint8) bool {
	if s.Owes[l][k] {
		return true
	}
	for p := range pageCount(g.w) {
		for x := uint8(1); x <= g.w.NL; x++ {
			if s.Owes[x][k] && g.set.lens.in(s, "shr", l, p, x) {
				return true
			}
		}
	}
	return false
}

// wants says that a quarantine waits for a fence of link k that has not begun.
func (g *Graph) wants(s *model.State, k uint8) bool {
	for l := uint8(1); l <= g.w.NL; l++ {
		if s.Dst[l] == model.DstBad && g.concerns(s, l, k) && s.Qep[l][k] == s.Ep[k] {
			return true
		}
	}
	return false
}

func (g *Graph) owesOn(s *model.State, k uint8) bool {
	for l := uint8(1); l <= g.w.NL; l++ {
		if s.Hold[l][k] {
			return true
		}
	}
	return false
}

// full is the lease whose answer a rank forgets because it keeps too many; 0: none.
func (g *Graph) full(s *model.State, k uint8) uint8 {
	n, first := 0, uint8(0)
	for l := g.w.NL; l >= 1; l-- {
		if s.Pst[l][k] == model.PstClosed {
			n, first = n+1, l
		}
	}
	if g.set.Answers == 0 || n <= g.set.Answers {
		return 0
	}
	return first
}

// usesSource says that a prompt at rank k is computed into source page q.
func (g *Graph) usesSource(k, q uint8) bool {
	return uint32(q) <= g.set.sources() || uint32(q) > g.set.Source && g.set.Aux > 0 && k == g.w.AuxWriter
}

// duePrefix: a lease shares what it can when it is granted, and what it fills is published when it is ready.
func (g *Graph) duePrefix(s *model.State, h *Hist, add func(string, model.Args)) {
	if g.set.Published == 0 {
		return
	}
	if l := h.Shares; l != 0 && g.shortOf(s, l) {
		if p, v, x, ok := g.known(s, l); ok {
			add("Share", model.Args{L: l, P: p, G: v, X: x})
		}
	}
	if l := h.Fresh; l != 0 && s.Dst[l] == model.DstReady {
		if p, ok := g.fullPage(s, h, l); ok && !s.App[p] {
			if _, _, _, known := g.known(s, l); !known {
				add("Publish", model.Args{L: l, P: p})
			}
		}
	}
}

// shortOf says that a lease has fewer KV pages of its own than it needs: the rest is shared.
func (g *Graph) shortOf(s *model.State, l uint8) bool {
	n := uint32(0)
	for p := range g.set.KV {
		if s.Gpage[l][p] != 0 {
			n++
		}
	}
	return n < g.set.need()
}

// known finds the publication of the first page of a lease's prompt, in the generation that it has now.
func (g *Graph) known(s *model.State, l uint8) (p, v, x uint8, ok bool) {
	return g.knownOf(s, s.Ten[l], s.Ada[l], s.Pre[l])
}

func (g *Graph) knownOf(s *model.State, ten, ada, pre uint8) (p, v, x uint8, ok bool) {
	for p := range uint8(g.set.KV) {
		for x := uint8(1); x <= g.w.NL; x++ {
			if g.set.lens.in(s, "pubs", p, s.Gen[p], x) && s.Ten[x] == ten && s.Ada[x] == ada && s.Pre[x] == pre {
				return p, s.Gen[p], x, true
			}
		}
	}
	return 0, 0, 0, false
}

// fullPage is the page that a lease's prompt fills, if it is its own.
func (g *Graph) fullPage(s *model.State, h *Hist, l uint8) (uint8, bool) {
	if g.set.Prompt < tokensPerPage || g.shortOf(s, l) {
		return 0, false
	}
	for p := range uint8(g.set.KV) {
		if h.Seq[l][p] == 1 && s.Own[p] == l {
			return p, true
		}
	}
	return 0, false
}
