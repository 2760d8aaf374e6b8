package compile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/kernels"
	"kvfence/kernels/compile"
)

func TestRecord_Figures_CoverEachKernelOnEachArchitecture(t *testing.T) {
	r, err := compile.LoadRecord("figures.json")
	require.NoError(t, err)
	var arch []string
	for _, target := range append(compile.Nvidia()[1:], compile.AMD()...) {
		arch = append(arch, target.Arch)
	}
	require.Len(t, r.Figures, len(kernels.Names())*len(arch))
	require.NoError(t, r.Spilling(r.Figures))
	require.NoError(t, r.Drift(r.Figures, arch))
	for _, f := range r.Figures {
		require.Contains(t, kernels.Names(), f.Kernel)
		require.Contains(t, arch, f.Arch)
		require.Positive(t, f.Registers)
	}
}

func TestRecord_ListOfSpills_NamesOnlyWhatSpills(t *testing.T) {
	r, err := compile.LoadRecord("figures.json")
	require.NoError(t, err)
	spills := []string{}
	for _, f := range r.Figures {
		if f.Spills > 0 || f.Stack > 0 {
			spills = append(spills, f.Kernel+" "+f.Arch)
		}
	}
	require.ElementsMatch(t, spills, r.Spill, "a listed kernel that no longer spills leaves the list")
}

func TestRecord_Drift_IsRefusedEitherWay(t *testing.T) {
	was := compile.Figure{Kernel: "k", Arch: "a", Registers: 10, Shared: 5}
	r := compile.Record{Figures: []compile.Figure{was, {Kernel: "k", Arch: "other"}}}
	require.NoError(t, r.Drift([]compile.Figure{was}, []string{"a"}))
	for name, now := range map[string][]compile.Figure{
		"more registers": {{Kernel: "k", Arch: "a", Registers: 11, Shared: 5}},
		"fewer":          {{Kernel: "k", Arch: "a", Registers: 9, Shared: 5}},
		"missing":        {},
		"new":            {was, {Kernel: "new", Arch: "a"}},
	} {
		require.ErrorIs(t, r.Drift(now, []string{"a"}), compile.ErrFigures, name)
	}
}

func TestRecord_Text_ReadsBackTheSame(t *testing.T) {
	r, err := compile.LoadRecord("figures.json")
	require.NoError(t, err)
	text, err := r.Text()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "figures.json")
	require.NoError(t, os.WriteFile(path, text, 0o644))
	again, err := compile.LoadRecord(path)
	require.NoError(t, err)
	require.Equal(t, r, again)
	kept, err := os.ReadFile("figures.json")
	require.NoError(t, err)
	require.Equal(t, string(kept), string(text))
}
