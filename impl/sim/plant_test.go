package sim

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Each planted bug is found by its oracle within a bounded number of seeds, or the oracle is blind there.
func TestRun_PlantedBug_IsFound(t *testing.T) {
	for _, p := range Plants() {
		t.Run(p.Name, func(t *testing.T) {
			by := map[Oracle]int{}
			for seed := uint64(1); seed <= 400; seed++ {
				if _, err := Run(seed, p.Change); err != nil {
					if by[OracleOf(err)]++; OracleOf(err) == p.Found {
						t.Logf("seed %d (before: %v): %.200v", seed, by, err)
						return
					}
				}
			}
			require.Failf(t, "400 seeds saw nothing", "%v", by)
		})
	}
}
