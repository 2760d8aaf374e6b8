package lockstep

import (
	"errors"
	"fmt"

	"kvfence/model"
)

// ErrGraph is wrapped by what is wrong with a setting's graph.
var ErrGraph = errors.New("lockstep: graph")

// Graph is the steps of the specification that the engine takes in a setting, from the initial state on.
type Graph struct {
	set   *Setting
	w     *model.Settings
	twin  *model.Twin
	inner *model.Twin // for steps within steps
	names []string
	cuts  []Cut

	Nodes []Node
	Cut   map[string]int // steps that are cut, by kind
	Taken map[string]int // steps that are not, by action
	at    map[key]int
}

type key struct {
	s model.State
	h Hist
}

// Node is a state with its history, the shortest way to it, and its steps.
type Node struct {
	State  model.State
	Hist   Hist
	parent int32
	via    model.Args
	action uint8
	Out    []Edge
}

// Edge is one step to another node.
type Edge struct {
	Action uint8
	Args   model.Args
	To     int32
}

// NewGraph prepares the graph of a setting; Explore fills it.
func NewGraph(set *Setting) *Graph {
	g := &Graph{set: set, w: &set.Twin, twin: model.New(set.Twin), inner: model.New(set.Twin), cuts: Cuts(), Cut: map[string]int{}, Taken: map[string]int{}, at: map[key]int{}}
	for _, a := range model.Actions() {
		g.names = append(g.names, a.Name)
	}
	return g
}

// Explore walks the whole graph breadth first; most is the largest number of nodes.
func (g *Graph) Explore(most int) error {
	s := g.twin.Init()[0]
	g.add(&s, g.first(), -1, 0, model.Args{})
	for i := 0; i < len(g.Nodes); i++ {
		if len(g.Nodes) > most {
			return fmt.Errorf("%w: setting %s has more than %d states", ErrGraph, g.set.Name, most)
		}
		s, h := g.Nodes[i].State, g.Nodes[i].Hist
		due := g.due(&s, &h)
		g.twin.Steps(&s, func(action int, a *model.Args, n *model.State) {
			c := &choice{&s, &h, g.names[action], *a, n}
			kind := g.judge(c, due)
			if kind == "" && !g.closes(*n, g.after(&s, h, c.name, a, n)) {
				kind = KindBound
			}
			if kind != "" {
				g.Cut[kind]++
				return
			}
			g.Taken[c.name]++
			to := g.add(n, g.after(&s, h, c.name, a, n), int32(i), uint8(action), *a)
			g.Nodes[i].Out = append(g.Nodes[i].Out, Edge{uint8(action), *a, to})
		})
	}
	return nil
}

func (g *Graph) add(s *model.State, h Hist, parent int32, action uint8, via model.Args) int32 {
	k := key{*s, h}
	if at, ok := g.at[k]; ok {
		return int32(at)
	}
	g.at[k] = len(g.Nodes)
	g.Nodes = append(g.Nodes, Node{State: *s, Hist: h, parent: parent, via: via, action: action})
	return int32(len(g.Nodes) - 1)
}

// closes says that what is due in a state can be done within the bounds of the setting, up to a state where nothing is due.
func (g *Graph) closes(s model.State, h Hist) bool {
	for range 16 {
		due := g.due(&s, &h)
		if len(due) == 0 {
			return true
		}
		if _, ok := g.step(&s, &h, due[0]); !ok {
			return false
		}
	}
	return false
}

// step takes one step; false: the specification does not allow it.
func (g *Graph) step(s *model.State, h *Hist, e edge) (action uint8, ok bool) {
	from := *s
	g.inner.Steps(&from, func(at int, a *model.Args, n *model.State) {
		if !ok && g.names[at] == e.name && *a == e.args {
			ok, action = true, uint8(at)
			*h = g.after(&from, *h, e.name, a, n)
			*s = *n
		}
	})
	return action, ok
}

// path is the shortest way to a node.
func (g *Graph) path(at int32) (out []edge) {
	for n := &g.Nodes[at]; n.parent >= 0; n = &g.Nodes[n.parent] {
		out = append(out, edge{g.names[n.action], n.via})
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// Edges is the number of steps.
func (g *Graph) Edges() (n int) {
	for i := range g.Nodes {
		n += len(g.Nodes[i].Out)
	}
	return n
}
