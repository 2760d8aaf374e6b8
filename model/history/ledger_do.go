package history

import (
	"cmp"
	"slices"

	"kvfence/spec"
)

// do carries out an operation that nothing speaks against, and reports whether its answer is right.
func (s *ledger) do(in any, a Answer) bool {
	switch x := in.(type) {
	case Take:
		return s.take(x, a)
	case Begin:
		o := s.owner(x.Owner)
		o.holds = append(slices.Clone(o.holds), x.Hold)
		slices.SortFunc(o.holds, func(a, b Hold) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID)) })
		return a.only(Answer{})
	case End:
		o := s.owner(x.Owner)
		o.holds = slices.DeleteFunc(slices.Clone(o.holds), func(h Hold) bool { return h == x.Hold })
		over := len(o.holds) == 0
		o.revoked = o.revoked || over
		return a.only(Answer{Over: over, Freed: s.sweep()})
	case Revoke:
		s.owner(x.Owner).revoked = true
		return a.only(Answer{})
	case BeginGroup:
		return s.begin(a, x.Pages, false)
	case Share:
		var these []spec.PageID
		for _, p := range x.Pubs {
			these = append(these, p.Page)
			if s.free(p.Page) {
				s.pages[p.Page].kept = true
			}
		}
		return s.begin(a, these, true)
	case EndGroup:
		i := s.group(x.Group)
		s.groups = slices.Delete(s.groups, i, i+1)
		return a.only(Answer{Freed: s.sweep()})
	case Quarantine:
		ended := s.withdraw(x.Page)
		s.pages[x.Page].bad = true
		return a.only(Answer{Ended: ended})
	case EndQuarantine:
		s.pages[x.Page].bad = false
		return a.only(Answer{Freed: s.sweep()})
	case Publish:
		return s.publish(x.Pub, a)
	case Unpublish:
		return a.only(Answer{Ended: s.withdraw(x.Page)})
	case Store:
		s.pages[x.Page].stored = true
		return a.only(Answer{})
	}
	return s.read(in, a)
}

// read answers from the state and changes nothing. An operation that is none is refused here.
func (s *ledger) read(in any, a Answer) bool {
	switch x := in.(type) {
	case Find:
		if i := s.content(x.Content); i >= 0 {
			return a.only(Answer{Done: true, Pub: s.pubs[i]})
		}
		return a.only(Answer{})
	case Look:
		if !s.known(x.Page) {
			return a.only(Answer{})
		}
		r := s.pages[x.Page]
		return a.only(Answer{Owner: r.owner, Gen: r.gen, State: s.state(x.Page), Done: r.stored})
	case Count:
		return a.only(Answer{Counts: s.counts()})
	}
	return false
}

// take hands out the pages that the answer names: as many as were asked for, or those that were, all of them free, each one generation up.
func (s *ledger) take(x Take, a Answer) bool {
	if n := len(a.Pages); x.These == nil && n != x.N || x.These != nil && n != len(x.These) {
		return false
	}
	s.open(x.Owner)
	var ended []spec.PageID
	for i, g := range a.Pages {
		if !s.known(g.Page) || !s.free(g.Page) || g.Gen != s.pages[g.Page].gen+1 || x.These != nil && x.These[i] != g.Page {
			return false
		}
		ended = append(ended, s.withdraw(g.Page)...)
		s.pages[g.Page] = ledgerPage{gen: g.Gen, owner: x.Owner}
	}
	return a.only(Answer{Pages: a.Pages, Ended: ended})
}

// begin adds a group under the number that the answer names; numbers only rise.
func (s *ledger) begin(a Answer, these []spec.PageID, shared bool) bool {
	if a.Group <= s.last || !a.only(Answer{Group: a.Group}) {
		return false
	}
	s.last = a.Group
	s.groups = append(s.groups, ledgerGroup{a.Group, slices.Clone(these), shared})
	return true
}

// withdraw ends a page's publication, if it has one.
func (s *ledger) withdraw(p spec.PageID) []spec.PageID {
	i := s.pub(p)
	if i < 0 {
		return nil
	}
	s.pubs = slices.Delete(s.pubs, i, i+1)
	return []spec.PageID{p}
}

// publish adds a publication, unless its content is known or there is no room. Where room is made, the answer names whose publication
// ended for it: one that nobody shares.
func (s *ledger) publish(x Pub, a Answer) bool {
	full := len(s.pubs) >= s.room
	idle := slices.ContainsFunc(s.pubs, func(o Pub) bool { return s.in(o.Page, true) == 0 })
	if s.room == 0 || s.content(x.Content) >= 0 || full && !idle {
		return a.only(Answer{})
	}
	if full {
		if len(a.Ended) != 1 || s.pub(a.Ended[0]) < 0 || s.in(a.Ended[0], true) > 0 {
			return false
		}
		s.withdraw(a.Ended[0])
	} else if len(a.Ended) > 0 {
		return false
	}
	i, _ := slices.BinarySearchFunc(s.pubs, x.Page, func(o Pub, p spec.PageID) int { return cmp.Compare(o.Page, p) })
	s.pubs = slices.Insert(s.pubs, i, x)
	return a.only(Answer{Done: true, Ended: a.Ended})
}
