package rig

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func read(t *testing.T, lines ...string) (r Results, err error) {
	err = r.Read("x", strings.NewReader(strings.Join(lines, "\n")+"\n"))
	return r, err
}

func TestResults_PassingRun_CountsTestsAndFigures(t *testing.T) {
	r, err := read(t, "=== RUN   TestA", "figure: fence_ms 1.5 ms", "--- PASS: TestA (0.1s)", "=== RUN   TestB", "=== RUN   TestB/sub", "--- PASS: TestB (0.2s)", "    --- PASS: TestB/sub (0.2s)", "PASS")
	require.NoError(t, err)
	require.Equal(t, []string{"x.TestA", "x.TestB"}, r.Passed)
	require.Equal(t, []Figure{{"fence_ms", "1.5", "ms"}}, r.Figures)
	require.NoError(t, r.Judge())
}

func TestResults_WhatMustBeRefused(t *testing.T) {
	for name, lines := range map[string][]string{
		"a failure":         {"=== RUN   TestA", "boom", "--- FAIL: TestA (0.1s)", "FAIL"},
		"a skip":            {"--- SKIP: TestA (0.0s)", "--- PASS: TestB (0.0s)", "PASS"},
		"a skipped subtest": {"--- PASS: TestB (0.0s)", "    --- SKIP: TestB/windows (0.0s)", "PASS"},
		"nothing run":       {"testing: warning: no tests to run", "PASS"},
	} {
		r, err := read(t, lines...)
		require.NoError(t, err, name)
		require.Error(t, r.Judge(), name)
	}
}

func TestResults_NoClosingLine_IsRefused(t *testing.T) {
	for name, lines := range map[string][]string{
		"killed":   {"=== RUN   TestA", "=== RUN   TestB"},
		"panicked": {"=== RUN   TestA", "panic: test timed out after 1m0s"},
		"empty":    {""},
	} {
		_, err := read(t, lines...)
		require.ErrorIs(t, err, ErrNoVerdict, name)
	}
}

func TestResults_Output_IsKeptByTest(t *testing.T) {
	r, err := read(t, "=== RUN   TestA", "why", "--- FAIL: TestA (0.1s)", "FAIL")
	require.NoError(t, err)
	require.Contains(t, r.Output["x.TestA"], "why")
}
