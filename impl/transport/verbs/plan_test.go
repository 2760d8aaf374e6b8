package verbs

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kvfence/spec"
)

// cutInto cuts n bytes into segments with random holes between.
func cutInto(rng *rand.Rand, n uint32) (out []spec.Segment) {
	at := rng.Uint32N(64)
	for n > 0 {
		k := 1 + rng.Uint32N(n)
		out = append(out, spec.Segment{Offset: at, Bytes: k})
		at, n = at+k+rng.Uint32N(3), n-k
	}
	return out
}

// Requests put every byte of the source where the destination has it, in as few as the most of pieces allows: played on memory.
func TestPlanner_AnyCuts_MoveEveryByteToItsPlace(t *testing.T) {
	var p planner
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		n, most := 1+rng.Uint32N(500), 1+rng.IntN(5)
		src, dst := cutInto(rng, n), cutInto(rng, n)
		from, to, want := make([]byte, 4096), make([]byte, 4096), make([]byte, 4096)
		for i := range from {
			from[i] = byte(rng.Uint32())
		}
		var bytes []byte
		for _, s := range src {
			bytes = append(bytes, from[s.Offset:][:s.Bytes]...)
		}
		for _, d := range dst {
			copy(want[d.Offset:], bytes[:d.Bytes])
			bytes = bytes[d.Bytes:]
		}
		rs, err := p.cut(src, dst, most)
		require.NoError(t, err)
		for _, r := range rs {
			require.LessOrEqual(t, len(r.pieces), most)
			at, sum := r.at, uint32(0)
			for _, s := range r.pieces {
				copy(to[at:], from[s.Offset:][:s.Bytes])
				at, sum = at+s.Bytes, sum+s.Bytes
			}
			require.Equal(t, r.bytes, sum)
		}
		require.Equal(t, want, to)
	})
}

func TestPlanner_UnequalSums_AreRefused(t *testing.T) {
	var p planner
	_, err := p.cut([]spec.Segment{{Bytes: 4}}, []spec.Segment{{Bytes: 5}}, 4)
	require.ErrorIs(t, err, spec.ErrPlan)
	_, err = p.cut([]spec.Segment{{Bytes: 5}}, []spec.Segment{{Bytes: 4}}, 4)
	require.ErrorIs(t, err, spec.ErrPlan)
}

func TestRuns_NeighboursAreOne_AndNothingThatWasNotGranted(t *testing.T) {
	pages := []spec.GrantedPage{{Page: 5, Gen: 1}, {Page: 3, Gen: 1}, {Page: 4, Gen: 1}, {Page: 9, Gen: 2}, {Page: 6}, {Page: 5, Gen: 1}}
	require.Equal(t, []windowKey{{First: 3, Count: 3}, {First: 9, Count: 1}}, runs(pages))
	require.Empty(t, runs(nil))
}

func TestKeyTable_WhatOverlapsOrComesLate_IsRefused(t *testing.T) {
	var k keyTable
	require.ErrorIs(t, k.add(leaseKeys{Lease: 1, Last: true, Keys: []windowKey{{First: 1, Count: 2, Key: 1}, {First: 2, Count: 1, Key: 2}}}), ErrFrame)
	k = keyTable{}
	require.NoError(t, k.add(leaseKeys{Lease: 1, Keys: []windowKey{{First: 8, Count: 2, Key: 1}}}))
	require.NoError(t, k.add(leaseKeys{Lease: 1, Last: true, Keys: []windowKey{{First: 1, Count: 2, Key: 2}}}))
	require.ErrorIs(t, k.add(leaseKeys{Lease: 1, Last: true}), ErrFrame)
	for page, want := range map[spec.PageID]uint32{1: 2, 2: 2, 8: 1, 9: 1} {
		key, known := k.key(0, spec.KV, false, page)
		require.True(t, known)
		require.Equal(t, want, key)
	}
	for _, page := range []spec.PageID{0, 3, 7, 10, 1 << 31} {
		_, known := k.key(0, spec.KV, false, page)
		require.False(t, known, page)
	}
}
