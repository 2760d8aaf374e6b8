package lockstep

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/model"
)

func reports(t *testing.T) (all []*Report) {
	for _, set := range Pinned() {
		full, err := set.fill()
		require.NoError(t, err)
		g := NewGraph(&full)
		require.NoError(t, g.Explore(mostStates))
		all = append(all, &Report{Setting: set.Name, Cut: g.Cut, Taken: g.Taken})
	}
	return all
}

func TestTables_EveryCutExplained_EveryExplanationNeeded(t *testing.T) {
	all := reports(t)
	require.NoError(t, CheckTables(all))
	all[0].Cut["made-up"] = 1
	require.ErrorIs(t, CheckTables(all), ErrTable)
	delete(all[0].Cut, "made-up")
	for _, r := range all {
		delete(r.Cut, "second-lease")
	}
	require.ErrorContains(t, CheckTables(all), "no edge needs the explanation second-lease")
	all[0].Taken["GiveUp"] = 1
	require.ErrorContains(t, CheckTables(all), "GiveUp")
}

func TestTables_EveryActionHasAStimulusOrIsAChainOrUnused(t *testing.T) {
	var b strings.Builder
	require.NoError(t, WriteTables(&b))
	named := func(name string, in string) bool {
		return slices.Contains(strings.FieldsFunc(in, func(r rune) bool { return r == ' ' || r == ',' || r == '.' }), name)
	}
	for _, a := range model.Actions() {
		stimulus := slices.ContainsFunc(Stimuli(), func(s Stimulus) bool { return named(a.Name, s.Action) })
		chain := slices.ContainsFunc(Chains(), func(c Chain) bool { return named(a.Name, c.Steps) })
		_, unused := Unused()[a.Name]
		require.True(t, stimulus || chain || unused, a.Name)
		require.Equal(t, stimulus, executors()[a.Name] != nil, a.Name)
	}
	for _, v := range model.Variables() {
		require.True(t, slices.ContainsFunc(Sources(), func(s Source) bool { return named(v.Name, s.Variables) }) || slices.Contains([]string{"flying", "placing"}, v.Name), v.Name)
	}
}
