package transport

import (
	"slices"
	"sync"

	"kvfence/impl/device"
	"kvfence/spec"
)

// Grants is the grant table of one push link at decode: what may land where (I7), and who is placing right now (I16). Check and
// copy are two steps; a fence raises the epoch first and then waits for the placers that had passed the check.
// Safe for concurrent use. The owner of the link (impl/node, carrying out impl/core's actions) allows, revokes and raises.
// Memory is 1 byte for each page and part of a lease, 9 with digests, plus the segments of each different shape once; a check
// costs the same for any number of leases, pages and segments.
type Grants struct {
	mem device.Memory

	mu      sync.Mutex
	idle    sync.Cond // signalled when the last placer of an epoch, or of a revoked lease, ends
	epoch   spec.Epoch
	last    spec.LeaseID // highest ever allowed
	leases  map[spec.LeaseID]*granted
	strays  []*granted // revoked while something of them was being placed, which has not ended
	placing map[spec.Epoch]int
	shapes  map[shapeKey]*shape

	windows      Windows // nil: nothing but this table says what lands
	windowsEpoch spec.Epoch
	failed       error // what is being placed may go on for ever
}

// Windows is an adapter that enforces leases itself, for one-sided writes that no placer checks. Its owner opens rights for what
// is granted and takes them back. A lease with rights counts as being placed until release is called, which the adapter does when it
// has taken back all of them, with success, or has freed them with the link's queue pairs. Calls come one at a time for each
// link; they do not block. Revoke with done says that the writer is: the rights are taken back now. Without, writes of it may be under way, and taking its rights
// would break the connection under all other leases: they stand until Settle, or the fence.
type Windows interface {
	Grant(m spec.Grant, release func())
	Revoke(lease spec.LeaseID, done bool)
}

// Enforce names the adapter for the leases of epoch e that are allowed from now on; one of an epoch that is over is not heard.
func (g *Grants) Enforce(e spec.Epoch, w Windows) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e >= g.windowsEpoch {
		g.windows, g.windowsEpoch = w, e
	}
}

// granted is one lease's right on this link.
type granted struct {
	id      spec.LeaseID
	pages   [spec.ComponentCount][]spec.GrantedPage
	parts   [spec.ComponentCount]map[spec.PartIndex]*grantedPart
	digests bool
	placing int // placements that have begun and not ended
}

// grantedPart holds what landed of one part: for each page index from lo, whether it was begun, done, and its digest.
type grantedPart struct {
	part   spec.Part
	lo     uint32
	state  []uint8  // 0 not seen, 1 begun, 2 done
	digest []uint64 // nil without digests
	shapes [3]*shape
}

// The pages of a part differ in shape only at its ends, where its token range may cut them.
const (
	firstPage = iota
	innerPage
	lastPage
)

// shapeKey is all that the segments of a page depend on, for one layout.
type shapeKey struct {
	c                                      spec.Component
	layerLo, layerHi, headLo, headHi, a, z uint32 // tokens [a, z) within the page
}

// shape is the segments of one shapeKey, shared by all leases that need it.
type shape struct {
	key  shapeKey
	segs []spec.Segment
	used uint32
	refs int
}

// Placement is the permission to copy one part into one page. It counts as a placer until End.
type Placement struct {
	Page   []byte // nil, as is Slot, where the host cannot address the pool: then Of and OfSlot say what a lane of Pool is told
	Slot   []byte
	Pool   *device.Pool
	Of     device.PagePart
	OfSlot spec.PartIndex
	Segs   []spec.Segment // destination segments, canonical order; shared, not to be changed
	Bytes  uint32
	Digest bool                // the lease wants End to be given the digest of what landed
	Header device.DigestHeader // for that digest

	epoch spec.Epoch
	lease *granted
	gp    *grantedPart
	at    int
}

// NewGrants makes an empty table over the node's memory.
func NewGrants(mem device.Memory) *Grants {
	g := &Grants{mem: mem, leases: map[spec.LeaseID]*granted{}, placing: map[spec.Epoch]int{}, shapes: map[shapeKey]*shape{}}
	g.idle.L = &g.mu
	return g
}

// Allow enters a lease; only the parts listed may land, each once for each page. It reports whether the lease was entered: one that
// is not above every lease allowed before (they rise in the order of grants) never is, so that neither a repeated grant nor a
// mistaken one reopens pages that have landed, or were revoked. The slices of m belong to the table until Revoke.
func (g *Grants) Allow(m spec.Grant) bool {
	w, release, entered := g.allow(m)
	if w != nil {
		w.Grant(m, release)
	}
	return entered
}

// allow enters a lease; with windows it counts as being placed until release.
func (g *Grants) allow(m spec.Grant) (w Windows, release func(), entered bool) {
	l := &granted{id: m.Lease, pages: m.Pages, digests: m.Digests}
	g.mu.Lock()
	defer g.mu.Unlock()
	if m.Lease <= g.last {
		return nil, nil, false
	}
	g.last = m.Lease
	for _, p := range m.Parts {
		if p.Component >= spec.ComponentCount || g.mem[p.Component] == nil {
			continue
		}
		gp := g.newPart(p, m.Digests)
		if gp == nil {
			continue
		}
		if l.parts[p.Component] == nil {
			l.parts[p.Component] = map[spec.PartIndex]*grantedPart{}
		}
		if old := l.parts[p.Component][p.Index]; old != nil {
			g.dropPart(gp) // one slot, one part: the first stands
			continue
		}
		l.parts[p.Component][p.Index] = gp
	}
	g.leases[m.Lease] = l
	if g.windows == nil || g.windowsEpoch != g.epoch {
		return nil, nil, true
	}
	e := g.epoch
	g.placing[e]++
	l.placing++
	return g.windows, sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.ended(e, l)
	}), true
}

// newPart is nil for a part that names no bytes of the pool: nothing of it may land.
func (g *Grants) newPart(p spec.Part, digests bool) *grantedPart {
	layout := g.mem[p.Component].Layout
	lo, hi := p.PageRange(layout)
	if lo >= hi {
		return nil
	}
	gp := &grantedPart{part: p, lo: lo, state: make([]uint8, hi-lo)}
	if digests {
		gp.digest = make([]uint64, hi-lo)
	}
	for k, i := range [3]uint32{firstPage: lo, innerPage: min(lo+1, hi-1), lastPage: hi - 1} {
		if gp.shapes[k] = g.takeShape(p, layout, i); gp.shapes[k] == nil {
			g.dropPart(gp)
			return nil
		}
	}
	return gp
}

func (g *Grants) takeShape(p spec.Part, l spec.Layout, i uint32) *shape {
	a, z := p.Tokens(l, i)
	key := shapeKey{p.Component, p.LayerLo, p.LayerHi, p.HeadLo, p.HeadHi, a, z}
	s := g.shapes[key]
	if s == nil {
		segs, err := p.Segments(l, i, nil)
		if err != nil || len(segs) == 0 {
			return nil
		}
		s = &shape{key: key, segs: segs, used: spec.UsedBytes(segs)}
		g.shapes[key] = s
	}
	s.refs++
	return s
}

func (g *Grants) dropPart(gp *grantedPart) {
	for _, s := range gp.shapes {
		if s == nil {
			continue
		}
		if s.refs--; s.refs == 0 {
			delete(g.shapes, s.key)
		}
	}
}

// shape is the shape of page number at of the part.
func (gp *grantedPart) shape(at int) *shape {
	switch at {
	case 0:
		return gp.shapes[firstPage]
	case len(gp.state) - 1:
		return gp.shapes[lastPage]
	}
	return gp.shapes[innerPage]
}

// Revoke takes a lease out: no further placement of it begins. It proves nothing about those in progress.
func (g *Grants) Revoke(lease spec.LeaseID) {
	if w := g.revoke(lease); w != nil {
		w.Revoke(lease, false)
	}
}

// TakeBack is Revoke for a lease whose writer is done: an adapter takes its rights back now.
func (g *Grants) TakeBack(lease spec.LeaseID) {
	if w := g.revoke(lease); w != nil {
		w.Revoke(lease, true)
	}
}

func (g *Grants) revoke(lease spec.LeaseID) Windows {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.leases[lease]
	if l == nil {
		return nil
	}
	for _, parts := range l.parts {
		for _, gp := range parts {
			g.dropPart(gp)
		}
	}
	delete(g.leases, lease)
	if l.placing > 0 {
		g.strays = append(g.strays, l)
	}
	if g.windowsEpoch != g.epoch {
		return nil
	}
	return g.windows
}

// Strays are the revoked leases of which something is still being placed into one of these pages. A receipt says that nothing is;
// before the pages are handed out the owner asks, for a peer that says so and goes on writing must harm its own lease alone.
func (g *Grants) Strays(c spec.Component, pages []spec.PageID) (leases []spec.LeaseID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.strays) == 0 {
		return nil
	}
	asked := make(map[spec.PageID]struct{}, len(pages))
	for _, p := range pages {
		asked[p] = struct{}{}
	}
	for _, l := range g.strays {
		if slices.ContainsFunc(l.pages[c], func(p spec.GrantedPage) bool {
			_, is := asked[p.Page]
			return is && p.Gen != 0 // generation 0: not granted
		}) {
			leases = append(leases, l.id)
		}
	}
	return leases
}

// Fail says that placements in progress have no known end any more: a device or adapter was lost with them. They count for ever, and whoever waits for them
// is told, now and later. The first error stays.
func (g *Grants) Fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.failed == nil {
		g.failed = err
	}
	g.idle.Broadcast()
}

// WaitStrays blocks until nothing of a revoked lease is being placed. The owner ends the streams first, or it waits for the peer. An error says that
// something is, and that nobody knows its end (Fail).
func (g *Grants) WaitStrays() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(g.strays) > 0 {
		if g.failed != nil {
			return g.failed
		}
		g.idle.Wait()
	}
	return nil
}

// WaitLease blocks until nothing of a lease that was revoked, or of an epoch that is over, is being placed: from then on nothing of it lands. An error says that
// something may, and that nobody knows its end (Fail).
func (g *Grants) WaitLease(lease spec.LeaseID) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.placersBelow(g.epoch) > 0 || slices.ContainsFunc(g.strays, func(l *granted) bool { return l.id == lease }) {
		if g.failed != nil {
			return g.failed
		}
		g.idle.Wait()
	}
	return nil
}

// Raise sets the link's epoch: placements of older ones no longer begin, and all leases of older epochs are revoked.
func (g *Grants) Raise(e spec.Epoch) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e > g.epoch {
		g.epoch = e
		clear(g.leases)
		clear(g.shapes)
	}
}

// Wait blocks until no placement of an epoch below e is in progress. Call Raise(e) first: then none can begin either. An error says that one is, and that
// nobody knows its end (Fail).
func (g *Grants) Wait(e spec.Epoch) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.placersBelow(e) > 0 {
		if g.failed != nil {
			return g.failed
		}
		g.idle.Wait()
	}
	return nil
}

func (g *Grants) placersBelow(e spec.Epoch) (n int) {
	for x, k := range g.placing {
		if x < e {
			n += k
		}
	}
	return n
}

// Begin checks one write of a stream opened in epoch e against the table and, if it may land, counts a placer until End. A page
// of a part is placed once: one that was begun is a duplicate from then on, also when its End said that it was not done.
// Everything but e comes from the peer and may be anything.
func (g *Grants) Begin(e spec.Epoch, lease spec.LeaseID, c spec.Component, part spec.PartIndex, index uint32, dst spec.GrantedPage, bytes uint32) (Placement, spec.Refusal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e != g.epoch {
		return Placement{}, spec.RefuseStaleEpoch
	}
	l := g.leases[lease]
	if l == nil {
		return Placement{}, spec.RefuseUnknownLease
	}
	if c >= spec.ComponentCount || g.mem[c] == nil {
		return Placement{}, spec.RefuseOutOfRange
	}
	pool := g.mem[c]
	if uint32(dst.Page) >= pool.Layout.Shape.Pages || uint32(part) >= uint32(pool.Layout.Shape.TagSlots) {
		return Placement{}, spec.RefuseOutOfRange
	}
	gp := l.parts[c][part]
	if gp == nil || index < gp.lo || index-gp.lo >= uint32(len(gp.state)) || uint64(index) >= uint64(len(l.pages[c])) || l.pages[c][index] != dst {
		return Placement{}, spec.RefuseNotGranted
	}
	at := int(index - gp.lo)
	s := gp.shape(at)
	if s.used != bytes {
		return Placement{}, spec.RefuseNotGranted
	}
	if gp.state[at] != 0 {
		return Placement{}, spec.RefuseDuplicate
	}
	gp.state[at] = 1
	g.placing[e]++
	l.placing++
	x := Placement{
		Pool: pool, Of: device.PagePart{Part: gp.part, Index: index, Page: dst.Page}, OfSlot: part, Segs: s.segs, Bytes: bytes, Digest: l.digests,
		Header: device.HeaderOf(gp.part, pool.Layout, index, bytes), epoch: e, lease: l, gp: gp, at: at,
	}
	if pool.Bytes != nil {
		x.Page, x.Slot = pool.Page(dst.Page), pool.Slot(dst.Page, part)
	}
	return x, ""
}

// End ends a placement: done means that all bytes and the tag are in place and digest is the digest of the bytes that landed
// (0 if p.Digest is false). Call it once for each Begin that was allowed.
func (g *Grants) End(p Placement, done bool, digest uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if done {
		p.gp.state[p.at] = 2
		if p.gp.digest != nil {
			p.gp.digest[p.at] = digest
		}
	}
	g.ended(p.epoch, p.lease)
}

// ended counts a placer, or an adapter's rights, out.
func (g *Grants) ended(e spec.Epoch, l *granted) {
	if l.placing--; l.placing == 0 && len(g.strays) > 0 {
		g.strays = slices.DeleteFunc(g.strays, func(x *granted) bool { return x == l })
		g.idle.Broadcast()
	}
	if g.placing[e]--; g.placing[e] == 0 {
		delete(g.placing, e)
		g.idle.Broadcast()
	}
}

// Landed is what has landed of one part: Done[i] and Digest[i] belong to page index Lo+i; without digests those are 0.
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
		if p.Component >= spec.ComponentCount {
			continue
		}
		gp := l.parts[p.Component][p.Index]
		if gp == nil {
			continue
		}
		d := Landed{Part: gp.part, Lo: gp.lo, Done: make([]bool, len(gp.state)), Digest: make([]uint64, len(gp.state))}
		copy(d.Digest, gp.digest)
		for i, s := range gp.state {
			d.Done[i] = s == 2
		}
		out = append(out, d)
	}
	return out
}
