package lockstep

import (
	"cmp"
	"slices"

	"kvfence/model"
)

// follower walks beside a world in a setting too large to be explored: the specification's state and its history, and nothing else.
type follower struct {
	g *Graph
	s model.State
	h Hist
}

func newFollower(set *Setting) *follower {
	g := NewGraph(set)
	return &follower{g: g, s: g.twin.Init()[0], h: g.first()}
}

// steps are what the specification allows now and the engine takes, in a fixed order.
func (v *follower) steps() (out []edge) {
	due := v.g.due(&v.s, &v.h)
	v.g.twin.Steps(&v.s, func(action int, a *model.Args, n *model.State) {
		c := &choice{&v.s, &v.h, v.g.names[action], *a, n}
		if v.g.judge(c, due) == "" && v.g.closes(*n, v.g.after(&v.s, v.h, c.name, a, n)) {
			out = append(out, edge{c.name, *a})
		}
	})
	slices.SortFunc(out, func(a, b edge) int { return cmp.Or(cmp.Compare(a.name, b.name), compareArgs(a.args, b.args)) })
	return slices.Compact(out)
}

// follow takes a step and what is due behind it, and compares.
func (v *follower) follow(w *World, e edge) *Difference {
	for {
		if kind := v.g.kind(&v.s, &v.h, e); kind != "" {
			return &Difference{What: show(e) + " is cut or forbidden: " + kind}
		}
		v.g.step(&v.s, &v.h, e)
		due := v.g.due(&v.s, &v.h)
		if len(due) == 0 {
			return v.compare(w)
		}
		e = due[0]
	}
}

func (v *follower) compare(w *World) *Difference {
	got := w.Project()
	if w.err != nil {
		return &Difference{What: w.err.Error()}
	}
	if got != v.s {
		return &Difference{What: v.g.diff(&got, &v.s)}
	}
	return nil
}
