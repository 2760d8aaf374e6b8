package lockstep

import (
	"fmt"
	"reflect"
	"strings"

	"kvfence/model"
)

// Difference is a step at which engine and specification part.
type Difference struct {
	Path []string
	What string
}

func (d *Difference) Error() string {
	return "lockstep: " + d.What + "\n" + strings.Join(d.Path, "\n")
}

// walk makes a world and takes it along a way; steps that are due before them need no stimulus.
func (g *Graph) walk(at int32, lazy bool) (*World, error) {
	w, err := New(g.set, lazy)
	if err != nil {
		return nil, err
	}
	s, h := g.Nodes[0].State, g.Nodes[0].Hist
	path := g.nodes(at)
	for _, i := range path {
		n := &g.Nodes[i]
		e := edge{g.names[n.action], n.via}
		if len(g.due(&s, &h)) == 0 {
			if err := w.Do(e.name, &e.args); err != nil {
				return w, err
			}
		}
		s, h = n.State, n.Hist
	}
	return w, nil
}

// nodes are the nodes of the shortest way, without the first.
func (g *Graph) nodes(at int32) (out []int32) {
	for ; g.Nodes[at].parent >= 0; at = g.Nodes[at].parent {
		out = append(out, at)
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// Replay takes a fresh world the shortest way to a node, does one of its steps, and what is due behind it, and compares.
func (g *Graph) Replay(at int32, out int, lazy bool) *Difference {
	e := g.Nodes[at].Out[out]
	told := func(format string, args ...any) *Difference {
		var path []string
		for _, x := range append(g.path(at), edge{g.names[e.Action], e.Args}) {
			path = append(path, show(x))
		}
		return &Difference{path, fmt.Sprintf(format, args...)}
	}
	w, err := g.walk(at, lazy)
	if err != nil {
		return told("on the way: %v", err)
	}
	n := &g.Nodes[at]
	if len(g.due(&n.State, &n.Hist)) == 0 {
		if err := w.Do(g.names[e.Action], &e.Args); err != nil {
			return told("%v", err)
		}
	}
	want, h := g.Nodes[e.To].State, g.Nodes[e.To].Hist
	for due := g.due(&want, &h); len(due) > 0; due = g.due(&want, &h) {
		if _, ok := g.step(&want, &h, due[0]); !ok {
			return told("%s is due and not allowed", show(due[0]))
		}
	}
	got := w.Project()
	if w.err != nil {
		return told("%v", w.err)
	}
	if got != want {
		return told("%s", g.diff(&got, &want))
	}
	return nil
}

// diff names the variables that differ, with both values.
func (g *Graph) diff(got, want *model.State) string {
	var out []string
	for _, v := range model.Variables() {
		a, b := g.twin.Value(got, v.Name), g.twin.Value(want, v.Name)
		if a != b {
			out = append(out, fmt.Sprintf("%s: the engine has %s, the specification %s", v.Name, a, b))
		}
	}
	if len(out) == 0 {
		return "states differ outside of the setting"
	}
	return strings.Join(out, "; ")
}

// show is a step in words: the parameters that are not zero.
func show(e edge) string {
	v := reflect.ValueOf(e.args)
	var out []string
	for i := range v.NumField() {
		if x := v.Field(i).Uint(); x != 0 {
			out = append(out, fmt.Sprintf("%s=%d", v.Type().Field(i).Name, x))
		}
	}
	return e.name + "(" + strings.Join(out, " ") + ")"
}

// Report is what a replay of one setting came to.
type Report struct {
	Setting       string
	States, Edges int
	Replayed      int
	Different     int
	Cut           map[string]int // steps of the specification that the engine never takes, by kind
	Taken         map[string]int // steps by action
	Differences   []*Difference  // the first ones
}

const (
	mostStates      = 2_000_000
	mostDifferences = 5
)

// ReplaySetting explores a setting and replays every share-th step, and the first of each action, in both ways of handing out what
// lies in a box: as early and as late as it may be.
func ReplaySetting(set Setting, share int) (*Report, error) {
	full, err := set.fill()
	if err != nil {
		return nil, err
	}
	return full.replay(share)
}

func (s *Setting) replay(share int) (*Report, error) {
	g := NewGraph(s)
	if err := g.Explore(mostStates); err != nil {
		return nil, err
	}
	r := &Report{Setting: s.Name, States: len(g.Nodes), Edges: g.Edges(), Cut: g.Cut, Taken: g.Taken}
	seen := map[uint8]bool{}
	at := 0
	for i := range g.Nodes {
		for j, e := range g.Nodes[i].Out {
			at++
			if at%share != 0 && seen[e.Action] {
				continue
			}
			seen[e.Action] = true
			r.Replayed++
			lazy := share > 1 && at/share%2 == 1
			d := g.Replay(int32(i), j, lazy)
			if d == nil && share == 1 {
				d = g.Replay(int32(i), j, true)
			}
			if d == nil {
				continue
			}
			if r.Different++; len(r.Differences) < mostDifferences {
				r.Differences = append(r.Differences, d)
			}
		}
	}
	return r, nil
}
