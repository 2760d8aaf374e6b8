package sim

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each planted bug must be found within a bounded number of seeds, or the oracle is blind there.
func TestRun_PlantedBug_IsFound(t *testing.T) {
	push := func(c *Config) { c.Pull = false }
	pull := func(c *Config) { c.Pull = true }
	plants := map[string]func(*Config){
		"a batch is over while its sources are read":    func(c *Config) { push(c); c.Plant.PostedEarly = true },
		"decode's fence does not fence":                 func(c *Config) { push(c); c.Plant.FenceEarly = true },
		"decode's fence does not wait for placers":      func(c *Config) { push(c); c.Fabric.FenceAtOnce = true },
		"pages are said to be computed too early":       func(c *Config) { c.Plant.SealEarly = true },
		"a notice overtakes the writes of its channel":  func(c *Config) { push(c); c.Fabric.NoticesFirst = true },
		"a reader's fence does not wait for its copies": func(c *Config) { pull(c); c.Fabric.FenceAtOnce = true },
	}
	requireFound(t, plants)
}

// requireFound demands of each planted bug that one of 400 seeds breaks the promise.
func requireFound(t *testing.T, plants map[string]func(*Config)) {
	t.Helper()
	for name, change := range plants {
		t.Run(name, func(t *testing.T) {
			for seed := uint64(1); seed <= 400; seed++ {
				if _, err := Run(seed, change); errors.Is(err, ErrViolation) {
					t.Logf("seed %d: %v", seed, err)
					return
				}
			}
			require.Fail(t, "400 seeds saw nothing")
		})
	}
}
