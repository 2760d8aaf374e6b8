package transport

import (
	"sync"

	"kvfence/impl/device"
	"kvfence/spec"
)

// Grants is the grant table of one push link at decode: what may land where (I7), and who is placing right now (I16). Check and
// copy are two steps; a fence raises the epoch first and then waits for the placers that had passed the check.
// Safe for concurrent use. The owner of the link (impl/node, carrying out impl/core's actions) allows, revokes and raises.
type Grants struct {
	mem device.Memory

	mu      sync.Mutex
	idle    sync.Cond // signalled when a placer ends
	epoch   spec.Epoch
	leases  map[spec.LeaseID]*granted
	placing map[spec.Epoch]int
}

// granted is one lease's right on this link.
type granted struct {
	pages   [spec.ComponentCount][]spec.GrantedPage
	parts   [spec.ComponentCount]map[spec.PartIndex]*grantedPart
	digests bool
}

// grantedPart holds what landed of one part: for each page index from lo, whether it was begun, done, and its digest.
type grantedPart struct {
	part   spec.Part
	lo     uint32
	state  []uint8 // 0 not seen, 1 begun, 2 done
	digest []uint64
}

// Placement is the permission to copy one part into one page. It counts as a placer until End.
type Placement struct {
	Page   []byte
	Slot   []byte
	Segs   []spec.Segment // destination segments, canonical order
	Bytes  uint32
	Digest bool

	epoch spec.Epoch
	gp    *grantedPart
	at    int
}

// NewGrants makes an empty table over the node's memory.
func NewGrants(mem device.Memory) *Grants {
	g := &Grants{mem: mem, leases: map[spec.LeaseID]*granted{}, placing: map[spec.Epoch]int{}}
	g.idle.L = &g.mu
	return g
}

// Allow enters a lease. Only the parts listed may land, each once for each page.
func (g *Grants) Allow(m spec.Grant) {
	l := &granted{pages: m.Pages, digests: m.Digests}
	for _, p := range m.Parts {
		pool := g.mem[p.Component]
		if pool == nil {
			continue
		}
		lo, hi := p.PageRange(pool.Layout)
		if l.parts[p.Component] == nil {
			l.parts[p.Component] = map[spec.PartIndex]*grantedPart{}
		}
		l.parts[p.Component][p.Index] = &grantedPart{part: p, lo: lo, state: make([]uint8, hi-lo), digest: make([]uint64, hi-lo)}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.leases[m.Lease] = l
}

// Revoke takes a lease out: no further placement of it begins. It proves nothing about those in progress.
func (g *Grants) Revoke(lease spec.LeaseID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.leases, lease)
}

// Raise sets the link's epoch: placements of older ones no longer begin, and all leases of older epochs are revoked.
func (g *Grants) Raise(e spec.Epoch) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e > g.epoch {
		g.epoch = e
		clear(g.leases)
	}
}

// Wait blocks until no placement of an epoch below e is in progress. Call Raise(e) first: then none can begin either.
func (g *Grants) Wait(e spec.Epoch) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.placersBelow(e) > 0 {
		g.idle.Wait()
	}
}

func (g *Grants) placersBelow(e spec.Epoch) (n int) {
	for x, k := range g.placing {
		if x < e {
			n += k
		}
	}
	return n
}

// Begin checks one write of a stream opened in epoch e against the table and, if it may land, counts a placer. segs is scratch
// memory for the destination segments.
func (g *Grants) Begin(e spec.Epoch, lease spec.LeaseID, c spec.Component, part spec.PartIndex, index uint32, dst spec.GrantedPage, bytes uint32, segs []spec.Segment) (Placement, spec.Refusal) {
	if c >= spec.ComponentCount || g.mem[c] == nil {
		return Placement{}, spec.RefuseOutOfRange
	}
	pool := g.mem[c]
	g.mu.Lock()
	defer g.mu.Unlock()
	if e != g.epoch {
		return Placement{}, spec.RefuseStaleEpoch
	}
	l := g.leases[lease]
	if l == nil {
		return Placement{}, spec.RefuseUnknownLease
	}
	gp := l.parts[c][part]
	if gp == nil || index < gp.lo || index-gp.lo >= uint32(len(gp.state)) || index >= uint32(len(l.pages[c])) || l.pages[c][index] != dst ||
		uint32(dst.Page) >= pool.Layout.Shape.Pages || uint32(part) >= uint32(pool.Layout.Shape.TagSlots) {
		return Placement{}, spec.RefuseNotGranted
	}
	at := int(index - gp.lo)
	if gp.state[at] != 0 {
		return Placement{}, spec.RefuseDuplicate
	}
	segs, err := gp.part.Segments(pool.Layout, index, segs[:0])
	if err != nil || spec.UsedBytes(segs) != bytes {
		return Placement{}, spec.RefuseNotGranted
	}
	gp.state[at] = 1
	g.placing[e]++
	return Placement{Page: pool.Page(dst.Page), Slot: pool.Slot(dst.Page, part), Segs: segs, Bytes: bytes, Digest: l.digests, epoch: e, gp: gp, at: at}, ""
}

// End ends a placement: done means that all bytes and the tag are in place and digest is the digest of the bytes that landed.
func (g *Grants) End(p Placement, done bool, digest uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if done {
		p.gp.state[p.at] = 2
		p.gp.digest[p.at] = digest
	}
	if g.placing[p.epoch]--; g.placing[p.epoch] == 0 {
		delete(g.placing, p.epoch)
	}
	g.idle.Broadcast()
}

// Landed is what has landed of one part: Done[i] and Digest[i] belong to page index Lo+i.
type Landed struct {
	Part   spec.Part
	Lo     uint32
	Done   []bool
	Digest []uint64
}

// Landed reports what landed of a lease on this link, in plan order; nil if the lease is not in the table.
func (g *Grants) Landed(lease spec.LeaseID, parts []spec.Part) []Landed {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.leases[lease]
	if l == nil {
		return nil
	}
	var out []Landed
	for _, p := range parts {
		gp := l.parts[p.Component][p.Index]
		if gp == nil {
			continue
		}
		d := Landed{Part: p, Lo: gp.lo, Done: make([]bool, len(gp.state)), Digest: append([]uint64(nil), gp.digest...)}
		for i, s := range gp.state {
			d.Done[i] = s == 2
		}
		out = append(out, d)
	}
	return out
}
