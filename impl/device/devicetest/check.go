// Package devicetest holds every Device to the rules of device.Store and device.Lane: random histories on a small pool beside a plain model of it, all
// bytes and all slots compared after each step. Check returns the first rule that is broken, so that tests can show that a broken device is
// refused. It is for tests, and knows no device but by its interface. Called by the tests of devices, transports and nodes. Read next: opaque.go.
package devicetest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"

	"kvfence/impl/device"
	"kvfence/spec"
)

// ErrRule is wrapped where a device breaks a rule.
var ErrRule = errors.New("a device breaks a rule")

func broken(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrRule, fmt.Sprintf(format, args...))
}

// Layout is a pool of a random shape: layers, heads, tokens, strides with gaps, slots.
func Layout(r *rand.Rand) spec.Layout {
	m := spec.Meaning{
		ByteOrder: "little", HeadDim: 1 + r.Uint32N(24), ElemBytes: 1 << r.Uint32N(3), KVs: 1 + r.Uint32N(2), TokensPerPage: 1 + r.Uint32N(9),
		Layers: 1 + r.Uint32N(3), Heads: 1 + r.Uint32N(4),
	}
	if r.IntN(3) == 0 { // whole vectors, and more than one chunk
		m.HeadDim, m.ElemBytes, m.TokensPerPage = 64, 2, 16+r.Uint32N(16)
	}
	return spec.NewDense(spec.KV, m, 0, m.Layers, 0, m.Heads, 2+r.Uint32N(6), 1+uint16(r.UintN(3)))
}

// world is a pool and what it must hold.
type world struct {
	r     *rand.Rand
	d     device.Device
	pool  *device.Pool
	model *device.Pool // host memory
	lanes [2]device.Lane
	pages uint32
	slots uint32
}

// Check runs one random history of so many steps. The device is the caller's to close.
func Check(d device.Device, seed uint64, steps int) error {
	r := rand.New(rand.NewPCG(seed, 11))
	l := Layout(r)
	pool, err := d.NewPool(l)
	if err != nil {
		return fmt.Errorf("a pool: %w", err)
	}
	model, err := device.NewPool(l, nil, nil)
	if err != nil {
		return err
	}
	w := &world{r: r, d: d, pool: pool, model: model, pages: l.Shape.Pages, slots: uint32(l.Shape.TagSlots)}
	if pool.Layout != l {
		return broken("the pool has another layout")
	}
	for i := range w.lanes {
		if w.lanes[i], err = pool.Store.Lane(int(l.Shape.PageBytes)*2 + 2*device.StageAlign); err != nil {
			return fmt.Errorf("a lane: %w", err)
		}
	}
	if err := w.compare("at the start"); err != nil {
		return err
	}
	ops := []struct {
		name string
		do   func() error
	}{
		{"Void", w.void}, {"Put", w.put}, {"Check", w.check}, {"Digests", w.digests}, {"CopyTokens", w.copyTokens}, {"WritePage", w.write},
		{"Scrub", w.scrub}, {"Land", w.land}, {"Fetch", w.fetch}, {"a call out of range", w.outside}, {"two lanes", w.both},
	}
	for range steps {
		op := ops[r.IntN(len(ops))]
		if err := op.do(); err != nil {
			return fmt.Errorf("seed %d, %s: %w", seed, op.name, err)
		}
		if err := w.compare("after " + op.name); err != nil {
			return fmt.Errorf("seed %d: %w", seed, err)
		}
	}
	for _, x := range w.lanes {
		if err := x.Close(); err != nil {
			return fmt.Errorf("close a lane: %w", err)
		}
	}
	return nil
}

// compare looks at every byte and slot.
func (w *world) compare(when string) error {
	for p := range w.pages {
		id := spec.PageID(p)
		got := make([]byte, w.model.Layout.Shape.PageBytes)
		if err := w.pool.Store.ReadPage(id, 0, got); err != nil {
			return fmt.Errorf("%s: read page %d: %w", when, p, err)
		}
		if want := w.model.Page(id); !bytes.Equal(got, want) {
			at := 0
			for got[at] == want[at] {
				at++
			}
			return broken("%s: byte %d of page %d is %#02x, not %#02x", when, at, p, got[at], want[at])
		}
	}
	var all []device.SlotTag
	for p := range w.pages {
		for s := range w.slots {
			x := device.SlotTag{Page: spec.PageID(p), Slot: spec.PartIndex(s)}
			copy(x.Tag[:], w.model.Slot(x.Page, x.Slot))
			all = append(all, x)
		}
	}
	states, err := w.pool.Store.Check(all)
	if err != nil {
		return fmt.Errorf("%s: check: %w", when, err)
	}
	if len(states) != len(all) {
		return broken("%s: %d states for %d slots", when, len(states), len(all))
	}
	for i, s := range states {
		if s != spec.TagGood {
			return broken("%s: slot %d of page %d is %s, not what was stored", when, all[i].Slot, all[i].Page, s)
		}
	}
	return nil
}

func (w *world) page() spec.PageID { return spec.PageID(w.r.Uint32N(w.pages)) }

func (w *world) somePages() (ids []spec.PageID) {
	for _, p := range w.r.Perm(int(w.pages))[:w.r.IntN(int(w.pages)+1)] {
		ids = append(ids, spec.PageID(p))
	}
	return ids
}

func (w *world) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(w.r.Uint32())
	}
	return b
}

// tag is one that a slot can hold.
func (w *world) tag() (t [spec.TagBytes]byte) {
	device.PutTag(t[:], spec.Tag{
		Lease: spec.LeaseID(w.r.Uint64()), Gen: spec.Generation(w.r.Uint64N(1 << 40)), Index: w.r.Uint32N(9), Used: w.r.Uint32N(1 << 20),
		HasDigest: w.r.IntN(2) == 0, Digest: w.r.Uint64(),
	})
	return t
}

// part is any part of a page that has bytes.
func (w *world) part() device.PagePart {
	l := w.model.Layout
	for {
		lo, n := w.r.Uint32N(l.Equal.Layers), w.r.Uint32N(l.Equal.Heads)
		p := spec.Part{
			Component: l.Component, LayerLo: lo, LayerHi: lo + 1 + w.r.Uint32N(l.Equal.Layers-lo), HeadLo: n, HeadHi: n + 1 + w.r.Uint32N(l.Equal.Heads-n),
			TokenLo: w.r.Uint32N(l.Equal.TokensPerPage), TokenHi: 1 + w.r.Uint32N(3*l.Equal.TokensPerPage),
		}
		if p.TokenLo >= p.TokenHi {
			continue
		}
		x := device.PagePart{Part: p, Page: w.page(), Index: (p.TokenHi - 1) / l.Equal.TokensPerPage}
		if segs, err := w.model.Segments(x); err == nil && spec.UsedBytes(segs) > 0 {
			return x
		}
	}
}

func (w *world) used(x device.PagePart) int {
	segs, _ := w.model.Segments(x)
	return int(spec.UsedBytes(segs))
}
