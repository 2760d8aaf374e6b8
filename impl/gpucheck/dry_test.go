//go:build cuda

package gpucheck_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvfence/impl/device/cuda/driver/fake"
	"kvfence/impl/gpucheck"
	"kvfence/kernels"
	"kvfence/kernels/emulation"
	"kvfence/kernels/plants"
)

// dry are the options of a run against the fake driver with these kernels.
func dry(t *testing.T, s emulation.Source, only ...string) gpucheck.Options {
	t.Helper()
	library, err := fake.Build(t.TempDir(), s)
	if errors.Is(err, emulation.ErrNoCompiler) {
		t.Skip(err)
	}
	require.NoError(t, err)
	return gpucheck.Options{Driver: library, Dry: true, Limit: time.Minute, Only: only, Out: t.Output()}
}

// sanitizer is a program in compute-sanitizer's place: it runs what it is given, and notes its tool.
func sanitizer(t *testing.T, exit string) (path, log string) {
	dir := t.TempDir()
	path, log = filepath.Join(dir, "sanitizer"), filepath.Join(dir, "log")
	text := "#!/bin/sh\necho \"$2\" >>" + log + "\necho '========= COMPUTE-SANITIZER'\nshift 4\n\"$@\" || exit 8\necho '========= ERROR SUMMARY'\nexit " + exit + "\n"
	require.NoError(t, os.WriteFile(path, []byte(text), 0o755))
	return path, log
}

func TestDryRun_EachSection_RunsAndHoldsItsChecks(t *testing.T) {
	o := dry(t, emulation.Source{Warp: 32})
	tool, log := sanitizer(t, "0")
	o.Sanitizer = tool
	results := gpucheck.Run(context.Background(), o)
	var names []string
	for _, r := range results {
		names = append(names, r.Section)
		require.Empty(t, r.Failed, r.Section)
		require.Empty(t, r.Skipped, r.Section)
		require.Positive(t, r.Checks, r.Section)
		require.Contains(t, r.Card, "fake")
	}
	require.Equal(t, gpucheck.Names(), names)
	said, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Equal(t, "memcheck\nracecheck\n", string(said))
	page := gpucheck.Report(results, true, time.Now(), o.Limit)
	require.Contains(t, page, "Dry run against a fake driver: no GPU.")
	require.Contains(t, page, "a write through the mapping was refused")
	require.NotContains(t, page, "met")
	require.True(t, strings.HasPrefix(gpucheck.FileName(results, time.Now()), "fake-20"))
	require.False(t, gpucheck.Failed(results))
}

func TestDryRun_PlantedKernelBug_FailsItsSection(t *testing.T) {
	for _, p := range plants.All() {
		if p.Kernel != kernels.NameTagVerify || p.Warp == 64 {
			continue
		}
		s, err := p.Source()
		require.NoError(t, err)
		results := gpucheck.Run(context.Background(), dry(t, s, "kernels", "verify"))
		if gpucheck.Failed(results) {
			return // the small cases of a dry run need not see each bug; kernels/plants shows that each can be seen
		}
	}
	t.Fatal("no planted bug was seen")
}

func TestDryRun_SanitizerThatFindsSomething_Fails(t *testing.T) {
	o := dry(t, emulation.Source{Warp: 32}, "memcheck")
	o.Sanitizer, _ = sanitizer(t, "9")
	results := gpucheck.Run(context.Background(), o)
	require.Len(t, results, 1)
	require.Contains(t, results[0].Failed[0], "exit status 9")
}

// Sizes for a card take hours on the fake: the limit must end a section that is inside one call, and leave a page.
func TestRun_LimitInsideASection_EndsItAndTheRest(t *testing.T) {
	o := dry(t, emulation.Source{Warp: 32}, "bandwidth", "verify")
	o.Dry, o.Limit = false, 1500*time.Millisecond
	began := time.Now()
	results := gpucheck.Run(context.Background(), o)
	require.Less(t, time.Since(began), 30*time.Second)
	require.Len(t, results, 2)
	require.Contains(t, results[0].Failed[0], "over its limit of 1.5s")
	require.Contains(t, results[1].Skipped, "the check's time was over")
	require.Contains(t, gpucheck.Report(results, false, began, o.Limit), "**failed**")
}

func TestRun_DriverLibraryThatIsNone_IsNamed(t *testing.T) {
	o := dry(t, emulation.Source{Warp: 32}, "kernels")
	beside := filepath.Join(filepath.Dir(o.Driver), "libkvfemulation.so")
	o.Driver = "/nonexistent/libcuda.so"
	require.Contains(t, gpucheck.Run(context.Background(), o)[0].Failed[0], "no CUDA driver: /nonexistent")
	o.Driver = beside
	require.Contains(t, gpucheck.Run(context.Background(), o)[0].Failed[0], "it has no cuInit")
}
