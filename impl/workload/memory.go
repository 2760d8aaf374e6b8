package workload

import "fmt"

// Flat is a private, contiguous cache: layout [layers, 2, heads, positions,
// head bytes]. It is the memory of the one-process oracle.
type Flat struct {
	g        Geometry
	capacity int
	data     []byte
}

// NewFlat makes a zeroed cache for capacity positions.
func NewFlat(g Geometry, capacity int) *Flat {
	return &Flat{g: g, capacity: capacity, data: make([]byte, g.TokenBytes()*capacity)}
}

// Bytes is the whole memory, for tests that damage it.
func (f *Flat) Bytes() []byte { return f.data }

// Slot implements [KV]. A position beyond the capacity gets nil.
func (f *Flat) Slot(layer, kv, head, pos int) []byte { return f.Run(layer, kv, head, pos, 1) }

// Run implements [Runner].
func (f *Flat) Run(layer, kv, head, from, n int) []byte {
	if from < 0 || from >= f.capacity {
		return nil
	}
	n = min(n, f.capacity-from)
	slot := f.g.SlotBytes()
	start := (((layer*2+kv)*f.g.KVHeads+head)*f.capacity + from) * slot
	return f.data[start : start+n*slot : start+n*slot]
}

// Paged is a cache of equal pages, each with layout [layers, 2, heads,
// pageTokens, head bytes]; page i holds positions i*pageTokens onward.
// The pages belong to the caller, which may append to Pages between steps.
type Paged struct {
	Geometry   Geometry
	PageTokens int
	Pages      [][]byte
}

// PageBytes is the size of a page of pageTokens positions.
func (g Geometry) PageBytes(pageTokens int) int { return g.TokenBytes() * pageTokens }

// Check verifies the sizes once, so that Slot and Run cannot go out of bounds.
func (p *Paged) Check() error {
	if p.PageTokens < 1 {
		return fmt.Errorf("%w: %d tokens a page", ErrSlot, p.PageTokens)
	}
	want := p.Geometry.PageBytes(p.PageTokens)
	for i, page := range p.Pages {
		if len(page) < want {
			return fmt.Errorf("%w: page %d has %d bytes, need %d", ErrSlot, i, len(page), want)
		}
	}
	return nil
}

// Slot implements [KV]. A position without a page gets nil.
func (p *Paged) Slot(layer, kv, head, pos int) []byte { return p.Run(layer, kv, head, pos, 1) }

// Run implements [Runner]; a run ends with its page.
func (p *Paged) Run(layer, kv, head, from, n int) []byte {
	if from < 0 || from/p.PageTokens >= len(p.Pages) {
		return nil
	}
	page, at := p.Pages[from/p.PageTokens], from%p.PageTokens
	n = min(n, p.PageTokens-at)
	slot := p.Geometry.SlotBytes()
	start := (((layer*2+kv)*p.Geometry.KVHeads+head)*p.PageTokens + at) * slot
	return page[start : start+n*slot : start+n*slot]
}

// reader hides whether a KV has runs, and checks what it hands out.
type reader struct {
	kv   KV
	run  Runner
	slot int
}

func newReader(kv KV, g Geometry) reader {
	r, _ := kv.(Runner)
	return reader{kv: kv, run: r, slot: g.SlotBytes()}
}

// next returns the slots from position from on: at least one, at most n.
func (r reader) next(layer, kv, head, from, n int) ([]byte, error) {
	var b []byte
	if r.run != nil {
		b = r.run.Run(layer, kv, head, from, n)
	} else {
		b = r.kv.Slot(layer, kv, head, from)
	}
	if len(b) == 0 || len(b)%r.slot != 0 || len(b) > n*r.slot {
		return nil, fmt.Errorf("%w: %d bytes for layer %d kv %d head %d position %d, a slot has %d",
			ErrSlot, len(b), layer, kv, head, from, r.slot)
	}
	return b, nil
}
