package node

import (
	"fmt"

	"kvfence/impl/core"
	"kvfence/impl/device"
	"kvfence/spec"
)

// What a node does with pages that may lie on a device. Pools that the host addresses are looked at in place; others by their Store. An error that wraps
// device.ErrLost ends the node (watchDevice); any other fails what was to be done.

// addressable reports whether the host can address all of these pools.
func addressable(mem device.Memory) bool {
	for _, p := range mem {
		if p != nil && p.Bytes == nil {
			return false
		}
	}
	return true
}

// tagStates compares slots with what is wanted there, in order.
func tagStates(mem device.Memory, checks []core.TagCheck) ([]spec.TagState, error) {
	states := make([]spec.TagState, len(checks))
	var on [spec.ComponentCount][]device.SlotTag
	var at [spec.ComponentCount][]int
	for i, c := range checks {
		p := mem[c.Component]
		if p.Bytes != nil {
			states[i] = device.CheckTag(p.Slot(c.Page, c.Slot), c.Want)
			continue
		}
		x := device.SlotTag{Page: c.Page, Slot: c.Slot}
		device.PutTag(x.Tag[:], c.Want)
		on[c.Component], at[c.Component] = append(on[c.Component], x), append(at[c.Component], i)
	}
	return states, byStore(mem, on, at, states)
}

// byStore has the stores compare, and puts their answers where they belong.
func byStore(mem device.Memory, on [spec.ComponentCount][]device.SlotTag, at [spec.ComponentCount][]int, states []spec.TagState) error {
	for c, wants := range on {
		if len(wants) == 0 {
			continue
		}
		got, err := mem[c].Store.Check(wants)
		if err != nil {
			return err
		}
		for k, i := range at[c] {
			states[i] = got[k]
		}
	}
	return nil
}

// voidStates are what slots hold that must be void: good where they are.
func voidStates(mem device.Memory, checks []core.VoidCheck) ([]spec.TagState, error) {
	states := make([]spec.TagState, len(checks))
	var on [spec.ComponentCount][]device.SlotTag
	var at [spec.ComponentCount][]int
	for i, c := range checks {
		p := mem[c.Component]
		if p.Bytes != nil {
			states[i] = device.CompareTag(p.Slot(c.Page, c.Slot), &[spec.TagBytes]byte{})
			continue
		}
		on[c.Component], at[c.Component] = append(on[c.Component], device.SlotTag{Page: c.Page, Slot: c.Slot}), append(at[c.Component], i)
	}
	return states, byStore(mem, on, at, states)
}

// putTag stores a tag.
func putTag(p *device.Pool, page spec.PageID, slot spec.PartIndex, t spec.Tag) error {
	if p.Bytes != nil {
		device.PutTag(p.Slot(page, slot), t)
		return nil
	}
	x := device.SlotTag{Page: page, Slot: slot}
	device.PutTag(x.Tag[:], t)
	return p.Store.Put([]device.SlotTag{x})
}

// digestOf reads the bytes of a part.
func digestOf(p *device.Pool, part spec.Part, index uint32, page spec.PageID) (uint64, error) {
	if p.Bytes == nil {
		d, err := p.Store.Digests([]device.PagePart{{Part: part, Index: index, Page: page}})
		if err != nil {
			return 0, err
		}
		return d[0], nil
	}
	segs, err := part.Segments(p.Layout, index, nil)
	if err != nil {
		return 0, err
	}
	return device.DigestSegments(p.Page(page), segs, device.HeaderOf(part, p.Layout, index, spec.UsedBytes(segs))), nil
}

// readPage is a page's bytes: in place, or a copy.
func readPage(p *device.Pool, id spec.PageID) ([]byte, error) {
	if p.Bytes != nil {
		return p.Page(id), nil
	}
	b := make([]byte, p.Layout.Shape.PageBytes)
	return b, p.Store.ReadPage(id, 0, b)
}

// writePage has f fill a page.
func writePage(p *device.Pool, id spec.PageID, f func(b []byte) error) error {
	if p.Bytes != nil {
		return f(p.Page(id))
	}
	b := make([]byte, p.Layout.Shape.PageBytes)
	if err := f(b); err != nil {
		return err
	}
	return p.Store.WritePage(id, 0, b)
}

// onDevice is who stops a node whose device is lost.
const onDevice = "device"

// watchDevice ends the node when its device is lost: what was queued there may still land, and only the end of this process is proof.
func (n *Node) watchDevice() {
	if n.device == nil {
		return
	}
	n.wg.Go(func() {
		select {
		case <-n.device.Lost():
			n.fail(core.Stop{Broken: fmt.Sprintf("%s: %v", n.device.Name(), n.device.Err())}, onDevice)
		case <-n.ended:
		}
	})
}
