package kernels_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kvfence/kernels"
	"kvfence/kernels/check"
	"kvfence/kernels/emulation"
)

// long is how many times as many cases as usual; the larger ones among them.
var long = flag.Int("kernels.long", 1, "run this many times as many cases")

// start is the emulation with warps of this many lanes, for one test.
func start(t *testing.T, warp int) *emulation.Machine {
	t.Helper()
	program, err := emulation.Program(emulation.Source{Warp: warp})
	if errors.Is(err, emulation.ErrNoCompiler) {
		t.Skip(err)
	}
	require.NoError(t, err)
	m, err := emulation.Start(context.Background(), program)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	got, err := m.Warp()
	require.NoError(t, err)
	require.Equal(t, uint32(warp), got)
	return m
}

// rapidDraw draws a case from a property test.
type rapidDraw struct{ t *rapid.T }

func (d rapidDraw) Int(lo, hi int, what string) int { return rapid.IntRange(lo, hi).Draw(d.t, what) }

func eachWarp(t *testing.T, f func(t *testing.T, warp int)) {
	for _, warp := range []int{32, 64} {
		t.Run("warp "+strconv.Itoa(warp), func(t *testing.T) {
			t.Parallel()
			f(t, warp)
		})
	}
}

func TestKernels_AnyCase_EqualTheReference(t *testing.T) {
	eachWarp(t, func(t *testing.T, warp int) {
		for _, name := range kernels.Names() {
			t.Run(name, func(t *testing.T) {
				m := start(t, warp)
				rapid.Check(t, func(t *rapid.T) { require.NoError(t, check.All()[name](m, rapidDraw{t}, false)) })
			})
		}
	})
}

func TestKernels_LargeCases_EqualTheReference(t *testing.T) {
	eachWarp(t, func(t *testing.T, warp int) {
		m := start(t, warp)
		for _, name := range kernels.Names() {
			for seed := range 4 * *long {
				require.NoError(t, check.All()[name](m, check.NewRandom(uint64(seed)), true), "%s, seed %d", name, seed)
			}
		}
	})
}

func TestKernels_DigestVectors_AreReproduced(t *testing.T) {
	in, err := os.ReadFile("../spec/testdata/digest_vectors.json")
	require.NoError(t, err)
	var vectors []struct {
		Name      string `json:"name"`
		Component uint32 `json:"component"`
		TokenLo   uint32 `json:"token_lo"`
		TokenHi   uint32 `json:"token_hi"`
		Used      uint32 `json:"used_bytes"`
		Seed      uint64 `json:"seed"`
		Digest    string `json:"digest"`
	}
	require.NoError(t, json.Unmarshal(in, &vectors))
	require.NotEmpty(t, vectors)
	eachWarp(t, func(t *testing.T, warp int) {
		m := start(t, warp)
		for _, v := range vectors {
			b := make([]byte, v.Used)
			for i := range b {
				x := uint64(i)
				b[i] = byte((x*x*31 + x*7 + v.Seed) % 251)
			}
			got, err := check.DigestOf(m, b, kernels.Item{Component: v.Component, TokenLo: v.TokenLo, TokenHi: v.TokenHi})
			require.NoError(t, err)
			require.Equal(t, v.Digest, fmt.Sprintf("%016x", got), v.Name)
		}
	})
}
