package lockstep

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/model"
)

// The simulation knows only what the world can do; every step must be one of the specification, and it must find nearly all of them.
func TestCover_SmallSettings_NearlyAllEdges_SameSeedSameHash(t *testing.T) {
	for _, name := range []string{"push", "tail", "life", "again", "big", "torn"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var set Setting
			for _, s := range Pinned() {
				if s.Name == name {
					set = s
				}
			}
			a, err := Cover(set, 0, 7)
			require.NoError(t, err)
			require.Nil(t, a.Difference)
			t.Logf("seed 7: %d of %d edges in %d steps, hash %x, never %v", a.Hit, a.Edges, a.Steps, a.Hash, a.Never)
			require.GreaterOrEqual(t, 100*a.Hit, 95*a.Edges)
			few := min(a.Steps, 3000)
			b, err := Cover(set, few, 7)
			require.NoError(t, err)
			c, err := Cover(set, few, 7)
			require.NoError(t, err)
			require.Equal(t, b.Hash, c.Hash)
			d, err := Cover(set, few, 8)
			require.NoError(t, err)
			require.True(t, d.Hash != b.Hash || a.Edges < 10, "another seed goes another way")
		})
	}
}

// A world that does what the specification does not is refused in a simulation, too.
func TestCover_PlantedDifference_IsFound(t *testing.T) {
	set, ok := Find("push")
	require.True(t, ok)
	behind(&set, "Abort", func(w *World, _ *model.Args) { w.mem[0][0].content = 1 })
	c, err := set.cover(20000, 1)
	require.NoError(t, err)
	require.NotNil(t, c.Difference)
	require.Contains(t, c.Difference.Error(), "mem: the engine has")
}
