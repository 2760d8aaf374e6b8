package tcp

import (
	"errors"
	"fmt"

	"kvfence/impl/device"
	"kvfence/impl/transport"
	"kvfence/spec"
)

// laneBytes is the staging memory of one lane, where a page is not larger.
const laneBytes = 2 << 20

// stager lands what a receiver reads for one pool that the host cannot address: from the wire into the staging memory of a lane, from there into the
// pages; the tags go behind the bytes once all of the frame has come. Two lanes take turns, so that one lands while the other is filled. What is landing counts as
// being placed. One goroutine.
type stager struct {
	store device.Store
	lanes [2]turn
	at    int // the lane that is being filled
	tags  []device.SlotTag
}

// turn is a lane and what it holds.
type turn struct {
	lane    device.Lane
	used    int // bytes of staging memory
	items   []device.Landing
	entries []int // of the frame, for each item
	landing bool
}

func newStager(p *device.Pool) (*stager, error) {
	s := &stager{store: p.Store}
	for i := range s.lanes {
		var err error
		if s.lanes[i].lane, err = p.Store.Lane(max(laneBytes, int(p.Layout.Shape.PageBytes)+device.StageAlign)); err != nil {
			return nil, errors.Join(fmt.Errorf("staging memory of %s: %w", p.Layout.Component, err), s.close())
		}
	}
	return s, nil
}

// take gives an entry its place in the lane that is being filled; nil if it does not fit behind the others.
func (s *stager) take(entry int, p transport.Placement) []byte {
	t := &s.lanes[s.at]
	b := t.lane.Staging()
	if t.used+int(p.Bytes) > len(b) {
		return nil
	}
	t.items = append(t.items, device.Landing{Staged: device.Staged{PagePart: p.Of, At: t.used}, Slot: p.OfSlot})
	t.entries = append(t.entries, entry)
	b = b[t.used:][:p.Bytes:p.Bytes]
	t.used += (int(p.Bytes) + device.StageAlign - 1) &^ (device.StageAlign - 1)
	return b
}

// push lands what the lane holds, which has been read, and goes on with the other, once that has landed.
func (s *stager) push(places []placed) error {
	t := &s.lanes[s.at]
	if len(t.items) > 0 {
		if err := t.lane.Land(t.items); err != nil {
			return err
		}
		t.landing = true
	}
	s.at = 1 - s.at
	return s.lanes[s.at].wait(places)
}

// wait ends a landing and keeps the digests of what landed.
func (t *turn) wait(places []placed) error {
	if t.landing {
		digests, err := t.lane.Wait()
		if err != nil {
			return err
		}
		t.landing = false
		for i, e := range t.entries {
			places[e].digest = digests[i]
		}
	}
	t.items, t.entries, t.used = t.items[:0], t.entries[:0], 0
	return nil
}

// end lands everything.
func (s *stager) end(places []placed) error {
	for range s.lanes {
		if err := s.push(places); err != nil {
			return errors.Join(err, s.drop(places))
		}
	}
	return nil
}

// drop waits for what is landing and forgets what was read; no tag follows. What cannot be waited for may land at any time: the device counts as lost.
func (s *stager) drop(places []placed) (err error) {
	for i := range s.lanes {
		t := &s.lanes[i]
		e := t.wait(places)
		if e != nil && !errors.Is(e, device.ErrLost) {
			e = t.wait(places) // once more: it is the end that counts
		}
		if t.landing && !errors.Is(e, device.ErrLost) {
			e = fmt.Errorf("%w: a landing has no known end: %w", device.ErrLost, e)
		}
		err = errors.Join(err, e)
	}
	return err
}

func (s *stager) close() (err error) {
	for i := range s.lanes {
		if s.lanes[i].lane != nil {
			err = errors.Join(err, s.lanes[i].lane.Close())
		}
	}
	return err
}

// stager is the one of a component's pool.
func (x *receiver) stager(c spec.Component, p *device.Pool) (s *stager, err error) {
	if x.stagers[c] == nil {
		x.stagers[c], err = newStager(p)
	}
	return x.stagers[c], err
}

// settle ends what is landing of a frame that ended with err, and stores the tags of one that came whole and has landed in all pools. What it returns is the frame's end.
func (x *receiver) settle(err error) error {
	for _, s := range x.stagers {
		switch {
		case s == nil:
		case err != nil:
			err = errors.Join(err, s.drop(x.places[:]))
		default:
			err = s.end(x.places[:])
		}
	}
	for c, s := range x.stagers {
		if s != nil && err == nil {
			err = x.putTags(spec.Component(c), s)
		}
	}
	return err
}

// putTags stores the tags of one pool.
func (x *receiver) putTags(c spec.Component, s *stager) error {
	s.tags = s.tags[:0]
	for i := range x.begun {
		if pl := &x.places[i]; pl.staged && x.entries[i].c == c {
			s.tags = append(s.tags, device.SlotTag{Page: pl.p.Of.Page, Slot: pl.p.OfSlot, Tag: [spec.TagBytes]byte(x.tags[i*spec.TagBytes:])})
		}
	}
	if len(s.tags) == 0 {
		return nil
	}
	return s.store.Put(s.tags)
}

func (x *receiver) closeStagers() {
	for _, s := range x.stagers {
		if s != nil {
			_ = s.close() // nothing is landing, or the device is lost
		}
	}
}
