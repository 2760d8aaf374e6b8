package device

import (
	"fmt"

	"kvfence/spec"
)

// What every Store refuses before it does anything; each error wraps ErrRange. All of it looks at the layout alone, never at memory.

// CheckPages refuses a page that the pool does not have.
func (p *Pool) CheckPages(pages []spec.PageID) error {
	for _, id := range pages {
		if uint32(id) >= p.Layout.Shape.Pages {
			return fmt.Errorf("%w: page %d of %d", ErrRange, id, p.Layout.Shape.Pages)
		}
	}
	return nil
}

// CheckSlots refuses a slot that the pool does not have.
func (p *Pool) CheckSlots(slots []SlotTag) error {
	s := p.Layout.Shape
	for i := range slots {
		if uint32(slots[i].Page) >= s.Pages || uint32(slots[i].Slot) >= uint32(s.TagSlots) {
			return fmt.Errorf("%w: slot %d of page %d; %d of %d are there", ErrRange, slots[i].Slot, slots[i].Page, s.TagSlots, s.Pages)
		}
	}
	return nil
}

// CheckRun refuses a run of bytes that leaves its page.
func (p *Pool) CheckRun(id spec.PageID, offset uint32, n int) error {
	if err := p.CheckPages([]spec.PageID{id}); err != nil {
		return err
	}
	if size := uint64(p.Layout.Shape.PageBytes); uint64(offset)+uint64(n) > size {
		return fmt.Errorf("%w: bytes %d+%d of a page of %d", ErrRange, offset, n, size)
	}
	return nil
}

// Segments are where a part lies in its page, in canonical order.
func (p *Pool) Segments(x PagePart) ([]spec.Segment, error) {
	if err := p.CheckPages([]spec.PageID{x.Page}); err != nil {
		return nil, err
	}
	segs, err := x.Part.Segments(p.Layout, x.Index, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRange, err)
	}
	return segs, nil
}

// CheckStaged refuses a part that leaves its page or its staging memory, and returns its segments.
func (p *Pool) CheckStaged(x Staged, staging int) ([]spec.Segment, error) {
	segs, err := p.Segments(x.PagePart)
	if err != nil {
		return nil, err
	}
	used := int64(spec.UsedBytes(segs))
	if x.At < 0 || x.At%StageAlign != 0 || int64(x.At)+used > int64(staging) {
		return nil, fmt.Errorf("%w: bytes %d+%d of %d of staging memory, in steps of %d", ErrRange, x.At, used, staging, StageAlign)
	}
	return segs, nil
}
