package explore

import "slices"

// Graph is a whole set of states in memory, numbered from 0 in an order that does not depend on the number of workers.
type Graph[S comparable] struct {
	m     *memory[S]
	first [shards + 1]int // number of the first state of a shard
}

func newGraph[S comparable](m *memory[S]) *Graph[S] {
	g := &Graph[S]{m: m}
	for i := range m.shards {
		g.first[i+1] = g.first[i] + m.shards[i].len()
	}
	return g
}

// Len is the number of states.
func (g *Graph[S]) Len() int { return g.first[shards] }

func (g *Graph[S]) split(i int) (shard, n int) {
	shard, found := slices.BinarySearch(g.first[:], i)
	if !found {
		shard--
	}
	for g.first[shard+1] == i { // empty shards begin where the next one does
		shard++
	}
	return shard, i - g.first[shard]
}

// Path is a shortest way from an initial state to state i.
func (g *Graph[S]) Path(i int) []Step[S] {
	shard, n := g.split(i)
	return g.m.path(id(shard)<<32 | id(n))
}

// Walker reads a graph; each goroutine needs its own.
type Walker[S comparable] struct {
	g    *Graph[S]
	x    *expander[S]
	seen func(action, to int)
}

// Walker makes one.
func (g *Graph[S]) Walker() *Walker[S] {
	w := &Walker[S]{g: g}
	w.x = newExpander(g.m.newSystem, &Options[S]{}, g.m.lay, w.found)
	return w
}

// State is state i; it stays until the next call.
func (w *Walker[S]) State(i int) *S {
	shard, n := w.g.split(i)
	w.x.load(w.g.m.shards[shard].key(n))
	return &w.x.cur.s
}

// Index is the number of a state, -1 if the graph does not have it.
func (w *Walker[S]) Index(s *S) int {
	lay := w.g.m.lay
	var a aligned[S]
	a.s = *s
	if lay.missing(a.words(), make([]uint64, len(lay.base))) {
		return -1
	}
	key := make([]uint64, lay.stride())
	lay.pack(a.words(), key)
	return w.number(key, hash(key))
}

// Steps calls seen with each step of state i once: its action, and the number of the state that it leads to, -1 for one that the
// graph does not have, as behind a property that is broken.
func (w *Walker[S]) Steps(i int, seen func(action, to int)) {
	shard, n := w.g.split(i)
	w.seen = seen
	w.x.misfit = false
	w.x.expand(w.g.m.shards[shard].key(n))
}

func (w *Walker[S]) found(action int, key []uint64, h uint64) { w.seen(action, w.number(key, h)) }

func (w *Walker[S]) number(key []uint64, h uint64) int {
	i := h >> (64 - shardBits)
	n, _ := w.g.m.shards[i].find(key, h)
	if n < 0 {
		return -1
	}
	return w.g.first[i] + n
}
