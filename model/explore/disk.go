package explore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// On disk each level is a run, and the set is few runs. A level is read in pieces; what workers find is gathered in memory, each
// state once, and written as a run whenever the memory is used up. At the end of the level these runs are merged, what the set has
// already is left out, and the rest is the next level. Levels keep their links, so that a path can be read back.

const (
	minMemory = 1 << 16 // below this a piece would hold no states
	maxRuns   = 24      // files merged at once
)

type disk[S comparable] struct {
	o    Options[S]
	lay  *layout
	dir  string
	xs   []*expander[S]
	todo []piece[S]
	at   []atPiece[S]

	levels []runFile // with links
	seen   []runFile // all states so far; the larger runs first
	found  []runFile // of the next level, in the order written, with links
	buffer shard     // what was found since
	files  int
	yield  int // most words that a state and what is behind it took
	res    Result[S]
}

// piece is some states of the level, and records of key and link behind them.
type piece[S comparable] struct {
	first   int // number of the first in the level
	keys    []uint64
	out     []uint64
	tally   tally
	broken  *broken[S]
	breaker int
}

type atPiece[S comparable] struct {
	p *piece[S]
	n int
}

func runDisk[S comparable](newSystem func() System[S], o Options[S], lay *layout) (res Result[S], err error) {
	o.Memory = max(o.Memory, minMemory)
	d := &disk[S]{o: o, lay: lay, todo: make([]piece[S], 4*o.Workers), at: make([]atPiece[S], o.Workers)}
	if d.dir, err = os.MkdirTemp(o.Dir, "explore"); err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(d.dir)) }()
	for w := range o.Workers {
		d.xs = append(d.xs, newExpander(newSystem, &d.o, lay, func(action int, key []uint64, _ uint64) {
			at := &d.at[w]
			at.p.out = append(append(at.p.out, key...), uint64(at.n)<<actionBits|uint64(action))
		}))
	}
	for _, key := range initial(newSystem(), lay) {
		d.add(key, noLink)
		d.res.Generated++
	}
	for {
		level, err := d.nextLevel()
		if err != nil || level.n == 0 || d.res.Violation != nil {
			d.res.Bytes = 8 * lay.stride()
			return d.res, err
		}
		d.res.Depth++
		d.res.States += level.n
		if err := errors.Join(tooMany(d.res.States, o.Limit), d.walk(level)); err != nil {
			return d.res, err
		}
	}
}

func (d *disk[S]) name(kind string) string {
	d.files++
	return filepath.Join(d.dir, fmt.Sprintf("%s-%06d", kind, d.files))
}

// add gathers a state unless it is there.
func (d *disk[S]) add(key []uint64, link uint64) {
	d.buffer.widen(d.lay.stride())
	d.buffer.add(key, hash(key), link)
}

// spill writes what was gathered as a run.
func (d *disk[S]) spill() error {
	b := &d.buffer
	if b.len() == 0 {
		return nil
	}
	order := make([]uint32, b.len())
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(x, y uint32) int { return compareKeys(b.key(int(x)), b.key(int(y))) })
	w, err := newRunWriter(d.name("found"), b.stride, true)
	if err != nil {
		return err
	}
	for _, n := range order {
		if err := w.add(b.key(int(n)), b.links[n]); err != nil {
			_, closed := w.close()
			return errors.Join(err, closed)
		}
	}
	f, err := w.close()
	if err != nil {
		return err
	}
	d.res.Spills++
	d.found = append(d.found, f)
	clear(b.slots)
	b.keys, b.links = b.keys[:0], b.links[:0]
	if len(d.found) < maxRuns {
		return nil
	}
	f, err = mergeRuns(d.name("found"), d.lay.stride(), d.found, func(runFile) bool { return false })
	d.found = []runFile{f}
	return err
}

// nextLevel is what was found and is not in the set; it goes into the set.
func (d *disk[S]) nextLevel() (level runFile, err error) {
	if err := d.spill(); err != nil {
		return level, err
	}
	found, err := openMerged(d.found)
	if err != nil {
		return level, err
	}
	defer func() { err = errors.Join(err, found.close()) }()
	seen, err := openMerged(d.seen)
	if err != nil {
		return level, err
	}
	defer func() { err = errors.Join(err, seen.close()) }()
	w, err := newRunWriter(d.name("level"), d.lay.stride(), true)
	if err != nil {
		return level, err
	}
	err = subtract(w, found, seen)
	level, closed := w.close()
	if err := errors.Join(err, closed); err != nil {
		return level, err
	}
	for _, f := range d.found {
		if err := os.Remove(f.path); err != nil {
			return level, err
		}
	}
	d.found = nil
	d.levels = append(d.levels, level)
	d.seen = append(d.seen, level)
	return level, d.tidy()
}

// subtract writes what found has and seen has not.
func subtract(w *runWriter, found, seen *merged) (err error) {
	var passed []uint64
	for !found.done() {
		key, link := found.top()
		c := 1
		for !seen.done() {
			have, _ := seen.top()
			if c = compareKeys(have, key); c >= 0 {
				break
			}
			if passed, err = seen.next(passed); err != nil {
				return err
			}
		}
		if c != 0 {
			if err := w.add(key, link); err != nil {
				return err
			}
		}
		if passed, err = found.next(passed); err != nil {
			return err
		}
	}
	return nil
}

// tidy merges the last runs of the set while they are not much smaller than the one before. Levels stay for paths.
func (d *disk[S]) tidy() error {
	isLevel := func(f runFile) bool {
		return slices.ContainsFunc(d.levels, func(l runFile) bool { return l.path == f.path })
	}
	for n := len(d.seen); n > 1 && d.seen[n-2].n <= 2*d.seen[n-1].n; n = len(d.seen) {
		f, err := mergeRuns(d.name("seen"), d.lay.stride(), d.seen[n-2:], isLevel)
		if err != nil {
			return err
		}
		d.seen = append(d.seen[:n-2], f)
	}
	return nil
}

// used is how many bytes of states are in memory.
func (d *disk[S]) used() int {
	n := 8 * (len(d.buffer.keys) + len(d.buffer.links) + len(d.buffer.slots))
	for i := range d.todo {
		n += 8 * (len(d.todo[i].keys) + len(d.todo[i].out))
	}
	return n
}

// walk expands a level.
func (d *disk[S]) walk(level runFile) (err error) {
	r, err := level.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.file.Close()) }()
	for at := 0; !r.done; {
		n, size := 0, d.pieceStates()
		for ; n < len(d.todo) && !r.done; n++ {
			p := &d.todo[n]
			p.first, p.keys = at, p.keys[:0]
			for range size {
				if r.done {
					break
				}
				p.keys = append(p.keys, r.key...)
				at++
				if err := r.next(); err != nil {
					return err
				}
			}
		}
		if err := d.round(d.todo[:n], level.stride); err != nil {
			return err
		}
	}
	return nil
}

// round expands some pieces and gathers what they found, in their order.
func (d *disk[S]) round(todo []piece[S], stride int) error {
	for {
		parallel(d.o.Workers, len(todo), func(worker, j int) { d.expand(worker, &todo[j], stride) })
		if !settle(d.lay, d.xs) {
			break
		}
	}
	step := d.lay.stride() + 1
	for i := range todo {
		p := &todo[i]
		d.res.count(&p.tally)
		for r := p.out; len(r) > 0; r = r[step:] {
			d.add(r[:step-1], r[step-1])
		}
		if d.res.shorter(p.broken) {
			path, err := d.path(len(d.levels)-1, p.breaker)
			if err != nil {
				return err
			}
			d.res.Violation = &Violation[S]{p.broken.property, append(path, p.broken.step...)}
		}
	}
	d.res.Peak = max(d.res.Peak, d.used())
	if d.used() > d.o.Memory/4 { // a round may add up to four times what its pieces hold, the table doubling
		return d.spill()
	}
	return nil
}

// pieceStates is how many states a piece takes, so that all pieces hold an eighth of the memory at most.
func (d *disk[S]) pieceStates() int {
	for i := range d.todo {
		if n := len(d.todo[i].keys) / d.lay.stride(); n > 0 {
			d.yield = max(d.yield, (len(d.todo[i].keys)+len(d.todo[i].out))/n+1)
		}
	}
	return max(1, min(blockStates, d.o.Memory/8/(8*len(d.todo)*max(d.yield, 64))))
}

func (d *disk[S]) expand(worker int, p *piece[S], stride int) {
	x := d.xs[worker]
	x.tally = tally{}
	p.out, p.broken = p.out[:0], nil
	d.at[worker].p = p
	for n := 0; n*stride < len(p.keys); n++ {
		d.at[worker].n = p.first + n
		if bad := x.expand(p.keys[n*stride : (n+1)*stride]); bad.nearer(p.broken) {
			p.broken, p.breaker = bad, p.first+n
		}
	}
	p.tally = x.tally
}

// path is the way from an initial state to state n of a level.
func (d *disk[S]) path(level, n int) ([]Step[S], error) {
	var out []Step[S]
	var a aligned[S]
	for {
		key, link, err := d.levels[level].record(n)
		if err != nil {
			return nil, err
		}
		d.lay.unpack(key, a.words())
		if link == noLink {
			out = append(out, Step[S]{-1, a.s})
			slices.Reverse(out)
			return out, nil
		}
		out = append(out, Step[S]{int(link & (1<<actionBits - 1)), a.s})
		level, n = level-1, int(link>>actionBits)
	}
}
