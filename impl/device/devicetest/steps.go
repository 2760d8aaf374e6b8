package devicetest

import (
	"bytes"
	"errors"
	"fmt"

	"kvfence/impl/device"
	"kvfence/spec"
)

func (w *world) void() error {
	ids := w.somePages()
	for _, id := range ids {
		w.model.VoidTags(id)
	}
	return w.pool.Store.Void(ids)
}

// slotTags are tags for different slots.
func (w *world) slotTags() (out []device.SlotTag) {
	all := w.r.Perm(int(w.pages * w.slots))
	for _, at := range all[:w.r.IntN(len(all)+1)] {
		out = append(out, device.SlotTag{Page: spec.PageID(uint32(at) / w.slots), Slot: spec.PartIndex(uint32(at) % w.slots), Tag: w.tag()})
	}
	return out
}

func (w *world) put() error {
	tags := w.slotTags()
	for i := range tags {
		copy(w.model.Slot(tags[i].Page, tags[i].Slot), tags[i].Tag[:])
	}
	return w.pool.Store.Put(tags)
}

// check expects what is there, something else, or nothing, and compares the states with the model's.
func (w *world) check() error {
	wants := w.slotTags()
	for i := range wants {
		switch w.r.IntN(4) {
		case 0:
			copy(wants[i].Tag[:], w.model.Slot(wants[i].Page, wants[i].Slot))
		case 1:
			copy(wants[i].Tag[:], w.model.Slot(wants[i].Page, wants[i].Slot))
			wants[i].Tag[w.r.IntN(spec.TagBytes)] ^= 1 << w.r.IntN(8)
		case 2:
			clear(wants[i].Tag[:])
		}
	}
	got, err := w.pool.Store.Check(wants)
	if err != nil {
		return err
	}
	want, err := w.model.Store.Check(wants)
	if err != nil {
		return err
	}
	for i := range want {
		if got[i] != want[i] {
			return broken("entry %d of %d (slot %d of page %d) is %s, not %s", i, len(wants), wants[i].Slot, wants[i].Page, got[i], want[i])
		}
	}
	return nil
}

func (w *world) digests() error {
	var parts []device.PagePart
	for range w.r.IntN(5) {
		parts = append(parts, w.part())
	}
	got, err := w.pool.Store.Digests(parts)
	if err != nil {
		return err
	}
	return w.sameDigests(got, parts)
}

func (w *world) sameDigests(got []uint64, parts []device.PagePart) error {
	want, err := w.model.Store.Digests(parts)
	if err != nil {
		return err
	}
	if len(got) != len(want) {
		return broken("%d digests of %d parts", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			return broken("digest %d of %d is %#x, not %#x", i, len(want), got[i], want[i])
		}
	}
	return nil
}

func (w *world) copyTokens() error {
	from, to := w.page(), w.page()
	if from == to {
		return nil
	}
	index, tokens := w.r.Uint32N(3), w.r.Uint32N(w.model.Layout.Equal.TokensPerPage+1)
	if err := w.model.CopyTokens(index, from, to, tokens); err != nil {
		return err
	}
	return w.pool.Store.CopyTokens(index, from, to, tokens)
}

func (w *world) write() error {
	id, size := w.page(), int(w.model.Layout.Shape.PageBytes)
	at := w.r.IntN(size)
	b := w.bytes(w.r.IntN(size - at + 1))
	copy(w.model.Page(id)[at:], b)
	if err := w.pool.Store.WritePage(id, uint32(at), b); err != nil {
		return err
	}
	got := make([]byte, len(b))
	if err := w.pool.Store.ReadPage(id, uint32(at), got); err != nil {
		return err
	}
	if !bytes.Equal(got, b) {
		return broken("%d bytes from %d of page %d are not those written", len(b), at, id)
	}
	return nil
}

func (w *world) scrub() error {
	ids, with := w.somePages(), byte(w.r.Uint32())
	if err := w.model.Store.Scrub(ids, with); err != nil {
		return err
	}
	return w.pool.Store.Scrub(ids, with)
}

// landing fills staging with random parts for different pages; some tags have the digest of other bytes, some none.
func (w *world) landing(lane device.Lane, free []spec.PageID) (items []device.Landing) {
	at := 0
	for _, id := range free {
		x := device.Landing{Staged: device.Staged{PagePart: w.part(), At: at}, Slot: spec.PartIndex(w.r.Uint32N(w.slots))}
		x.Page = id
		n := w.used(x.PagePart)
		if at+n > len(lane.Staging()) {
			break
		}
		b := w.bytes(n)
		copy(lane.Staging()[at:], b)
		at = (at + n + device.StageAlign - 1) &^ (device.StageAlign - 1)
		x.Tag = w.tag()
		switch w.r.IntN(3) {
		case 0:
			clear(x.Tag[:])
		case 1: // the digest of what lands
			segs, _ := w.model.Segments(x.PagePart)
			scratch := bytes.Clone(w.model.Page(id))
			rest := b
			for _, g := range segs {
				rest = rest[copy(scratch[g.Offset:][:g.Bytes], rest):]
			}
			h := device.HeaderOf(x.Part, w.model.Layout, x.Index, uint32(n))
			device.PutTag(x.Tag[:], spec.Tag{Lease: 7, Index: x.Index, Used: uint32(n), HasDigest: true, Digest: device.DigestSegments(scratch, segs, h)})
		}
		items = append(items, x)
	}
	return items
}

// expect lands the same in the model.
func (w *world) expect(lane device.Lane, items []device.Landing) error {
	m, err := w.model.Store.Lane(len(lane.Staging()))
	if err != nil {
		return err
	}
	copy(m.Staging(), lane.Staging())
	return m.Land(items)
}

func (w *world) landed(lane device.Lane, items []device.Landing) error {
	got, err := lane.Wait()
	if err != nil {
		return err
	}
	var parts []device.PagePart
	for i := range items {
		parts = append(parts, items[i].PagePart)
	}
	return w.sameDigests(got, parts)
}

func (w *world) land() error {
	lane := w.lanes[w.r.IntN(2)]
	items := w.landing(lane, w.somePages())
	if err := w.expect(lane, items); err != nil {
		return err
	}
	if err := lane.Land(items); err != nil {
		return err
	}
	return w.landed(lane, items)
}

// both lands by two lanes side by side.
func (w *world) both() error {
	ids := w.somePages()
	half := len(ids) / 2
	a, b := w.landing(w.lanes[0], ids[:half]), w.landing(w.lanes[1], ids[half:])
	if err := errors.Join(w.expect(w.lanes[0], a), w.expect(w.lanes[1], b)); err != nil {
		return err
	}
	if err := errors.Join(w.lanes[0].Land(a), w.lanes[1].Land(b)); err != nil {
		return err
	}
	return errors.Join(w.landed(w.lanes[1], b), w.landed(w.lanes[0], a))
}

func (w *world) fetch() error {
	lane := w.lanes[w.r.IntN(2)]
	var items []device.Staged
	var parts []device.PagePart
	at := 0
	for range w.r.IntN(4) {
		x := device.Staged{PagePart: w.part(), At: at}
		n := w.used(x.PagePart)
		if at+n > len(lane.Staging()) {
			break
		}
		at = (at + n + device.StageAlign - 1) &^ (device.StageAlign - 1)
		items, parts = append(items, x), append(parts, x.PagePart)
	}
	if err := lane.Fetch(items); err != nil {
		return err
	}
	got, err := lane.Wait()
	if err != nil {
		return err
	}
	for _, x := range items {
		segs, _ := w.model.Segments(x.PagePart)
		rest := lane.Staging()[x.At:]
		for _, g := range segs {
			if want := w.model.Page(x.Page)[g.Offset:][:g.Bytes]; !bytes.Equal(rest[:g.Bytes], want) {
				return broken("what was fetched of page %d is not what is there", x.Page)
			}
			rest = rest[g.Bytes:]
		}
	}
	return w.sameDigests(got, parts)
}

// outside names something that the pool does not have, behind something that it has: all is refused.
func (w *world) outside() error {
	beyond, slot := spec.PageID(w.pages), spec.PartIndex(w.slots)
	s, lane := w.pool.Store, w.lanes[0]
	good, size := w.part(), w.model.Layout.Shape.PageBytes
	bad := good
	bad.Page = beyond
	other := good
	other.Part.LayerHi = w.model.Layout.Equal.Layers + 1
	from := w.page()
	tags := []device.SlotTag{{Page: from, Tag: w.tag()}}
	calls := map[string]error{
		"Void":            s.Void([]spec.PageID{from, beyond}),
		"Put":             s.Put(append(tags, device.SlotTag{Page: beyond})),
		"Put in a slot":   s.Put(append(tags, device.SlotTag{Slot: slot})),
		"CopyTokens":      s.CopyTokens(0, from, beyond, 0),
		"ReadPage":        s.ReadPage(beyond, 0, nil),
		"ReadPage behind": s.ReadPage(from, size, make([]byte, 1)),
		"WritePage":       s.WritePage(from, size-1, make([]byte, 2)),
		"Scrub":           s.Scrub([]spec.PageID{from, beyond}, 9),
		"Land":            lane.Land([]device.Landing{{Staged: device.Staged{PagePart: good}}, {Staged: device.Staged{PagePart: bad}}}),
		"Land a part":     lane.Land([]device.Landing{{Staged: device.Staged{PagePart: good}}, {Staged: device.Staged{PagePart: other}}}),
		"Land in a slot":  lane.Land([]device.Landing{{Staged: device.Staged{PagePart: good}, Slot: slot}}),
		"Land behind":     lane.Land([]device.Landing{{Staged: device.Staged{PagePart: good, At: (len(lane.Staging()) + device.StageAlign - 1) &^ (device.StageAlign - 1)}}}),
		"Land at an odd":  lane.Land([]device.Landing{{Staged: device.Staged{PagePart: good, At: 1}}}),
		"Fetch":           lane.Fetch([]device.Staged{{PagePart: bad}}),
		"Fetch before":    lane.Fetch([]device.Staged{{PagePart: good, At: -device.StageAlign}}),
	}
	_, calls["Check"] = s.Check(append(tags, device.SlotTag{Page: beyond}))
	_, calls["Digests"] = s.Digests([]device.PagePart{good, bad})
	for name, err := range calls {
		if !errors.Is(err, device.ErrRange) {
			return broken("%s out of range: %v", name, err)
		}
		if errors.Is(err, device.ErrLost) {
			return fmt.Errorf("%w: %s out of range lost the device", ErrRule, name)
		}
	}
	return nil
}
