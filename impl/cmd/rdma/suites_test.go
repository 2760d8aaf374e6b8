package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/impl/rig"
)

func TestOptions_WhatCannotBe_IsRefused(t *testing.T) {
	for _, args := range [][]string{{"-limit", "5s"}, {"-bench", "./impl/rig/self"}, {"-rounds", "0"}, {"-nonsense"}} {
		_, err := parseOptions(args)
		require.Error(t, err, args)
	}
	o, err := parseOptions([]string{"-run", "Fence", "-env", "A=1,B=2", "./impl/transport/verbs"})
	require.NoError(t, err)
	require.Equal(t, []string{"A=1", "B=2"}, o.vars)
	require.Empty(t, suiteOf(o).plants)
}

func TestSuite_Whole_HasPlants(t *testing.T) {
	o, err := parseOptions(nil)
	require.NoError(t, err)
	s := suiteOf(o)
	require.Equal(t, selfPackage, s.packages[0], "the plants' binary")
	require.NotEmpty(t, s.plants)
}

func TestResults_PlantThatPasses_IsFound(t *testing.T) {
	job := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(job, name+".out"), []byte(text), 0o644))
	}
	write("planted-fail", "=== RUN   TestPlanted\n--- FAIL: TestPlanted (0.0s)\nFAIL\n")
	write("planted-hang", "=== RUN   TestPlanted\n")
	write("planted-skip", "--- SKIP: TestPlanted (0.0s)\nPASS\n")
	write("good.test", "=== RUN   TestA\n--- PASS: TestA (0.0s)\nPASS\n")
	bins := []rig.Binary{{Name: "planted-fail", Planted: true}, {Name: "planted-hang", Planted: true}, {Name: "planted-skip", Planted: true}, {Name: "good.test"}}
	res, refused, err := results(job, bins)
	require.NoError(t, err)
	require.Equal(t, 3, refused)
	require.NoError(t, res.Judge())
	require.Equal(t, []string{"good.TestA"}, res.Passed)

	write("planted-skip", "--- PASS: TestPlanted (0.0s)\nPASS\n")
	_, _, err = results(job, bins)
	require.ErrorIs(t, err, errAlive)

	require.NoError(t, os.Remove(filepath.Join(job, "good.test.out")))
	_, _, err = results(job, bins)
	require.ErrorIs(t, err, os.ErrNotExist, "a binary that did not run")
}
