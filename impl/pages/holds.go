package pages

import (
	"fmt"

	"kvfence/spec"
)

// HoldKind is what kind of reason a hold is. Each kind ends by its own proof (I10).
type HoldKind uint8

// The kinds of owner holds.
const (
	// RequestKind: the owner's own use of its pages; ends when the request (lease, job) is over. Take begins it.
	RequestKind HoldKind = iota
	// LinkKind: a link owes this lease a part (or, at prefill, a lease is fed from this job); ends by receipt or fence.
	LinkKind
	// OperationKind: an operation pending at this end (remote write, send read, pull copy); ends by completion or fence.
	OperationKind
	// KernelKind: a local kernel or copy, queued or running, that reads or stores the pages; ends by its stream's event.
	KernelKind
)

// Hold names one reason. ID tells reasons of one kind apart: a link's number, a batch, a step. The caller chooses it.
type Hold struct {
	Kind HoldKind
	ID   uint64
}

// RequestHold is the hold that Take begins for a new owner.
func RequestHold() Hold { return Hold{RequestKind, 0} }

// owner is one owner's record. holds is small (links, operations in flight), so a slice is searched.
type owner struct {
	id      Owner
	list    list
	holds   []Hold
	bad     uint32 // pages of it in quarantine
	revoked bool
}

// Ended says what ending a hold did.
type Ended struct {
	Freed uint32 // pages that went back to the free list
	Over  bool   // the owner's last own hold has ended; only groups and quarantine can still keep pages of it
}

// open finds an owner's slot or makes one with its RequestHold.
func (l *Ledger) open(id Owner) (uint32, error) {
	if id == 0 {
		return none, ErrUnknownOwner
	}
	if slot, ok := l.byID[id]; ok {
		if l.owners[slot].revoked {
			return none, ErrRevoked
		}
		return slot, nil
	}
	var slot uint32
	if n := len(l.spare); n > 0 {
		slot, l.spare = l.spare[n-1], l.spare[:n-1]
	} else {
		slot = uint32(len(l.owners))
		l.owners = append(l.owners, owner{})
	}
	o := &l.owners[slot]
	*o = owner{id: id, list: list{none, none, 0}, holds: append(o.holds[:0], RequestHold())}
	l.byID[id] = slot
	return slot, nil
}

// close forgets an owner without pages.
func (l *Ledger) close(slot uint32) {
	o := &l.owners[slot]
	delete(l.byID, o.id)
	o.id, o.holds = 0, o.holds[:0]
	l.spare = append(l.spare, slot)
}

func (l *Ledger) find(id Owner) (uint32, *owner, error) {
	slot, ok := l.byID[id]
	if !ok {
		return none, nil, fmt.Errorf("owner %d: %w", id, ErrUnknownOwner)
	}
	return slot, &l.owners[slot], nil
}

func (o *owner) at(h Hold) int {
	for i := range o.holds {
		if o.holds[i] == h {
			return i
		}
	}
	return -1
}

// AddHold begins a hold on all pages of an owner, those that it takes later included. O(1) in its pages. An owner whose own
// holds have all ended is over and takes none.
func (l *Ledger) AddHold(id Owner, h Hold) error {
	_, o, err := l.find(id)
	if err != nil {
		return err
	}
	if len(o.holds) == 0 {
		return fmt.Errorf("owner %d: %w", id, ErrRevoked)
	}
	if o.at(h) >= 0 {
		return fmt.Errorf("owner %d, hold %v: %w", id, h, ErrHoldExists)
	}
	o.holds = append(o.holds, h)
	return nil
}

// HasHold reports whether a hold stands.
func (l *Ledger) HasHold(id Owner, h Hold) bool {
	_, o, err := l.find(id)
	return err == nil && o.at(h) >= 0
}

// Holds is how many own holds an owner has; 0 if it is over or unknown.
func (l *Ledger) Holds(id Owner) int {
	if _, o, err := l.find(id); err == nil {
		return len(o.holds)
	}
	return 0
}

// Pages is how many pages an owner has, those in quarantine included.
func (l *Ledger) Pages(id Owner) uint32 {
	if _, o, err := l.find(id); err == nil {
		return o.list.n
	}
	return 0
}

// EndHold ends a hold of an owner; the caller has the proof. With the last one the owner's pages go back, but for those that a
// group or quarantine still keeps: they stay revoking or quarantined until that ends.
func (l *Ledger) EndHold(id Owner, h Hold) (Ended, error) {
	slot, o, err := l.find(id)
	if err != nil {
		return Ended{}, err
	}
	i := o.at(h)
	if i < 0 {
		return Ended{}, fmt.Errorf("owner %d, hold %v: %w", id, h, ErrUnknownHold)
	}
	o.holds[i] = o.holds[len(o.holds)-1]
	o.holds = o.holds[:len(o.holds)-1]
	if len(o.holds) > 0 {
		return Ended{}, nil
	}
	l.revoke(o)
	e := Ended{Over: true}
	for p := o.list.head; p != none; {
		next := l.pages[p].next
		if l.pages[p].groups == 0 && !l.pages[p].bad {
			e.Freed += l.leave(slot, p)
		}
		p = next
	}
	if o.list.n == 0 {
		l.close(slot)
	}
	return e, nil
}

// Revoke marks an owner's pages as revoking: it is over for its user, and its pages come back when its holds end. It takes no
// page any more. Revoking twice is nothing. O(1).
func (l *Ledger) Revoke(id Owner) error {
	_, o, err := l.find(id)
	if err != nil {
		return err
	}
	l.revoke(o)
	return nil
}

func (l *Ledger) revoke(o *owner) {
	if o.revoked {
		return
	}
	o.revoked = true
	n := o.list.n - o.bad
	l.counts[Held] -= n
	l.counts[Revoking] += n
}

// Group names one set of pages held together beyond their owner's holds.
type Group uint64

type group struct {
	owner  Owner
	pages  []spec.PageID
	shared bool // shares of pages that others filled
}

// HoldPages begins a hold on some pages of one owner, in O(1) a page: an operation that touches only these. The slice is copied.
func (l *Ledger) HoldPages(id Owner, these []spec.PageID) (Group, error) {
	slot, o, err := l.find(id)
	if err != nil {
		return 0, err
	}
	if len(o.holds) == 0 {
		return 0, fmt.Errorf("owner %d: %w", id, ErrRevoked)
	}
	for _, p := range these {
		if err := l.ownedBy(slot, p); err != nil {
			return 0, err
		}
	}
	for _, p := range these {
		l.pages[p].groups++
	}
	l.lastGroup++
	l.groups[l.lastGroup] = group{owner: id, pages: append([]spec.PageID(nil), these...)}
	return l.lastGroup, nil
}

// EndGroup ends a group's hold. Pages that nothing else holds go back. A second end is ErrUnknownHold.
func (l *Ledger) EndGroup(g Group) (Ended, error) {
	rec, ok := l.groups[g]
	if !ok {
		return Ended{}, fmt.Errorf("group %d: %w", g, ErrUnknownHold)
	}
	delete(l.groups, g)
	var e Ended
	for _, p := range rec.pages {
		if rec.shared {
			l.pages[p].shares--
		} else {
			l.pages[p].groups--
		}
		e.Freed += l.settle(uint32(p))
	}
	return e, nil
}

// ownedBy checks that a page belongs to the owner in a slot.
func (l *Ledger) ownedBy(slot uint32, p spec.PageID) error {
	switch {
	case uint64(p) >= uint64(len(l.pages)):
		return fmt.Errorf("page %d: %w", p, ErrUnknownPage)
	case l.pages[p].owner == none:
		return fmt.Errorf("page %d: %w", p, ErrDoubleFree)
	case l.pages[p].owner != slot:
		return fmt.Errorf("page %d: %w", p, ErrForeignOwner)
	}
	return nil
}

// settle lets a page go if its owner's last hold on it has ended, and forgets its owner with its last page.
func (l *Ledger) settle(p uint32) uint32 {
	r := &l.pages[p]
	if r.owner == none || r.groups > 0 || r.bad || len(l.owners[r.owner].holds) > 0 {
		return 0
	}
	slot := r.owner
	freed := l.leave(slot, p)
	if slot != shared && l.owners[slot].list.n == 0 {
		l.close(slot)
	}
	return freed
}

// leave takes a page from an owner that has no hold on it any more: it is free, or only shares keep it.
func (l *Ledger) leave(slot, p uint32) uint32 {
	r := &l.pages[p]
	if r.shares == 0 {
		l.putBack(slot, p)
		return 1
	}
	if slot != shared {
		l.counts[l.state(p)]--
		l.counts[Held]++
		l.unlink(&l.owners[slot].list, p)
		r.owner = shared
		l.push(&l.owners[shared].list, p)
	}
	return 0
}
