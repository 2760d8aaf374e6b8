package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// simulated runs kvfence simulate and gives its exit code and output.
func simulated(t *testing.T, args ...string) (int, string) {
	t.Helper()
	var out bytes.Buffer
	c := command(t, append([]string{"simulate"}, args...)...)
	c.Stdout, c.Stderr = &out, &out
	_ = c.Run() // its status is judged
	return c.ProcessState.ExitCode(), out.String()
}

func hashOf(t *testing.T, out string) string {
	t.Helper()
	_, hash, ok := strings.Cut(out, "hash ")
	require.True(t, ok, out)
	return strings.TrimSpace(hash)
}

func TestSimulate_ShardsMerge_ToTheHashOfOneMachine(t *testing.T) {
	dir := t.TempDir()
	code, out := simulated(t, "--seeds", "3-14", "--workers", "1")
	require.Equal(t, exitOK, code, out)
	want := hashOf(t, out)
	code, out = simulated(t, "--from=3", "--count=12", "--follow=0")
	require.Equal(t, exitOK, code, out)
	require.Equal(t, want, hashOf(t, out), "being followed changes nothing")

	files := []string{filepath.Join(dir, "0.json"), filepath.Join(dir, "1.json")}
	code, out = simulated(t, "--seeds", "3-14", "--shard", "0/2", "--out", files[0])
	require.Equal(t, exitOK, code, out)
	t.Setenv("JOB_COMPLETION_INDEX", "1")
	code, out = simulated(t, "--seeds", "3-14", "--shards", "2", "--out", files[1])
	require.Equal(t, exitOK, code, out)
	code, out = simulated(t, append([]string{"--merge"}, files...)...)
	require.Equal(t, exitOK, code, out)
	require.Equal(t, want, hashOf(t, out))

	code, out = simulated(t, "--merge", files[1])
	require.Equal(t, exitUsage, code, out)
	require.Contains(t, out, "shard 0 is missing")
	for _, bad := range [][]string{{"--merge"}, {"x.json"}, {"--merge", "no-such-file"}, {"--seeds", "9-3"}, {"--shard", "2/2"}, {"--script", "no-such-file"}} {
		code, out = simulated(t, bad...)
		require.Equal(t, exitUsage, code, "%v: %s", bad, out)
	}
}

func TestSimulate_SeedsAndScripts_EndAsTheySay(t *testing.T) {
	code, out := simulated(t, "--seed", "7", "--trace")
	require.Equal(t, exitOK, code, out)
	require.Contains(t, out, "says spec.Connect")
	scenario := filepath.Join("..", "..", "sim", "testdata", "scenarios", "plant-seal-early.yaml")
	code, out = simulated(t, "--script", scenario)
	require.Equal(t, exitOK, code, out)
	require.Contains(t, out, "as expected: I3")

	text, err := os.ReadFile(scenario)
	require.NoError(t, err)
	other := filepath.Join(t.TempDir(), "kept.yaml")
	require.NoError(t, os.WriteFile(other, bytes.Replace(text, []byte("expect: I3"), []byte("expect: kept"), 1), 0o600))
	code, out = simulated(t, "--script", other)
	require.Equal(t, exitFailed, code, out)
	require.Contains(t, out, "reads foreign bytes")
	require.NoError(t, os.WriteFile(other, []byte("kvfence-scenario: 9\n"), 0o600))
	code, out = simulated(t, "--script", other)
	require.Equal(t, exitUsage, code, out)
}

// The Job of the documentation is one that this program understands.
func TestSimulate_JobManifest_IsIndexedAndItsFlagsAreKnown(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "simulation-job.yaml"))
	require.NoError(t, err)
	var job struct {
		Kind string
		Spec struct {
			CompletionMode           string `yaml:"completionMode"`
			Completions, Parallelism int
			Template                 struct {
				Spec struct {
					RestartPolicy string `yaml:"restartPolicy"`
					Containers    []struct {
						Image   string
						Command []string
						Env     []struct{ Name string }
					}
				}
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &job))
	require.Equal(t, "Job", job.Kind)
	require.Equal(t, "Indexed", job.Spec.CompletionMode)
	require.Equal(t, "Never", job.Spec.Template.Spec.RestartPolicy)
	require.Len(t, job.Spec.Template.Spec.Containers, 1)
	c := job.Spec.Template.Spec.Containers[0]
	require.Equal(t, []string{"kvfence", "simulate"}, c.Command[:2])
	require.Equal(t, "JOB_COMPLETION_INDEX", c.Env[0].Name)
	flags := simulateCommand().Flags()
	require.NoError(t, flags.Parse(c.Command[2:]))
	shards, err := flags.GetInt("shards")
	require.NoError(t, err)
	require.Equal(t, job.Spec.Completions, shards)
	require.Equal(t, job.Spec.Completions, job.Spec.Parallelism)
}
