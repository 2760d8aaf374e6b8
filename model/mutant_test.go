package model

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// wide is settings with room for everything: every feature on, two of most things.
func wide(t *testing.T) Settings {
	m := readManifest(t)
	constants := m.constants(configuration{Module: "Transfer"})
	for name, v := range map[string]string{
		"NL": "3", "NE": "2", "NI": "1", "ND": "1", "NT": "3", "NQ": "2", "Page": "{p1, p2}", "Rank": "{k1, k2}", "Chan": "{c1, c2}", "Tenant": "{n1, n2}",
		"Aux": "{p2}", "Big": "{2}", "Views": `{"same", "short", "other"}`, "Causes": `{"derived", "original"}`,
	} {
		constants[name] = v
	}
	for _, name := range []string{
		"Running", "EmptyPlans", "Marking", "Publishing", "Appending", "Growing", "Retrying", "Losing", "Breaking", "OwnMarking", "PFencing",
		"PlantStray", "PlantTorn", "PlantFlip",
	} {
		constants[name] = "TRUE"
	}
	w, err := FromConstants(constants)
	require.NoError(t, err)
	return w
}

// walk takes steps at random, each action that is possible as likely as any other, and calls at for every state on the way.
func walk(twin *Twin, r *rand.Rand, steps int, at func(s *State)) {
	s := twin.Init()[0]
	for range steps {
		at(&s)
		chosen, seen, action := s, 0, -1
		ways := 0
		twin.Next(&s, func(a int, n *State) {
			if a != action {
				action, ways = a, 0
				seen++
			}
			ways++
			if ways == 1 && r.IntN(seen) == 0 || ways > 1 && chosen != s && r.IntN(4*ways) == 0 {
				chosen = *n
			}
		})
		if seen == 0 {
			return
		}
		s = chosen
	}
}

func TestMutants_AreOneForEachConjunct_AndValid(t *testing.T) {
	count := 0
	for _, a := range Actions() {
		count += len(a.Guards) + len(a.Updates)
	}
	require.Len(t, Mutants(), count)
	for _, m := range Mutants() {
		require.True(t, m.Valid(), m)
	}
	for _, m := range []Mutant{{"Nothing", 0, -1}, {"Submit", 1, -1}, {"Submit", -1, 1}, {"Submit", -1, -1}, {"Submit", -2, 0}} {
		require.False(t, m.Valid(), m)
	}
}

func TestTwin_GuardDropped_ActionIsPossibleWithoutIt(t *testing.T) {
	m := readManifest(t)
	w := m.settings(t, m.find(t, "gone"))
	possible := func(twin *Twin) map[string]int {
		found := map[string]int{}
		s := twin.Init()[0]
		twin.Next(&s, func(action int, _ *State) { found[Actions()[action].Name]++ })
		return found
	}
	require.Zero(t, possible(New(w))["Forget"])
	require.Zero(t, possible(New(w, Mutant{"Forget", 0, -1}))["Forget"])
	require.Zero(t, possible(New(w, Mutant{"Forget", 1, -1}))["Forget"])
	require.Equal(t, 1, possible(New(w, Mutant{"Forget", 0, -1}, Mutant{"Forget", 1, -1}))["Forget"])
}

func TestTwin_UpdateDropped_VariableStays(t *testing.T) {
	m := readManifest(t)
	w := m.settings(t, m.find(t, "gone"))
	actions := Actions()
	for _, a := range actions {
		for i, u := range a.Updates {
			vars := u.Vars()
			twin := New(w, Mutant{a.Name, -1, i})
			walk(twin, rand.New(rand.NewPCG(1, 2)), 60, func(s *State) {
				twin.Next(s, func(action int, n *State) {
					for _, name := range vars {
						if actions[action].Name == a.Name && twin.Value(s, name) != twin.Value(n, name) {
							require.Fail(t, "changed", "%s %d %s", a.Name, i, name)
						}
					}
				})
			})
		}
	}
}

// Whatever is dropped, the twin goes on to the edge of its room and no further: nothing panics, and no number leaves its domain by
// more than one.
func TestTwin_EveryMutant_StaysInItsRoom(t *testing.T) {
	w := wide(t)
	ok := typeOK()
	for i, m := range append(Mutants(), Mutant{"", -1, -1}) {
		twin := New(w, m)
		walk(twin, rand.New(rand.NewPCG(7, uint64(i))), 60, func(s *State) {
			if m.Action == "" {
				require.True(t, ok(&w, s), twin.Text(s))
			}
			for k := range w.ranks() {
				require.LessOrEqual(t, s.Ep[k], w.NE+1)
				require.LessOrEqual(t, s.Pinc[k], w.NI+1)
			}
			require.LessOrEqual(t, s.NextL, w.NL+1)
		})
	}
}
