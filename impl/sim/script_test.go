package sim

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A seed and its script are the same run, also through a file.
func TestScript_OfASeed_IsTheSameRun(t *testing.T) {
	for seed := uint64(1); seed <= 60; seed++ {
		want, err := Run(seed, nil)
		require.NoError(t, err)
		s, out, err := Record(seed, nil)
		require.NoError(t, err)
		require.Equal(t, want.Hash, out.Hash, "seed %d: recorded", seed)
		text, err := s.Text()
		require.NoError(t, err)
		again, err := ParseScript(text)
		require.NoError(t, err)
		require.Equal(t, Kept, again.Expect)
		got, err := again.Play(nil)
		require.NoError(t, err)
		require.Equal(t, want, got, "seed %d: replayed", seed)
	}
}

func TestShrink_PlantedBugs_ComeDownToAFewDecisions(t *testing.T) {
	for name, plant := range map[string]func(*Config){
		"fence early":   func(c *Config) { c.Pull, c.Plant.FenceEarly = false, true },
		"seal early":    func(c *Config) { c.Plant.SealEarly = true },
		"fence at once": func(c *Config) { c.Pull, c.Fabric.FenceAtOnce = false, true },
		"append over":   func(c *Config) { sharing(c); c.Plant.AppendOver = true },
	} {
		t.Run(name, func(t *testing.T) {
			for seed := uint64(1); ; seed++ {
				require.Less(t, seed, uint64(400))
				_, err := Run(seed, plant)
				if err == nil {
					continue
				}
				long, _, _ := Record(seed, plant)
				s, err := Shrink(seed, plant)
				require.Error(t, err)
				text, terr := s.Text()
				require.NoError(t, terr)
				t.Logf("seed %d: %d decisions, shrunk %d, %d acts\n%s", seed, long.Decisions(), s.Decisions(), len(s.Acts), text)
				if dir := os.Getenv("SIM_OUT"); dir != "" {
					require.NoError(t, os.WriteFile(filepath.Join(dir, name+".yaml"), text, 0o644))
				}
				return
			}
		})
	}
}
