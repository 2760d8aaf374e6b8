package tlc

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvfence/proofs/sany"
)

// tools are those of this machine, or the test is left out.
func tools(t *testing.T) Tools {
	t.Helper()
	found, err := FindTools("")
	if err != nil {
		t.Skip(err)
	}
	return found
}

// slow leaves a test out of the fast ones: each starts java, for seconds.
func slow(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts java; left out by -short")
	}
}

// folder is a copy of testdata that a test may change, with its .cfg files.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata")))
	s, err := Open(dir)
	require.NoError(t, err)
	require.NoError(t, s.Save())
	return dir
}

// check runs the configurations named, or all.
func check(t *testing.T, dir string, change func(*Options), names ...string) (string, error) {
	t.Helper()
	s, err := Open(dir)
	require.NoError(t, err)
	o := Options{Tools: tools(t), Names: names, Jobs: 2, Limit: time.Hour}
	if change != nil {
		change(&o)
	}
	var out bytes.Buffer
	err = s.Check(context.Background(), o, &out)
	return out.String(), err
}

// replace changes a text in a file that has it once.
func replace(t *testing.T, path, old, with string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(raw), old))
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(raw), old, with, 1)), 0o600))
}

func TestCheck_RightExpectations_Passes(t *testing.T) {
	out, err := check(t, folder(t), nil)
	require.NoError(t, err, out)
	require.Contains(t, out, "5 configurations, 5 as expected, 0 not, 0 long ones left out; ")
	require.Contains(t, out, "Rises broken after 4 states")
	require.Contains(t, out, "Ends broken after ")
	require.Contains(t, out, "21 states in random runs")
}

func TestCheck_WrongExpectation_Fails(t *testing.T) {
	slow(t)
	for name, change := range map[string][2]string{
		"holds":        {`"distinct": 3`, `"distinct": 4`},
		"breaks-state": {`"exit": 12`, `"exit": 150`},
		"breaks-step":  {`"violated": "Rises"`, `"violated": "Falls"`},
		"random":       {`"about": "Random runs"`, `"constants": {"Top": "5"}, "about": "Random runs"`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t)
			replace(t, filepath.Join(dir, manifestFile), change[0], change[1])
			out, err := check(t, dir, nil, name)
			require.ErrorIs(t, err, ErrDiffers)
			require.Contains(t, out, "FAIL "+name)
			require.Contains(t, out, "1 configurations, 0 as expected, 1 not")
		})
	}
}

func TestCheck_SpecificationDoesNotParse_Fails(t *testing.T) {
	slow(t)
	dir := folder(t)
	replace(t, filepath.Join(dir, "Count.tla"), "VARIABLE n", "VARIABLE m")
	out, err := check(t, dir, nil, "breaks-state")
	require.ErrorIs(t, err, ErrDiffers)
	require.Contains(t, out, "exit 150")
}

func TestCheck_StaleConfigurationFile_Fails(t *testing.T) {
	slow(t)
	dir := folder(t)
	replace(t, filepath.Join(dir, "cfg", "holds.cfg"), "Top = 2", "Top = 1")
	out, err := check(t, dir, nil, "holds")
	require.ErrorIs(t, err, ErrDiffers)
	require.Contains(t, out, "run kvfence spec check --write")
}

func TestCheck_StaleTable_Fails(t *testing.T) {
	slow(t)
	dir := folder(t)
	replace(t, filepath.Join(dir, tableFile), "3 states, depth 3", "4 states, depth 3")
	_, err := check(t, dir, nil, "holds")
	require.ErrorIs(t, err, ErrDiffers)
}

func TestCheck_LimitIsOver_Fails(t *testing.T) {
	out, err := check(t, folder(t), func(o *Options) { o.Limit = time.Nanosecond }, "holds")
	require.ErrorIs(t, err, ErrDiffers)
	require.Contains(t, out, "exit -1")
}

func TestCheck_Examine_ItsFindingsAreDifferences(t *testing.T) {
	slow(t)
	out, err := check(t, folder(t), func(o *Options) {
		o.Examine = func(c *Configuration, got Outcome) []string { return []string{c.Name + " looked at, " + got.Violated} }
	}, "breaks-state")
	require.ErrorIs(t, err, ErrDiffers)
	require.Contains(t, out, "breaks-state looked at, Below")
}

func TestCheck_Write_RecordsWhatWasFound(t *testing.T) {
	slow(t)
	dir := folder(t)
	manifestPath := filepath.Join(dir, manifestFile)
	before, err := os.ReadFile(manifestPath)
	require.NoError(t, err)
	replace(t, manifestPath, `"distinct": 3`, `"distinct": 4`)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cfg", "left.cfg"), nil, 0o600))
	_, err = check(t, dir, func(o *Options) { o.Write = true }, "holds")
	require.NoError(t, err)
	after, err := os.ReadFile(manifestPath)
	require.NoError(t, err)
	require.Equal(t, string(before), string(after))
	require.FileExists(t, filepath.Join(dir, tableFile))
	require.NoFileExists(t, filepath.Join(dir, "cfg", "left.cfg"))
}

func TestSimulate_OwnRuns_AreCompared_OthersMustFindNothing(t *testing.T) {
	slow(t)
	s, err := Open(folder(t))
	require.NoError(t, err)
	o := Options{Tools: tools(t), Limit: time.Hour}
	var out bytes.Buffer
	require.NoError(t, s.Simulate(context.Background(), o, "", Simulation{}, &out), out.String())
	require.Contains(t, out.String(), "ok   random ")
	require.Contains(t, out.String(), "10 runs of at most 4 steps, seed 7")
	require.Contains(t, out.String(), "1 simulations, 1 as expected, 0 not")
	out.Reset()
	require.ErrorIs(t, s.Simulate(context.Background(), o, "breaks-state", Simulation{Runs: 5, Depth: 9, Seed: 3}, &out), ErrDiffers)
	require.Contains(t, out.String(), "Below broken after 4 states")
	require.Contains(t, out.String(), "5 runs of at most 9 steps, seed 3")
	require.ErrorIs(t, s.Simulate(context.Background(), o, "none", Simulation{}, &out), ErrNoConfiguration)
}

func TestTrace_ConfigurationThatHolds_IsRefused(t *testing.T) {
	slow(t)
	s, err := Open(folder(t))
	require.NoError(t, err)
	found := tools(t)
	_, _, err = s.Trace(context.Background(), found, "holds", time.Hour)
	require.ErrorIs(t, err, ErrNothingBroken)
	require.ErrorContains(t, err, "3 states, depth 3")
	c, got, err := s.Trace(context.Background(), found, "breaks-step", time.Hour)
	require.NoError(t, err)
	require.Equal(t, "breaks-step", c.Name)
	require.Equal(t, "Rises", got.Violated)
	require.Equal(t, 4, got.Trace)
}

func TestFindTools_JarNotThere_SaysHowToFetch(t *testing.T) {
	tools(t)
	_, err := FindTools(filepath.Join(t.TempDir(), "none.jar"))
	require.ErrorIs(t, err, sany.ErrNoJar)
	require.ErrorContains(t, err, "mvn dependency:get")
}

func TestFindTools_NoJava_SaysWhatToInstall(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := FindTools("")
	require.ErrorIs(t, err, ErrNoJava)
	require.ErrorContains(t, err, "default-jre-headless")
}
