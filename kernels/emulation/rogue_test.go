package emulation_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/kernels"
	"kvfence/kernels/emulation"
)

// rogue starts the emulation with another body in place of kvf_tagput: a.tags is 64 KiB that it may write, a.wants 64 bytes that it may only
// read, a.n a number.
func rogue(t *testing.T, body string) (launch func(grid uint32, n uint32, seed uint64) ([]byte, error)) {
	t.Helper()
	text := "#include \"compat.h\"\nKVF_KERNEL(kvf_tagput, kvf_put_args) {\n" + body + "\n}\n"
	program, err := emulation.Program(emulation.Source{Warp: 32, Files: map[string][]byte{"tagput.cu": []byte(text)}})
	if errors.Is(err, emulation.ErrNoCompiler) {
		t.Skip(err)
	}
	require.NoError(t, err)
	m, err := emulation.Start(context.Background(), program)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	const size = 64 << 10
	memory, err := m.Alloc(size, 0, true)
	require.NoError(t, err)
	fixed, err := m.Alloc(64, 0, false)
	require.NoError(t, err)
	return func(grid, n uint32, seed uint64) ([]byte, error) {
		require.NoError(t, m.Write(memory, make([]byte, size)))
		// The grid that launch.h computes for n entries must be the one asked for.
		_, err := m.Launch(kernels.NameTagPut, grid, &kernels.PutArgs{Tags: memory, Wants: fixed, N: grid * kernels.Threads / 4, NTags: n}, seed)
		out := make([]byte, size)
		require.NoError(t, m.Read(memory, out))
		return out, err
	}
}

func TestEmulation_BrokenRule_EndsTheLaunch(t *testing.T) {
	for name, c := range map[string]struct{ body, says string }{
		"load beyond":       {"kvf_load4(a.wants + 64);", "outside of what the kernel may touch"},
		"load before":       {"kvf_load1(a.tags - 1);", "outside of what the kernel may touch"},
		"load half beyond":  {"kvf_load16(a.wants + 56);", "misaligned"},
		"store to constant": {"kvf_store4(a.wants, 1);", "outside of what the kernel may touch"},
		"misaligned":        {"kvf_store8(a.tags + 4, 1);", "misaligned"},
		"shared beyond":     {"KVF_SHARED(s, 64); KVF_SHARED(next, 64); kvf_shared_store4(next, 0, 1); kvf_shared_load4(s, 64);", "past the end of a shared array"},
		"shared misaligned": {"KVF_SHARED(s, 64); kvf_shared_load8(s, 4);", "misaligned access to shared memory"},
		"shared too large":  {"KVF_SHARED(s, 49153); kvf_shared_load1(s, 0);", "more static shared memory"},
		"not shared":        {"kvf_shared_load4(a.tags, 0);", "no array of this block"},
		"divergent":         {"if (kvf_lane() == 3) kvf_ballot(true); else kvf_sync_warp();", "different operations"},
		"divergent barrier": {"if (kvf_lane() == 3) kvf_sync_block(); else kvf_sync_warp();", "different operations"},
		"other masks":       {"kvf_shuffle_xor32(1, kvf_lane() < 16 ? 1 : 2);", "different operations"},
		"lane that left":    {"if (kvf_lane() == 3) return; kvf_sync_warp();", "left"},
		"no such lane":      {"kvf_shuffle32(1, 32);", "from a lane that the warp does not have"},
		"half a barrier":    {"KVF_SHARED(s, 16); if (kvf_warp() == 0) for (;;) kvf_shared_store4(s, 0, 1); kvf_sync_block();", "does not end"},
		"atomic beyond":     {"kvf_atomic_add(a.tags + 65536, 1);", "outside of what the kernel may touch"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := rogue(t, c.body)(2, 0, 1)
			require.ErrorIs(t, err, emulation.ErrKernel)
			require.ErrorContains(t, err, c.says)
		})
	}
}

// litmus runs a body that stores 1 at tags+4096 where it saw an order that it should not, for many schedules.
func litmus(t *testing.T, body string) (seen int) {
	launch := rogue(t, body)
	for seed := range uint64(300) {
		out, err := launch(2, 0, seed)
		require.NoError(t, err, "seed %d", seed)
		if out[4096] != 0 {
			seen++
		}
	}
	return seen
}

func TestEmulation_Order_NeedsItsFence(t *testing.T) {
	block := func(sync string) string {
		return "KVF_SHARED(s, 1024); kvf_shared_store4(s, 4 * kvf_thread(), 7); " + sync + " if (kvf_shared_load4(s, 4 * ((kvf_thread() + 33) % KVF_THREADS)) != 7) kvf_store4(a.tags + 4096, 1);"
	}
	warp := func(sync string) string {
		return "KVF_SHARED(s, 1024); kvf_shared_store4(s, 4 * kvf_thread(), 7); " + sync + " if (kvf_shared_load4(s, 4 * (kvf_thread() ^ 1)) != 7) kvf_store4(a.tags + 4096, 1);"
	}
	message := func(fence string) string { // block 0 stores, then says so; block 1 believes it
		return "if (kvf_thread() != 0) return; if (kvf_block() == 0) { kvf_store8(a.tags, 7); " + fence + " kvf_atomic_add(a.tags + 512, 1); return; }" +
			" if (kvf_load4_fresh(a.tags + 512) != 0 && kvf_load8_fresh(a.tags) != 7) kvf_store4(a.tags + 4096, 1);"
	}
	for name, c := range map[string]struct{ without, with string }{
		"block": {block(""), block("kvf_sync_block();")}, "block by warps": {block("kvf_sync_warp();"), block("kvf_sync_block();")},
		"warp": {warp(""), warp("kvf_sync_warp();")}, "warp by a shuffle": {warp("kvf_shuffle32(1, 0);"), warp("kvf_shuffle32(1, 0); kvf_sync_warp();")},
		"message": {message(""), message("kvf_fence_device();")}, "message by the wider fence": {message(""), message("kvf_fence_system();")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NotZero(t, litmus(t, c.without), "the wrong order never showed")
			require.Zero(t, litmus(t, c.with))
		})
	}
}

// A fence is cumulative: what the other lanes stored before sync_warp goes with it.
func TestEmulation_FenceOfOneLane_CarriesItsWarp(t *testing.T) {
	body := func(sync string) string {
		return "uint32_t k = kvf_thread(); if (kvf_block() == 0) { kvf_store8(a.tags + 8 * k, 7); " + sync +
			" if (kvf_lane() == 0) { kvf_fence_device(); kvf_atomic_add(a.tags + 8192, 1); } return; }" +
			" if (kvf_load4_fresh(a.tags + 8192) == KVF_WARPS && kvf_load8_fresh(a.tags + 8 * k) != 7) kvf_store4(a.tags + 4096, 1);"
	}
	require.NotZero(t, litmus(t, body("")))
	require.Zero(t, litmus(t, body("kvf_sync_warp();")))
}

func TestEmulation_SameSeed_SameRun(t *testing.T) {
	launch := rogue(t, "kvf_store4(a.tags + 4 * kvf_atomic_add(a.tags + 32768, 1), kvf_block() * KVF_THREADS + kvf_thread());")
	first, err := launch(3, 0, 5)
	require.NoError(t, err)
	again, err := launch(3, 0, 5)
	require.NoError(t, err)
	require.Equal(t, first, again)
	other, err := launch(3, 0, 6)
	require.NoError(t, err)
	require.NotEqual(t, first, other)
}

func TestEmulation_Library_Links(t *testing.T) {
	for _, warp := range []int{32, 64} {
		path, err := emulation.Library(emulation.Source{Warp: warp})
		if errors.Is(err, emulation.ErrNoCompiler) {
			t.Skip(err)
		}
		require.NoError(t, err)
		require.FileExists(t, path)
	}
}
