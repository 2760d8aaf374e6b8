package pages

import (
	"fmt"

	"kvfence/spec"
)

// Set is the ledgers of one node, by component; nil where the node has no such pool. A lease is one owner in all of them, with
// the same holds in each, also in a pool of which it has no page.
type Set [spec.ComponentCount]*Ledger

// NewSet makes one ledger for each layout.
func NewSet(layouts []spec.Layout) (Set, error) {
	var s Set
	for _, l := range layouts {
		if l.Component >= spec.ComponentCount || s[l.Component] != nil {
			return Set{}, fmt.Errorf("%w: pool %s stands twice or is unknown", ErrUnknownPage, l.Component)
		}
		ledger, err := New(l.Shape.Pages)
		if err != nil {
			return Set{}, fmt.Errorf("pool %s: %w", l.Component, err)
		}
		s[l.Component] = ledger
	}
	return s, nil
}

// Fits reports whether n pages of each component are free now.
func (s *Set) Fits(n [spec.ComponentCount]uint32) bool {
	for c, l := range s {
		if n[c] > 0 && (l == nil || l.counts[Free] < n[c]) {
			return false
		}
	}
	return true
}

// Take hands n pages of each component to one owner, all or none.
func (s *Set) Take(n [spec.ComponentCount]uint32, id Owner) (out [spec.ComponentCount][]spec.GrantedPage, ok bool) {
	if !s.Fits(n) || id == 0 {
		return out, false
	}
	for _, l := range s {
		if l == nil {
			continue
		}
		if slot, known := l.byID[id]; known && l.owners[slot].revoked {
			return out, false
		}
	}
	for c, l := range s {
		if l != nil {
			out[c], _ = l.Take(n[c], id)
		}
	}
	return out, true
}

// AddHold begins a hold in every pool.
func (s *Set) AddHold(id Owner, h Hold) error {
	for _, l := range s {
		if l == nil {
			continue
		}
		if err := l.AddHold(id, h); err != nil {
			return err
		}
	}
	return nil
}

// EndHold ends a hold in every pool. The holds are the same in each, so Over is the same in each.
func (s *Set) EndHold(id Owner, h Hold) (sum Ended, err error) {
	for _, l := range s {
		if l == nil {
			continue
		}
		e, err := l.EndHold(id, h)
		if err != nil {
			return sum, err
		}
		sum.Freed += e.Freed
		sum.Over = e.Over
	}
	return sum, nil
}

// Revoke marks the owner's pages as revoking in every pool.
func (s *Set) Revoke(id Owner) error {
	for _, l := range s {
		if l == nil {
			continue
		}
		if err := l.Revoke(id); err != nil {
			return err
		}
	}
	return nil
}

// Check is Ledger.Check of every pool.
func (s *Set) Check() error {
	for c, l := range s {
		if l == nil {
			continue
		}
		if err := l.Check(); err != nil {
			return fmt.Errorf("pool %s: %w", spec.Component(c), err)
		}
	}
	return nil
}
