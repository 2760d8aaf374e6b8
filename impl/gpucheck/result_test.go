package gpucheck

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMedianInterval_TwentyOne_IsTheSixthFromEachEnd(t *testing.T) {
	var v []float64
	for i := 21; i > 0; i-- {
		v = append(v, float64(i))
	}
	low, mid, high := medianInterval(v) // binomial: P(X <= 5) = 1.3 %, P(X <= 6) = 3.9 %
	require.Equal(t, []float64{6, 11, 16}, []float64{low, mid, high})
	low, mid, high = medianInterval([]float64{3})
	require.Equal(t, []float64{3, 3, 3}, []float64{low, mid, high})
}

func TestReport_Goals_AreJudgedOnACardOnly(t *testing.T) {
	var r Result
	r.Card = "NVIDIA H200, sm_90"
	r.goal("fast", 90, "%", ">=", 85)
	r.goal("slow", 21, "us", "<=", 20)
	at := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	page := Report([]Result{r}, false, at, time.Minute)
	require.Contains(t, page, "| fast | 90 % | >= 85 %, met |")
	require.Contains(t, page, "| slow | 21 us | <= 20 us, **missed** |")
	require.Contains(t, Report([]Result{r}, true, at, time.Minute), "not judged")
	require.Equal(t, "nvidia-h200-2026-12-01.md", FileName([]Result{r}, at))
}

func TestOutcome_WhatASectionLeaves_IsRead(t *testing.T) {
	require.Equal(t, 3, outcome("=== banner\n{\"Checks\":3}\n=== ERROR SUMMARY", "", nil).Checks)
	require.Equal(t, []string{"the section said nothing"}, outcome("nothing", "", nil).Failed)
	require.Equal(t, []string{"killed by x"}, outcome("", "by x", errors.New("killed")).Failed)
	require.True(t, Failed(nil))
}

func TestPage_EachNumber_IsAPermutation(t *testing.T) {
	for _, n := range []uint32{1, 2, 7, 64} {
		seen := map[uint32]bool{}
		for i := range n {
			require.Less(t, page(i, n), n)
			seen[page(i, n)] = true
		}
		require.Len(t, seen, int(n))
	}
}
