//go:build linux

package shm

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/impl/device"
	"kvfence/impl/transport"
	"kvfence/spec"
)

const (
	pageSize  = 1 << 20
	pageCount = 8
)

// kvLayout has pages of 1 MiB: a page is four steps of a copy.
func kvLayout() spec.Layout {
	m := spec.Meaning{ByteOrder: "little", DType: "bf16", HeadDim: 128, ElemBytes: 2, KVs: 2, TokensPerPage: 16, Layers: 16, Heads: 8}
	return spec.NewDense(spec.KV, m, 0, 16, 0, 8, pageCount, 2)
}

// auxLayout has records of 64 bytes.
func auxLayout() spec.Layout {
	m := spec.Meaning{ByteOrder: "little", DType: "u8", HeadDim: 64, ElemBytes: 1, KVs: 1, Layers: 1, Heads: 1}
	return spec.NewDense(spec.Aux, m, 0, 1, 0, 1, pageCount, 1)
}

func layouts() (l [spec.ComponentCount]*spec.Layout) {
	kv, aux := kvLayout(), auxLayout()
	l[spec.KV], l[spec.Aux] = &kv, &aux
	return l
}

func destination() (m device.Memory) {
	for c, l := range layouts() {
		if l != nil {
			m[c], _ = device.NewPool(*l, nil, nil)
		}
	}
	return m
}

func testLink(epoch spec.Epoch) transport.LinkInfo {
	l := transport.LinkInfo{Prefill: spec.Incarnation{1}, Decode: spec.Incarnation{2}, Epoch: epoch}
	l.Key[0], l.Key[31] = 7, byte(epoch)
	return l
}

func pattern(n int, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	b := make([]byte, 0, n+8)
	for len(b) < n {
		b = binary.LittleEndian.AppendUint64(b, r.Uint64())
	}
	return b[:n]
}

// exportSink collects what an Export reports.
type exportSink struct {
	opened, ended chan struct{}
	lost          chan error
}

func newExportSink() *exportSink {
	return &exportSink{make(chan struct{}, 9), make(chan struct{}, 9), make(chan error, 9)}
}
func (s *exportSink) Opened()        { s.opened <- struct{}{} }
func (s *exportSink) ReaderEnded()   { s.ended <- struct{}{} }
func (s *exportSink) Lost(err error) { s.lost <- err }

// readerSink collects what a Reader reports.
type readerSink struct {
	copied chan transport.CopyResult
	lost   chan error
	fenced chan struct{}
}

func newReaderSink() *readerSink {
	return &readerSink{make(chan transport.CopyResult, 64), make(chan error, 9), make(chan struct{}, 9)}
}
func (s *readerSink) Copied(r transport.CopyResult) { s.copied <- r }
func (s *readerSink) Lost(err error)                { s.lost <- err }
func (s *readerSink) Fenced()                       { s.fenced <- struct{}{} }

// rig is an exporter with one offered link.
type rig struct {
	t       *testing.T
	e       *Exporter
	x       *Export
	sink    *exportSink
	pools   [spec.ComponentCount]*device.Shared
	refused chan error
}

func newRig(t *testing.T, change ...func(*ExporterConfig)) *rig {
	pools, err := AllocatePools(layouts())
	require.NoError(t, err)
	g := &rig{t: t, sink: newExportSink(), pools: pools, refused: make(chan error, 99)}
	cfg := ExporterConfig{Path: filepath.Join(t.TempDir(), "s"), Pools: pools, Refused: func(err error) { g.refused <- err }}
	for _, f := range change {
		f(&cfg)
	}
	g.e, err = Listen(cfg)
	require.NoError(t, err)
	g.x, err = g.e.Offer(testLink(1), g.sink)
	require.NoError(t, err)
	t.Cleanup(g.close)
	return g
}

func (g *rig) close() {
	require.NoError(g.t, g.e.Close())
	for _, p := range g.pools {
		if p != nil {
			require.NoError(g.t, p.Close())
		}
	}
}

func (g *rig) config(sink transport.ReaderSink) ReaderConfig {
	return ReaderConfig{Address: g.e.Address(), Link: testLink(1), Source: layouts(), Memory: destination(), Sink: sink}
}

func (g *rig) dial(cfg ReaderConfig) *Reader {
	r, err := Dial(context.Background(), cfg)
	require.NoError(g.t, err)
	g.t.Cleanup(func() { require.NoError(g.t, r.Close()) })
	<-g.sink.opened
	return r
}

// part is the whole page as one part.
func part(c spec.Component, index uint32, l spec.Layout) spec.Part {
	p := spec.Part{Component: c, LayerHi: l.Equal.Layers, HeadHi: l.Equal.Heads}
	if t := l.Equal.TokensPerPage; t > 0 {
		p.TokenHi = (index + 1) * t
	}
	return p
}

// seal fills a source page for a lease and tags it; it returns the copy that moves it to dst.
func (g *rig) seal(c spec.Component, page spec.PageID, lease spec.LeaseID, index uint32, dst spec.GrantedPage) transport.Copy {
	pool := g.pools[c].Pool
	b := pool.Page(page)
	pool.VoidTags(page)
	copy(b, pattern(len(b), uint64(lease)<<20|uint64(page)))
	p := part(c, index, pool.Layout)
	segs, err := p.Segments(pool.Layout, index, nil)
	require.NoError(g.t, err)
	h := device.HeaderOf(p, pool.Layout, index, spec.UsedBytes(segs))
	tag := spec.Tag{Lease: lease, Gen: 5, Index: index, Domain: spec.Domain{9}, Digest: device.DigestSegments(b, segs, h), Used: h.Used, HasDigest: true}
	device.PutTag(pool.Slot(page, 0), tag)
	want := tag
	want.Lease, want.Gen = 100+lease, dst.Gen
	return transport.Copy{Component: c, Index: index, Src: spec.SourcePage{Page: page, Gen: 5}, SrcSegs: segs, Head: h, SrcTag: tag, Dst: dst, DstSegs: segs, DstTag: want}
}

func landed(t *testing.T, src, dst *device.Pool, c transport.Copy) {
	t.Helper()
	require.True(t, string(src.Page(c.Src.Page)) == string(dst.Page(c.Dst.Page)), "bytes of page %d", c.Dst.Page)
	require.Equal(t, spec.TagGood, device.CheckTag(dst.Slot(c.Dst.Page, c.Part), c.DstTag))
}

func untouched(t *testing.T, dst *device.Pool, page spec.PageID) {
	t.Helper()
	require.True(t, string(make([]byte, len(dst.Page(page)))) == string(dst.Page(page)), "bytes of page %d", page)
	require.Equal(t, spec.TagVoid, device.CheckTag(dst.Slot(page, 0), spec.Tag{Lease: 1}))
}

func descriptors(t *testing.T) int {
	d, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(d)
}

func none[T any](t *testing.T, c chan T, what string) {
	t.Helper()
	select {
	case v := <-c:
		require.Fail(t, what, "%v", v)
	default:
	}
}

func isAny(err error, all ...error) bool {
	for _, e := range all {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
