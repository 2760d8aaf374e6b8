package lockstep

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"

	"kvfence/model"
)

// Coverage is what a simulation of one setting reached.
type Coverage struct {
	Setting       string
	Steps         int            // things that happened, with those that were done again to get back to a place
	States, Edges int            // of the specification, as far as the engine goes
	Hit           int            // edges that happened
	Hash          uint64         // of all that happened, in order
	Never         map[string]int // edges that never happened, by action and reason
	Examples      []string       // of edges that never happened
	Difference    *Difference
}

// walker is the simulation of one setting: it goes at random, from the start or from a place where it has been, by a way that it
// remembers, and likes what it has not tried there. It knows what it has seen, and nothing of what there is to see.
type walker struct {
	g    *Graph
	rng  *rand.Rand
	seen map[int32]*place
	open []int32 // places where something was not tried
	base []int   // number of the first edge of a node
	hit  []bool
	cov  *Coverage
	hash func(string)
}

// place is a state that was reached: how, and what was tried there.
type place struct {
	from  int32
	by    edge
	tried map[edge]bool
}

const walkLength = 60

// Cover simulates a setting for so many steps, or until every edge was taken; 0 steps: forty for each edge.
func Cover(set Setting, steps int, seed uint64) (*Coverage, error) {
	full, err := set.fill()
	if err != nil {
		return nil, err
	}
	return full.cover(steps, seed)
}

func (s *Setting) cover(steps int, seed uint64) (*Coverage, error) {
	g := NewGraph(s)
	if err := g.Explore(mostStates); err != nil {
		return nil, err
	}
	h := fnv.New64a()
	c := &walker{g: g, rng: rand.New(rand.NewPCG(seed, uint64(len(s.Name)))), seen: map[int32]*place{0: {from: -1, tried: map[edge]bool{}}}, open: []int32{0},
		cov: &Coverage{Setting: s.Name, States: len(g.Nodes), Never: map[string]int{}}, hash: func(what string) { _, _ = h.Write([]byte(what)) }}
	for i := range g.Nodes {
		c.base = append(c.base, c.cov.Edges)
		c.cov.Edges += len(g.Nodes[i].Out)
	}
	c.hit = make([]bool, c.cov.Edges)
	if steps <= 0 {
		steps = 40 * c.cov.Edges
	}
	for n := 0; c.cov.Steps < steps && c.cov.Difference == nil && c.cov.Hit < c.cov.Edges; n++ {
		c.cov.Difference = c.walk(n%2 == 1, steps)
	}
	c.cov.Hash = h.Sum64()
	c.missed()
	return c.cov, nil
}

// walk goes from a place for a while.
func (c *walker) walk(lazy bool, steps int) *Difference {
	w, err := New(c.g.set, lazy)
	if err != nil {
		return &Difference{nil, err.Error()}
	}
	j := &judge{g: c.g}
	if at := c.start(); at != 0 {
		if d := c.back(w, j, at); d != nil {
			return d
		}
	}
	for range walkLength {
		e, ok := c.choose(w, j.at)
		if !ok || c.cov.Steps >= steps {
			return nil
		}
		c.cov.Steps++
		c.seen[j.at].tried[e] = true
		from := j.at
		did, ok, err := w.attempt(e.name, e.args)
		if err != nil {
			return j.wrong(from, e, err.Error())
		}
		c.hash(fmt.Sprint(from, e.name, e.args))
		if !ok {
			if d := j.compare(w, from, e); d != nil {
				return d
			}
			continue
		}
		if d := j.follow(w, did, c.rng.IntN, c.count); j.left {
			return nil
		} else if d != nil {
			return d
		}
		if c.seen[j.at] == nil {
			c.seen[j.at] = &place{from, e, map[edge]bool{}}
			c.open = append(c.open, j.at)
		}
	}
	return nil
}

func (c *walker) count(node int32, out int) {
	if at := c.base[node] + out; !c.hit[at] {
		c.hit[at] = true
		c.cov.Hit++
	}
}

// start is where a walk begins: mostly a place where something was not tried.
func (c *walker) start() int32 {
	if len(c.open) == 0 || c.rng.IntN(8) == 0 {
		return 0
	}
	return c.open[c.rng.IntN(len(c.open))]
}

// back takes a fresh world to a place by the way on which it was first reached.
func (c *walker) back(w *World, j *judge, at int32) *Difference {
	var way []edge
	for p := c.seen[at]; p.from >= 0; p = c.seen[p.from] {
		way = append(way, p.by)
	}
	slices.Reverse(way)
	for _, e := range way {
		c.cov.Steps++
		if _, _, err := w.attempt(e.name, e.args); err != nil {
			return j.wrong(at, e, err.Error())
		}
	}
	j.at = at
	return j.compare(w, at, edge{})
}

// choose picks among what the world can do now: with a preference for what was not tried in this place.
func (c *walker) choose(w *World, at int32) (edge, bool) {
	var all, fresh []edge
	w.Can(func(name string, a model.Args) {
		all = append(all, edge{name, a})
	})
	slices.SortFunc(all, func(a, b edge) int { return cmp.Or(cmp.Compare(a.name, b.name), compareArgs(a.args, b.args)) })
	tried := c.seen[at].tried
	for _, e := range all {
		if !tried[e] {
			fresh = append(fresh, e)
		}
	}
	if len(all) == 0 {
		return edge{}, false
	}
	e := all[c.rng.IntN(len(all))]
	if len(fresh) > 0 && c.rng.IntN(16) > 0 {
		e = fresh[c.rng.IntN(len(fresh))]
	}
	if i := slices.Index(c.open, at); i >= 0 && (len(fresh) == 0 || len(fresh) == 1 && fresh[0] == e) {
		c.open[i] = c.open[len(c.open)-1]
		c.open = c.open[:len(c.open)-1]
	}
	return e, true
}

func compareArgs(a, b model.Args) int {
	for _, p := range [][2]uint8{{a.L, b.L}, {a.K, b.K}, {a.P, b.P}, {a.C, b.C}, {a.I, b.I}, {a.Q, b.Q}, {a.X, b.X}, {a.T, b.T}, {a.U, b.U}, {a.R, b.R}, {a.N, b.N}, {a.A, b.A}, {a.F, b.F},
		{a.V, b.V}, {a.G, b.G}, {a.M, b.M}, {a.D, b.D}, {a.E, b.E}, {a.S, b.S}, {a.Ks, b.Ks}} {
		if p[0] != p[1] {
			return int(p[0]) - int(p[1])
		}
	}
	return 0
}

// missed lists what never happened.
func (c *walker) missed() {
	for i := range c.g.Nodes {
		for o, e := range c.g.Nodes[i].Out {
			if c.hit[c.base[i]+o] {
				continue
			}
			why := "not drawn in so many steps"
			if n := &c.g.Nodes[i]; len(c.g.due(&n.State, &n.Hist)) > 0 {
				why = "another order of what the engine does in one step"
			}
			c.cov.Never[c.g.names[e.Action]+": "+why]++
			if len(c.cov.Examples) < 5 {
				var path []string
				for _, x := range append(c.g.path(int32(i)), edge{c.g.names[e.Action], e.Args}) {
					path = append(path, show(x))
				}
				c.cov.Examples = append(c.cov.Examples, fmt.Sprint(path))
			}
		}
	}
}
