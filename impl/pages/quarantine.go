package pages

import (
	"fmt"

	"kvfence/spec"
)

// Quarantine takes a page of an owner out of use: its tag or its bytes were found wrong, and whoever wrote them may write again.
// It stays until EndQuarantine, whatever else ends. Twice is nothing.
func (l *Ledger) Quarantine(id Owner, p spec.PageID) error {
	slot, o, err := l.find(id)
	if err != nil {
		return err
	}
	if err := l.ownedBy(slot, p); err != nil {
		return err
	}
	r := &l.pages[p]
	if r.bad {
		return nil
	}
	l.counts[l.state(uint32(p))]--
	r.bad = true
	o.bad++
	l.counts[Quarantined]++
	return nil
}

// EndQuarantine ends a page's quarantine; the caller has the proof (a fence, begun after the finding, of each link that was
// granted the page). If nothing else holds the page it goes back.
func (l *Ledger) EndQuarantine(p spec.PageID) (Ended, error) {
	if uint64(p) >= uint64(len(l.pages)) {
		return Ended{}, fmt.Errorf("page %d: %w", p, ErrUnknownPage)
	}
	r := &l.pages[p]
	if !r.bad || r.owner == none {
		return Ended{}, fmt.Errorf("page %d: %w", p, ErrNotBad)
	}
	r.bad = false
	l.owners[r.owner].bad--
	l.counts[Quarantined]--
	l.counts[l.state(uint32(p))]++
	return Ended{Freed: l.settle(uint32(p))}, nil
}
