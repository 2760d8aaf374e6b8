package device_test

import (
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/zeebo/xxh3"
	"pgregory.net/rapid"

	"kvfence/impl/device"
	"kvfence/spec"
)

// naive is the digest as spec/tags-and-digests.md says it, with no regard for speed.
func naive(used []byte, h device.DigestHeader) uint64 {
	m := []byte("KVD1")
	m = binary.LittleEndian.AppendUint32(m, uint32(h.Component))
	m = binary.LittleEndian.AppendUint32(m, h.TokenLo)
	m = binary.LittleEndian.AppendUint32(m, h.TokenHi)
	m = binary.LittleEndian.AppendUint64(m, uint64(len(used)))
	for at := 0; at < len(used); at += 4096 {
		m = binary.LittleEndian.AppendUint64(m, xxh3.Hash(used[at:min(at+4096, len(used))]))
	}
	return xxh3.Hash(m)
}

// scatter cuts used at random places and lays the pieces into a page in order, with gaps of other bytes.
func scatter(r *rand.Rand, used []byte) ([]byte, []spec.Segment) {
	var page []byte
	var segs []spec.Segment
	gap := func() {
		for range r.Intn(64) {
			page = append(page, byte(r.Int()))
		}
	}
	for len(used) > 0 {
		gap()
		k := 1 + r.Intn(len(used))
		if r.Intn(2) == 0 {
			k = min(k, 1+r.Intn(6000))
		}
		segs = append(segs, spec.Segment{Offset: uint32(len(page)), Bytes: uint32(k)})
		page = append(page, used[:k]...)
		used = used[k:]
	}
	gap()
	return page, segs
}

func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	r.Read(b)
	return b
}

func seg(offset, n uint32) spec.Segment { return spec.Segment{Offset: offset, Bytes: n} }

var lengths = []int{1, 7, 4095, 4096, 4097, 8192, 32 * 4096, 32*4096 + 1, 1 << 20, 1<<20 + 1, 1<<20 + 4097, 2<<20 + 5, 3<<20 + 4096}

func TestDigest_AnyCut_EqualsNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.SampledFrom(lengths), rapid.IntRange(0, 50000)).Draw(t, "bytes")
		r := rand.New(rand.NewSource(rapid.Int64().Draw(t, "seed")))
		h := device.DigestHeader{Component: spec.Component(r.Intn(3)), TokenLo: r.Uint32(), TokenHi: r.Uint32(), Used: uint32(n)}
		used := randomBytes(r, n)
		want := naive(used, h)
		require.Equal(t, want, device.DigestSegments(used, []spec.Segment{{Bytes: uint32(n)}}, h))
		page, segs := scatter(r, used)
		require.Equal(t, want, device.DigestSegments(page, segs, h), "segments")
		var d device.Digester
		for range 2 { // a second start leaves nothing of the first
			d.Start(h)
			for rest := used; len(rest) > 0; {
				k := 1 + r.Intn(min(len(rest), 300000))
				d.Write(rest[:k])
				rest = rest[k:]
			}
			require.Equal(t, want, d.Sum(), "pieces")
		}
	})
}

func TestDigest_AnyBitFlipped_Changes(t *testing.T) {
	for _, n := range []int{1, 16, 130, 1000, 4096 + 33} {
		used := randomBytes(rand.New(rand.NewSource(int64(n))), n)
		segs := []spec.Segment{{Bytes: uint32(n)}}
		want := device.DigestSegments(used, segs, device.DigestHeader{})
		for bit := range 8 * n {
			used[bit/8] ^= 1 << (bit % 8)
			require.NotEqual(t, want, device.DigestSegments(used, segs, device.DigestHeader{}), "%d bytes, bit %d", n, bit)
			used[bit/8] ^= 1 << (bit % 8)
		}
	}
}

func TestDigest_SwappedChunks_Changes(t *testing.T) {
	used := randomBytes(rand.New(rand.NewSource(3)), 4*4096)
	a := device.DigestSegments(used, []spec.Segment{seg(0, 4096), seg(4096, 4096), seg(8192, 8192)}, device.DigestHeader{})
	b := device.DigestSegments(used, []spec.Segment{seg(4096, 4096), seg(0, 4096), seg(8192, 8192)}, device.DigestHeader{})
	require.NotEqual(t, a, b)
}

func TestDigest_OtherHeader_Changes(t *testing.T) {
	used := []byte("the same bytes")
	segs := []spec.Segment{{Bytes: uint32(len(used))}}
	seen := map[uint64]device.DigestHeader{}
	for _, h := range []device.DigestHeader{{}, {Component: 1}, {TokenLo: 1}, {TokenHi: 1}, {TokenLo: 1, TokenHi: 1}} {
		d := device.DigestSegments(used, segs, h)
		require.NotContains(t, seen, d, "%+v", h)
		seen[d] = h
	}
	require.NotContains(t, seen, device.DigestSegments(used, []spec.Segment{{Bytes: uint32(len(used) - 1)}}, device.DigestHeader{}), "used bytes")
	require.NotEqual(t, device.DigestSegments([]byte{0}, []spec.Segment{{Bytes: 1}}, device.DigestHeader{}),
		device.DigestSegments([]byte{0, 0}, []spec.Segment{{Bytes: 2}}, device.DigestHeader{}))
}

func TestHeaderOf_PartInPage_TokensOfTheRequest(t *testing.T) {
	l := spec.NewDense(spec.KV, spec.Meaning{ByteOrder: "little", HeadDim: 8, ElemBytes: 2, KVs: 2, TokensPerPage: 16, Layers: 2, Heads: 2}, 0, 2, 0, 2, 4, 1)
	p := spec.Part{Component: spec.KV, LayerHi: 2, HeadHi: 2, TokenLo: 5, TokenHi: 40}
	require.Equal(t, device.DigestHeader{TokenLo: 5, TokenHi: 16, Used: 1}, device.HeaderOf(p, l, 0, 1))
	require.Equal(t, device.DigestHeader{TokenLo: 16, TokenHi: 32, Used: 2}, device.HeaderOf(p, l, 1, 2))
	require.Equal(t, device.DigestHeader{TokenLo: 32, TokenHi: 40, Used: 3}, device.HeaderOf(p, l, 2, 3))
	aux := spec.NewDense(spec.Aux, spec.Meaning{ByteOrder: "little", HeadDim: 8, ElemBytes: 2, KVs: 1, Layers: 1, Heads: 1}, 0, 1, 0, 1, 4, 1)
	require.Equal(t, device.DigestHeader{Component: spec.Aux, Used: 16}, device.HeaderOf(spec.Part{Component: spec.Aux, LayerHi: 1, HeadHi: 1}, aux, 0, 16))
}

func TestDigest_AnySize_AllocatesNothing(t *testing.T) {
	page := make([]byte, 3<<20)
	for _, segs := range [][]spec.Segment{{seg(0, 4096)}, {seg(0, 1<<20)}, {seg(0, 3<<20)}, {seg(0, 100), seg(200, 5000)}} {
		require.Zero(t, testing.AllocsPerRun(10, func() { _ = device.DigestSegments(page, segs, device.DigestHeader{}) }))
	}
}

var update = flag.Bool("update", false, "write the vectors under spec/testdata instead of comparing them")

type digestVector struct {
	Name      string `json:"name"`
	Component uint8  `json:"component"`
	TokenLo   uint32 `json:"token_lo"`
	TokenHi   uint32 `json:"token_hi"`
	Used      uint32 `json:"used_bytes"` // byte i is (i*i*31 + i*7 + seed) mod 251
	Seed      uint32 `json:"seed"`
	Digest    string `json:"digest"` // hex, most significant digit first
}

func (v digestVector) bytes() []byte {
	b := make([]byte, v.Used)
	for i := range b {
		x := uint64(i)
		b[i] = byte((x*x*31 + x*7 + uint64(v.Seed)) % 251)
	}
	return b
}

func TestDigest_Vectors_AreReproduced(t *testing.T) {
	const file = "../../spec/testdata/digest_vectors.json"
	var vs []digestVector
	for i, n := range append([]int{0}, lengths...) {
		v := digestVector{Name: fmt.Sprintf("%d bytes", n), Component: uint8(i % 3), Used: uint32(n), Seed: uint32(i)}
		if v.Component == uint8(spec.KV) {
			v.TokenLo, v.TokenHi = uint32(i*16), uint32(i*16+9)
		}
		h := device.DigestHeader{Component: spec.Component(v.Component), TokenLo: v.TokenLo, TokenHi: v.TokenHi}
		v.Digest = fmt.Sprintf("%016x", device.DigestSegments(v.bytes(), []spec.Segment{{Bytes: v.Used}}, h))
		vs = append(vs, v)
	}
	if *update {
		out, err := json.MarshalIndent(vs, "", "  ")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, append(out, '\n'), 0o644))
	}
	in, err := os.ReadFile(file)
	require.NoError(t, err)
	var want []digestVector
	require.NoError(t, json.Unmarshal(in, &want))
	require.Equal(t, want, vs)
}

func BenchmarkDigest(b *testing.B) {
	pool := make([]byte, 256<<20)
	for i := range pool {
		pool[i] = byte(i)
	}
	for _, size := range []int{4 << 10, 64 << 10, 256 << 10, 1 << 20} {
		segs := []spec.Segment{{Bytes: uint32(size)}}
		for _, cold := range []bool{false, true} {
			b.Run(fmt.Sprintf("%dKiB/cold=%v", size>>10, cold), func(b *testing.B) {
				b.SetBytes(int64(size))
				r := rand.New(rand.NewSource(1))
				at := 0
				for b.Loop() {
					if cold {
						at = r.Intn(len(pool)/size) * size
					}
					_ = device.DigestSegments(pool[at:at+size], segs, device.DigestHeader{})
				}
			})
		}
	}
}
