package plants_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/kernels"
	"kvfence/kernels/check"
	"kvfence/kernels/emulation"
	"kvfence/kernels/plants"
)

// seeds is how many cases a plant has to show itself; each plant takes far fewer.
const seeds = 400

func run(t *testing.T, p plants.Plant) (int, error) {
	t.Helper()
	s, err := p.Source()
	require.NoError(t, err)
	program, err := emulation.Program(s)
	if errors.Is(err, emulation.ErrNoCompiler) {
		t.Skip(err)
	}
	require.NoError(t, err)
	m, err := emulation.Start(context.Background(), program)
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	return p.Seen(m, seeds)
}

func TestPlants_EachBug_IsSeen(t *testing.T) {
	names := map[string]bool{}
	for _, p := range plants.All() {
		require.False(t, names[p.Name], p.Name)
		names[p.Name] = true
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			seed, err := run(t, p)
			require.Error(t, err, "not seen by %d cases", seed)
			require.True(t, errors.Is(err, check.ErrDiffers) || errors.Is(err, emulation.ErrKernel), "%v", err)
			t.Logf("seed %d: %v", seed, err)
		})
	}
	require.GreaterOrEqual(t, len(names), 60)
}

func TestPlants_NoBug_IsNotSeen(t *testing.T) {
	for _, warp := range []int{32, 64} {
		_, err := run(t, plants.Plant{Name: "none", File: "item.h", From: "/* The tag of the item,", To: "/* The item's tag,", Kernel: kernels.NameScatter, Warp: warp})
		require.NoError(t, err)
	}
}

func TestPlants_StaleText_IsRefused(t *testing.T) {
	for _, p := range []plants.Plant{
		{File: "item.h", From: "no such text"}, {File: "item.h", From: "kvf_fence_device"}, {File: "item.h", From: "(1) */", To: "(1) */"}, {File: "item.h"},
	} {
		_, err := p.Source()
		require.ErrorIs(t, err, plants.ErrStale, "%q", p.From)
	}
	_, err := plants.Plant{File: "none.cu", From: "x"}.Source()
	require.Error(t, err)
}
