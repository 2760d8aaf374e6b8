package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const counterexample = "../../tlc/explain/testdata/push.txt"

func TestSpecExplain_FileOrStandardInput_DrawsTextAndPicture(t *testing.T) {
	svg := filepath.Join(t.TempDir(), "push.svg")
	code, out, errs := finish(t, "spec", "explain", counterexample, "--svg", svg, "--title", "An abort frees pages")
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, out, "An abort frees pages\n")
	require.Contains(t, out, "Abort(l=1)")
	require.Contains(t, out, "NoReuseWhileInFlight is broken.")
	picture, err := os.ReadFile(svg)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(picture), "<svg "))

	file, err := os.Open(counterexample)
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	cmd := command(t, "spec", "explain", "-")
	cmd.Stdin = file
	piped, err := cmd.Output()
	require.NoError(t, err)
	require.Equal(t, strings.TrimPrefix(out, "An abort frees pages\n\n"), string(piped))
}

// Each mistake is one line that says what to do, and exit code 2.
func TestSpec_Mistakes_SayWhatToDo(t *testing.T) {
	empty := t.TempDir()
	for name, c := range map[string]struct {
		args []string
		says string
		path string
	}{
		"no counterexample in it": {[]string{"spec", "explain", "main.go"}, "kvfence spec trace NAME --raw", ""},
		"no such file":            {[]string{"spec", "explain", filepath.Join(empty, "none")}, "no such file", ""},
		"no java":                 {[]string{"spec", "check", "pull"}, "default-jre-headless", empty},
		"no specification":        {[]string{"spec", "check", "pull", "--dir", empty}, "leave --dir out", ""},
		"neither name nor all":    {[]string{"spec", "trace"}, "kvfence spec list", ""},
		"both name and all":       {[]string{"spec", "trace", "off-Admit", "--all-guards"}, "kvfence spec list", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if c.path != "" {
				t.Setenv("PATH", c.path)
			}
			code, _, errs := finish(t, c.args...)
			require.Equal(t, exitUsage, code)
			require.Contains(t, errs, c.says)
			require.Equal(t, 1, strings.Count(errs, "\n"), errs)
		})
	}
}

func TestSpecList_WithoutSources_NamesTheBuiltInConfigurations(t *testing.T) {
	cmd := command(t, "spec", "list")
	cmd.Dir = t.TempDir()
	out, err := cmd.Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "off-DeferRelease")
}
