package model

import (
	"encoding/json"
	"maps"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// configuration is what the tests read of one entry of TLA/manifest.json.
type configuration struct {
	Name, Module, Symmetry string
	Constants              map[string]string
	Check, Steps           []string
	Expect                 struct {
		Result, Violated string
		Distinct, Depth  int
		Trace            int
	}
}

type manifest struct {
	Modules map[string]struct {
		Constants  map[string]string
		Properties map[string][]string
	}
	Configurations []configuration
}

func readManifest(t *testing.T) manifest {
	text, err := os.ReadFile("../TLA/manifest.json")
	require.NoError(t, err)
	var m manifest
	require.NoError(t, json.Unmarshal(text, &m))
	return m
}

// constants are those of the module with the configuration's own over them.
func (m manifest) constants(c configuration) map[string]string {
	all := maps.Clone(m.Modules[c.Module].Constants)
	maps.Copy(all, c.Constants)
	return all
}

func (m manifest) find(t *testing.T, name string) configuration {
	for _, c := range m.Configurations {
		if c.Name == name {
			return c
		}
	}
	require.Fail(t, "no configuration "+name)
	return configuration{}
}

func (m manifest) settings(t *testing.T, c configuration) Settings {
	w, err := FromConstants(m.constants(c))
	require.NoError(t, err, c.Name)
	return w
}

// search goes through the states breadth first, level by level, until a property is broken.
type search struct {
	twin       *Twin
	states     map[State]struct{}
	depth      int // levels; the initial state is the first
	edges      int
	properties []Property
	canonical  func(State) State

	broken string // name of the property
	trace  int    // states of the counterexample, the broken one or both of the broken step included
}

func (x *search) run() {
	x.states = map[State]struct{}{}
	var level, next []State
	add := func(s State) {
		if x.canonical != nil {
			s = x.canonical(s)
		}
		if _, old := x.states[s]; old {
			return
		}
		x.states[s] = struct{}{}
		next = append(next, s)
		for _, p := range x.properties {
			if x.broken == "" && p.State != nil && !p.State(&x.twin.Settings, &s) {
				x.broken, x.trace = p.Name, x.depth+1
			}
		}
	}
	for _, s := range x.twin.Init() {
		add(s)
	}
	for len(next) > 0 && x.broken == "" {
		level, next = next, level[:0]
		x.depth++
		for i := range level {
			s := &level[i]
			x.twin.Next(s, func(_ int, n *State) {
				x.edges++
				for _, p := range x.properties {
					if x.broken == "" && p.Step != nil && !p.Step(&x.twin.Settings, s, n) {
						x.broken, x.trace = p.Name, x.depth+1
					}
				}
				add(*n)
			})
		}
	}
}

func TestTwin_Explored_HasTheStatesOfTLC(t *testing.T) {
	m := readManifest(t)
	for _, name := range []string{"decode-restart", "gone", "prefill-restart"} {
		t.Run(name, func(t *testing.T) {
			c := m.find(t, name)
			x := search{twin: New(m.settings(t, c)), properties: Properties()}
			x.run()
			require.Empty(t, x.broken)
			require.Equal(t, c.Expect.Distinct, len(x.states))
			require.Equal(t, c.Expect.Depth, x.depth)
		})
	}
}
