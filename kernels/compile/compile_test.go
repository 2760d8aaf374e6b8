package compile_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/kernels"
	"kvfence/kernels/compile"
)

// compilers are those that `make kernels` unpacked or that are installed; a test without its compiler is skipped. Nothing is fetched here.
func compilers(t *testing.T, kind compile.Kind) compile.Compilers {
	t.Helper()
	var c compile.Compilers
	var err error
	if kind == compile.Hsaco {
		err = c.FindHipcc(context.Background())
	} else {
		var there []string
		there, err = filepath.Glob("../../build/cuda/[0-9a-f]*/nvidia")
		require.NoError(t, err)
		if len(there) == 0 {
			t.Skip("nvcc is not in build/cuda (make kernels)")
		}
		err = c.FindNvcc(context.Background(), "../../build/cuda", "../../.ci/cuda.txt")
	}
	if errors.Is(err, compile.ErrNoCompiler) {
		t.Skip(err)
	}
	require.NoError(t, err)
	return c
}

// planted compiles another tagput.cu for one target.
func planted(t *testing.T, target compile.Target, text string) ([]compile.Image, error) {
	t.Helper()
	job := compile.Job{Compilers: compilers(t, target.Kind), Cache: t.TempDir(), Files: map[string][]byte{"tagput.cu": []byte(text)},
		Kernels: []string{kernels.NameTagPut}, Targets: []compile.Target{target}}
	return job.All(context.Background())
}

// spilling keeps an array in a thread that is indexed by what the launch brings: it can only lie in local memory.
const spilling = `#include "compat.h"
KVF_KERNEL(kvf_tagput, kvf_put_args) {
  uint32_t v[64];
  for (uint32_t i = 0; i < 64; i++) v[(i * a.n) % 64] = kvf_load4(a.puts + 4 * i);
  for (uint32_t i = 0; i < 64; i++) kvf_store4(a.tags + 4 * i, v[(i * a.n_tags) % 64]);
}
`

func TestCompile_KernelThatSpills_IsRefusedUnlessListed(t *testing.T) {
	for _, target := range append(compile.Nvidia()[1:], compile.AMD()...) {
		t.Run(target.Arch, func(t *testing.T) {
			images, err := planted(t, target, spilling)
			require.NoError(t, err)
			f := images[0].Figure
			require.ErrorIs(t, compile.Record{}.Spilling([]compile.Figure{f}), compile.ErrFigures)
			require.NoError(t, compile.Record{Spill: []string{kernels.NameTagPut + " " + target.Arch}}.Spilling([]compile.Figure{f}))
		})
	}
}

// Source that one compiler takes is no source: shuffles with masks are not AMD's, nontemporal builtins of AMD's are not NVIDIA's.
func TestCompile_SourceForOneCompilerOnly_IsRefusedByTheOther(t *testing.T) {
	head := "#include \"compat.h\"\nKVF_KERNEL(kvf_tagput, kvf_put_args) { "
	for arch, body := range map[string]string{
		"gfx90a": "kvf_store4(a.tags, __shfl_xor_sync(0xffffffffu, a.n, 1)); }",
		"sm_90":  "kvf_store4(a.tags, __builtin_amdgcn_workgroup_id_x()); }",
	} {
		t.Run(arch, func(t *testing.T) {
			target := compile.Target{Arch: arch, Kind: compile.Cubin}
			if strings.HasPrefix(arch, "gfx") {
				target.Kind = compile.Hsaco
			}
			_, err := planted(t, target, head+body)
			require.ErrorIs(t, err, compile.ErrCompile)
			require.ErrorContains(t, err, arch)
		})
	}
}

func TestCompile_OtherKernelInTheFile_IsRefused(t *testing.T) {
	_, err := planted(t, compile.Target{Arch: "sm_80", Kind: compile.Cubin}, "#include \"compat.h\"\nKVF_KERNEL(kvf_other, kvf_put_args) { kvf_store4(a.tags, a.n); }\n")
	require.ErrorContains(t, err, "speaks of kvf_other")
}

func TestCompile_MissingCompiler_IsNamed(t *testing.T) {
	job := compile.Job{Cache: t.TempDir(), Kernels: []string{kernels.NameTagPut}, Targets: append(compile.Nvidia()[:1], compile.AMD()...)}
	_, err := job.All(context.Background())
	require.ErrorIs(t, err, compile.ErrCompile)
	require.ErrorContains(t, err, "gfx90a: no compiler")
	require.ErrorContains(t, err, "compute_80: no compiler")
}

func TestFindNvcc_WrongHash_IsRefusedAndLeavesNothing(t *testing.T) {
	text, err := os.ReadFile("../../.ci/cuda.txt")
	require.NoError(t, err)
	dir := t.TempDir()
	list := filepath.Join(dir, "cuda.txt")
	// No download is needed to see this one: a requirement without a hash.
	require.NoError(t, os.WriteFile(list, []byte(strings.ReplaceAll(string(text), " --hash=", " # ")), 0o644))
	var c compile.Compilers
	require.ErrorIs(t, c.FindNvcc(context.Background(), filepath.Join(dir, "cuda"), list), compile.ErrNoCompiler)
	left, err := os.ReadDir(filepath.Join(dir, "cuda"))
	require.NoError(t, err)
	require.Empty(t, left)
	require.ErrorIs(t, c.FindNvcc(context.Background(), dir, filepath.Join(dir, "none")), fs.ErrNotExist)
}
