package lockstep

import (
	"fmt"

	"kvfence/model"
)

// judge walks beside a world and says after each thing that happened which steps of the specification it was.
type judge struct {
	g    *Graph
	at   int32
	left bool // the world went where the bounds of the setting end
}

// done fills in what only the engine decides of an action that was carried out: the pages and links of a grant, the page of a growth.
func (w *World) done(e edge) (edge, bool) {
	switch e.name {
	case "Grant":
		if w.next == e.args.L {
			return e, false // it was not taken
		}
		x := &w.lease[e.args.L]
		for p, g := range x.gpage {
			if g != 0 {
				e.args.S |= 1 << p
			}
		}
		for k := range ranks(w.tw) {
			if x.owes[k] {
				e.args.Ks |= 1 << k
			}
		}
	case "Grow":
		if w.next == e.args.X {
			return e, false
		}
		e.args.P = w.lease[e.args.X].grown
	}
	return e, true
}

// follow takes the step e of the specification and all that is due behind it, in the order that pick says; hit hears of each. Then the
// world must be where the specification is.
func (j *judge) follow(w *World, e edge, pick func(n int) int, hit func(node int32, out int)) *Difference {
	start := j.at
	for {
		out := j.g.find(j.at, e)
		if out < 0 {
			n := &j.g.Nodes[j.at]
			kind := j.g.kind(&n.State, &n.Hist, e)
			j.left = kind == KindBound
			return j.wrong(start, e, "the engine did it, and it is cut or forbidden: "+kind)
		}
		hit(j.at, out)
		j.at = j.g.Nodes[j.at].Out[out].To
		n := &j.g.Nodes[j.at]
		due := j.g.due(&n.State, &n.Hist)
		if len(due) == 0 {
			break
		}
		e = due[pick(len(due))]
	}
	return j.compare(w, start, e)
}

func (j *judge) compare(w *World, start int32, e edge) *Difference {
	got := w.Project()
	if w.err != nil {
		return j.wrong(start, e, w.err.Error())
	}
	if want := &j.g.Nodes[j.at].State; got != *want {
		return j.wrong(start, e, j.g.diff(&got, want))
	}
	return nil
}

func (j *judge) wrong(start int32, e edge, what string) *Difference {
	var path []string
	for _, x := range append(j.g.path(start), e) {
		path = append(path, show(x))
	}
	return &Difference{path, what}
}

// find is the place of a step among those of a node; -1: the node has no such step.
func (g *Graph) find(at int32, e edge) int {
	for i, o := range g.Nodes[at].Out {
		if o.Args == e.args && g.names[o.Action] == e.name {
			return i
		}
	}
	return -1
}

// attempt carries out one thing, which the engine may decline.
func (w *World) attempt(name string, a model.Args) (edge, bool, error) {
	if err := w.Do(name, &a); err != nil {
		return edge{}, false, err
	}
	e, ok := w.done(edge{name, a})
	return e, ok, nil
}

func (e edge) String() string { return fmt.Sprint(show(e)) }

// kind says why the graph of a setting has not a step that the engine took: the kind by which it is cut, or that the specification
// forbids it.
func (g *Graph) kind(s *model.State, h *Hist, e edge) string {
	due := g.due(s, h)
	kind := "the specification does not do that here"
	g.twin.Steps(s, func(action int, a *model.Args, to *model.State) {
		if g.names[action] != e.name || *a != e.args {
			return
		}
		if kind = g.judge(&choice{s, h, e.name, *a, to}, due); kind == "" && !g.closes(*to, g.after(s, *h, e.name, a, to)) {
			kind = KindBound
		}
	})
	return kind
}
