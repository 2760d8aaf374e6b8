package fuzz

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// canary builds the canary with the engine's instrumentation, as go test -fuzz does, to be run in a folder of its own: what it finds
// must not come into the repository.
func canary(t *testing.T) (run func(args ...string) (string, error)) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	dir := t.TempDir()
	bin := filepath.Join(dir, "canary.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-fuzz=.", "-o", bin, "./testdata/canary")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return func(args ...string) (string, error) {
		c := exec.CommandContext(t.Context(), bin, append(args, "-test.fuzzminimizetime=1s", "-test.parallel=1", "-test.fuzzcachedir="+filepath.Join(dir, "cache"))...)
		c.Dir = dir
		out, err := c.CombinedOutput()
		return string(out), err
	}
}

// A fuzz engine that finds nothing would let every target pass.
func TestCanary_PlantedBug_IsFound(t *testing.T) {
	run := canary(t)
	out, err := run("-test.run=^$", "-test.fuzz=^FuzzPlanted$", "-test.fuzztime=60s")
	require.Error(t, err, "the fuzz engine did not find the planted bug:\n%s", out)
	require.Contains(t, out, "index out of range [4] with length 4")
	require.Contains(t, out, "Failing input written to testdata/fuzz/FuzzPlanted/")
	out, err = run("-test.run=^FuzzPlanted$")
	require.Error(t, err, "the input that failed was not kept, or does not fail again:\n%s", out)
	out, err = run("-test.run=^FuzzSound$", "-test.fuzz=^FuzzSound$", "-test.fuzztime=2s")
	require.NoError(t, err, "without the bug there is nothing to find:\n%s", out)
	require.Contains(t, out, "PASS")
}
