package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func candidate(name string, size int, blocks ...string) input {
	in := input{name: name, bytes: make([]byte, size), blocks: map[string]bool{}}
	for _, b := range blocks {
		in.blocks[b] = true
	}
	return in
}

func namesOf(ins []input) (names []string) {
	for _, in := range ins {
		names = append(names, in.name)
	}
	return names
}

func TestFewest_Inputs_ReachEverythingAndNoneIsNeedless(t *testing.T) {
	base := map[string]bool{"seed": true}
	ins := []input{
		candidate("seeded", 1, "seed"), candidate("big", 90, "a", "b"), candidate("small", 9, "a", "b"), candidate("c", 5, "c", "a"), candidate("all of b", 7, "b"),
	}
	require.Equal(t, []string{"all of b", "c"}, namesOf(fewest(base, ins)))
	// The one that adds most is taken first and is then needless.
	ins = []input{candidate("wide", 3, "a", "b", "c", "d"), candidate("left", 3, "a", "b", "x"), candidate("right", 3, "c", "d", "y")}
	require.Equal(t, []string{"left", "right"}, namesOf(fewest(nil, ins)))
	require.Empty(t, fewest(base, nil))
}

func TestReached_Profile_IsItsBlocksThatRan(t *testing.T) {
	require.Equal(t, map[string]bool{"a.go:1.2,3.4 5": true}, reached("mode: set\na.go:1.2,3.4 5 1\na.go:7.2,8.4 2 0\n"))
}

func TestRewrite_FoundInputs_AreReplacedAndNamedOnesStay(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "FuzzX")
	require.NoError(t, rewrite(dir, []input{candidate("0123456789abcdef", 3), candidate("1123456789abcdef", 4)}))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "torn-header"), nil, 0o600))
	require.NoError(t, rewrite(dir, []input{candidate("1123456789abcdef", 4)}))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 2)
	require.Equal(t, "1123456789abcdef", entries[0].Name())
	require.Equal(t, "torn-header", entries[1].Name())
}

func TestRun_UnknownTarget_IsRefusedByName(t *testing.T) {
	require.ErrorContains(t, run([]string{"fuzz.FuzzNothing"}), "fuzz.FuzzNothing is no target; there are fuzz.FuzzConfig")
	require.Len(t, targets(), 29)
}
