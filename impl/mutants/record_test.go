package mutants

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The committed record, reasons and list of guards fit together; whether the record is as old as the sources is what make mutants asks.

func TestCommitted_EverySurvivorHasAReason(t *testing.T) {
	r, err := ReadRecord("record.json")
	require.NoError(t, err)
	reasons, err := ReadReasons("reasons.json")
	require.NoError(t, err)
	explained, err := Explain(r, reasons)
	require.NoError(t, err)
	for _, layer := range []string{"model", "core"} {
		for _, e := range r.Survivors(layer) {
			require.NotEmpty(t, explained[e.Name], "%s: %s", layer, e.Name)
		}
	}
	require.NotContains(t, r.Closing(explained), "without")
}

func TestCommitted_EachGuardOfTheDesignPage_IsKilledByATest(t *testing.T) {
	r, err := ReadRecord("record.json")
	require.NoError(t, err)
	guards, err := ReadGuards("guards.json")
	require.NoError(t, err)
	require.Greater(t, len(guards), 30)
	for _, g := range guards {
		for _, name := range g.Core {
			e, ok := r.Entries["core"][name]
			require.True(t, ok, "%s: %s is no mutant", g.Guard, name)
			require.NotEmpty(t, e.Test, "%s: no test kills %s (%s)", g.Guard, name, e.Killed)
		}
	}
}

func TestCommitted_Page_HasTheFiguresOfTheRecord(t *testing.T) {
	r, err := ReadRecord("record.json")
	require.NoError(t, err)
	reasons, err := ReadReasons("reasons.json")
	require.NoError(t, err)
	explained, err := Explain(r, reasons)
	require.NoError(t, err)
	page, err := os.ReadFile("../../docs/mutants.md")
	require.NoError(t, err)
	require.Contains(t, string(page), r.Closing(explained))
	require.True(t, strings.HasPrefix(string(page), "# Mutants\n"))
}
