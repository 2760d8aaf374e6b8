package core

import (
	"fmt"

	"kvfence/spec"
)

// judgeGrant tests a grant against its job, the pools and the plan rules, and lays out its parts. "" means that it may be worked
// on; otherwise the text says what is wrong, and nothing of it is ever posted.
func (r *PrefillRank) judgeGrant(l *prefillLease) string {
	g, j, k := l.grant, l.job, l.link
	switch {
	case g.Tokens == 0:
		return "a grant of no tokens"
	case g.Digests != r.cfg.Digests:
		return "page digests differ from the link's setting"
	case j.assigned && g.Tokens != j.tokens:
		return fmt.Sprintf("the grant is for %d tokens, prefill was asked for %d", g.Tokens, j.tokens)
	case j.assigned && g.Domain != j.domain:
		return "the grant is for another domain"
	case j.assigned && !j.expects(k.identity.Incarnation):
		return "this decode rank was not announced for the transfer"
	}
	for _, o := range j.leases {
		if o != l && o.link == k {
			return "a second lease of one transfer on one link"
		}
	}
	for i, p := range g.Parts {
		if why := r.judgePart(k, g, i, p); why != "" {
			return fmt.Sprintf("part %d of %s: %s", p.Index, p.Component, why)
		}
		lo, hi := p.PageRange(*layoutOf(r.own, p.Component))
		l.parts = append(l.parts, prefillPart{part: p, lo: lo, hi: hi, toSeal: lo, sealed: lo, posted: lo})
	}
	if !k.pull {
		return judgePages(k, g)
	}
	return r.judgeSlots(l)
}

// judgePart tests one part: ours to owe, within both pools, one writer for each byte (I13).
func (r *PrefillRank) judgePart(k *prefillLink, g spec.Grant, i int, p spec.Part) string {
	own, theirs := layoutOf(r.own, p.Component), layoutOf(k.layouts, p.Component)
	switch {
	case p.Rank != r.cfg.Identity.Rank:
		return fmt.Sprintf("it is rank %d's", p.Rank)
	case own == nil || theirs == nil:
		return "there is no such pool at both ends"
	case !within(p, own.Shape) || !within(p, theirs.Shape):
		return "layers or heads outside of a pool"
	case uint32(p.Index) >= uint32(theirs.Shape.TagSlots):
		return fmt.Sprintf("its slot is outside of the %d that a page has", theirs.Shape.TagSlots)
	case own.Equal.TokensPerPage != 0 && (p.TokenLo > p.TokenHi || p.TokenHi > g.Tokens):
		return fmt.Sprintf("tokens [%d,%d) of a request of %d", p.TokenLo, p.TokenHi, g.Tokens)
	case own.Equal.TokensPerPage == 0 && (p.TokenLo != 0 || p.TokenHi != 0):
		return "a token range of a whole-request record"
	}
	if writer, ok := AuxWriter(r.cfg.SideLayouts); p.Component == spec.Aux && (!ok || writer != r.cfg.Identity.Rank) {
		return fmt.Sprintf("the declared writer is rank %d", writer)
	}
	if _, hi := p.PageRange(*own); !k.pull && uint64(hi) > uint64(len(g.Pages[p.Component])) {
		return fmt.Sprintf("it needs %d pages, the grant has %d", hi, len(g.Pages[p.Component]))
	}
	for _, o := range g.Parts[:i] {
		if o.Component == p.Component && (o.Index == p.Index || overlap(o, p)) {
			return fmt.Sprintf("it shares a slot or bytes with part %d", o.Index)
		}
	}
	return ""
}

func within(p spec.Part, s spec.Shape) bool {
	return p.LayerLo < p.LayerHi && p.LayerLo >= s.LayerLo && p.LayerHi <= s.LayerHi &&
		p.HeadLo < p.HeadHi && p.HeadLo >= s.HeadLo && p.HeadHi <= s.HeadHi
}

func overlap(a, b spec.Part) bool {
	cross := func(aLo, aHi, bLo, bHi uint32) bool { return aLo < bHi && bLo < aHi }
	tokens := cross(a.TokenLo, a.TokenHi, b.TokenLo, b.TokenHi) || a.TokenHi == 0 && b.TokenHi == 0
	return tokens && cross(a.LayerLo, a.LayerHi, b.LayerLo, b.LayerHi) && cross(a.HeadLo, a.HeadHi, b.HeadLo, b.HeadHi)
}

// judgePages tests the pages of a push grant: within decode's pool, handed out, none twice. The first KV pages may be void: decode shares
// what they hold, and no part has a byte there.
func judgePages(k *prefillLink, g spec.Grant) string {
	for c := range spec.ComponentCount {
		if len(g.Pages[c]) == 0 {
			continue
		}
		theirs := layoutOf(k.layouts, c)
		if theirs == nil {
			return fmt.Sprintf("pages of %s, which decode does not have", c)
		}
		seen := make(map[spec.PageID]struct{}, len(g.Pages[c]))
		for _, p := range g.Pages[c][judgeShared(theirs, g, c):] {
			if uint32(p.Page) >= theirs.Shape.Pages || p.Gen == 0 {
				return fmt.Sprintf("%s page %d generation %d is not one of decode's pool of %d", c, p.Page, p.Gen, theirs.Shape.Pages)
			}
			if _, twice := seen[p.Page]; twice {
				return fmt.Sprintf("%s page %d is named twice", c, p.Page)
			}
			seen[p.Page] = struct{}{}
		}
	}
	return ""
}

// judgeShared is how many KV pages a push grant leaves out at its beginning: the void ones before the first that a part has bytes in.
func judgeShared(theirs *spec.Layout, g spec.Grant, c spec.Component) (n uint32) {
	if c != spec.KV {
		return 0
	}
	first := uint32(len(g.Pages[c]))
	for _, p := range g.Parts {
		if lo, hi := p.PageRange(*theirs); p.Component == c && lo < hi {
			first = min(first, lo)
		}
	}
	for n < first && g.Pages[c][n] == (spec.GrantedPage{}) {
		n++
	}
	return n
}

// SourceSlot is the tag slot of a part in prefill's source pages (pull). Several ranks of one decode side may read the same page,
// each with tags of its own, and each numbers its parts from 0: the slots of one part number lie beside each other, by reader's rank.
func SourceSlot(p spec.Part, reader spec.Identity) spec.PartIndex {
	return spec.PartIndex(min(uint32(p.Index)*uint32(reader.Size)+uint32(reader.Rank), uint32(spec.PartLocal)))
}

// judgeSlots tests that every part has a tag slot of its own in the source pages.
func (r *PrefillRank) judgeSlots(l *prefillLease) string {
	for _, p := range l.parts {
		own := layoutOf(r.own, p.part.Component)
		if uint32(SourceSlot(p.part, l.link.identity)) >= uint32(own.Shape.TagSlots) {
			return fmt.Sprintf("part %d of %s has no tag slot for reader %d of %d in a source page of %d", p.part.Index, p.part.Component, l.link.identity.Rank, l.link.identity.Size, own.Shape.TagSlots)
		}
		for _, o := range l.job.leases {
			for _, q := range o.parts {
				if o != l && o.link.pull && q.part.Component == p.part.Component && SourceSlot(q.part, o.link.identity) == SourceSlot(p.part, l.link.identity) && q.lo < p.hi && p.lo < q.hi {
					return fmt.Sprintf("another decode rank's part %d of %s has the same tag slot in the source pages", q.part.Index, q.part.Component)
				}
			}
		}
	}
	return ""
}
