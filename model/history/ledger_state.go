package history

import (
	"slices"

	"kvfence/spec"
)

// ledger is the state: naive lists of reasons, nothing counted twice.
type ledger struct {
	room   int // publications at most
	pages  []ledgerPage
	owners []ledgerOwner // in order of id
	groups []ledgerGroup // in order of number
	last   uint64        // highest number of a group
	pubs   []Pub         // in order of page
}

type ledgerPage struct {
	gen    spec.Generation
	owner  uint64 // 0: nobody
	kept   bool   // its owner is over, shares keep it
	bad    bool
	stored bool
}

type ledgerOwner struct {
	id      uint64
	holds   []Hold // sorted
	revoked bool
}

type ledgerGroup struct {
	number uint64
	pages  []spec.PageID
	shared bool
}

func newLedger(pages, room int) *ledger {
	return &ledger{room: room, pages: make([]ledgerPage, pages)}
}

// clone copies what a step changes in place; the slices within owners and groups are replaced, never written to.
func (s *ledger) clone() *ledger {
	c := *s
	c.pages, c.owners, c.groups, c.pubs = slices.Clone(s.pages), slices.Clone(s.owners), slices.Clone(s.groups), slices.Clone(s.pubs)
	return &c
}

func (s *ledger) equal(o *ledger) bool {
	return s.last == o.last && slices.Equal(s.pages, o.pages) && slices.Equal(s.pubs, o.pubs) &&
		slices.EqualFunc(s.owners, o.owners, func(a, b ledgerOwner) bool {
			return a.id == b.id && a.revoked == b.revoked && slices.Equal(a.holds, b.holds)
		}) &&
		slices.EqualFunc(s.groups, o.groups, func(a, b ledgerGroup) bool {
			return a.number == b.number && a.shared == b.shared && slices.Equal(a.pages, b.pages)
		})
}

// hash is equal for equal states; it only spares comparisons.
func (s *ledger) hash() (h uint64) {
	mix := func(v uint64) { h = (h ^ v) * 0x100000001b3 }
	for _, p := range s.pages {
		mix(uint64(p.gen)<<8 + p.owner)
	}
	for _, o := range s.owners {
		mix(o.id<<8 + uint64(len(o.holds)))
	}
	mix(s.last<<8 + uint64(len(s.groups)))
	return h
}

// owner is an owner's record; nil if it has nothing.
func (s *ledger) owner(id uint64) *ledgerOwner {
	if i := slices.IndexFunc(s.owners, func(o ledgerOwner) bool { return o.id == id }); i >= 0 {
		return &s.owners[i]
	}
	return nil
}

// open is an owner's record, a new one with its first hold if it had nothing.
func (s *ledger) open(id uint64) *ledgerOwner {
	if o := s.owner(id); o != nil {
		return o
	}
	i := slices.IndexFunc(s.owners, func(o ledgerOwner) bool { return o.id > id })
	if i < 0 {
		i = len(s.owners)
	}
	s.owners = slices.Insert(s.owners, i, ledgerOwner{id: id, holds: []Hold{{}}})
	return &s.owners[i]
}

func (s *ledger) group(n uint64) int {
	return slices.IndexFunc(s.groups, func(g ledgerGroup) bool { return g.number == n })
}

// pub is the place of a page's publication, content that of a content's; below 0: none.
func (s *ledger) pub(p spec.PageID) int {
	return slices.IndexFunc(s.pubs, func(x Pub) bool { return x.Page == p })
}

func (s *ledger) content(c spec.ContentID) int {
	return slices.IndexFunc(s.pubs, func(x Pub) bool { return x.Content == c })
}

func (s *ledger) known(p spec.PageID) bool { return int(p) < len(s.pages) }

func (s *ledger) free(p spec.PageID) bool { return s.pages[p].owner == 0 && !s.pages[p].kept }

// in is how many groups of a kind a page is in.
func (s *ledger) in(p spec.PageID, shared bool) (n int) {
	for _, g := range s.groups {
		if g.shared == shared && slices.Contains(g.pages, p) {
			n++
		}
	}
	return n
}

// sweep lets go of every page without a reason, and forgets owners that are over; it returns how many pages became free.
func (s *ledger) sweep() (freed int) {
	for i := range s.pages {
		p, r := spec.PageID(i), &s.pages[i]
		if s.free(p) || r.bad || s.in(p, false) > 0 || r.owner != 0 && len(s.owner(r.owner).holds) > 0 {
			continue
		}
		r.owner, r.kept = 0, s.in(p, true) > 0
		if !r.kept {
			freed++
		}
	}
	s.owners = slices.DeleteFunc(s.owners, func(o ledgerOwner) bool {
		return len(o.holds) == 0 && !slices.ContainsFunc(s.pages, func(p ledgerPage) bool { return p.owner == o.id })
	})
	return freed
}

// state is a page's place in Counts.
func (s *ledger) state(p spec.PageID) uint8 {
	switch r := s.pages[p]; {
	case s.free(p):
		return 0
	case r.bad:
		return 3
	case r.owner != 0 && s.owner(r.owner).revoked:
		return 2
	}
	return 1
}

func (s *ledger) counts() (n [4]int) {
	for p := range s.pages {
		n[s.state(spec.PageID(p))]++
	}
	return n
}
