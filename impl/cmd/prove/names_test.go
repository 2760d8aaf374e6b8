package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/model"
	"kvfence/proofs/tla2smt"
)

// Four readers of one text know the same actions: the specification as SANY parses it, the twin, the core (what it says of itself in
// Did), and the proof obligations.

// notCore are actions that no machine takes: the fabric's, planted ones, the world's.
var notCore = []string{"Launch", "Check", "Drop", "Lose", "Copy", "Visible", "Stray", "Torn", "Flip", "DecodeCrash", "PrefillCrash", "GiveUp", "BadRead"}

// differ says how the four sets differ, or nothing. pull are actions of the other direction, which the core has, too.
func differ(sany, twin, core, obligations, pull []string) (out []string) {
	say := func(what string, names, of []string) {
		for _, n := range names {
			if !slices.Contains(of, n) {
				out = append(out, fmt.Sprintf("%s: %s", what, n))
			}
		}
	}
	say("the twin does not know", sany, twin)
	say("the specification does not know, but the twin", twin, sany)
	say("no obligation is about", sany, obligations)
	say("the specification does not know, but an obligation", obligations, sany)
	say("the core does not say", sany, append(slices.Clone(core), notCore...))
	say("the specification does not know, but the core", core, append(slices.Clone(sany), pull...))
	say("not the core's, and no action", notCore, sany)
	return out
}

// coreNames are the names that the machines of impl/core say of their steps.
func coreNames(t *testing.T) []string {
	files, err := filepath.Glob("../../core/*.go")
	require.NoError(t, err)
	said := map[string]bool{}
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`(?:did\(|Did\{Name: |name :?= )"([A-Z]\w+)"`).FindAllStringSubmatch(string(text), -1) {
			said[m[1]] = true
		}
	}
	return slices.Sorted(maps.Keys(said))
}

// pullNames are the actions of Pull.tla, by its text.
func pullNames(t *testing.T) (out []string) {
	text, err := os.ReadFile("../../../TLA/Pull.tla")
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`(?m)^([A-Z]\w*)(?:\([^)]*\))? ==`).FindAllStringSubmatch(string(text), -1) {
		out = append(out, m[1])
	}
	return out
}

func TestNames_FourReaders_KnowTheSameActions(t *testing.T) {
	tr := transfer(t, nil)
	actions, err := tr.lower.Actions()
	require.NoError(t, err)
	var sany, twin []string
	for i := range actions {
		sany = append(sany, actions[i].Name)
	}
	for _, a := range model.Actions() {
		twin = append(twin, a.Name)
	}
	core, obligations, pull := coreNames(t), tla2smt.ActionNames(tr.obligations), pullNames(t)
	require.Greater(t, len(sany), 60)
	require.Greater(t, len(core), 40)
	require.Empty(t, differ(sany, twin, core, obligations, pull))

	for i, of := range [][]string{sany, twin, core, obligations} { // a name that changes in one of them is seen
		renamed := slices.Clone(of)
		renamed[slices.Index(renamed, "Grant")] = "Lend"
		sets := [][]string{sany, twin, core, obligations}
		sets[i] = renamed
		require.NotEmpty(t, differ(sets[0], sets[1], sets[2], sets[3], pull))
	}
}
