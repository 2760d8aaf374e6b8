package pages

import (
	"errors"
	"fmt"

	"kvfence/spec"
)

// Owner names who has pages: a lease number at decode, a job number at prefill. 0 is nobody.
type Owner uint64

// State is what a page is doing. The four add up to the pool at all times (I17).
type State uint8

// The states of a page.
const (
	Free        State = iota
	Held              // its owner works with it
	Revoking          // its owner is over, a hold still stands
	Quarantined       // its bytes or tags were found wrong; it waits for its fences
	stateCount
)

// String is the state's name in status and metrics.
func (s State) String() string {
	return [...]string{"free", "held", "revoking", "quarantined", "?"}[min(s, stateCount)]
}

// Counts are the pages in each state. Free + Held + Revoking + Quarantined == Total.
type Counts struct {
	Free, Held, Revoking, Quarantined, Total uint32
}

// The errors of the ledger.
var (
	ErrUnknownPage  = errors.New("page is outside of the pool")
	ErrUnknownOwner = errors.New("owner has nothing in this pool")
	ErrForeignOwner = errors.New("page belongs to another owner")
	ErrNotFree      = errors.New("page still has a hold")
	ErrDoubleFree   = errors.New("page is free already")
	ErrRevoked      = errors.New("owner is revoked")
	ErrUnknownHold  = errors.New("no such hold")
	ErrHoldExists   = errors.New("hold stands already")
	ErrNotBad       = errors.New("page is not in quarantine")
	ErrNoRoom       = errors.New("not enough free pages")
	ErrBroken       = errors.New("ledger is broken")
)

// none ends a list; a pool has fewer pages than this.
const none = ^uint32(0)

// MaxPages is the largest pool.
const MaxPages = none - 1

// page is the record of one page, 32 bytes. prev and next link it into the free list or into its owner's list.
type page struct {
	gen        spec.Generation
	owner      uint32 // slot of owners; none if free
	prev, next uint32
	groups     uint32 // groups of its owner that hold it
	shares     uint32 // shares of others
	bad        bool
	published  bool
	stored     bool // this side stored into it in this generation
}

// list is a doubly linked list through page.prev and page.next, in order of arrival.
type list struct{ head, tail, n uint32 }

// Ledger is the record of one pool. The zero value is not usable; see New.
type Ledger struct {
	pages  []page
	free   list
	counts [stateCount]uint32

	owners []owner // slots, reused
	spare  []uint32
	byID   map[Owner]uint32

	groups    map[Group]group
	lastGroup Group

	share share
}

// New makes the ledger of a pool of count pages, all free, generation 0, handed out in rising order first and then in the order
// in which they came back (so that a page is reused as late as possible).
func New(count uint32) (*Ledger, error) {
	if count > MaxPages {
		return nil, fmt.Errorf("%w: %d pages, at most %d", ErrUnknownPage, count, MaxPages)
	}
	l := &Ledger{pages: make([]page, count), byID: map[Owner]uint32{}, groups: map[Group]group{}}
	l.owners = []owner{shared: {list: list{none, none, 0}}}
	l.free = list{none, none, 0}
	for i := range count {
		l.pages[i].owner = none
		l.push(&l.free, i)
	}
	l.counts[Free] = count
	return l, nil
}

func (l *Ledger) push(to *list, p uint32) {
	r := &l.pages[p]
	r.prev, r.next = to.tail, none
	if to.tail == none {
		to.head = p
	} else {
		l.pages[to.tail].next = p
	}
	to.tail = p
	to.n++
}

func (l *Ledger) unlink(from *list, p uint32) {
	r := &l.pages[p]
	if r.prev == none {
		from.head = r.next
	} else {
		l.pages[r.prev].next = r.next
	}
	if r.next == none {
		from.tail = r.prev
	} else {
		l.pages[r.next].prev = r.prev
	}
	r.prev, r.next = none, none
	from.n--
}

// Take hands n free pages to an owner, all or none (false: not enough are free, or the owner is revoked). An owner that is new
// starts with its RequestHold; one that exists grows. Each page's generation rises. n may be 0.
func (l *Ledger) Take(n uint32, id Owner) ([]spec.GrantedPage, bool) {
	if n > l.counts[Free] {
		return nil, false
	}
	slot, err := l.open(id)
	if err != nil {
		return nil, false
	}
	out := make([]spec.GrantedPage, 0, n)
	for range n {
		out = append(out, l.give(l.free.head, slot))
	}
	return out, true
}

// TakeThese hands out pages that a serving engine's own allocator proposes, all or none. It refuses pages outside of the pool,
// pages named twice, and with ErrNotFree any page that still has a hold: the engine thinks it is free, the ledger knows better.
func (l *Ledger) TakeThese(these []spec.PageID, id Owner) ([]spec.GrantedPage, error) {
	for _, p := range these {
		if uint64(p) >= uint64(len(l.pages)) {
			return nil, fmt.Errorf("page %d: %w", p, ErrUnknownPage)
		}
		if l.pages[p].owner != none {
			return nil, fmt.Errorf("page %d: %w", p, ErrNotFree)
		}
	}
	named := make(map[spec.PageID]struct{}, len(these))
	for _, p := range these {
		if _, twice := named[p]; twice {
			return nil, fmt.Errorf("page %d is named twice: %w", p, ErrNotFree)
		}
		named[p] = struct{}{}
	}
	slot, err := l.open(id)
	if err != nil {
		return nil, fmt.Errorf("owner %d: %w", id, err)
	}
	out := make([]spec.GrantedPage, 0, len(these))
	for _, p := range these {
		out = append(out, l.give(uint32(p), slot))
	}
	return out, nil
}

// give moves a free page to an owner. Its generation rises, and what was published of the older one ends.
func (l *Ledger) give(p, slot uint32) spec.GrantedPage {
	l.unlink(&l.free, p)
	r := &l.pages[p]
	if r.published {
		l.withdraw(l.share.byPage[spec.PageID(p)])
	}
	r.gen++
	r.owner, r.stored = slot, false
	l.push(&l.owners[slot].list, p)
	l.counts[Free]--
	l.counts[Held]++
	return spec.GrantedPage{Page: spec.PageID(p), Gen: r.gen}
}

// putBack moves an owner's page, whose last hold has ended, to the end of the free list.
func (l *Ledger) putBack(slot, p uint32) {
	l.counts[l.state(p)]--
	l.counts[Free]++
	l.unlink(&l.owners[slot].list, p)
	l.pages[p].owner = none
	l.push(&l.free, p)
}

func (l *Ledger) state(p uint32) State {
	r := &l.pages[p]
	switch {
	case r.owner == none:
		return Free
	case r.bad:
		return Quarantined
	case l.owners[r.owner].revoked:
		return Revoking
	}
	return Held
}

// Owner is who has page p; 0 if it is free, kept by shares alone, or outside of the pool.
func (l *Ledger) Owner(p spec.PageID) Owner {
	if uint64(p) >= uint64(len(l.pages)) || l.pages[p].owner == none {
		return 0
	}
	return l.owners[l.pages[p].owner].id
}

// Gen is page p's generation: 0 before its first hand-out, and for a page outside of the pool.
func (l *Ledger) Gen(p spec.PageID) spec.Generation {
	if uint64(p) >= uint64(len(l.pages)) {
		return 0
	}
	return l.pages[p].gen
}

// State is what page p is doing; Free for a page outside of the pool.
func (l *Ledger) State(p spec.PageID) State {
	if uint64(p) >= uint64(len(l.pages)) {
		return Free
	}
	return l.state(uint32(p))
}

// Counts are the pages in each state, in O(1).
func (l *Ledger) Counts() Counts {
	c := l.counts
	return Counts{Free: c[Free], Held: c[Held], Revoking: c[Revoking], Quarantined: c[Quarantined], Total: uint32(len(l.pages))}
}
