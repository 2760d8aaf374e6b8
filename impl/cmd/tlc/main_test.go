package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/proofs/sany"
)

// specs copies testdata to a folder that a test may change, with its .cfg files, and returns it with the jar's path.
func specs(t *testing.T) (dir, jar string) {
	t.Helper()
	if _, err := exec.LookPath("java"); err != nil {
		t.Skip("no java on this machine")
	}
	jar, err := sany.FindJar("")
	if err != nil {
		t.Skip(err)
	}
	dir = t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata")))
	m, err := loadManifest(filepath.Join(dir, "manifest.json"))
	require.NoError(t, err)
	require.NoError(t, m.save(dir))
	return dir, jar
}

// replace changes a text in a file that has it once.
func replace(t *testing.T, path, old, with string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(raw), old))
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(raw), old, with, 1)), 0o600))
}

func TestRun_RightExpectations_Passes(t *testing.T) {
	dir, jar := specs(t)
	var out bytes.Buffer
	require.NoError(t, run([]string{"-dir", dir, "-jar", jar}, &out), out.String())
	require.Contains(t, out.String(), "3 configurations, 3 as expected, 0 not")
	require.Contains(t, out.String(), "Rises broken after 4 states")
}

func TestRun_WrongExpectation_Fails(t *testing.T) {
	for name, change := range map[string][2]string{
		"holds":        {`"distinct": 3`, `"distinct": 4`},
		"breaks-state": {`"exit": 12`, `"exit": 150`},
		"breaks-step":  {`"violated": "Rises"`, `"violated": "Falls"`},
	} {
		t.Run(name, func(t *testing.T) {
			dir, jar := specs(t)
			replace(t, filepath.Join(dir, "manifest.json"), change[0], change[1])
			var out bytes.Buffer
			require.ErrorIs(t, run([]string{"-dir", dir, "-jar", jar, "-only", name}, &out), errDiffers)
			require.Contains(t, out.String(), "FAIL "+name)
			require.Contains(t, out.String(), "1 configurations, 0 as expected, 1 not")
		})
	}
}

func TestRun_SpecificationDoesNotParse_Fails(t *testing.T) {
	dir, jar := specs(t)
	replace(t, filepath.Join(dir, "Count.tla"), "VARIABLE n", "VARIABLE m")
	var out bytes.Buffer
	require.ErrorIs(t, run([]string{"-dir", dir, "-jar", jar, "-only", "breaks-state"}, &out), errDiffers)
	require.Contains(t, out.String(), "exit 150")
}

func TestRun_StaleConfigurationFile_Fails(t *testing.T) {
	dir, jar := specs(t)
	replace(t, filepath.Join(dir, "cfg", "holds.cfg"), "Top = 2", "Top = 1")
	var out bytes.Buffer
	require.ErrorIs(t, run([]string{"-dir", dir, "-jar", jar, "-only", "holds"}, &out), errDiffers)
	require.Contains(t, out.String(), "run with -write")
}

func TestRun_StaleTable_Fails(t *testing.T) {
	dir, jar := specs(t)
	replace(t, filepath.Join(dir, tableFile), "3 states, depth 3", "4 states, depth 3")
	var out bytes.Buffer
	require.ErrorIs(t, run([]string{"-dir", dir, "-jar", jar, "-only", "holds"}, &out), errDiffers)
}

func TestRun_Write_RecordsWhatWasFound(t *testing.T) {
	dir, jar := specs(t)
	manifestPath := filepath.Join(dir, "manifest.json")
	before, err := os.ReadFile(manifestPath)
	require.NoError(t, err)
	replace(t, manifestPath, `"distinct": 3`, `"distinct": 4`)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cfg", "left.cfg"), nil, 0o600))
	var out bytes.Buffer
	require.NoError(t, run([]string{"-dir", dir, "-jar", jar, "-only", "holds", "-write"}, &out))
	after, err := os.ReadFile(manifestPath)
	require.NoError(t, err)
	require.Equal(t, string(before), string(after))
	require.FileExists(t, filepath.Join(dir, tableFile))
	require.NoFileExists(t, filepath.Join(dir, "cfg", "left.cfg"))
}

func TestLoadManifest_Mistakes_AreRefused(t *testing.T) {
	for name, change := range map[string][2]string{
		"unknown field": {`"about": "Three`, `"abuot": "Three`},
		"unknown module": {`"module": "Count",
      "check": [
        "@all"`, `"module": "Clock",
      "check": [
        "@all"`},
		"name taken twice": {`"name": "holds"`, `"name": "breaks-step"`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.CopyFS(dir, os.DirFS("testdata")))
			path := filepath.Join(dir, "manifest.json")
			replace(t, path, change[0], change[1])
			_, err := loadManifest(path)
			require.ErrorIs(t, err, errManifest)
		})
	}
}

func TestFindJar_NotThere_SaysHowToFetch(t *testing.T) {
	_, err := sany.FindJar(filepath.Join(t.TempDir(), "none.jar"))
	require.ErrorIs(t, err, sany.ErrNoJar)
	require.ErrorContains(t, err, "mvn dependency:get")
}
