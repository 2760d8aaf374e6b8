package workload

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSample_Greedy_TakesTheTopAndTheSmallerIdOnATie(t *testing.T) {
	require.Equal(t, int32(2), Sample([]float32{0, 1, 3, 3}, Sampling{}, 5))
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	require.Equal(t, int32(1), Sample([]float32{nan, -2, inf}, Sampling{}, 0))
	require.Equal(t, int32(0), Sample([]float32{nan, nan}, Sampling{Temperature: 1}, 0))
	require.Equal(t, int32(0), Sample([]float32{nan, -inf}, Sampling{}, 0))
}

func TestSample_Temperature_FollowsTheDistributionAndTheSeed(t *testing.T) {
	logits := []float32{float32(math.Log(0.7)), float32(math.Log(0.2)), float32(math.Log(0.1))}
	counts := [3]int{}
	for pos := range 20000 {
		s := Sampling{Temperature: 1, Seed: 42}
		id := Sample(logits, s, pos)
		require.Equal(t, id, Sample(logits, s, pos))
		counts[id]++
	}
	require.InDelta(t, 14000, counts[0], 400)
	require.InDelta(t, 4000, counts[1], 400)
	require.InDelta(t, 2000, counts[2], 400)
	for pos := range 2000 {
		require.NotEqual(t, int32(2), Sample(logits, Sampling{Temperature: 1, TopP: 0.85, Seed: 1}, pos), "outside the nucleus")
		require.Equal(t, int32(0), Sample(logits, Sampling{Temperature: 1, TopP: 0.5, Seed: 1}, pos))
	}
}

func TestLogprobs_AddUpToOne(t *testing.T) {
	logits := []float32{1, 2, 3, -4, float32(math.NaN())}
	lp, top := Logprobs(logits, 0, 4)
	require.Len(t, top, 4)
	require.Equal(t, int32(2), top[0].ID)
	sum := 0.0
	for _, x := range top {
		sum += math.Exp(float64(x.Logprob))
	}
	require.InDelta(t, 1, sum, 1e-6)
	require.Equal(t, top[2].Logprob, lp)
	lp, _ = Logprobs(logits, 4, 0)
	require.Equal(t, float32(-1e4), lp)
	lp, top = Logprobs([]float32{float32(math.NaN())}, 0, 3)
	require.Equal(t, float32(-1e4), lp)
	require.Empty(t, top)
}

func TestFixmath_AgreesWithTheLibrary(t *testing.T) {
	for x := -690.0; x <= 0; x += 0.37 {
		require.InEpsilon(t, math.Exp(x), exp(x), 1e-13)
	}
	for x := float32(-79); x <= 0; x += 0.0137 {
		require.InEpsilon(t, math.Exp(float64(x)), float64(fastExp(x)), 1e-6)
	}
	require.Equal(t, float32(1), fastExp(0))
	require.Zero(t, fastExp(-90)+fastExp(float32(math.NaN())))
	require.Zero(t, exp(-1e9))
	require.Zero(t, exp(math.NaN()))
	for x := 1e-6; x < 1e6; x *= 1.013 {
		require.InDelta(t, math.Log(x), log(x), 1e-12)
	}
	for phase := uint64(0); phase < 1<<32; phase += 999983 {
		a := float64(phase) / (1 << 32) * 2 * math.Pi
		require.InDelta(t, math.Sin(a), float64(sinTurn(uint32(phase))), 1e-6)
		require.InDelta(t, math.Cos(a), float64(cosTurn(uint32(phase))), 1e-6)
	}
}

func TestStopHit_ComparesTheTail(t *testing.T) {
	require.True(t, StopHit([]int32{1, 2, 3}, [][]int32{{9}, {2, 3}}))
	require.False(t, StopHit([]int32{1, 2, 3}, [][]int32{{2}, {}, {0, 1, 2, 3}}))
	require.False(t, StopHit(nil, [][]int32{{}}))
}

func TestTokens_RoundTripAllBytes(t *testing.T) {
	var all []byte
	for i := range 256 {
		all = append(all, byte(i))
	}
	ids := Encode(string(all))
	require.Len(t, ids, 256)
	require.Equal(t, all, Decode(append(ids, BOS, EOS)))
	require.Nil(t, TokenBytes(EOS))
	require.Nil(t, TokenBytes(-1))
}
