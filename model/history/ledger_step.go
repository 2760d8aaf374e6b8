package history

import (
	"slices"

	"kvfence/spec"
)

// step carries out one operation on s if the answer is one that it may have; s is of no use after false.
func (s *ledger) step(in any, a Answer) bool {
	why := s.against(in)
	if a.Refused != "" {
		// A refusal changes nothing and says nothing else.
		return slices.Contains(why, a.Refused) && a.only(Answer{Refused: a.Refused})
	}
	return len(why) == 0 && s.do(in, a)
}

// only reports whether an answer says nothing but what w says.
func (a Answer) only(w Answer) bool {
	return a.Refused == w.Refused && slices.Equal(a.Pages, w.Pages) && a.Freed == w.Freed && a.Over == w.Over && a.Group == w.Group &&
		a.Done == w.Done && a.Pub == w.Pub && slices.Equal(a.Ended, w.Ended) && a.Owner == w.Owner && a.Gen == w.Gen && a.State == w.State && a.Counts == w.Counts
}

// against is everything that speaks against an operation.
func (s *ledger) against(in any) (why []Refusal) {
	switch x := in.(type) {
	case Take:
		return s.againstTake(x)
	case Begin:
		o := s.owner(x.Owner)
		switch {
		case o == nil:
			return []Refusal{UnknownOwner}
		case len(o.holds) == 0:
			return []Refusal{Revoked}
		case slices.Contains(o.holds, x.Hold):
			return []Refusal{HoldExists}
		}
	case End:
		o := s.owner(x.Owner)
		switch {
		case o == nil:
			return []Refusal{UnknownOwner}
		case !slices.Contains(o.holds, x.Hold):
			return []Refusal{UnknownHold}
		}
	case Revoke:
		if s.owner(x.Owner) == nil {
			return []Refusal{UnknownOwner}
		}
	case BeginGroup:
		if o := s.owner(x.Owner); o != nil && len(o.holds) == 0 {
			why = append(why, Revoked)
		}
		if s.owner(x.Owner) == nil {
			why = append(why, UnknownOwner)
		}
		for _, p := range x.Pages {
			why = append(why, s.notOf(x.Owner, p)...)
		}
	case EndGroup:
		if s.group(x.Group) < 0 {
			return []Refusal{UnknownHold}
		}
	default:
		return s.againstPage(in)
	}
	return why
}

func (s *ledger) againstTake(x Take) (why []Refusal) {
	o := s.owner(x.Owner)
	if x.Owner == 0 {
		why = append(why, UnknownOwner)
	}
	if o != nil && o.revoked {
		why = append(why, Revoked)
	}
	for i, p := range x.These {
		if !s.known(p) {
			why = append(why, UnknownPage)
		} else if !s.free(p) || slices.Contains(x.These[:i], p) {
			why = append(why, NotFree)
		}
	}
	if x.These != nil {
		return why
	}
	// Take names no reason but that there is none.
	if len(why) > 0 || x.N > s.counts()[0] {
		return []Refusal{NoRoom}
	}
	return nil
}

// notOf is why a page is not an owner's.
func (s *ledger) notOf(id uint64, p spec.PageID) []Refusal {
	switch {
	case !s.known(p):
		return []Refusal{UnknownPage}
	case s.free(p):
		return []Refusal{AlreadyFree}
	case s.pages[p].owner != id:
		return []Refusal{ForeignOwner}
	}
	return nil
}

// ofOwner is notOf, and that the owner has nothing.
func (s *ledger) ofOwner(id uint64, p spec.PageID) []Refusal {
	if s.owner(id) == nil {
		return append(s.notOf(id, p), UnknownOwner)
	}
	return s.notOf(id, p)
}

func (s *ledger) againstPage(in any) (why []Refusal) {
	switch x := in.(type) {
	case Quarantine:
		if x.Group == 0 {
			return s.ofOwner(x.Owner, x.Page)
		}
		if i := s.group(x.Group); i < 0 || !s.groups[i].shared || x.At >= len(s.groups[i].pages) || s.groups[i].pages[x.At] != x.Page {
			return []Refusal{UnknownHold}
		}
	case EndQuarantine:
		if !s.known(x.Page) {
			return []Refusal{UnknownPage}
		}
		if !s.pages[x.Page].bad {
			return []Refusal{NotBad}
		}
	case Publish:
		return s.againstPublish(x.Pub)
	case Unpublish:
		if s.pub(x.Page) < 0 {
			return []Refusal{NotPublished}
		}
	case Share:
		for _, p := range x.Pubs {
			why = append(why, s.againstShare(x.Domain, p)...)
		}
	case Store:
		why = s.ofOwner(x.Owner, x.Page)
		if s.known(x.Page) && (s.pub(x.Page) >= 0 || s.in(x.Page, true) > 0) {
			why = append(why, Published)
		}
	}
	return why
}

func (s *ledger) againstPublish(x Pub) (why []Refusal) {
	if s.room == 0 {
		return nil
	}
	why = s.ofOwner(x.Filler, x.Page)
	if o := s.owner(x.Filler); o != nil && (len(o.holds) == 0 || o.revoked) {
		why = append(why, Revoked)
	}
	if x.Content.IsZero() {
		why = append(why, OtherContent)
	}
	if !s.known(x.Page) {
		return why
	}
	r := s.pages[x.Page]
	for refusal, holds := range map[Refusal]bool{Stale: r.gen != x.Gen, Bad: r.bad, Stored: r.stored, Published: s.pub(x.Page) >= 0} {
		if holds {
			why = append(why, refusal)
		}
	}
	return why
}

func (s *ledger) againstShare(d spec.Domain, p Pub) (why []Refusal) {
	if !s.known(p.Page) {
		return []Refusal{UnknownPage}
	}
	if s.pages[p.Page].gen != p.Gen {
		why = append(why, Stale)
	}
	i := s.pub(p.Page)
	if i < 0 {
		return append(why, NotPublished)
	}
	if s.pubs[i].Content != p.Content {
		why = append(why, OtherContent)
	}
	if s.pubs[i].Domain != d {
		why = append(why, OtherDomain)
	}
	return why
}
