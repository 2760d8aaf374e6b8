package lockstep

import (
	"slices"

	"kvfence/model"
)

// Hist is what decides beside the specification's state what the engine may do next: how that state came about. It is computed from the
// specification's steps alone, never from the engine. Comparable.
type Hist struct {
	Why     [model.MaxLeases + 1][model.MaxRanks]uint8 // why a rank closes a lease: 1 an Abort, 2 a failure of its own
	Abort   [model.MaxLeases + 1][model.MaxRanks]bool  // an Abort was sent
	Out     [model.MaxRanks]bool                       // a connect is out in the present epoch
	Source  [model.MaxLeases + 1][model.MaxRanks]uint8 // source pages: see below
	Order   [model.MaxPages]uint8                      // free KV pages of decode in the order of their next hand-out, place + 1
	Seq     [model.MaxLeases + 1][model.MaxPages]uint8 // place of each KV page among those that a lease got, from 1
	Parent  [model.MaxLeases + 1]uint8                 // the lease that a grown page is part of
	Marks   [model.MaxRanks]uint8                      // bit m: mark m was said in this life of decode
	Fresh   uint8                                      // the lease that became ready in the last step
	Asked   [model.MaxTransfers + 1]uint8              // epoch + 1 of rank 0's link in which prefill was asked
	Report  [model.MaxTransfers + 1]uint8              // the class of what decode's rank reports of its lease
	Ready   [model.MaxTransfers + 1]bool               // its lease was ready
	Whole   bool                                       // decode's leader knows its side
	Held    bool                                       // the leader hears later that a link is open again
	Retried uint8                                      // the transfer that the last step began
	Shares  uint8                                      // the lease that was granted in the last step
}

// How far the source pages of a lease at a rank are.
const (
	sourceNone   uint8 = iota
	sourceTaking       // some taken
	sourceTaken
	sourceGiving // some given back
	sourceGiven
)

// first is the history of the initial state: every connect was answered.
func (g *Graph) first() (h Hist) {
	for p := range g.set.KV {
		h.Order[p] = uint8(p) + 1
	}
	return h
}

// after is the history behind one step.
func (g *Graph) after(s *model.State, h Hist, name string, a *model.Args, n *model.State) Hist {
	h.Fresh, h.Shares = 0, 0
	if name == "Publish" || name == "Unpublish" {
		h.Fresh = g.keepFresh(n, a)
	}
	if name == "Grant" {
		at := uint8(0)
		for _, p := range h.Order {
			if p != 0 && a.S>>(p-1)&1 != 0 {
				at++
				h.Seq[a.L][p-1] = at
			}
		}
	}
	g.aborts(s, &h, n)
	g.order(s, &h, n)
	g.leaderHist(s, &h, name, a, n)
	k := a.K
	switch name {
	case "Grant":
		h.Shares = a.L
	case "Grow":
		h.Parent[a.X] = a.L
	case "Ready":
		h.Fresh = a.L
	case "RecvAbort":
		h.Why[a.L][k] = 1
	case "Break":
		h.Why[a.L][k] = 2
	case "Lose":
		if s.Pst[a.L][k] == model.PstWriting {
			h.Why[a.L][k] = 2
		}
	case "Fence":
		h.Out[k] = len(g.due(s, &h)) == 0
	case "RaiseMark":
		h.Marks[k] |= 1 << a.M
	case "DecodeCrash":
		h.Marks = [model.MaxRanks]uint8{}
		for k := range ranks(g.w) {
			h.Out[k] = true
		}
		h.Parent = [model.MaxLeases + 1]uint8{}
	case "PrefillCrash":
		for l := range h.Why {
			h.Why[l][k], h.Source[l][k] = 0, sourceNone
		}
	case "TakeSource":
		h.Source[a.L][k] = sourceTaken
		if g.owned(n, a.L, k) < g.jobPages(k) {
			h.Source[a.L][k] = sourceTaking
		}
	case "GiveBack":
		h.Source[a.L][k] = sourceGiven
		if g.owned(n, a.L, k) > 0 {
			h.Source[a.L][k] = sourceGiving
		}
	}
	return h
}

func (g *Graph) keepFresh(n *model.State, a *model.Args) uint8 {
	for l := uint8(1); l <= g.w.NL; l++ {
		if n.Dst[l] == model.DstReady && n.Own[a.P] == l {
			return l
		}
	}
	return 0
}

// aborts notes the Aborts that leave with a step: a lease that is revoked is asked for on every link whose hold on it stands.
func (g *Graph) aborts(s *model.State, h *Hist, n *model.State) {
	for l := uint8(1); l <= g.w.NL; l++ {
		if n.Dst[l] != model.DstRevoking || s.Dst[l] == model.DstRevoking {
			continue
		}
		for k := range ranks(g.w) {
			h.Abort[l][k] = n.Hold[l][k] && n.Up[k] && n.Gep[l][k] == n.Ep[k] && n.Dof[l] == n.Dinc
		}
	}
}

// order keeps the free list: pages leave at its head, and come back at its end in the order in which their lease got them.
func (g *Graph) order(s *model.State, h *Hist, n *model.State) {
	if n.Dinc != s.Dinc {
		h.Order = g.first().Order
		return
	}
	var list, back []uint8
	for _, p := range h.Order {
		if p != 0 && g.free(n, p-1) {
			list = append(list, p)
		}
	}
	for p := range uint8(g.set.KV) {
		if g.free(n, p) && !g.free(s, p) {
			back = append(back, p+1)
		}
	}
	place := func(p uint8) int { // of one lease: its own in the order in which it got them, then those that it shared
		if s.Own[p-1] == 0 {
			return model.MaxPages + 1
		}
		return int(h.Seq[s.Own[p-1]][p-1])
	}
	slices.SortStableFunc(back, func(a, b uint8) int { return place(a) - place(b) })
	h.Order = [model.MaxPages]uint8{}
	copy(h.Order[:], append(list, back...))
}

// free says that decode's ledger may hand out page p.
func (g *Graph) free(s *model.State, p uint8) bool {
	if s.Own[p] != 0 {
		return false
	}
	for l := uint8(1); l <= g.w.NL; l++ {
		for x := uint8(1); x <= g.w.NL; x++ {
			if g.set.lens.in(s, "shr", l, p, x) {
				return false
			}
		}
	}
	return true
}

// jobPages is how many source pages a rank takes for a prompt.
func (g *Graph) jobPages(k uint8) uint8 {
	n := uint8(g.set.sources())
	if g.set.Aux > 0 && k == g.w.AuxWriter {
		n++
	}
	return n
}

// owned is how many source pages of rank k a lease has.
func (g *Graph) owned(s *model.State, l, k uint8) (n uint8) {
	for q := uint8(1); q <= g.w.NQ; q++ {
		if s.Sown[k][q] == l {
			n++
		}
	}
	return n
}
