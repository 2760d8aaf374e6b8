package sim

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each kind of request and fault happens within a few hundred seeds, or it stands in the list for nothing. A pool of a million pages is
// too dear for many seeds; it has one of its own.
func TestKinds_InManySeeds_EachHappens(t *testing.T) {
	seeds := uint64(300)
	if testing.Short() {
		seeds = 60
	}
	r := many(t, Plan{From: 1, Count: seeds})
	for _, k := range Kinds() {
		t.Logf("%-18s %7d", k.Kind, r.Kinds[k.Kind])
		if k.Kind != ManyPages && !testing.Short() {
			require.NotZero(t, r.Kinds[k.Kind], "%s never happened in %d seeds", k.Kind, seeds)
		}
	}
	require.NotZero(t, r.Alarms)
	for k := range r.Kinds {
		require.True(t, k.known(), "%s is counted and not listed", k)
	}
}

func TestRun_AMillionPages_AtEitherEnd(t *testing.T) {
	for _, change := range []func(*Config){
		func(c *Config) { c.DecodePages, c.AuxPages = bigPool, 8 },
		func(c *Config) { c.PrefillPages, c.AuxPages = bigPool, 8 },
	} {
		out, err := Run(11, func(c *Config) { c.Prefill, c.Decode = []int{1}, []int{1}; change(c) })
		require.NoError(t, err)
		require.NotZero(t, out.Kinds[ManyPages])
		require.NotZero(t, out.OK)
	}
}

// The page for people lists what the code has, word for word.
func TestKinds_TheirPage_HasEach(t *testing.T) {
	page, err := os.ReadFile("../../docs/simulation.md")
	require.NoError(t, err)
	var rows []string
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "| `") {
			rows = append(rows, strings.TrimSpace(line))
		}
	}
	var want []string
	for _, o := range Oracles() {
		want = append(want, fmt.Sprintf("| `%s` | %s |", o.Oracle, o.About))
	}
	for _, k := range Kinds() {
		want = append(want, fmt.Sprintf("| `%s` | %s | %s | %s |", k.Kind, k.Class, k.About, k.Cases))
	}
	for _, p := range Plants() {
		want = append(want, fmt.Sprintf("| `%s` | %s | %s |", p.Name, p.About, p.Found))
	}
	require.Equal(t, want, rows)
}
