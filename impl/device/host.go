package device

import (
	"errors"
	"fmt"
	"sync"

	"kvfence/spec"
)

// NewHost is host memory as a Device: pools on the Go heap, which the host addresses directly (Pool.Bytes).
func NewHost() Device { return &host{loss: newLoss()} }

type host struct{ *loss }

// Name implements Device.
func (*host) Name() string { return "host" }

// NewPool implements Device.
func (h *host) NewPool(l spec.Layout) (*Pool, error) {
	if err := h.Err(); err != nil {
		return nil, err
	}
	return NewPool(l, nil, nil)
}

// Close implements Device: the garbage collector does it.
func (*host) Close() error { return nil }

// loss keeps the first reason why a device is lost.
type loss struct {
	once sync.Once
	err  error
	lost chan struct{}
}

func newLoss() *loss { return &loss{lost: make(chan struct{})} }

// Fail implements Device.
func (l *loss) Fail(cause error) {
	l.once.Do(func() {
		if l.err = cause; !errors.Is(cause, ErrLost) {
			l.err = fmt.Errorf("%w: %w", ErrLost, cause)
		}
		close(l.lost)
	})
}

// Err implements Device.
func (l *loss) Err() error {
	select {
	case <-l.lost:
		return l.err
	default:
		return nil
	}
}

// Lost implements Device.
func (l *loss) Lost() <-chan struct{} { return l.lost }

// hostStore is the Store of memory that the host addresses.
type hostStore struct{ p *Pool }

// Void implements Store.
func (s hostStore) Void(pages []spec.PageID) error {
	if err := s.p.CheckPages(pages); err != nil {
		return err
	}
	for _, id := range pages {
		s.p.VoidTags(id)
	}
	return nil
}

// Put implements Store.
func (s hostStore) Put(tags []SlotTag) error {
	if err := s.p.CheckSlots(tags); err != nil {
		return err
	}
	for i := range tags {
		copy(s.p.Slot(tags[i].Page, tags[i].Slot), tags[i].Tag[:])
	}
	return nil
}

// Check implements Store.
func (s hostStore) Check(wants []SlotTag) ([]spec.TagState, error) {
	if err := s.p.CheckSlots(wants); err != nil {
		return nil, err
	}
	out := make([]spec.TagState, len(wants))
	for i := range wants {
		out[i] = CompareTag(s.p.Slot(wants[i].Page, wants[i].Slot), &wants[i].Tag)
	}
	return out, nil
}

// Digests implements Store.
func (s hostStore) Digests(parts []PagePart) ([]uint64, error) {
	out := make([]uint64, len(parts))
	for i := range parts {
		segs, err := s.p.Segments(parts[i])
		if err != nil {
			return nil, err
		}
		out[i] = DigestSegments(s.p.Page(parts[i].Page), segs, HeaderOf(parts[i].Part, s.p.Layout, parts[i].Index, spec.UsedBytes(segs)))
	}
	return out, nil
}

// CopyTokens implements Store.
func (s hostStore) CopyTokens(index uint32, from, to spec.PageID, tokens uint32) error {
	if err := s.p.CheckPages([]spec.PageID{from, to}); err != nil {
		return err
	}
	return s.p.CopyTokens(index, from, to, tokens)
}

// ReadPage implements Store.
func (s hostStore) ReadPage(id spec.PageID, offset uint32, into []byte) error {
	if err := s.p.CheckRun(id, offset, len(into)); err != nil {
		return err
	}
	copy(into, s.p.Page(id)[offset:])
	return nil
}

// WritePage implements Store.
func (s hostStore) WritePage(id spec.PageID, offset uint32, from []byte) error {
	if err := s.p.CheckRun(id, offset, len(from)); err != nil {
		return err
	}
	copy(s.p.Page(id)[offset:], from)
	return nil
}

// Scrub implements Store.
func (s hostStore) Scrub(pages []spec.PageID, with byte) error {
	if err := s.p.CheckPages(pages); err != nil {
		return err
	}
	for _, id := range pages {
		b := s.p.Page(id)
		for i := range b {
			b[i] = with
		}
		s.p.VoidTags(id)
	}
	return nil
}

// Lane implements Store.
func (s hostStore) Lane(size int) (Lane, error) {
	return &hostLane{s: s, staging: make([]byte, max(size, StageAlign))}, nil
}

// hostLane copies at once; Wait tells what came of it.
type hostLane struct {
	s       hostStore
	staging []byte
	digests []uint64
}

// Staging implements Lane.
func (l *hostLane) Staging() []byte { return l.staging }

// Land implements Lane.
func (l *hostLane) Land(items []Landing) error {
	all := make([][]spec.Segment, len(items))
	for i := range items {
		var err error
		if all[i], err = l.s.p.CheckStaged(items[i].Staged, len(l.staging)); err != nil {
			return err
		}
		if err := l.s.p.CheckSlots([]SlotTag{{Page: items[i].Page, Slot: items[i].Slot}}); err != nil {
			return err
		}
	}
	l.digests = l.digests[:0]
	for i := range items {
		x := &items[i]
		page, from := l.s.p.Page(x.Page), l.staging[x.At:]
		for _, g := range all[i] {
			from = from[copy(page[g.Offset:][:g.Bytes], from):]
		}
		d := DigestSegments(page, all[i], HeaderOf(x.Part, l.s.p.Layout, x.Index, spec.UsedBytes(all[i])))
		l.digests = append(l.digests, d)
		if TagAgrees(&x.Tag, d) {
			copy(l.s.p.Slot(x.Page, x.Slot), x.Tag[:])
		}
	}
	return nil
}

// Fetch implements Lane.
func (l *hostLane) Fetch(items []Staged) error {
	all := make([][]spec.Segment, len(items))
	for i := range items {
		var err error
		if all[i], err = l.s.p.CheckStaged(items[i], len(l.staging)); err != nil {
			return err
		}
	}
	l.digests = l.digests[:0]
	for i := range items {
		x := &items[i]
		page, into := l.s.p.Page(x.Page), l.staging[x.At:]
		for _, g := range all[i] {
			into = into[copy(into, page[g.Offset:][:g.Bytes]):]
		}
		l.digests = append(l.digests, DigestSegments(page, all[i], HeaderOf(x.Part, l.s.p.Layout, x.Index, spec.UsedBytes(all[i]))))
	}
	return nil
}

// Wait implements Lane.
func (l *hostLane) Wait() ([]uint64, error) { return l.digests, nil }

// Close implements Lane.
func (*hostLane) Close() error { return nil }
