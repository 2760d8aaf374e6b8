package model

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// configuration is what the tests read of one entry of TLA/manifest.json.
type configuration struct {
	Name, Module, Symmetry string
	Spec, Kind             string // of their own: not the twin's
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

func readManifest(t testing.TB) manifest {
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

func (m manifest) find(t testing.TB, name string) configuration {
	for _, c := range m.Configurations {
		if c.Name == name {
			return c
		}
	}
	require.Fail(t, "no configuration "+name)
	return configuration{}
}

func (m manifest) settings(t testing.TB, c configuration) Settings {
	w, err := FromConstants(m.constants(c))
	require.NoError(t, err, c.Name)
	return w
}

// search goes through the states breadth first, level by level, until a property is broken.
type search struct {
	twin       *Twin
	states     map[State]struct{}
	depth      int         // levels; the initial state is the first
	edges      map[int]int // by action
	properties []Property
	canonical  func(State) State
	limit      int // of states; 0 for none

	broken string // name of the property
	trace  int    // states of the counterexample, the broken one or both of the broken step included
}

func (x *search) run() {
	x.states, x.edges = map[State]struct{}{}, map[int]int{}
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
	for len(next) > 0 && x.broken == "" && (x.limit == 0 || len(x.states) < x.limit) {
		level, next = next, level[:0]
		x.depth++
		for i := range level {
			s := &level[i]
			x.twin.Next(s, func(action int, n *State) {
				x.edges[action]++
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

// exploration is the search that TLC makes of a configuration.
func (m manifest) exploration(t *testing.T, c configuration) *search {
	w := m.settings(t, c)
	x := &search{twin: New(w)}
	for _, name := range append(slices.Clone(c.Check), c.Steps...) {
		checks := []string{name}
		if set, ok := strings.CutPrefix(name, "@"); ok {
			checks = m.Modules[c.Module].Properties[set]
		}
		for _, check := range checks {
			p := Find(check)
			require.NotEmpty(t, p.Name, check)
			x.properties = append(x.properties, p)
		}
	}
	if c.Symmetry != "" {
		x.canonical = canonical(&w, c.Symmetry == "Sym")
	}
	return x
}

// mostStates bounds what these tests explore; impl/cmd/model explores the rest.
const mostStates = 15_000

func TestTwin_Explored_HasTheStatesOfTLC(t *testing.T) {
	m := readManifest(t)
	some := 0
	for _, c := range m.Configurations {
		if c.Module != "Transfer" || c.Spec != "" || c.Kind != "" || c.Expect.Result != "pass" || c.Expect.Distinct == 0 || c.Expect.Distinct > mostStates {
			continue
		}
		some++
		t.Run(c.Name, func(t *testing.T) {
			x := m.exploration(t, c)
			x.run()
			require.Empty(t, x.broken)
			require.Equal(t, c.Expect.Distinct, len(x.states))
			require.Equal(t, c.Expect.Depth, x.depth)
		})
	}
	require.GreaterOrEqual(t, some, 4)
}

func TestTwin_GuardOff_BreaksThePropertyAsSoonAsTLC(t *testing.T) {
	m := readManifest(t)
	some := 0
	for _, c := range m.Configurations {
		if c.Module != "Transfer" || c.Spec != "" || c.Kind != "" || c.Expect.Result != "violated" || c.Expect.Trace == 0 {
			continue
		}
		some++
		t.Run(c.Name, func(t *testing.T) {
			x := m.exploration(t, c)
			x.run()
			require.Equal(t, c.Expect.Violated, x.broken)
			require.Equal(t, c.Expect.Trace, x.trace)
		})
	}
	require.GreaterOrEqual(t, some, 40)
}

func TestTwin_Configurations_DoEveryAction(t *testing.T) {
	m := readManifest(t)
	done := map[int]int{}
	for name, limit := range map[string]int{
		"all-1": 20_000, "plant-torn": 0, "plant-stray": 1000, "off-TagAfter": 8000, "plant-flip": 1000, "off-FenceFirst": 1000, "off-GenCheck": 3000, "grow-1": 0,
		"ask": 1000, "decode-restart": 1000, "prefill-restart": 1000, "reach-retried": 1000, "reach-recaused": 1000,
	} {
		c := m.find(t, name)
		if name == "grow-1" {
			maps.Copy(c.Constants, map[string]string{"Page": "{p1}", "EmptyPlans": "TRUE"})
		}
		x := search{twin: New(m.settings(t, c)), limit: limit}
		x.run()
		for action, n := range x.edges {
			done[action] += n
		}
	}
	for i, a := range Actions() {
		require.Positive(t, done[i], a.Name)
	}
}
