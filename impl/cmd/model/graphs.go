package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"kvfence/model"
	"kvfence/model/explore"
	"kvfence/proofs/dump"
)

// twinGraph is the model's graph with names for its states.
type twinGraph struct {
	graph   *explore.Graph[model.State]
	v       *values
	result  explore.Result[model.State]
	digests []digest
	index   map[digest]int32
}

// nameStates names the states of a graph. Two states of one text are an error: something in a state would not be in its text.
func nameStates(s setting, r explore.Result[model.State], v *values, workers int) (*twinGraph, error) {
	g := &twinGraph{graph: r.Graph, v: v, result: r, digests: make([]digest, r.Graph.Len()), index: make(map[digest]int32, r.Graph.Len())}
	forEach(len(g.digests), workers, func() func(int) {
		w, read := r.Graph.Walker(), newReader(v, model.New(s.twin))
		return func(i int) { g.digests[i] = read.digest(w.State(i)) }
	})
	for i, d := range g.digests {
		if other, ok := g.index[d]; ok {
			return nil, fmt.Errorf("%s: the model's states %d and %d have the same text", s.name, other, i)
		}
		g.index[d] = int32(i)
	}
	return g, nil
}

// forEach does each number below n, shared out to workers, each of which has a function of its own.
func forEach(n, workers int, newDo func() func(int)) {
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			do := newDo()
			for i := w; i < n; i += workers {
				do(i)
			}
		})
	}
	wg.Wait()
}

// tlcGraph is TLC's graph as it comes: states by their place in the model's graph.
type tlcGraph struct {
	twin    *twinGraph
	labels  *labels
	actions map[string]int
	names   []string // of actions, those that the model does not have behind the others

	node     map[int64]int32 // fingerprint -> number, in the order of the dump
	twinOf   []int32         // by number: the model's state, unknownState or noLabel
	initials []int32         // numbers
	steps    []tlcStep
	foreign  map[int32][]uint32 // by number, some of the states that the model does not have
	strange  int                // how many there are
}

type tlcStep struct {
	from, to int32 // numbers
	action   int32
}

const (
	unknownState = -1 // the model does not have it
	noLabel      = -2 // its text has not come
	keptForeign  = 4096
	triedPaths   = 64
)

func newTLCGraph(twin *twinGraph) *tlcGraph {
	g := &tlcGraph{twin: twin, labels: newLabels(twin.v), node: make(map[int64]int32, len(twin.digests)), foreign: map[int32][]uint32{}}
	g.names, g.actions = actionNames()
	return g
}

// receiver is what takes a dump in.
func (g *tlcGraph) receiver() dump.Receiver { return dump.Receiver{State: g.state, Step: g.step} }

func (g *tlcGraph) number(fp int64) int32 {
	n, ok := g.node[fp]
	if !ok {
		n = int32(len(g.twinOf))
		g.node[fp] = n
		g.twinOf = append(g.twinOf, noLabel)
	}
	return n
}

func (g *tlcGraph) state(fp int64, label []byte, initial bool) error {
	n := g.number(fp)
	if g.twinOf[n] != noLabel {
		return fmt.Errorf("%w: state %d comes twice", dump.ErrDump, fp)
	}
	numbers, err := g.labels.read(label)
	if err != nil {
		return err
	}
	i, ok := g.twin.index[digestOf(numbers, g.labels.scratch)]
	if !ok {
		i = unknownState
		g.strange++
		if len(g.foreign) < keptForeign {
			g.foreign[n] = slices.Clone(numbers)
		}
	}
	g.twinOf[n] = i
	if initial {
		g.initials = append(g.initials, n)
	}
	return nil
}

func (g *tlcGraph) step(from int64, action []byte, to int64) error {
	a, ok := g.actions[string(action)]
	if !ok {
		a = len(g.names)
		g.names = append(g.names, string(action))
		g.actions[string(action)] = a
	}
	g.steps = append(g.steps, tlcStep{g.number(from), g.number(to), int32(a)})
	return nil
}

// finish refuses steps between states that never came.
func (g *tlcGraph) finish() error {
	if i := slices.Index(g.twinOf, noLabel); i >= 0 {
		return fmt.Errorf("%w: a state is named by a step and never comes", dump.ErrDump)
	}
	if len(g.initials) == 0 {
		return fmt.Errorf("%w: it has no initial state", dump.ErrDump)
	}
	return nil
}

// byState is TLC's steps from each of the model's states, sorted, each once: action<<32 | the model's state it leads to.
func (g *tlcGraph) byState() [][]uint64 {
	from := make([][]uint64, len(g.twin.digests))
	count := make([]int32, len(from))
	known := func(s tlcStep) bool { return g.twinOf[s.from] >= 0 && g.twinOf[s.to] >= 0 }
	for _, s := range g.steps {
		if known(s) {
			count[g.twinOf[s.from]]++
		}
	}
	for i, n := range count {
		from[i] = make([]uint64, 0, n)
	}
	for _, s := range g.steps {
		if known(s) {
			i := g.twinOf[s.from]
			from[i] = append(from[i], uint64(s.action)<<32|uint64(g.twinOf[s.to]))
		}
	}
	for i := range from {
		slices.Sort(from[i])
		from[i] = slices.Compact(from[i])
	}
	return from
}

// compared is what a comparison found.
type compared struct {
	states, edges int // of the model
	actions       []int
	difference    string // the first, readable; "" if there is none
}

// compare explores both sides of a setting and compares states, and steps as a set of (from, action, to), both ways.
func compare(ctx context.Context, c checker, s setting, workers, limit int) (compared, error) {
	r, err := s.walk(workers, limit)
	if err != nil {
		return compared{}, err
	}
	twin, err := nameStates(s, r, newValues(), workers)
	if err != nil {
		return compared{}, err
	}
	g := newTLCGraph(twin)
	if err := c.dump(ctx, s, g.receiver()); err != nil {
		return compared{}, err
	}
	if err := g.finish(); err != nil {
		return compared{}, err
	}
	found := compared{states: r.States, edges: r.Edges, actions: r.Actions}
	found.difference = g.difference(s, workers)
	return found, nil
}

// difference describes the first thing in which the graphs differ: initial states, then states, then steps. Where one thing is
// wrong, much follows from it; the first in the order of the search is the one nearest to its cause.
func (g *tlcGraph) difference(s setting, workers int) string {
	t := teller{g: g, read: newReader(g.twin.v, model.New(s.twin)), walk: g.twin.graph.Walker()}
	if text := t.initials(s); text != "" {
		return text
	}
	if g.strange > 0 {
		return t.foreignState()
	}
	met := make([]bool, len(g.twin.digests))
	for _, i := range g.twinOf {
		met[i] = true
	}
	if i := slices.Index(met, false); i >= 0 {
		return t.unmetState(met)
	}
	return t.steps(workers)
}

// teller puts differences into words.
type teller struct {
	g    *tlcGraph
	read *reader
	walk *explore.Walker[model.State]
}

func (t *teller) numbers(i int) []uint32 { return slices.Clone(t.read.read(t.walk.State(i))) }

// way names the actions of a shortest path to a state of the model.
func (t *teller) way(i int) string {
	var names []string
	for _, p := range t.g.twin.graph.Path(i)[1:] {
		names = append(names, t.g.names[p.Action])
	}
	if len(names) == 0 {
		return "in the initial state"
	}
	return "after " + strings.Join(names, ", ")
}

func (t *teller) initials(s setting) string {
	model := map[int32]bool{}
	for _, x := range s.system().Init() {
		model[int32(t.walk.Index(&x))] = true
	}
	for _, n := range t.g.initials {
		i := t.g.twinOf[n]
		if !model[i] {
			return fmt.Sprintf("TLC has an initial state that the model does not begin with:\n%s", t.text(t.g.foreign[n], i))
		}
		delete(model, i)
	}
	if len(model) > 0 {
		return "the model has an initial state that TLC does not begin with"
	}
	return ""
}

// text is all variables of a state, by its numbers or its place.
func (t *teller) text(numbers []uint32, i int32) string {
	if numbers == nil && i >= 0 {
		numbers = t.numbers(int(i))
	}
	var b strings.Builder
	for v, n := range numbers {
		fmt.Fprintf(&b, "    %s = %s\n", t.g.twin.v.names[v], t.g.twin.v.texts[v][n])
	}
	return b.String()
}

// change is a step in words: where it starts, what it is called and what it changes.
func (t *teller) change(who string, from int, action int, to []uint32) string {
	what := strings.Join(t.g.twin.v.difference(t.numbers(from), to), "\n    ")
	if what == "" {
		what = "changes nothing"
	}
	return fmt.Sprintf("%s %s %s:\n    %s", t.way(from), who, t.g.names[action], what)
}

func (t *teller) foreignState() string {
	head := fmt.Sprintf("TLC has %d states that the model does not have; the first\n  ", t.g.strange)
	for _, s := range t.g.steps { // in TLC's order, so that the first is nearest to the initial state
		if numbers := t.g.foreign[s.to]; numbers != nil && t.g.twinOf[s.from] >= 0 {
			return head + t.change("TLC has", int(t.g.twinOf[s.from]), int(s.action), numbers)
		}
	}
	return head + "is out of reach of the model's"
}

func (t *teller) unmetState(met []bool) string {
	count, best := 0, []explore.Step[model.State](nil)
	for i := range met {
		if met[i] {
			continue
		}
		count++
		if count <= triedPaths {
			if p := t.g.twin.graph.Path(i); best == nil || len(p) < len(best) {
				best = p
			}
		}
	}
	for k, step := range best {
		to := t.walk.Index(&step.State)
		if !met[to] && k > 0 {
			from := t.walk.Index(&best[k-1].State)
			return fmt.Sprintf("the model has %d states that TLC does not have; one of the first\n  ", count) + t.change("the model has", from, step.Action, t.numbers(to))
		}
	}
	return "the model begins with a state that TLC does not have"
}

// steps compares steps, the states being the same.
func (t *teller) steps(workers int) string {
	theirs := t.g.byState()
	first := make([]int, workers) // first state of each worker that differs
	bad := make([]int, workers)
	var at sync.Mutex
	turn := 0
	forEach(len(theirs), workers, func() func(int) {
		at.Lock()
		me := turn
		turn++
		at.Unlock()
		first[me] = -1
		w := t.g.twin.graph.Walker()
		var ours []uint64
		return func(i int) {
			if ours = stepsOf(w, i, ours); !slices.Equal(ours, theirs[i]) {
				if bad[me]++; first[me] < 0 {
					first[me] = i
				}
			}
		}
	})
	count, least := 0, -1
	for me := range workers {
		count += bad[me]
		if first[me] >= 0 && (least < 0 || first[me] < least) {
			least = first[me]
		}
	}
	if least < 0 {
		return ""
	}
	return fmt.Sprintf("the steps from %d states differ; of one\n  ", count) + t.oneStep(least, stepsOf(t.walk, least, nil), theirs[least])
}

// stepsOf is the model's steps from a state in the form of byState.
func stepsOf(w *explore.Walker[model.State], i int, out []uint64) []uint64 {
	out = out[:0]
	w.Steps(i, func(action, to int) { out = append(out, uint64(action)<<32|uint64(to)) })
	slices.Sort(out)
	return slices.Compact(out)
}

func (t *teller) oneStep(i int, ours, theirs []uint64) string {
	for _, s := range ours {
		if !slices.Contains(theirs, s) {
			return t.change("only the model has", i, int(s>>32), t.numbers(int(s&(1<<32-1))))
		}
	}
	for _, s := range theirs {
		if !slices.Contains(ours, s) {
			return t.change("only TLC has", i, int(s>>32), t.numbers(int(s&(1<<32-1))))
		}
	}
	return t.way(i)
}
