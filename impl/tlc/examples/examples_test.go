package examples

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvfence/impl/tlc"
)

const (
	root   = "../../.."
	folder = "docs/counterexamples"
)

// The pages in docs are of the configurations, properties, lengths and settings that the manifest has now. That they are what TLC finds
// now is compared by kvfence spec check --counterexamples, which runs TLC anyway.
func TestStale_CommittedPages_AreTheManifests(t *testing.T) {
	t.Chdir(root)
	s, err := tlc.Open("")
	require.NoError(t, err)
	bad, err := Stale(folder, s.Manifest)
	require.NoError(t, err)
	require.Empty(t, bad, "run kvfence spec trace --all-guards")
}

func TestGuards_EachOfTheDesignPage_HasACounterexample(t *testing.T) {
	t.Chdir(root)
	s, err := tlc.Open("")
	require.NoError(t, err)
	for _, g := range append(preventionGuards(), detectionGuards()...) {
		for _, name := range strings.Fields(g.constants) {
			one, found := guard{g.says, name}, false
			for i := range s.Configurations {
				c := &s.Configurations[i]
				found = found || Kept(c) && one.has(c) && c.Expect.Violated != ""
			}
			require.True(t, found, "%s: nothing drops %s", g.says, name)
		}
	}
}

// specs is two guards of a small specification, of which nothing is known by name.
func specs(t *testing.T) *tlc.Specs {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("../testdata")))
	raw, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	require.NoError(t, err)
	text := strings.ReplaceAll(strings.ReplaceAll(string(raw), `"breaks-state"`, `"off-Admit"`), `"breaks-step"`, `"off-Other"`)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "manifest.json"), []byte(text), 0o600))
	s, err := tlc.Open(dir)
	require.NoError(t, err)
	require.NoError(t, s.Save())
	return s
}

func TestWrite_ThenNothingIsStale_AndEachChangeIsFound(t *testing.T) {
	if testing.Short() {
		t.Skip("starts java; left out by -short")
	}
	tools, err := tlc.FindTools("")
	if err != nil {
		t.Skip(err)
	}
	s, dir := specs(t), filepath.Join(t.TempDir(), "pages")
	o := tlc.Options{Tools: tools, Jobs: 2, Limit: time.Hour}
	var out bytes.Buffer
	require.NoError(t, Write(context.Background(), s, o, dir, &out), out.String())
	require.Contains(t, out.String(), "2 counterexamples written to "+dir+", 2 are kept")
	stale := func() string {
		bad, err := Stale(dir, s.Manifest)
		require.NoError(t, err)
		return strings.Join(bad, "; ")
	}
	require.Empty(t, stale())
	page, err := os.ReadFile(filepath.Join(dir, "off-Admit.md"))
	require.NoError(t, err)
	for _, want := range []string{"**Admission refuses what cannot fit**", "`Below`", "n: 2 -> 3", "Below is broken."} {
		require.Contains(t, string(page), want)
	}

	c, err := s.Find("off-Admit")
	require.NoError(t, err)
	_, got, err := s.Trace(context.Background(), tools, "off-Admit", time.Hour)
	require.NoError(t, err)
	require.Empty(t, Compare(dir, s, c, got))
	other := got
	other.Output = strings.Replace(got.Output, "n = 3", "n = 7", 1)
	require.Len(t, Compare(dir, s, c, other), 2, "page and picture")
	holds, err := s.Find("holds")
	require.NoError(t, err)
	require.Empty(t, Compare(dir, s, holds, tlc.Outcome{}))

	c.Expect.Trace++
	require.Equal(t, "off-Admit.md is not of the manifest's off-Admit; README.md is not the manifest's", stale())
	c.Expect.Trace--
	c.Constants["Top"] = "6"
	require.Equal(t, "off-Admit.md is not of the manifest's off-Admit", stale())
	c.Constants["Top"] = "5"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "off-Gone.md"), nil, 0o600))
	require.Equal(t, "off-Gone.md is of no configuration", stale())
	require.NoError(t, os.Remove(filepath.Join(dir, "off-Other.svg")))
	require.Equal(t, "off-Other.svg is not there; off-Gone.md is of no configuration", stale())

	o.Names = []string{"off-Other"}
	require.NoError(t, Write(context.Background(), s, o, dir, &out))
	require.Empty(t, stale(), "what is of no configuration is gone, and what was missing is there")
	o.Names = []string{"holds"}
	require.ErrorIs(t, Write(context.Background(), s, o, dir, &out), ErrNotKept)
}

func TestWrite_FolderOfOtherThings_IsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), nil, 0o600))
	require.ErrorIs(t, Write(context.Background(), specs(t), tlc.Options{}, dir, &bytes.Buffer{}), ErrOtherFiles)
	require.FileExists(t, filepath.Join(dir, "main.go"))
}
