package plants

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// The checker is checked: a plant that does nothing is not caught, a pinned run that passes or that says another property is refused, and so is
// one that is refused without its plant.
func TestLab_PlantThatDoesNothing_IsNotCaught(t *testing.T) {
	all := []Plant{
		{Name: "nothing", What: "nothing", Guard: "none", Mix: "aborts", Want: []string{"I2"}, Edits: []Edit{{"core.DecodeRank.do", First, "r.out = append(r.out, a)", "_ = a"}}},
		{Name: "frees", What: "an undrained receipt is taken", Guard: "a guard", Mix: "aborts", Want: []string{"I2"}, Edits: []Edit{{"core.DecodeRank.tryTake", Never, "!h.drained(m)", ""}}},
		{Name: "aid", What: "the same, as an aid", Edits: []Edit{{"core.DecodeRank.tryTake", Never, "!h.drained(m)", ""}}},
		{Name: "idle", What: "nothing, beside what breaks by itself", Guard: "none", Mix: "aborts", Want: []string{"I2"}, With: []string{"aid"}, Why: "to be refused"},
	}
	lab, err := Open(t.Context(), root, t.TempDir(), all)
	require.NoError(t, err)

	c, err := lab.Search(t.Context(), 0, 0.5, false)
	require.NoError(t, err)
	require.Zero(t, c.Seed)
	require.Greater(t, c.Seeds, 10)
	require.Error(t, Record{"nothing": {Name: "nothing", Run: seen(c)}}.Caught(all[:1]))

	c, err = lab.Search(t.Context(), 1, 20, false)
	require.NoError(t, err)
	require.NotZero(t, c.Seed)
	require.Equal(t, "I2", c.Property)
	model, err := lab.Search(t.Context(), 1, 20, true)
	require.NoError(t, err)
	require.Equal(t, InModel, model.Property, "the specification has no such step")

	pinned := func(name string, s Seen) error {
		n, err := lab.Pinned(t.Context(), Record{name: {Name: name, Run: &s}}, 1, func(string, ...any) {})
		require.Equal(t, 1, n)
		return err
	}
	good := *seen(c)
	require.NoError(t, pinned("frees", good))
	other := good
	other.Property = "I6"
	require.ErrorContains(t, pinned("frees", other), fmt.Sprintf("seed %d with frees is refused for %q", good.Seed, "I2"))
	require.ErrorContains(t, pinned("idle", good), fmt.Sprintf("seed %d is refused without idle", good.Seed))
	require.ErrorContains(t, pinned("nothing", good), fmt.Sprintf("seed %d with nothing is refused for %q", good.Seed, ""))
}
