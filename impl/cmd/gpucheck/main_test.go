package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/impl/gpucheck"
)

func TestFinish_NoCard_LeavesNoPage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gpu")
	require.Error(t, finish([]gpucheck.Result{{Section: "kernels", Failed: []string{"no CUDA driver"}}}, gpucheck.Options{}, dir))
	_, err := os.Stat(dir)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, finish([]gpucheck.Result{{Section: "kernels", Card: "Some Card, sm_90", Checks: 1}}, gpucheck.Options{}, dir))
	pages, err := filepath.Glob(filepath.Join(dir, "some-card-*.md"))
	require.NoError(t, err)
	require.Len(t, pages, 1)
}
