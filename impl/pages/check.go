package pages

import (
	"errors"
	"fmt"
)

// Check walks the whole ledger and reports the first fault: a page twice or nowhere, a wrong count, a free page with a hold (I2,
// I17). O(pool): for tests and for the moment after an invariant broke.
func (l *Ledger) Check() error {
	seen := make([]bool, len(l.pages))
	var counts [stateCount]uint32
	walk := func(who string, in list, slot uint32) (bad uint32, err error) {
		n, prev := uint32(0), none
		for p := in.head; p != none; p = l.pages[p].next {
			r := &l.pages[p]
			switch {
			case seen[p]:
				return 0, fmt.Errorf("%w: I17: page %d is in two places, the second is %s", ErrBroken, p, who)
			case r.owner != slot || r.prev != prev:
				return 0, fmt.Errorf("%w: I17: page %d is in the list of %s but does not know it", ErrBroken, p, who)
			case slot == none && (r.groups > 0 || r.shares > 0 || r.bad):
				return 0, fmt.Errorf("%w: I2: page %d is free and has a hold", ErrBroken, p)
			case slot != none && len(l.owners[slot].holds) == 0 && r.groups == 0 && r.shares == 0 && !r.bad:
				return 0, fmt.Errorf("%w: I2: page %d has no hold and is not free", ErrBroken, p)
			case r.stored && (r.published || r.shares > 0), r.bad && r.published:
				return 0, fmt.Errorf("%w: I18: page %d is published or shared, and was stored into or is bad", ErrBroken, p)
			}
			if r.bad {
				bad++
			}
			seen[p], prev = true, p
			counts[l.state(p)]++
			n++
		}
		if n != in.n {
			return 0, fmt.Errorf("%w: I17: list of %s has %d pages, says %d", ErrBroken, who, n, in.n)
		}
		return bad, nil
	}
	if _, err := walk("free", l.free, none); err != nil {
		return err
	}
	bad, err := walk("shares", l.owners[shared].list, shared)
	if err != nil {
		return err
	}
	if o := &l.owners[shared]; bad != o.bad || o.revoked || len(o.holds) > 0 {
		return fmt.Errorf("%w: %d pages kept by shares are bad, says %d; %d holds", ErrBroken, bad, o.bad, len(o.holds))
	}
	live := 0
	for slot := range l.owners {
		o := &l.owners[slot]
		if o.id == 0 {
			continue
		}
		live++
		bad, err := walk(fmt.Sprintf("owner %d", o.id), o.list, uint32(slot))
		if err != nil {
			return err
		}
		if bad != o.bad || l.byID[o.id] != uint32(slot) || (len(o.holds) == 0 && (o.list.n == 0 || !o.revoked)) {
			return fmt.Errorf("%w: owner %d: %d pages bad, says %d; %d holds", ErrBroken, o.id, bad, o.bad, len(o.holds))
		}
	}
	return l.checkSums(counts, live)
}

func (l *Ledger) checkSums(counts [stateCount]uint32, live int) error {
	if counts != l.counts || live != len(l.byID) {
		return fmt.Errorf("%w: I17: pages by state are %v, counted %v; owners are %d, counted %d", ErrBroken, counts, l.counts, live, len(l.byID))
	}
	c := l.Counts()
	if c.Free+c.Held+c.Revoking+c.Quarantined != c.Total {
		return fmt.Errorf("%w: I17: states do not add up to the pool: %+v", ErrBroken, c)
	}
	return errors.Join(l.checkGroups(), l.checkShares())
}

// checkGroups counts the groups and shares of each page again.
func (l *Ledger) checkGroups() error {
	groups, shares := map[uint32]uint32{}, map[uint32]uint32{}
	for _, g := range l.groups {
		for _, p := range g.pages {
			if g.shared {
				shares[uint32(p)]++
			} else {
				groups[uint32(p)]++
			}
		}
	}
	for p := range l.pages {
		r := &l.pages[p]
		if r.groups != groups[uint32(p)] || r.shares != shares[uint32(p)] {
			return fmt.Errorf("%w: page %d is in %d groups, says %d; %d share it, says %d", ErrBroken, p, groups[uint32(p)], r.groups, shares[uint32(p)], r.shares)
		}
	}
	return nil
}

// checkShares compares the publications with the pages, and with each other.
func (l *Ledger) checkShares() error {
	s := &l.share
	n := 0
	for x := s.old; x != nil; x = x.next {
		n++
		r := &l.pages[x.Page]
		if s.byPage[x.Page] != x || s.byContent[x.Content] != x || !r.published || r.gen != x.Gen {
			return fmt.Errorf("%w: I3: page %d is published in generation %d, and is in %d", ErrBroken, x.Page, x.Gen, r.gen)
		}
	}
	flags := 0
	for p := range l.pages {
		if l.pages[p].published {
			flags++
		}
	}
	if n != len(s.byPage) || n != len(s.byContent) || n != flags || n > s.most {
		return fmt.Errorf("%w: %d publications, %d by page, %d by content, %d pages say so, at most %d", ErrBroken, n, len(s.byPage), len(s.byContent), flags, s.most)
	}
	return nil
}
