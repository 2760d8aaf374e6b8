package core

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// notTheCores are actions of the specification that no machine takes, and whose they are.
var notTheCores = map[string]string{
	"Launch": "fabric", "Check": "fabric", "Drop": "fabric", "Lose": "fabric", "Copy": "fabric", "Visible": "fabric", "PullCopy": "fabric",
	"Stray": "planted", "Torn": "planted", "Flip": "planted",
	"DecodeCrash": "the world", "PrefillCrash": "the world",
	"GiveUp":  "only without the guard FenceFirst",
	"BadRead": "ReadEnd with a finding of the check before the step: its kernel did not run",
}

// The names in Did and the actions of the specification are the same set, in both directions of transfer.
func TestDid_Names_AreTheActionsOfTheSpecification(t *testing.T) {
	said := map[string]bool{}
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
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
	actions := map[string]bool{}
	for _, module := range []string{"Transfer", "Pull"} {
		text, err := os.ReadFile("../../TLA/" + module + ".tla")
		require.NoError(t, err)
		for name := range specActions(string(text)) {
			actions[name] = true
		}
	}
	for name := range notTheCores {
		require.True(t, actions[name], "%s is no action any more", name)
		require.False(t, said[name], "%s is said by a machine", name)
		delete(actions, name)
	}
	require.Greater(t, len(actions), 40)
	require.Equal(t, slices.Sorted(maps.Keys(actions)), slices.Sorted(maps.Keys(said)))
}

// specActions are the names that a module's next-state relations list, and that say what becomes of variables.
func specActions(module string) map[string]bool {
	body := map[string]string{}
	for _, block := range regexp.MustCompile(`(?m)^([A-Z]\w*)(?:\([^)]*\))? ==`).FindAllStringSubmatchIndex(module, -1) {
		rest := module[block[1]:]
		if end := strings.Index(rest, "\n\n"); end >= 0 {
			rest = rest[:end]
		}
		body[module[block[2]:block[3]]] = rest
	}
	out := map[string]bool{}
	for name, text := range body {
		if !strings.HasSuffix(name, "Next") {
			continue
		}
		for _, word := range regexp.MustCompile(`[A-Z]\w*`).FindAllString(text, -1) {
			if (strings.Contains(body[word], "'") || strings.Contains(body[word], "UNCHANGED")) && !strings.HasSuffix(word, "Next") {
				out[word] = true
			}
		}
	}
	return out
}
