package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/impl/sim"
	"kvfence/spec"
)

// traceOf writes the trace of one seed of the simulator, each line as alter leaves it.
func traceOf(t *testing.T, alter func(l *spec.TraceLine)) string {
	path := filepath.Join(t.TempDir(), "run.ndjson")
	f, err := os.Create(path)
	require.NoError(t, err)
	defer f.Close()
	enc := json.NewEncoder(f)
	_, err = sim.Run(1, func(c *sim.Config) {
		c.Line = func(l *spec.TraceLine) error {
			alter(l)
			return enc.Encode(l)
		}
	})
	require.NoError(t, err)
	return path
}

func TestCheck_ExitStatus_SaysWhatWasFound(t *testing.T) {
	good := traceOf(t, func(*spec.TraceLine) {})
	require.Equal(t, exitOK, run([]string{"check", "--strict", good}))
	require.Equal(t, exitOK, run([]string{"check", "--json", good}))
	bad := traceOf(t, func(l *spec.TraceLine) {
		for i := range l.Did {
			if l.Did[i].Name == "Take" {
				l.Did[i].Receipt = "gone"
			}
		}
	})
	require.Equal(t, exitFailed, run([]string{"check", bad}))
	torn := filepath.Join(t.TempDir(), "torn.ndjson")
	text, err := os.ReadFile(good)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(torn, text[:len(text)-9], 0o600))
	require.Equal(t, exitUsage, run([]string{"check", torn}))
	require.Equal(t, exitUsage, run([]string{"check", filepath.Join(t.TempDir(), "none")}))
	require.Equal(t, exitUsage, run([]string{"check"}))
}
