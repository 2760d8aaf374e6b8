//go:build verbs && rig

package verbs

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvfence/impl/transport"
	"kvfence/spec"
)

// strided is a layout with heads within tokens and holes between layers: another order of the same cells.
func strided(m spec.Meaning, layerLo, layerHi, headLo, headHi, pages uint32) spec.Layout {
	l := spec.NewDense(spec.KV, m, layerLo, layerHi, headLo, headHi, pages, 4)
	cell := m.HeadDim * m.ElemBytes
	s := &l.Shape
	s.HeadStride = cell
	s.TokenStride = cell * (headHi - headLo)
	s.KVStride = s.TokenStride * m.TokensPerPage
	s.LayerStride = s.KVStride*m.KVs + 64
	s.PageBytes = s.LayerStride * (layerHi - layerLo)
	return l
}

// Pages of every shape arrive exactly: splits by head and by layer, either order of memory at either end, tails of every length, one
// buffer or two, cells down to a byte, in several parts.
func TestPush_EveryShape_BytesAreExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	pick := func(v ...uint32) uint32 { return v[rng.IntN(len(v))] }
	for round := range 24 {
		m := spec.Meaning{ByteOrder: "little", HeadDim: pick(1, 3, 8, 64), ElemBytes: pick(1, 2, 4), KVs: pick(1, 2), TokensPerPage: pick(1, 3, 16), Layers: pick(1, 2, 5), Heads: pick(1, 2, 4)}
		layout := func(layerLo, layerHi, headLo, headHi, pages uint32) spec.Layout {
			if rng.IntN(2) == 0 {
				return strided(m, layerLo, layerHi, headLo, headHi, pages)
			}
			return spec.NewDense(spec.KV, m, layerLo, layerHi, headLo, headHi, pages, 4)
		}
		ll, lh := rng.Uint32N(m.Layers), rng.Uint32N(m.Heads)
		src := layout(ll, m.Layers, lh, m.Heads, 8)
		dst := layout(0, m.Layers, 0, m.Heads, 8)
		require.NoError(t, src.Validate())
		by := []Leases{LeasesWindows, LeasesRegions, LeasesOff}[round%3]
		t.Run(fmt.Sprintf("%d %+v", round, m), func(t *testing.T) {
			e := newEnds(t, memoryOf(t, src), memoryOf(t, dst), Options{Rails: rails(t, 1+round%2)}, Options{Rails: rails(t, 1+round%2), Leases: by, unprobed: true})
			fill(e.src[spec.KV].Bytes, uint64(round))
			k := e.link()
			pages := 1 + rng.Uint32N(4)
			p := whole(src, pages*m.TokensPerPage-rng.Uint32N(m.TokensPerPage))
			p.Index = spec.PartIndex(rng.IntN(4))
			at := rng.Perm(8)
			var to []spec.PageID
			for _, i := range at[:pages] {
				to = append(to, spec.PageID(i))
			}
			untouched := spec.PageID(at[7])
			set(e.dst[spec.KV].Page(untouched), 0x77)
			x := e.transferOf(1, p, ids(2, pages), to)
			k.run(x)
			e.check(x)
			require.True(t, all(e.dst[spec.KV].Page(untouched), 0x77))
		})
	}
}

// Records of the other components go the same way: one page, one part, a whole request.
func TestPush_Records_BytesAreExact(t *testing.T) {
	m := spec.Meaning{ByteOrder: "little", HeadDim: 777, ElemBytes: 1, KVs: 1, Layers: 1, Heads: 1}
	aux := spec.NewDense(spec.Aux, m, 0, 1, 0, 1, 4, 1)
	e := newEnds(t, memoryOf(t, aux), memoryOf(t, aux), Options{Rails: rails(t, 1)}, Options{Rails: rails(t, 1)})
	fill(e.src[spec.Aux].Bytes, 5)
	k := e.link()
	x := e.transferOf(1, spec.Part{Component: spec.Aux, LayerHi: 1, HeadHi: 1}, ids(1, 1), ids(3, 1))
	k.run(x)
	e.check(x)
}

// What is not a write is refused before anything is sent; the link goes on.
func TestPost_OutsideOfThePool_IsRefused(t *testing.T) {
	e := fenceRig(t, 1, LeasesAuto)
	k := e.link()
	good := e.transferOf(1, whole(e.dst[spec.KV].Layout, 64), ids(0, 1), ids(0, 1)).batch.Writes[0]
	for name, change := range map[string]func(*transport.Write){
		"source page":  func(w *transport.Write) { w.Src = fencePages },
		"source bytes": func(w *transport.Write) { w.SrcSegs = []spec.Segment{{Offset: 1 << 30, Bytes: 1}} },
		"no bytes":     func(w *transport.Write) { w.SrcSegs = nil },
		"component":    func(w *transport.Write) { w.Component = spec.ComponentCount },
		"another part": func(w *transport.Write) { w.Of.Index++ },
	} {
		w := good
		change(&w)
		k.source.Post(transport.Batch{ID: 7, Lease: 1, Writes: []transport.Write{w}})
		require.Error(t, await(t, k.ssink.posted, "the refusal").err, name)
	}
	k.source.Post(transport.Batch{ID: 8})
	require.Error(t, await(t, k.ssink.posted, "the refusal").err, "lease 0")
	x := e.transferOf(2, whole(e.dst[spec.KV].Layout, 64), ids(0, 1), ids(0, 1))
	k.run(x)
	e.check(x)
}

// A write to a page without a key fails the link at the source; nothing is sent for it.
func TestPost_PageThatWasNotGranted_EndsTheLink(t *testing.T) {
	e := fenceRig(t, 1, LeasesAuto)
	k := e.link()
	x := e.transferOf(1, whole(e.dst[spec.KV].Layout, 64), ids(0, 1), ids(0, 1))
	require.True(t, k.grants.Allow(x.grant))
	set(e.dst[spec.KV].Bytes, reused)
	x.batch.Writes[0].Dst.Page = 5
	k.source.Post(x.batch)
	require.Error(t, await(t, k.ssink.posted, "the end of the batch").err)
	await(t, k.ssink.lost, "the loss")
	k.end()
	require.True(t, all(e.dst[spec.KV].Bytes, reused))
}

// Busy polling moves the same bytes.
func TestPush_BusyPoll_BytesAreExact(t *testing.T) {
	l := kvLayout(16, 2, 0, 2, 2, 8)
	e := newEnds(t, memoryOf(t, l), memoryOf(t, l), Options{Rails: rails(t, 1), BusyPoll: true}, Options{Rails: rails(t, 1), BusyPoll: true})
	fill(e.src[spec.KV].Bytes, 9)
	k := e.link()
	x := e.transferOf(1, whole(l, 100), ids(0, 7), ids(1, 7))
	k.run(x)
	e.check(x)
}

// Requests and completions that a lease takes, and how fast pages go through the emulation: figures, never judged but for their kind.
func TestPush_Figures(t *testing.T) {
	for _, kib := range []uint32{64, 1024} {
		l := kvLayout(kib*1024/128/4, 4, 0, 1, 1, 16)
		e := newEnds(t, memoryOf(t, l), memoryOf(t, l), Options{Rails: rails(t, 1)}, Options{Rails: rails(t, 1)})
		k := e.link()
		n := min(16, 4096/kib)
		var best, worst float64
		for round := spec.LeaseID(1); round <= 5; round++ {
			x := e.transferOf(round, whole(l, n*l.Equal.TokensPerPage), ids(0, n), ids(0, n))
			begin := time.Now()
			k.run(x)
			rate := float64(n) * float64(l.Shape.PageBytes) / time.Since(begin).Seconds() / 1e6
			if best = max(best, rate); worst == 0 || rate < worst {
				worst = rate
			}
			k.grants.Revoke(round)
		}
		s := e.pa.Stats()
		figure(fmt.Sprintf("push_%dKiB_max", kib), fmt.Sprintf("%.1f", best), "MB/s")
		figure(fmt.Sprintf("push_%dKiB_min", kib), fmt.Sprintf("%.1f", worst), "MB/s")
		figure(fmt.Sprintf("requests_a_page_%dKiB", kib), fmt.Sprintf("%.2f", float64(s.Requests)/float64(s.Writes)), "requests")
		figure(fmt.Sprintf("completions_a_lease_%dKiB", kib), fmt.Sprintf("%.2f", float64(s.Signalled)/5), "completions")
		require.LessOrEqual(t, s.Signalled, uint64(5*3), "completions are few: one a batch, one a notice")
	}
}
