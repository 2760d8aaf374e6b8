package sim

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

func many(t *testing.T, p Plan) Result {
	t.Helper()
	r, err := Many(t.Context(), p)
	require.NoError(t, err)
	require.True(t, r.Whole)
	require.Empty(t, r.Violations)
	return r
}

// The same seeds have the same result on one worker, on three, and on three machines that share them.
func TestMany_WorkersAndMachines_ChangeNothing(t *testing.T) {
	one := many(t, Plan{From: 5, Count: 25, Workers: 1})
	require.Equal(t, uint64(25), one.Seeds)
	require.Equal(t, one, many(t, Plan{From: 5, Count: 25, Workers: 3}))

	var shards []Result
	for _, i := range []int{2, 0, 1} {
		r := many(t, Plan{From: 5, Count: 25, Shard: i, Of: 3, Workers: 2})
		text, err := r.Text()
		require.NoError(t, err)
		r, err = ParseResult(text)
		require.NoError(t, err)
		shards = append(shards, r)
	}
	sum, err := Merge(shards)
	require.NoError(t, err)
	sum.hash = one.hash
	require.Equal(t, one, sum)

	a, b := many(t, Plan{From: 5, Count: 10}), many(t, Plan{From: 15, Count: 15})
	sum, err = Merge([]Result{b, a})
	require.NoError(t, err)
	require.Equal(t, one, sum)
	require.NotEqual(t, one.Hash, a.Hash)
}

// A number of steps is reached by the same seed, however many workers run ahead.
func TestMany_Steps_EndWithTheSeedThatReachesThem(t *testing.T) {
	one := many(t, Plan{From: 1, Steps: 30_000, Workers: 1})
	require.GreaterOrEqual(t, one.Steps, int64(30_000))
	require.Equal(t, one, many(t, Plan{From: 1, Steps: 30_000, Workers: 4}))
	require.Equal(t, one.Hash, many(t, Plan{From: 1, Count: one.Seeds}).Hash)
	require.Less(t, many(t, Plan{From: 1, Count: one.Seeds - 1}).Steps, int64(30_000))
}

func TestMany_Violations_AreKeptAndEndIt(t *testing.T) {
	r, err := Many(t.Context(), Plan{From: 1, Count: 1000, MostBad: 2, Change: func(c *Config) { c.Plant.SealEarly = true }})
	require.NoError(t, err)
	require.Len(t, r.Violations, 2)
	require.False(t, r.Whole)
	require.Less(t, r.Seeds, uint64(100))
	require.NotEmpty(t, r.Violations[0].Oracle)
	require.Contains(t, r.Line(), "2 violations")

	ctx, stop := context.WithCancel(t.Context())
	stop()
	_, err = Many(ctx, Plan{From: 1, Count: 1000})
	require.ErrorIs(t, err, context.Canceled)
	for _, bad := range []Plan{{}, {Count: 1, Shard: 2, Of: 2}, {Count: 1, Shard: -1}, {Count: 1, From: 1 << 63}} {
		_, err = Many(t.Context(), bad)
		require.ErrorIs(t, err, ErrPlan)
	}
}

func TestMerge_WhatDoesNotGoTogether_IsRefused(t *testing.T) {
	shard := func(i int) Result {
		r := newResult(Plan{From: 1, Count: 9, Shard: i, Of: 3})
		r.Whole, r.Seeds = true, 3
		return r
	}
	alone := func(from uint64) Result {
		r := newResult(Plan{From: from, Count: 3, Of: 1})
		r.Whole, r.Seeds = true, 3
		return r
	}
	with := func(r Result, change func(*Result)) Result { change(&r); return r }
	for name, rs := range map[string][]Result{
		"none":             {},
		"shard missing":    {shard(0), shard(2)},
		"last one missing": {shard(0), shard(1)},
		"shard twice":      {shard(0), shard(1), shard(1), shard(2)},
		"another plan":     {shard(0), with(shard(1), func(r *Result) { r.Count = 8 }), shard(2)},
		"another version":  {alone(1), with(alone(4), func(r *Result) { r.Version = "x" })},
		"not to its end":   {alone(1), with(alone(4), func(r *Result) { r.Whole = false })},
		"other shares":     {shard(0), with(shard(1), func(r *Result) { r.Of = 2 }), shard(2)},
		"seeds twice":      {alone(1), alone(3)},
		"seeds missing":    {alone(1), alone(5)},
	} {
		_, err := Merge(rs)
		require.ErrorIs(t, err, ErrResult, name)
	}
	_, err := Merge([]Result{shard(1), shard(0), shard(2)})
	require.NoError(t, err)
	for _, text := range []string{"", "{}", `{"format":1,"of":1,"hash":"xyz"}`, `{"format":1,"of":0,"hash":"0000000000000000"}`, `{"format":1,"of":1,"hash":"0000000000000000","more":1}`} {
		_, err := ParseResult([]byte(text))
		require.ErrorIs(t, err, ErrResult, text)
	}
}

func TestParse_SeedsAndShards(t *testing.T) {
	from, n, err := ParseSeeds("7-11")
	require.NoError(t, err)
	require.Equal(t, []uint64{7, 5}, []uint64{from, n})
	from, n, err = ParseSeeds("7")
	require.NoError(t, err)
	require.Equal(t, []uint64{7, 1}, []uint64{from, n})
	i, of, err := ParseShard("2/5")
	require.NoError(t, err)
	require.Equal(t, []int{2, 5}, []int{i, of})
	for _, bad := range []string{"", "a", "3-2", "1-", "-1", "1-99999999999999999999"} {
		_, _, err = ParseSeeds(bad)
		require.ErrorIs(t, err, ErrPlan, bad)
	}
	for _, bad := range []string{"", "/3", "3/3", "-1/3", "1", "a/b", "0/0"} {
		_, _, err = ParseShard(bad)
		require.ErrorIs(t, err, ErrPlan, bad)
	}
}
