package pages

import (
	"fmt"

	"kvfence/spec"
)

// Quarantine takes a page of an owner out of use: its tag or its bytes were found wrong, and whoever wrote them may write again.
// It stays until EndQuarantine, whatever else ends. Twice is nothing.
func (l *Ledger) Quarantine(id Owner, p spec.PageID) error {
	slot, _, err := l.find(id)
	if err != nil {
		return err
	}
	if err := l.ownedBy(slot, p); err != nil {
		return err
	}
	l.spoil(p)
	return nil
}

// QuarantineShared is Quarantine of a group's page (see Shares), whoever owns it: the finding is a reader's.
func (l *Ledger) QuarantineShared(g Group, at uint32, p spec.PageID) error {
	if !l.Shares(g, at, p) {
		return fmt.Errorf("page %d, group %d: %w", p, g, ErrUnknownHold)
	}
	l.spoil(p)
	return nil
}

// spoil takes an owned page out of use. Its publication ends: nobody new reads it.
func (l *Ledger) spoil(p spec.PageID) {
	r := &l.pages[p]
	if r.published {
		l.withdraw(l.share.byPage[p])
	}
	if r.bad {
		return
	}
	l.counts[l.state(uint32(p))]--
	r.bad = true
	l.owners[r.owner].bad++
	l.counts[Quarantined]++
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
