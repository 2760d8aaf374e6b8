package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/kernels"
	"kvfence/kernels/compile"
	"kvfence/kernels/images"
)

// tree is a root with empty folders for images.
func tree(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for _, d := range []string{"ptx", "cubin"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, "kernels", "images", d), 0o755))
	}
	return root
}

func made(ptx string) []compile.Image {
	return []compile.Image{
		{Kernel: kernels.NameDigest, Target: compile.Nvidia()[0], Bytes: []byte(ptx)},
		{Kernel: kernels.NameDigest, Target: compile.Nvidia()[1], Bytes: []byte("cubin")},
	}
}

func TestKeep_PTXOfOtherSources_IsRefusedAndNoCubinIsBelieved(t *testing.T) {
	root := tree(t)
	w := work{root: root, write: true}
	require.NoError(t, w.keep(made("one")))
	w.write = false
	require.NoError(t, w.keep(made("one")))
	sources := filepath.Join(root, "kernels", "images", "cubin", "sources")
	b, err := os.ReadFile(sources)
	require.NoError(t, err)
	sum, err := images.SourceSum()
	require.NoError(t, err)
	require.Equal(t, sum+"\n", string(b))

	require.ErrorIs(t, w.keep(made("two")), errPTX)
	_, err = os.Stat(sources)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.Remove(filepath.Join(root, "kernels", "images", "ptx", "digest.ptx")))
	require.ErrorIs(t, w.keep(made("one")), errPTX, "missing")
}

func TestCompile_RefusalOfACompiler_IsAFailure(t *testing.T) {
	w := work{root: tree(t)}
	w.compile(context.Background(), compile.Compilers{Hipcc: "/nonexistent/hipcc", HipccVersion: "0"}, compile.AMD())
	require.Equal(t, 1, w.failed)
	require.Zero(t, w.passed)
}

func TestDrift_FiguresOfAnotherCompiler_AreNotCompared(t *testing.T) {
	f := compile.Figure{Kernel: "k", Arch: "gfx90a", Registers: 4}
	w := work{record: compile.Record{Hipcc: "1", Figures: []compile.Figure{f}}}
	other := f
	other.Registers++
	w.drift(compile.Compilers{HipccVersion: "2"}, compile.AMD(), []compile.Figure{other}, []string{"gfx90a"})
	require.Equal(t, []int{0, 0, 1}, []int{w.passed, w.failed, w.skipped})
	w.drift(compile.Compilers{HipccVersion: "1"}, compile.AMD(), []compile.Figure{other}, []string{"gfx90a"})
	require.Equal(t, []int{0, 1, 1}, []int{w.passed, w.failed, w.skipped})
	w.drift(compile.Compilers{HipccVersion: "1"}, compile.AMD(), []compile.Figure{f}, []string{"gfx90a"})
	require.Equal(t, []int{1, 1, 1}, []int{w.passed, w.failed, w.skipped})
}
