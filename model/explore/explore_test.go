package explore

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// dice is a toy: some counters of 0 to top, each of which goes up by one or back to zero, and a switch that turns when all agree.
type dice struct {
	n  [5]uint8
	on bool
	at int32
}

type tosses struct {
	counters int
	top      uint8
	twice    bool // emit each step two times
	starts   int  // initial states beside the first
}

func (t tosses) Init() []dice {
	out := []dice{{at: 7}, {at: 7}}
	for i := range t.starts {
		out = append(out, dice{at: int32(1000 * (i + 1))})
	}
	return out
}

const (
	up = iota
	back
	turn
)

func (t tosses) Next(s *dice, emit func(int, *dice)) {
	say := func(a int, n dice) {
		emit(a, &n)
		if t.twice {
			emit(a, &n)
		}
	}
	same := true
	for i := range t.counters {
		if s.n[i] < t.top {
			n := *s
			n.n[i]++
			say(up, n)
		}
		n := *s
		n.n[i] = 0
		say(back, n)
		same = same && s.n[i] == s.n[0]
	}
	if same {
		n := *s
		n.on = !s.on
		n.at = int32(s.n[0])
		say(turn, n)
	}
}

func always(sys System[dice]) func() System[dice] { return func() System[dice] { return sys } }

type diceEdge struct {
	from dice
	a    int
	to   dice
}

// naive explores with maps.
func naive(sys System[dice]) (r Result[dice], depth map[dice]int, edges map[diceEdge]bool) {
	depth, edges = map[dice]int{}, map[diceEdge]bool{}
	var level []dice
	see := func(s dice) {
		if _, ok := depth[s]; !ok {
			depth[s] = r.Depth
			level = append(level, s)
		}
	}
	for _, s := range sys.Init() {
		see(s)
	}
	r.Generated = len(level)
	r.Actions = make([]int, 3)
	for len(level) > 0 {
		now := level
		level = nil
		r.Depth++
		for _, s := range now {
			sys.Next(&s, func(a int, n *dice) {
				r.Generated++
				if e := (diceEdge{s, a, *n}); !edges[e] {
					edges[e] = true
					r.Actions[a]++
				}
				see(*n)
			})
		}
	}
	r.States, r.Edges = len(depth), len(edges)
	return r, depth, edges
}

func counts(r Result[dice]) string {
	return fmt.Sprint(r.States, r.Generated, r.Edges, r.Depth, r.Actions)
}

func toys() []tosses {
	return []tosses{{counters: 1, top: 3}, {counters: 3, top: 7}, {counters: 3, top: 6, twice: true, starts: 3}, {counters: 5, top: 1, starts: 70}}
}

func TestRun_Counts_AreThoseOfANaiveWalk(t *testing.T) {
	for _, sys := range toys() {
		want, _, _ := naive(sys)
		for _, workers := range []int{0, 1, 2, 5} {
			got, err := Run(always(sys), Options[dice]{Workers: workers})
			require.NoError(t, err)
			require.Equal(t, counts(want), counts(got))
			require.Equal(t, got.States, got.Graph.Len())
			require.Nil(t, got.Violation)
		}
	}
}

func TestGraph_StatesAndSteps_AreThoseOfANaiveWalk(t *testing.T) {
	for _, sys := range toys() {
		_, depth, edges := naive(sys)
		got, err := Run(always(sys), Options[dice]{Workers: 2})
		require.NoError(t, err)
		w := got.Graph.Walker()
		seen := map[dice]bool{}
		n := 0
		for i := range got.Graph.Len() {
			s := *w.State(i)
			_, known := depth[s]
			require.True(t, known && !seen[s] && w.Index(&s) == i)
			seen[s] = true
			var to []int
			var actions []int
			w.Steps(i, func(a, j int) { to, actions = append(to, j), append(actions, a) })
			for k, j := range to {
				require.True(t, edges[diceEdge{s, actions[k], *w.State(j)}])
				n++
			}
			if i%7 > 0 {
				continue
			}
			path := got.Graph.Path(i)
			require.Len(t, path, depth[s]+1)
			requirePath(t, sys, path)
			require.True(t, s == path[len(path)-1].State)
		}
		require.Equal(t, len(edges), n)
		require.Equal(t, -1, w.Index(&dice{at: 1 << 20}))
		require.Equal(t, -1, w.Index(&dice{n: [5]uint8{1, 1, 1, 1, 1}, at: 2}))
	}
}

// requirePath wants a path whose steps the system has.
func requirePath(t *testing.T, sys System[dice], path []Step[dice]) {
	t.Helper()
	require.Equal(t, -1, path[0].Action)
	require.Contains(t, sys.Init(), path[0].State)
	for i, step := range path[1:] {
		found := false
		sys.Next(&path[i].State, func(a int, n *dice) { found = found || a == step.Action && *n == step.State })
		require.True(t, found, "step %d", i)
	}
}

func TestRun_Workers_ChangeNothing(t *testing.T) {
	sys := tosses{counters: 4, top: 7}
	one, err := Run(always(sys), Options[dice]{Workers: 1})
	require.NoError(t, err)
	three, err := Run(always(sys), Options[dice]{Workers: 3})
	require.NoError(t, err)
	require.Equal(t, counts(one), counts(three))
	a, b := one.Graph.Walker(), three.Graph.Walker()
	for i := range one.Graph.Len() {
		require.True(t, *a.State(i) == *b.State(i))
	}
	for i := range one.Graph.m.shards {
		require.True(t, slices.Equal(one.Graph.m.shards[i].links, three.Graph.m.shards[i].links))
	}
}

func TestRun_PropertiesBroken_ShortestPathIsGiven(t *testing.T) {
	sys := tosses{counters: 3, top: 9}
	_, depth, _ := naive(sys)
	check := func(s *dice) string {
		if s.n[0] == 3 && s.at == 2 {
			return "Never"
		}
		return ""
	}
	step := func(from *dice, a int, to *dice) string {
		if a == turn && from.on && from.n[0] == 2 {
			return "NeverBack"
		}
		return ""
	}
	shortest := 1 << 30
	for s, d := range depth {
		if check(&s) != "" {
			shortest = min(shortest, d)
		}
	}
	for _, o := range []Options[dice]{{}, {Dir: t.TempDir()}} {
		for workers := 1; workers < 4; workers++ {
			o.Workers, o.Check, o.Step = workers, check, nil
			got, err := Run(always(sys), o)
			require.NoError(t, err)
			require.Equal(t, "Never", got.Violation.Property)
			require.Len(t, got.Violation.Path, shortest+1)
			requirePath(t, sys, got.Violation.Path)
			o.Check, o.Step = nil, step
			got, err = Run(always(sys), o)
			require.NoError(t, err)
			require.Equal(t, "NeverBack", got.Violation.Property)
			requirePath(t, sys, got.Violation.Path)
			n := len(got.Violation.Path)
			last := got.Violation.Path[n-1]
			require.Equal(t, "NeverBack", step(&got.Violation.Path[n-2].State, last.Action, &last.State))
			require.Equal(t, 9, n) // on at 0, three counters up to 2, off
		}
	}
}

// A step from the first states of a level and a state of the same level are both bad; the state is nearer.
func TestRun_StateAndStepBrokenInOneLevel_ShorterPathIsTold(t *testing.T) {
	sys := tosses{counters: 1, top: 3, starts: 900}
	for _, o := range []Options[dice]{{Workers: 2}, {Workers: 2, Dir: t.TempDir()}} {
		for at := int32(1000); at <= 900_000; at += 100_000 {
			o.Check = func(s *dice) string {
				if s.at == at {
					return "State"
				}
				return ""
			}
			o.Step = func(from *dice, _ int, _ *dice) string {
				if from.at != at {
					return "Step"
				}
				return ""
			}
			got, err := Run(always(sys), o)
			require.NoError(t, err)
			require.Equal(t, "State", got.Violation.Property)
			require.Len(t, got.Violation.Path, 1)
		}
	}
}

func TestRun_Limit_EndsTheWalk(t *testing.T) {
	for _, o := range []Options[dice]{{Limit: 100}, {Limit: 100, Dir: t.TempDir()}} {
		_, err := Run(always(tosses{counters: 3, top: 9}), o)
		require.ErrorIs(t, err, ErrTooMany)
	}
}

func TestRun_StateWithPointers_IsRefused(t *testing.T) {
	type bad struct {
		a int
		s string
	}
	_, err := Run[bad](nil, Options[bad]{})
	require.ErrorIs(t, err, ErrState)
	require.ErrorContains(t, err, "string")
	_, err = Run[*int](nil, Options[*int]{})
	require.ErrorIs(t, err, ErrState)
	_, err = Run[[2]float64](nil, Options[[2]float64]{}) // minus zero is equal to zero, but not in bits
	require.ErrorIs(t, err, ErrState)
}

// visitor collects what Check is called with.
type visitor struct {
	mu   sync.Mutex
	seen map[dice]bool
}

func (v *visitor) check(s *dice) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.seen[*s] = true
	return ""
}

func TestRun_Disk_FindsWhatMemoryFinds(t *testing.T) {
	for _, sys := range append(toys(), tosses{counters: 3, top: 12, starts: 2}) {
		inMemory, onDisk := visitor{seen: map[dice]bool{}}, visitor{seen: map[dice]bool{}}
		want, err := Run(always(sys), Options[dice]{Workers: 2, Check: inMemory.check})
		require.NoError(t, err)
		for workers := 1; workers < 4; workers++ {
			clear(onDisk.seen)
			got, err := Run(always(sys), Options[dice]{Workers: workers, Dir: t.TempDir(), Check: onDisk.check})
			require.NoError(t, err)
			require.Equal(t, counts(want), counts(got))
			require.True(t, maps.Equal(inMemory.seen, onDisk.seen))
			require.Equal(t, got.States, len(onDisk.seen))
		}
	}
}

func TestRun_Disk_SetLargerThanItsMemory(t *testing.T) {
	const bound = 1 << 16
	sys := tosses{counters: 3, top: 13}
	dir := t.TempDir()
	got, err := Run(always(sys), Options[dice]{Workers: 2, Dir: dir, Memory: bound})
	require.NoError(t, err)
	want, err := Run(always(sys), Options[dice]{Workers: 2})
	require.NoError(t, err)
	require.Equal(t, counts(want), counts(got))
	require.Greater(t, got.States*got.Bytes, 8*bound)
	require.LessOrEqual(t, got.Peak, bound)
	require.Greater(t, got.Spills, got.Depth)
	left, err := readDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestLayout_PackAndUnpack_AreInverse(t *testing.T) {
	lay, err := newLayout[dice]()
	require.NoError(t, err)
	states := []dice{{}, {n: [5]uint8{1, 2, 3, 4, 5}, on: true, at: -1}, {n: [5]uint8{255, 0, 0, 0, 9}, at: 1 << 30}, {at: 5}}
	var a, b aligned[dice]
	var old [][]uint64
	lacks := make([]uint64, len(lay.base))
	for _, s := range states {
		a.s = s
		lay.missing(a.words(), lacks)
		lay.extend(lacks)
		key := make([]uint64, lay.stride())
		lay.pack(a.words(), key)
		old = append(old, key)
		require.False(t, lay.missing(a.words(), lacks))
	}
	for i, s := range states { // older keys are shorter and still good
		lay.unpack(old[i], b.words())
		require.Equal(t, s, b.s)
		a.s = s
		key := make([]uint64, lay.stride())
		lay.pack(a.words(), key)
		require.Zero(t, compareKeys(old[i], key))
		require.Equal(t, hash(old[i]), hash(key))
	}
	require.LessOrEqual(t, lay.bits, 8*len(dice{}.n)+1+32)
	keys := slices.Clone(old)
	slices.SortFunc(keys, compareKeys)
	require.True(t, slices.IsSortedFunc(keys, compareKeys))
}
