package core

import (
	"fmt"

	"kvfence/spec"
)

// partBytes is how many bytes of part p lie in page index i of layout l: the sum of its segments, without making them.
func partBytes(l *spec.Layout, p spec.Part, i uint32) uint32 {
	lo, hi := p.Tokens(*l, i)
	if lo >= hi {
		return 0
	}
	m := l.Equal
	return (p.LayerHi - p.LayerLo) * m.KVs * (p.HeadHi - p.HeadLo) * (hi - lo) * m.HeadDim * m.ElemBytes
}

// plan computes the parts that a prefill side owes for tokens prompt tokens, all components, in order of component and index. The
// tokens before from are there already (shared whole KV pages): nobody owes them.
func (r *DecodeRank) plan(side []*dlink, tokens, from uint32) ([]spec.Part, error) {
	all := make([][]spec.Layout, len(side))
	for i, k := range side {
		all[i] = k.layouts
	}
	var parts []spec.Part
	for c := range spec.ComponentCount {
		own := r.layouts[c]
		srcs, any := make([]*spec.Layout, len(side)), false
		for i := range side {
			srcs[i] = layoutOf(all[i], c)
			any = any || srcs[i] != nil
		}
		if own == nil {
			if any && c == spec.State {
				return nil, fmt.Errorf("%w: prefill has a %s pool, decode has none", spec.ErrPlan, c)
			}
			continue
		}
		writer, ok := AuxWriter(all)
		if c == spec.Aux && !ok {
			return nil, fmt.Errorf("%w: no prefill rank has an %s pool", spec.ErrPlan, c)
		}
		ps, err := spec.PlanParts(*own, srcs, tokens, writer)
		if err != nil {
			return nil, err
		}
		for i := range ps {
			if c == spec.KV {
				ps[i].TokenLo = from
			}
		}
		parts = append(parts, ps...)
	}
	return parts, nil
}

// pagesNeeded is how many pages of each own component positions 0..tokens take: the prompt and the place of the first new token.
func (r *DecodeRank) pagesNeeded(tokens uint32) (n [spec.ComponentCount]uint32, err error) {
	if tokens == ^uint32(0) {
		return n, fmt.Errorf("%w: %d tokens", spec.ErrPlan, tokens)
	}
	for c, l := range r.layouts {
		if l == nil {
			continue
		}
		n[c] = l.PagesFor(tokens + 1)
		if n[c] > l.Shape.Pages-r.cfg.Reserve[c] {
			return n, fmt.Errorf("%w: %d %s pages needed, the pool has %d", spec.ErrPlan, n[c], spec.Component(c), l.Shape.Pages-r.cfg.Reserve[c])
		}
	}
	return n, nil
}

// partsOf are the parts that the prefill rank of one link owes.
func (l *dlease) partsOf(rank int) (ps []spec.Part) {
	for _, p := range l.parts {
		if int(p.Rank) == rank {
			ps = append(ps, p)
		}
	}
	return ps
}

// tag is what the slot of part p in page index i must hold, by the ledger; digest is the manifest's.
func (r *DecodeRank) tag(l *dlease, p spec.Part, i uint32, digest uint64, has bool) spec.Tag {
	return spec.Tag{Lease: l.id, Gen: l.pages[p.Component][i].Gen, Part: p.Index, Index: i, Domain: l.domain, Digest: digest,
		Used: partBytes(r.layouts[p.Component], p, i), HasDigest: has}
}

// localTag is decode's own tag of a page that it fills itself.
func (l *dlease) localTag(c spec.Component, i uint32) spec.Tag {
	return spec.Tag{Lease: l.id, Gen: l.pages[c][i].Gen, Part: spec.PartLocal, Index: i, Domain: l.domain}
}

// localFrom is the first KV page index that prefill owes nothing of, for this lease or another: decode fills the pages from there itself.
func (r *DecodeRank) localFrom(l *dlease) uint32 {
	if l.fork {
		return uint32(len(l.shared))
	}
	return r.layouts[spec.KV].PagesFor(l.tokens)
}
