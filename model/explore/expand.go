package explore

import (
	"slices"
	"sync"
	"sync/atomic"
)

// expander takes one state at a time and encodes its successors. Each goroutine has its own; the layout is shared and must not change
// while expanders run.
type expander[S comparable] struct {
	sys System[S]
	o   *Options[S]
	lay *layout

	cur, next       aligned[S]
	curW, nextW     []uint64
	curKey, nextKey []uint64

	lacks  []uint64 // bits without a place that successors differ in
	misfit bool     // there are such: what was counted and yielded since is worth nothing

	edges    []edge // of this state, to tell repeated ones
	edgeKeys []uint64
	tally    tally
	broken   *broken[S]
	yield    func(action int, key []uint64, h uint64)
	emit     func(action int, next *S)
}

type edge struct {
	hash   uint64
	action int
}

// broken is a property broken by a state, or by a step of it.
type broken[S comparable] struct {
	property string
	step     []Step[S]
}

// nearer says whether b, found after other in the same level, has the shorter path.
func (b *broken[S]) nearer(other *broken[S]) bool {
	return b != nil && (other == nil || len(b.step) < len(other.step))
}

func newExpander[S comparable](newSystem func() System[S], o *Options[S], lay *layout, yield func(action int, key []uint64, h uint64)) *expander[S] {
	x := &expander[S]{sys: newSystem(), o: o, lay: lay, yield: yield, lacks: make([]uint64, len(lay.base))}
	x.curW, x.nextW = x.cur.words(), x.next.words()
	x.emit = x.successor
	return x
}

// expand yields the successors of the state of a key, each (action, successor) once. It reports the property that the state or one
// of its steps breaks first, if any.
func (x *expander[S]) expand(key []uint64) *broken[S] {
	x.load(key)
	x.broken = nil
	if x.o.Check != nil {
		if p := x.o.Check(&x.cur.s); p != "" {
			x.broken = &broken[S]{property: p}
		}
	}
	x.sys.Next(&x.cur.s, x.emit)
	return x.broken
}

// load makes a state the present one.
func (x *expander[S]) load(key []uint64) {
	if n := x.lay.stride(); len(x.curKey) != n {
		x.curKey, x.nextKey = make([]uint64, n), make([]uint64, n)
	}
	clear(x.curKey)
	copy(x.curKey, key)
	x.lay.unpack(x.curKey, x.curW)
	x.edges, x.edgeKeys = x.edges[:0], x.edgeKeys[:0]
}

func (x *expander[S]) successor(action int, s *S) {
	x.next.s = *s
	copy(x.nextKey, x.curKey)
	for i, w := range x.nextW {
		d := (w ^ x.curW[i]) & x.lay.solid[i]
		if d == 0 {
			continue
		}
		if more := d &^ x.lay.live[i]; more != 0 {
			x.lacks[i] |= more
			x.misfit = true
		}
		x.lay.change(x.nextKey, i, d)
	}
	if x.misfit {
		return
	}
	h := hash(x.nextKey)
	if x.repeated(action, h) {
		x.tally.generated++
		return
	}
	x.tally.add(action, 1)
	if x.o.Step != nil && x.broken == nil {
		if p := x.o.Step(&x.cur.s, action, s); p != "" {
			x.broken = &broken[S]{p, []Step[S]{{action, *s}}}
		}
	}
	x.yield(action, x.nextKey, h)
}

// repeated reports whether the present state had this step before, and keeps it.
func (x *expander[S]) repeated(action int, h uint64) bool {
	n := len(x.nextKey)
	for j, e := range x.edges {
		if e.hash == h && e.action == action && slices.Equal(x.edgeKeys[j*n:(j+1)*n], x.nextKey) {
			return true
		}
	}
	x.edges = append(x.edges, edge{h, action})
	x.edgeKeys = append(x.edgeKeys, x.nextKey...)
	return false
}

// settle gives places to what expanders lacked; it reports whether any did, and then their work is to be done again.
func settle[S comparable](lay *layout, xs []*expander[S]) bool {
	some := false
	lacks := make([]uint64, len(lay.base))
	for _, x := range xs {
		some = some || x.misfit
		for i, w := range x.lacks {
			lacks[i] |= w
		}
		x.misfit = false
		clear(x.lacks)
	}
	lay.extend(lacks) // all at once: the order of places does not depend on who found what
	return some
}

// initial encodes the initial states, in the order given, each once.
func initial[S comparable](sys System[S], lay *layout) (keys [][]uint64) {
	states := sys.Init()
	lacks := make([]uint64, len(lay.base))
	var a aligned[S]
	for i := range states {
		a.s = states[i]
		if i == 0 {
			copy(lay.base, a.words())
		}
		lay.missing(a.words(), lacks)
	}
	lay.extend(lacks)
	for i := range states {
		a.s = states[i]
		key := make([]uint64, lay.stride())
		lay.pack(a.words(), key)
		if !slices.ContainsFunc(keys, func(k []uint64) bool { return slices.Equal(k, key) }) {
			keys = append(keys, key)
		}
	}
	return keys
}

// parallel does jobs 0 to n-1, each by one of the workers, and returns when all are done.
func parallel(workers, n int, do func(worker, job int)) {
	if workers = min(workers, n); workers <= 1 {
		for j := range n {
			do(0, j)
		}
		return
	}
	var at atomic.Int64
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for {
				j := int(at.Add(1)) - 1
				if j >= n {
					return
				}
				do(w, j)
			}
		})
	}
	wg.Wait()
}
