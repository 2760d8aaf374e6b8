package lockstep

import (
	"slices"

	"kvfence/impl/core"
	"kvfence/model"
	"kvfence/spec"
)

// fabric is the memory of both ends and the writes between them, in the stages of TLA/Fabric.tla.
type fabric struct {
	writes []*write
	pay    [model.MaxLeases + 1][model.MaxRanks][model.MaxPages][model.MaxChans]uint8
	mem    [model.MaxPages][model.MaxRanks]cell
	src    [model.MaxRanks][model.MaxSPages + 1]sourceCell
	spent  bool
}

// cell is one tag slot of a page of decode and the bytes beside it. by is the lease that the tag is of, 0: void, or decode's own.
type cell struct {
	content uint8 // the lease that the bytes were computed for; 0: nobody
	tag     spec.Tag
	by      uint8
}

type sourceCell struct {
	content uint8
	state   uint8
}

type stage uint8

const (
	stageQueued stage = iota
	stageFlying
	stagePlacing
	stageUnseen
	stageOver
)

// write is one one-sided operation. dinc and epoch are those of its header.
type write struct {
	l, k, p, c, i, q uint8
	dinc             uint8
	epoch            spec.Epoch
	item             core.PostItem
	stage            stage
	lost             bool
	content          uint8
}

// digest is the byte digest of a content.
func digest(content uint8) uint64 { return 1000 + uint64(content) }

func (w *World) write(a *model.Args, at ...stage) *write {
	for _, x := range w.writes {
		if x.l == a.L && x.k == a.K && x.p == a.P && x.c == a.C && x.i == a.I && (len(at) == 0 || slices.Contains(at, x.stage)) {
			return x
		}
	}
	w.fail("no such write is at stage %v: lease %d rank %d page %d", at, a.L, a.K, a.P)
	return nil
}

// current says that a write's header names the present epoch and incarnation of decode.
func (w *World) current(x *write) bool { return x.dinc == w.dinc && x.epoch == w.links[x.k].table }

// pendingAt reports whether a write of a lease and rank is at one of these stages.
func (w *World) pendingAt(l, k uint8, at ...stage) bool {
	return slices.ContainsFunc(w.writes, func(x *write) bool { return x.l == l && x.k == k && slices.Contains(at, x.stage) })
}

func (w *World) launch(a *model.Args) {
	if x := w.write(a, stageQueued); x != nil {
		x.stage, x.content = stageFlying, w.src[x.k][x.q].content
		w.pay[x.l][x.k][x.p][x.c] = x.content
	}
}

func (w *World) check(a *model.Args) {
	if x := w.write(a, stageFlying); x != nil {
		if !w.current(x) {
			w.fail("a write of another epoch would be placed")
		}
		x.stage = stagePlacing
	}
}

func (w *World) drop(a *model.Args) {
	if x := w.write(a, stageFlying); x != nil {
		if w.current(x) {
			w.fail("a write of the present epoch would be dropped")
		}
		x.stage = stageOver
	}
}

func (w *World) copyBytes(a *model.Args) {
	if x := w.write(a, stagePlacing); x != nil {
		x.stage = stageUnseen
		w.mem[x.p][x.k].content = 0
	}
}

func (w *World) visible(a *model.Args) {
	if x := w.write(a, stageUnseen); x != nil {
		x.stage = stageOver
		w.mem[x.p][x.k] = cell{x.content, x.item.Tag, x.l}
	}
}

func (w *World) torn(a *model.Args) {
	if x := w.write(a, stageUnseen); x != nil {
		x.stage = stageOver
		c := &w.mem[x.p][x.k]
		c.tag, c.by = x.item.Tag, x.l
		w.spent = true
	}
}

func (w *World) flip(a *model.Args) {
	if x := w.write(a, stageFlying); x != nil {
		x.content = 0
		w.pay[x.l][x.k][x.p][x.c] = 0
		w.spent = true
	}
}

// stray lands somebody else's write, tag and all; its tag is none that any page expects.
func (w *World) stray(a *model.Args) {
	w.mem[a.P][a.K] = cell{content: a.X, by: a.X}
	if a.X != 0 {
		w.mem[a.P][a.K].tag = spec.Tag{Lease: 1000 + spec.LeaseID(a.X), Gen: 7}
	}
	w.spent = true
}

// compare is what a check of tags (and of digests) of decode's memory finds.
func (w *World) compare(checks []core.TagCheck, void []core.VoidCheck, digests bool) (bad []core.BadPart) {
	for _, c := range checks {
		if uint8(c.Slot) >= ranks(w.tw) {
			continue
		}
		x := w.mem[w.page(c.Component, c.Page)][c.Slot]
		off := digests && c.Want.HasDigest && digest(x.content) != c.Want.Digest
		if x.tag != c.Want || off {
			state := spec.TagForeign
			if x.tag == (spec.Tag{}) {
				state = spec.TagVoid
			}
			bad = append(bad, core.BadPart{Component: c.Component, Part: c.Slot, Index: c.Want.Index, State: state, Digest: x.tag == c.Want})
		}
	}
	for _, c := range void {
		if uint8(c.Slot) < ranks(w.tw) && w.mem[w.page(c.Component, c.Page)][c.Slot].tag != (spec.Tag{}) {
			bad = append(bad, core.BadPart{Component: c.Component, Part: c.Slot, Index: c.Index, State: spec.TagForeign})
		}
	}
	return bad
}
