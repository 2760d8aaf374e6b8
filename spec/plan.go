package spec

import (
	"errors"
	"fmt"
)

// Part is what one prefill rank owes of a request to one decode rank: a component, global layers and heads, a token range.
// It covers every page of the lease's component that holds a token of the range. Its Index is its tag slot in each page.
type Part struct {
	Component        Component
	Index            PartIndex
	Rank             Rank // prefill rank that owes it
	LayerLo, LayerHi uint32
	HeadLo, HeadHi   uint32
	TokenLo, TokenHi uint32 // [lo, hi); 0,0 for a whole-request record
}

// GrantedPage is one page of a lease with the generation of this hand-out.
type GrantedPage struct {
	Page PageID
	Gen  Generation
}

// Plan is one lease's pages and the parts owed, for one decode rank. Parts of all prefill ranks stand in it; each link's grant
// carries all pages and only that link's parts.
type Plan struct {
	Tokens uint32 // prompt tokens
	Pages  [ComponentCount][]GrantedPage
	Parts  []Part
}

// ErrPlan is wrapped when owed bytes cannot be covered exactly once, or a page would need more tag slots than it has.
var ErrPlan = errors.New("no plan")

// PagesFor is how many pages of l hold positions 0..tokens-1.
func (l Layout) PagesFor(tokens uint32) uint32 {
	if l.Equal.TokensPerPage == 0 {
		return 1
	}
	return uint32((uint64(tokens) + uint64(l.Equal.TokensPerPage) - 1) / uint64(l.Equal.TokensPerPage))
}

// PageRange is the page indexes [lo, hi) of the lease that p touches.
func (p Part) PageRange(l Layout) (lo, hi uint32) {
	t := l.Equal.TokensPerPage
	if t == 0 {
		return 0, 1
	}
	if p.TokenLo >= p.TokenHi {
		return 0, 0
	}
	return p.TokenLo / t, (p.TokenHi-1)/t + 1
}

// Tokens is how many tokens of p lie in page index i: [lo, hi) within the page.
func (p Part) Tokens(l Layout, i uint32) (lo, hi uint32) {
	t := l.Equal.TokensPerPage
	if t == 0 && i == 0 {
		return 0, 1
	}
	if t == 0 {
		return 0, 0
	}
	first := uint64(i) * uint64(t)
	last := first + uint64(t)
	if last <= uint64(p.TokenLo) || first >= uint64(p.TokenHi) {
		return 0, 0
	}
	lo = uint32(max(first, uint64(p.TokenLo)) - first)
	hi = uint32(min(last, uint64(p.TokenHi)) - first)
	return lo, hi
}

// PlanParts computes which prefill rank owes what to a decode rank of layout dst: every (layer, head) cell of dst is owed by
// exactly one prefill rank, the lowest that holds it. srcs[k] is prefill rank k's layout of the same component, or nil if it
// has none. writer is the one declared writer of a whole-request record (Aux).
func PlanParts(dst Layout, srcs []*Layout, tokens uint32, writer Rank) ([]Part, error) {
	if dst.Component == Aux {
		if int(writer) >= len(srcs) || srcs[writer] == nil {
			return nil, fmt.Errorf("%w: the declared writer, rank %d, has no %s pool", ErrPlan, writer, dst.Component)
		}
		srcs = oneOf(srcs, writer)
	}
	s := dst.Shape
	if s.LayerLo >= s.LayerHi || s.LayerHi > MaxLayers || s.HeadLo >= s.HeadHi || s.HeadHi > MaxHeads || len(srcs) > MaxRanks {
		return nil, fmt.Errorf("%w: %s layers %d..%d, heads %d..%d, from %d ranks", ErrPlan, dst.Component, s.LayerLo, s.LayerHi, s.HeadLo, s.HeadHi, len(srcs))
	}
	owed := newCells(s)
	var parts []Part
	for k, src := range srcs {
		if src == nil {
			continue
		}
		if src.Component != dst.Component {
			return nil, fmt.Errorf("%w: prefill rank %d's %s is no %s", ErrPlan, k, src.Component, dst.Component)
		}
		lLo, lHi := max(s.LayerLo, src.Shape.LayerLo), min(s.LayerHi, src.Shape.LayerHi)
		hLo, hHi := max(s.HeadLo, src.Shape.HeadLo), min(s.HeadHi, src.Shape.HeadHi)
		if lLo >= lHi || hLo >= hHi {
			continue
		}
		if owed.all(lLo, lHi, hLo, hHi) {
			continue // a replica: a lower rank owes these already
		}
		if owed.any(lLo, lHi, hLo, hHi) {
			return nil, fmt.Errorf("%w: %s of prefill rank %d overlaps a lower rank's in part", ErrPlan, dst.Component, k)
		}
		owed.mark(lLo, lHi, hLo, hHi)
		hi := tokens
		if dst.Equal.TokensPerPage == 0 {
			hi = 0
		}
		parts = append(parts, Part{Component: dst.Component, Index: PartIndex(len(parts)), Rank: Rank(k), LayerLo: lLo, LayerHi: lHi, HeadLo: hLo, HeadHi: hHi, TokenHi: hi})
	}
	if !owed.all(s.LayerLo, s.LayerHi, s.HeadLo, s.HeadHi) {
		return nil, fmt.Errorf("%w: no prefill rank has all of %s layers %d..%d, heads %d..%d", ErrPlan, dst.Component, s.LayerLo, s.LayerHi, s.HeadLo, s.HeadHi)
	}
	if len(parts) > int(s.TagSlots) {
		return nil, fmt.Errorf("%w: %s needs %d parts a page, the page has %d tag slots", ErrPlan, dst.Component, len(parts), s.TagSlots)
	}
	return parts, nil
}

func oneOf(srcs []*Layout, k Rank) []*Layout {
	only := make([]*Layout, len(srcs))
	only[k] = srcs[k]
	return only
}

// cells is a set of (layer, head) pairs of one shape.
type cells struct {
	s    Shape
	bits []bool
}

func newCells(s Shape) *cells {
	return &cells{s, make([]bool, int(s.LayerHi-s.LayerLo)*int(s.HeadHi-s.HeadLo))}
}

func (c *cells) each(lLo, lHi, hLo, hHi uint32, f func(i int)) {
	w := int(c.s.HeadHi - c.s.HeadLo)
	for l := lLo; l < lHi; l++ {
		for h := hLo; h < hHi; h++ {
			f(int(l-c.s.LayerLo)*w + int(h-c.s.HeadLo))
		}
	}
}

func (c *cells) mark(lLo, lHi, hLo, hHi uint32) {
	c.each(lLo, lHi, hLo, hHi, func(i int) { c.bits[i] = true })
}

func (c *cells) any(lLo, lHi, hLo, hHi uint32) (is bool) {
	c.each(lLo, lHi, hLo, hHi, func(i int) { is = is || c.bits[i] })
	return is
}

func (c *cells) all(lLo, lHi, hLo, hHi uint32) bool {
	is := true
	c.each(lLo, lHi, hLo, hHi, func(i int) { is = is && c.bits[i] })
	return is
}
