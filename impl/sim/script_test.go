package sim

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var writeScenarios = flag.Bool("sim.write", false, "TestShrink writes what it makes into testdata/scenarios")

// A seed and its script are the same run, also through a file.
func TestScript_OfASeed_IsTheSameRun(t *testing.T) {
	for seed := uint64(1); seed <= 40; seed++ {
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

// A failing seed comes down to a few decisions that fail in the same way; without the planted bug the same script breaks nothing.
func TestShrink_PlantedBug_ComesDownToAFewDecisions(t *testing.T) {
	for name, plant := range map[string]func(*Config){
		"plant-fence-early":          func(c *Config) { c.Pull, c.Plant.FenceEarly = false, true },
		"plant-seal-early":           func(c *Config) { c.Plant.SealEarly = true },
		"plant-fence-waits-for-none": func(c *Config) { c.Pull, c.Fabric.FenceAtOnce = false, true },
		"plant-append-over":          func(c *Config) { sharing(c); c.Plant.AppendOver = true },
	} {
		t.Run(name, func(t *testing.T) {
			seed := uint64(1)
			for ; seed < 400; seed++ {
				if _, err := Run(seed, plant); err != nil && OracleOf(err) != Liveness {
					break
				}
			}
			long, _, err := Record(seed, plant)
			require.Error(t, err, "400 seeds saw nothing")
			s, err := Shrink(seed, plant)
			require.Error(t, err)
			require.Equal(t, string(OracleOf(err)), s.Expect)
			require.Less(t, 4*s.Decisions(), long.Decisions(), "of %d decisions", long.Decisions())
			requireScenario(t, s)
			text, err := s.Text()
			require.NoError(t, err)
			t.Logf("seed %d: %d decisions, now %d, of them %d acts\n%s", seed, long.Decisions(), s.Decisions(), len(s.Acts), text)
			if *writeScenarios {
				require.NoError(t, os.WriteFile(filepath.Join("testdata", "scenarios", name+".yaml"), text, 0o644))
			}
		})
	}
}

func TestShrink_SeedThatBreaksNothing_HasNoScript(t *testing.T) {
	s, err := Shrink(1, nil)
	require.NoError(t, err)
	require.Nil(t, s)
}

// requireScenario plays a script: as it expects; and without its planted bug it breaks nothing.
func requireScenario(t *testing.T, s *Script) {
	t.Helper()
	a, err := s.Play(nil)
	require.NoError(t, s.Judge(err))
	b, _ := s.Play(nil)
	require.Equal(t, a, b, "twice the same")
	_, err = s.Play(func(c *Config) { c.Plant, c.Fabric = Plant{}, Config{}.Fabric })
	require.NoError(t, err, "without the planted bug")
}

// The scenario files: what once failed and was mended, public cases, and planted bugs that must be found.
func TestScenarios_EndAsTheySay(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "scenarios", "*.yaml"))
	require.NoError(t, err)
	require.Greater(t, len(files), 4)
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".yaml"), func(t *testing.T) {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			s, err := ParseScript(text)
			require.NoError(t, err)
			require.NotEmpty(t, s.About)
			require.Equal(t, strings.HasPrefix(filepath.Base(name), "plant-"), s.Expect != Kept)
			requireScenario(t, s)
			if s.Expect == Kept {
				_, err = s.Play(Following(nil))
				require.NoError(t, err, "step by step of the specification")
			}
		})
	}
}

func TestParseScript_WhatIsNone_IsRefused(t *testing.T) {
	good := "kvfence-scenario: 1\nexpect: kept\nconfig: {seed: 1, prefill: [1], decode: [2]}\nacts:\n  - {at: 1, do: ask, req: {tenant: a, prompt: [1, 2], new: 1}}\nchoices:\n  work: [\"1:3 2:4\"]\n"
	_, err := ParseScript([]byte(good))
	require.NoError(t, err)
	for old, bad := range map[string]string{
		"kvfence-scenario: 1": "kvfence-scenario: 2",
		"expect: kept":        "expect: nothing",
		"seed: 1":             "sed: 1",
		"prefill: [1]":        "prefill: [3]",
		"decode: [2]":         "decode: [1,1,1,1,1,1,1,1,1]",
		"decode: [2]}":        "decode: [2], decode-pages: 5000000}",
		"decode: [2]} ":       "decode: [2], net: {drop: 200}}",
		"decode: [2]}  ":      "decode: [2], sharing: -1}",
		"decode: [2]}   ":     "decode: [2], window: 1000000}",
		"do: ask":             "do: asked",
		"new: 1":              "new: 1, left-ms: -1",
		"work:":               "works:",
		"1:3":                 "1-3",
		"2:4":                 "99999999999:4",
	} {
		text := strings.Replace(good, strings.TrimRight(old, " "), bad, 1)
		require.NotEqual(t, good, text)
		_, err := ParseScript([]byte(text))
		require.ErrorIs(t, err, ErrScript, "%q", bad)
	}
}

func TestScript_ExpectsWhatDoesNotHappen_IsSaid(t *testing.T) {
	s, _, err := Record(1, nil)
	require.NoError(t, err)
	s.Expect = string(I3)
	_, err = s.Play(nil)
	require.ErrorIs(t, s.Judge(err), ErrScript)
	s.Expect = Kept
	require.ErrorIs(t, s.Judge(&Violation{Oracle: I2}), ErrViolation)
}
