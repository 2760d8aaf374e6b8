package device

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/zeebo/xxh3"

	"kvfence/spec"
)

// cut splits total bytes into segments with holes between them, in a page; every piece is a multiple of unit but the last.
func cut(r *rand.Rand, total, pieces, unit int) (segs []spec.Segment, page int) {
	at := 0
	for i := range pieces {
		n := total
		if i < pieces-1 {
			n = min(total, r.IntN(total/unit+1)*unit)
		}
		at += r.IntN(3) * 64
		segs = append(segs, spec.Segment{Offset: uint32(at), Bytes: uint32(n)})
		at += n
		total -= n
	}
	return segs, at + 128
}

func gather(page []byte, segs []spec.Segment) (b []byte) {
	for _, s := range segs {
		b = append(b, page[s.Offset:][:s.Bytes]...)
	}
	return b
}

func TestMover_AnyCut_CopiesTheBytesAndHashesWhatLanded(t *testing.T) {
	const seed = 11
	r := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	for round := range 100 {
		total := 1 + r.IntN(400_000)
		unit := []int{1, 64, 1024, 4096, 16384}[r.IntN(5)]
		if unit > 1 {
			total = max(total/unit*unit, unit)
		}
		srcSegs, sn := cut(r, total, 1+r.IntN(5), unit)
		dstSegs, dn := cut(r, total, 1+r.IntN(5), unit)
		src, back := patterned(sn, uint64(round)), patterned(dn, 99)
		h := DigestHeader{Component: spec.KV, TokenLo: 3, TokenHi: 9}
		for _, m := range []*Mover{{}, {Stream: true}} {
			for _, digest := range []bool{false, true} {
				dst := bytes.Clone(back)
				if digest {
					got, err := m.CopyDigest(dst, dstSegs, src, srcSegs, h)
					require.NoError(t, err)
					require.Equal(t, DigestSegments(src, srcSegs, h), got)
					require.Equal(t, DigestSegments(dst, dstSegs, h), got)
				} else {
					require.NoError(t, m.Copy(dst, dstSegs, src, srcSegs))
				}
				require.True(t, bytes.Equal(gather(src, srcSegs), gather(dst, dstSegs)), "round %d", round)
				for _, s := range dstSegs {
					copy(dst[s.Offset:][:s.Bytes], back[s.Offset:][:s.Bytes])
				}
				require.True(t, bytes.Equal(back, dst), "round %d: bytes beside the segments were touched", round)
			}
		}
	}
}

func TestFusedUnits_EachChunk_HasItsXXH3(t *testing.T) {
	if !canFuse() {
		t.Skip("no AVX-512 on this processor")
	}
	const units = 35
	src := patterned(units*sumUnit+1, 5)[1:]
	raw := make([]byte, units*sumUnit+64)
	dst := raw[misalign(raw):][:units*sumUnit]
	var got []uint64
	fusedUnits(dst, src, units, func(v uint64) { got = append(got, v) })
	require.True(t, bytes.Equal(src, dst))
	require.Len(t, got, 4*units)
	for i, v := range got {
		require.Equal(t, xxh3.Hash(src[i*DigestChunk:][:DigestChunk]), v, i)
	}
}

func TestMover_SegmentsThatDoNotFit_WriteNothing(t *testing.T) {
	src, dst := patterned(8192, 1), make([]byte, 8192)
	for _, c := range []struct{ d, s []spec.Segment }{
		{[]spec.Segment{{Offset: 0, Bytes: 100}}, []spec.Segment{{Offset: 0, Bytes: 101}}},
		{[]spec.Segment{{Offset: 8000, Bytes: 193}}, []spec.Segment{{Offset: 0, Bytes: 193}}},
		{[]spec.Segment{{Offset: 0, Bytes: 193}}, []spec.Segment{{Offset: 8000, Bytes: 193}}},
		{[]spec.Segment{{Offset: ^uint32(0), Bytes: ^uint32(0)}}, []spec.Segment{{Offset: 0, Bytes: 1}}},
		{nil, []spec.Segment{{Offset: 0, Bytes: 1}}},
	} {
		var m Mover
		require.ErrorIs(t, m.Copy(dst, c.d, src, c.s), ErrSegments)
		_, err := m.CopyDigest(dst, c.d, src, c.s, DigestHeader{})
		require.ErrorIs(t, err, ErrSegments)
	}
	require.Equal(t, make([]byte, 8192), dst)
}

func TestMover_Stopped_StoresNothingFurther(t *testing.T) {
	const n = 1 << 20
	src := patterned(n, 1)
	whole := []spec.Segment{{Offset: 0, Bytes: n}}
	for _, digest := range []bool{false, true} {
		for _, streamed := range []bool{false, true} {
			dst := make([]byte, n)
			asked := 0
			m := &Mover{Stream: streamed, Stop: func() bool { asked++; return asked == 3 }}
			var err error
			if digest {
				_, err = m.CopyDigest(dst, whole, src, whole, DigestHeader{})
			} else {
				err = m.Copy(dst, whole, src, whole)
			}
			require.True(t, errors.Is(err, ErrStopped))
			require.True(t, bytes.Equal(src[:2*moverStep], dst[:2*moverStep]))
			require.Equal(t, make([]byte, n-2*moverStep), dst[2*moverStep:])
		}
	}
}

// The owner rewrites the source while it is copied: the digest is that of what landed, whatever that is.
func TestMover_SourceChangesMeanwhile_DigestIsOfWhatLanded(t *testing.T) {
	const n = 1 << 20
	whole := []spec.Segment{{Offset: 0, Bytes: n}}
	for _, streamed := range []bool{false, true} {
		src, dst := patterned(n, 1), make([]byte, n)
		step := 0
		m := &Mover{Stream: streamed, Stop: func() bool {
			step++
			copy(src, patterned(n, uint64(100+step)))
			return false
		}}
		got, err := m.CopyDigest(dst, whole, src, whole, DigestHeader{})
		require.NoError(t, err)
		require.Equal(t, DigestSegments(dst, whole, DigestHeader{}), got)
		require.NotEqual(t, DigestSegments(src, whole, DigestHeader{}), got)
	}
}

func TestMover_Copies_AllocateNothing(t *testing.T) {
	const n = 64 << 10
	src, dst := patterned(n, 1), make([]byte, n)
	whole := []spec.Segment{{Offset: 0, Bytes: n}}
	m := &Mover{Stream: true}
	require.Zero(t, testing.AllocsPerRun(50, func() {
		_ = m.Copy(dst, whole, src, whole)
		_, _ = m.CopyDigest(dst, whole, src, whole, DigestHeader{})
	}))
}
