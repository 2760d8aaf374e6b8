package explore

import (
	"fmt"
	"math"
	"slices"
)

// In memory the set is cut into shards by the hash. A level is walked in rounds of blocks. First workers expand blocks beside each
// other and only read the set; what is new goes to lists by block and shard. Then workers take a shard each and insert the lists in
// the order of blocks. So nothing is locked, and numbers, parents and counts are the same with any number of workers.

const (
	shardBits   = 6
	shards      = 1 << shardBits
	blockStates = 128
	roundBlocks = 64
	noLink      = math.MaxUint64
	actionBits  = 16
)

// id is a state's shard and its number there.
type id uint64

func (i id) split() (shard, n int) { return int(i >> 32), int(i & math.MaxUint32) }

// shard is a part of the set: keys one after the other, and an open table of their numbers.
type shard struct {
	stride int
	keys   []uint64
	links  []uint64 // the first way to the state: id of the parent << actionBits | action, or noLink
	slots  []uint64 // upper half of the hash, number + 1; 0 is free
}

func (s *shard) len() int { return len(s.links) }

func (s *shard) key(n int) []uint64 { return s.keys[n*s.stride : (n+1)*s.stride] }

// find returns the number of a key, or the slot for it and -1.
func (s *shard) find(key []uint64, h uint64) (n, slot int) {
	if len(s.slots) == 0 {
		return -1, -1
	}
	mask := len(s.slots) - 1
	for i := int(h) & mask; ; i = (i + 1) & mask {
		v := s.slots[i]
		if v == 0 {
			return -1, i
		}
		if v>>32 == h>>32 {
			if n := int(v&math.MaxUint32) - 1; slices.Equal(s.key(n), key) {
				return n, i
			}
		}
	}
}

// add inserts a key unless it is there.
func (s *shard) add(key []uint64, h, link uint64) {
	if (s.len()+1)*2 > len(s.slots) {
		s.grow()
	}
	n, slot := s.find(key, h)
	if n >= 0 {
		return
	}
	s.keys = append(s.keys, key...)
	s.links = append(s.links, link)
	s.slots[slot] = h>>32<<32 | uint64(s.len())
}

func (s *shard) grow() {
	s.slots = make([]uint64, max(64, 2*len(s.slots)))
	mask := len(s.slots) - 1
	for n := range s.len() {
		h := hash(s.key(n))
		i := int(h) & mask
		for s.slots[i] != 0 {
			i = (i + 1) & mask
		}
		s.slots[i] = h>>32<<32 | uint64(n+1)
	}
}

// widen makes keys longer; their hashes stay.
func (s *shard) widen(stride int) {
	if stride == s.stride {
		return
	}
	keys := make([]uint64, s.len()*stride)
	for n := range s.len() {
		copy(keys[n*stride:], s.key(n))
	}
	s.keys, s.stride = keys, stride
}

// block is some states of one shard, and what is new behind them: by shard records of hash, link and key.
type block[S comparable] struct {
	shard, from, to int
	fresh           [shards][]uint64
	tally           tally
	broken          *broken[S]
	breaker         id
}

type memory[S comparable] struct {
	newSystem func() System[S]
	o         Options[S]
	lay       *layout
	shards    [shards]shard
	xs        []*expander[S]
	blocks    []*block[S]
	at        []atWork[S] // by worker
	res       Result[S]
}

// atWork is the block and the state that a worker expands.
type atWork[S comparable] struct {
	b *block[S]
	n int
}

func runMemory[S comparable](newSystem func() System[S], o Options[S], lay *layout) (Result[S], error) {
	m := &memory[S]{newSystem: newSystem, o: o, lay: lay, at: make([]atWork[S], o.Workers)}
	for w := range o.Workers {
		m.xs = append(m.xs, newExpander(newSystem, &m.o, lay, func(action int, key []uint64, h uint64) { m.fresh(w, action, key, h) }))
	}
	for range roundBlocks {
		m.blocks = append(m.blocks, &block[S]{})
	}
	m.widen()
	for _, key := range initial(newSystem(), lay) {
		m.widen()
		h := hash(key)
		m.shards[h>>(64-shardBits)].add(key, h, noLink)
		m.res.Generated++
	}
	var done [shards]int
	for {
		var level []block[S]
		for i := range m.shards {
			end := m.shards[i].len()
			for from := done[i]; from < end; from += blockStates {
				level = append(level, block[S]{shard: i, from: from, to: min(from+blockStates, end)})
			}
			done[i] = end
		}
		if len(level) == 0 || m.res.Violation != nil {
			break
		}
		m.res.Depth++
		for len(level) > 0 {
			n := min(len(level), roundBlocks)
			if err := m.round(level[:n]); err != nil {
				return m.res, err
			}
			level = level[n:]
		}
	}
	m.res.Graph = newGraph(m)
	m.res.States, m.res.Bytes = m.size(), 8*lay.stride()
	return m.res, nil
}

func (m *memory[S]) size() int {
	n := 0
	for i := range m.shards {
		n += m.shards[i].len()
	}
	return n
}

func (m *memory[S]) widen() {
	for i := range m.shards {
		m.shards[i].widen(m.lay.stride())
	}
}

// round expands some blocks and inserts what is new.
func (m *memory[S]) round(todo []block[S]) error {
	for {
		parallel(m.o.Workers, len(todo), func(worker, j int) { m.expand(worker, m.blocks[j], todo[j]) })
		if !settle(m.lay, m.xs) {
			break
		}
		m.widen()
	}
	step := 2 + m.lay.stride()
	parallel(m.o.Workers, shards, func(_, i int) {
		s := &m.shards[i]
		for _, b := range m.blocks[:len(todo)] {
			for r := b.fresh[i]; len(r) > 0; r = r[step:] {
				s.add(r[2:step], r[0], r[1])
			}
		}
	})
	for i := range m.shards {
		if m.shards[i].len() >= math.MaxUint32-roundBlocks {
			return fmt.Errorf("%w: a shard is full", ErrTooMany)
		}
	}
	for _, b := range m.blocks[:len(todo)] {
		m.res.count(&b.tally)
		if m.res.shorter(b.broken) {
			m.res.Violation = &Violation[S]{b.broken.property, append(m.path(b.breaker), b.broken.step...)}
		}
	}
	return tooMany(m.size(), m.o.Limit)
}

func (m *memory[S]) expand(worker int, b *block[S], todo block[S]) {
	b.shard, b.from, b.to, b.broken = todo.shard, todo.from, todo.to, nil
	for i := range b.fresh {
		b.fresh[i] = b.fresh[i][:0]
	}
	x := m.xs[worker]
	x.tally = tally{}
	m.at[worker].b = b
	s := &m.shards[b.shard]
	for n := b.from; n < b.to; n++ {
		m.at[worker].n = n
		if bad := x.expand(s.key(n)); bad.nearer(b.broken) {
			b.broken, b.breaker = bad, id(b.shard)<<32|id(n)
		}
	}
	b.tally = x.tally
}

// fresh keeps a successor that the set does not have yet.
func (m *memory[S]) fresh(worker, action int, key []uint64, h uint64) {
	i := h >> (64 - shardBits)
	if n, _ := m.shards[i].find(key, h); n >= 0 {
		return
	}
	at := &m.at[worker]
	link := (uint64(at.b.shard)<<32|uint64(at.n))<<actionBits | uint64(action)
	at.b.fresh[i] = append(append(at.b.fresh[i], h, link), key...)
}

// path is the way from an initial state.
func (m *memory[S]) path(i id) []Step[S] {
	var out []Step[S]
	var a aligned[S]
	for {
		shard, n := i.split()
		m.lay.unpack(m.shards[shard].key(n), a.words())
		link := m.shards[shard].links[n]
		if link == noLink {
			out = append(out, Step[S]{-1, a.s})
			slices.Reverse(out)
			return out
		}
		out = append(out, Step[S]{int(link & (1<<actionBits - 1)), a.s})
		i = id(link >> actionBits)
	}
}
