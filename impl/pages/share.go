package pages

import (
	"errors"
	"fmt"
	"slices"

	"kvfence/spec"
)

// The errors of sharing.
var (
	ErrPublished    = errors.New("page is published or shared")
	ErrStored       = errors.New("page was stored into by this side")
	ErrNotPublished = errors.New("page is not published")
	ErrStale        = errors.New("page was handed out since it was published")
	ErrOtherContent = errors.New("page holds other content")
	ErrOtherDomain  = errors.New("page belongs to another domain")
	ErrQuarantined  = errors.New("page is in quarantine")
)

// Publication says what a published page holds, and everything by which a reader that did not fill it recognises it. It ends with
// the page's generation, by Unpublish, or when the room for publications is needed. Its slices are shared and not to be changed.
type Publication struct {
	Content spec.ContentID
	Domain  spec.Domain
	Page    spec.PageID
	Gen     spec.Generation
	Filler  Owner       // the lease that prefill filled it for; it may be over
	Tags    []spec.Tag  // what its tag slots hold
	Parts   []spec.Part // the parts that these are the tags of
	Granted []uint64    // the links that were granted it, as the caller numbers them
}

// share is all that is known of published pages; its size is that of the publications, not of the pool.
type share struct {
	most      int // publications at most; 0: nothing is published
	byPage    map[spec.PageID]*published
	byContent map[spec.ContentID]*published
	old, new  *published // in order of their last use
	ended     []Publication
}

// published is a publication in the order of use.
type published struct {
	Publication
	prev, next *published
}

// shared is the owner slot of pages that only shares keep: their filler is over. It is never over and has no name.
const shared = 0

// AllowSharing lets up to most pages be published at a time; with 0, which is how a ledger starts, none.
func (l *Ledger) AllowSharing(most int) {
	l.share.most = most
	if most > 0 && l.share.byPage == nil {
		l.share.byPage, l.share.byContent = map[spec.PageID]*published{}, map[spec.ContentID]*published{}
	}
}

// Publish makes a page known by its content: it is sealed, and other owners may take shares of it as long as its generation lasts,
// also when its filler is over and nothing holds it. The filler must have it now, in that generation, and nothing but its
// grant may have filled it. A content that is known already stays where it is (false). When there is no room the publication
// that was not used for longest and that nobody shares ends; where there is none near, the page is not published (false). The caller
// answers for it that the page is full and verified.
func (l *Ledger) Publish(p Publication) (bool, error) {
	if l.share.most == 0 {
		return false, nil
	}
	slot, o, err := l.find(p.Filler)
	if err != nil {
		return false, err
	}
	if err := l.ownedBy(slot, p.Page); err != nil {
		return false, err
	}
	r := &l.pages[p.Page]
	switch {
	case r.gen != p.Gen:
		return false, fmt.Errorf("page %d, generation %d: %w", p.Page, p.Gen, ErrStale)
	case len(o.holds) == 0 || o.revoked:
		return false, fmt.Errorf("owner %d: %w", p.Filler, ErrRevoked)
	case r.bad:
		return false, fmt.Errorf("page %d: %w", p.Page, ErrQuarantined)
	case r.stored:
		return false, fmt.Errorf("page %d: %w", p.Page, ErrStored)
	case r.published:
		return false, fmt.Errorf("page %d: %w", p.Page, ErrPublished)
	case p.Content.IsZero():
		return false, fmt.Errorf("page %d: %w", p.Page, ErrOtherContent)
	case l.share.byContent[p.Content] != nil:
		return false, nil
	}
	if len(l.share.byPage) >= l.share.most && !l.makeRoom() {
		return false, nil
	}
	x := &published{Publication: p}
	l.share.byPage[p.Page], l.share.byContent[p.Content] = x, x
	l.share.use(x)
	r.published = true
	return true, nil
}

// Find is the publication of a content, if there is one. It is no hold: the page may be handed out before Share.
func (l *Ledger) Find(c spec.ContentID) (Publication, bool) {
	if x := l.share.byContent[c]; x != nil {
		return x.Publication, true
	}
	return Publication{}, false
}

// Prefix is the publications of the first of these contents, up to the one that is not published or that good refuses; a good of nil
// refuses none. Like Find it is no hold.
func (l *Ledger) Prefix(contents []spec.ContentID, good func(i uint32, p Publication) bool) (out []Publication) {
	for i, c := range contents {
		p, ok := l.Find(c)
		if !ok || good != nil && !good(uint32(i), p) {
			break
		}
		out = append(out, p)
	}
	return out
}

// Published is the publication of page p, if there is one.
func (l *Ledger) Published(p spec.PageID) (Publication, bool) {
	if x := l.share.byPage[p]; x != nil {
		return x.Publication, true
	}
	return Publication{}, false
}

// Share begins a hold of an owner on published pages that others filled, all or none, in O(1) a page. Each is compared now with
// what the ledger knows: it must still be published in that generation, with that content, in the domain given. It is no hand-out:
// generation and owner stay. EndGroup ends it. The owner's number is not looked at: it may be new.
func (l *Ledger) Share(id Owner, d spec.Domain, these []Publication) (Group, error) {
	for _, p := range these {
		if err := l.mayShare(d, p); err != nil {
			return 0, fmt.Errorf("owner %d: %w", id, err)
		}
	}
	ids := make([]spec.PageID, len(these))
	for i, p := range these {
		ids[i] = p.Page
		r := &l.pages[p.Page]
		r.shares++
		if r.owner == none {
			l.counts[Free]--
			l.counts[Held]++
			l.unlink(&l.free, uint32(p.Page))
			r.owner = shared
			l.push(&l.owners[shared].list, uint32(p.Page))
		}
		l.share.use(l.share.byPage[p.Page])
	}
	l.lastGroup++
	l.groups[l.lastGroup] = group{owner: id, pages: ids, shared: true}
	return l.lastGroup, nil
}

// mayShare compares one page with what is asked for. A page in quarantine is published no more.
func (l *Ledger) mayShare(d spec.Domain, p Publication) error {
	if uint64(p.Page) >= uint64(len(l.pages)) {
		return fmt.Errorf("page %d: %w", p.Page, ErrUnknownPage)
	}
	x := l.share.byPage[p.Page]
	switch {
	case l.pages[p.Page].gen != p.Gen:
		return fmt.Errorf("page %d, generation %d, is in %d: %w", p.Page, p.Gen, l.pages[p.Page].gen, ErrStale)
	case x == nil || x.Gen != p.Gen:
		return fmt.Errorf("page %d: %w", p.Page, ErrNotPublished)
	case x.Content != p.Content:
		return fmt.Errorf("page %d: %w", p.Page, ErrOtherContent)
	case x.Domain != d:
		return fmt.Errorf("page %d: %w", p.Page, ErrOtherDomain)
	}
	return nil
}

// Shares reports whether a group of shares stands and its page number at, in the order in which it was taken, is p.
func (l *Ledger) Shares(g Group, at uint32, p spec.PageID) bool {
	rec := l.groups[g]
	return rec.shared && uint64(at) < uint64(len(rec.pages)) && rec.pages[at] == p
}

// Sharers are the owners that share page p, in rising order. It costs a pass over all shares: for the rare failed check.
func (l *Ledger) Sharers(p spec.PageID) (out []Owner) {
	for _, g := range l.groups {
		if g.shared && slices.Contains(g.pages, p) {
			out = append(out, g.owner)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Store notes that this side itself stores into a page of an owner (append, growth, copy): in this generation it is never published. A page
// that is published, or that another owner shares, is refused: whoever wants to go on in it takes a page of its own and copies.
func (l *Ledger) Store(id Owner, p spec.PageID) error {
	slot, _, err := l.find(id)
	if err != nil {
		return err
	}
	if err := l.ownedBy(slot, p); err != nil {
		return err
	}
	if r := &l.pages[p]; r.published || r.shares > 0 {
		return fmt.Errorf("page %d: %w", p, ErrPublished)
	}
	l.pages[p].stored = true
	return nil
}

// Stored reports whether this side stored into page p in its present generation.
func (l *Ledger) Stored(p spec.PageID) bool {
	return uint64(p) < uint64(len(l.pages)) && l.pages[p].stored
}

// Unpublish ends a page's publication: a check of it failed. Shares that stand go on, new ones are refused.
func (l *Ledger) Unpublish(p spec.PageID) error {
	x := l.share.byPage[p]
	if x == nil {
		return fmt.Errorf("page %d: %w", p, ErrNotPublished)
	}
	l.withdraw(x)
	return nil
}

// Ended are the publications that have ended since the last call: pages were handed out, room was needed, or Unpublish. The caller asks
// after each call that may end one.
func (l *Ledger) Ended() (out []Publication) {
	out, l.share.ended = l.share.ended, nil
	return out
}

// withdraw ends a publication.
func (l *Ledger) withdraw(x *published) {
	l.share.drop(x)
	delete(l.share.byPage, x.Page)
	delete(l.share.byContent, x.Content)
	l.pages[x.Page].published = false
	l.share.ended = append(l.share.ended, x.Publication)
}

// nearby is how many publications are looked at for one that nobody shares.
const nearby = 16

// makeRoom ends the publication that was not used for longest; one that somebody shares is in use.
func (l *Ledger) makeRoom() bool {
	for range nearby {
		x := l.share.old
		if l.pages[x.Page].shares == 0 {
			l.withdraw(x)
			return true
		}
		l.share.use(x)
	}
	return false
}

// use moves a publication to the new end of the order.
func (s *share) use(x *published) {
	if s.old == x || x.prev != nil {
		s.drop(x)
	}
	x.prev = s.new
	if s.new == nil {
		s.old = x
	} else {
		s.new.next = x
	}
	s.new = x
}

// drop takes a publication out of the order.
func (s *share) drop(x *published) {
	if x.prev == nil {
		s.old = x.next
	} else {
		x.prev.next = x.next
	}
	if x.next == nil {
		s.new = x.prev
	} else {
		x.next.prev = x.prev
	}
	x.prev, x.next = nil, nil
}
