//go:build verbs && rig

package verbs

import (
	"context"
	"fmt"
	mrand "math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvfence/impl/device"
	"kvfence/impl/transport"
	"kvfence/impl/transport/tcp"
	"kvfence/spec"
)

// devicesVar names the devices that tests may use, rails in order, separated by commas. The rig sets it.
const devicesVar = "KVFENCE_RDMA_DEVICES"

// rails are the first n of them; a test that cannot have them is skipped.
func rails(t testing.TB, n int) (rs []Rail) {
	names := strings.Split(os.Getenv(devicesVar), ",")
	if names[0] == "" {
		t.Skip("no RDMA device: " + devicesVar + " is not set (make test-rdma sets it in its machine)")
	}
	if len(names) < n {
		t.Skipf("%d RDMA devices, %d are needed", len(names), n)
	}
	for _, d := range names[:n] {
		rs = append(rs, Rail{Device: d, Port: 1, GID: GIDAuto})
	}
	return rs
}

// patience bounds what must happen; nothing is proved by it.
const patience = 60 * time.Second

func figure(name string, value any, unit string) { fmt.Printf("figure: %s %v %s\n", name, value, unit) }

// kvLayout has pages of tokens x 2 x layers x heads x 64 bytes.
func kvLayout(tokens, layers, headLo, headHi, heads, pages uint32) spec.Layout {
	m := spec.Meaning{ByteOrder: "little", HeadDim: 32, ElemBytes: 2, KVs: 2, TokensPerPage: tokens, Layers: layers, Heads: heads}
	return spec.NewDense(spec.KV, m, 0, layers, headLo, headHi, pages, 4)
}

func memoryOf(t testing.TB, ls ...spec.Layout) (m device.Memory) {
	for _, l := range ls {
		p, err := device.NewPool(l, nil, nil)
		require.NoError(t, err)
		m[l.Component] = p
	}
	return m
}

func fill(b []byte, seed uint64) {
	c := mrand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)})
	_, _ = c.Read(b)
}

func linkInfo(epoch spec.Epoch) transport.LinkInfo {
	return transport.LinkInfo{Prefill: spec.Incarnation{1}, Decode: spec.Incarnation{2}, Epoch: epoch, Key: [32]byte{3}}
}

type posted struct {
	id  uint64
	err error
}

type noticed struct {
	lease    spec.LeaseID
	channels []spec.Channel
	err      error
}

type noticeIn struct {
	channel uint32
	lease   spec.LeaseID
	number  uint64
}

// sourceSink and targetSink keep what was reported; each kind can be waited for.
type sourceSink struct {
	posted  chan posted
	noticed chan noticed
	lost    chan error
	done    chan error
}

func newSourceSink() *sourceSink {
	return &sourceSink{make(chan posted, 1<<16), make(chan noticed, 1<<16), make(chan error, 16), make(chan error, 1)}
}

func (s *sourceSink) Posted(id uint64, err error) { s.posted <- posted{id, err} }
func (s *sourceSink) Noticed(l spec.LeaseID, ch []spec.Channel, err error) {
	s.noticed <- noticed{l, ch, err}
}
func (s *sourceSink) Lost(err error)        { s.lost <- err }
func (s *sourceSink) Fenced()               { s.done <- nil }
func (s *sourceSink) FenceFailed(err error) { s.done <- err }

type targetSink struct {
	notice chan noticeIn
	lost   chan error
	done   chan error
}

func newTargetSink() *targetSink {
	return &targetSink{make(chan noticeIn, 1<<16), make(chan error, 16), make(chan error, 1)}
}

func (s *targetSink) NoticeIn(c uint32, l spec.LeaseID, n uint64) { s.notice <- noticeIn{c, l, n} }
func (s *targetSink) Refused(spec.LeaseID, spec.Refusal)          {}
func (s *targetSink) Lost(err error)                              { s.lost <- err }
func (s *targetSink) Fenced()                                     { s.done <- nil }
func (s *targetSink) FenceFailed(err error)                       { s.done <- err }

// await takes one value within patience.
func await[T any](t testing.TB, c <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatalf("%s did not come", what)
	}
	return v
}

// ends are both ends' adapters in this process.
type ends struct {
	t        testing.TB
	src, dst device.Memory
	pa, da   *Adapter
	listener *Listener
	grants   *transport.Grants
	epoch    spec.Epoch
	prefill  byte // of another process than linkInfo's; 0: that
	deaf     bool // nobody takes the notices of the next link
}

// info names the next link.
func (e *ends) info() transport.LinkInfo {
	i := linkInfo(e.epoch)
	if e.prefill != 0 {
		i.Prefill = spec.Incarnation{e.prefill}
	}
	return i
}

func newEnds(t testing.TB, src, dst device.Memory, so, do Options) *ends {
	e := &ends{t: t, src: src, dst: dst, grants: transport.NewGrants(dst)}
	do.Target = true
	var err error
	e.pa, err = Open(so, src)
	require.NoError(t, err)
	e.da, err = Open(do, dst)
	require.NoError(t, err)
	e.listener, err = e.pa.Listen("127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, e.listener.Close())
		require.NoError(t, e.da.Close())
		require.NoError(t, e.pa.Close())
	})
	return e
}

// link is both ends of a link in one epoch.
type link struct {
	*ends
	epoch                  spec.Epoch
	source                 transport.Source
	target                 transport.Target
	ssink                  *sourceSink
	tsink                  *targetSink
	targetOnce, sourceOnce sync.Once
}

// link opens the next epoch.
func (e *ends) link() *link {
	k, err := e.tryLink()
	require.NoError(e.t, err)
	e.t.Cleanup(k.end)
	return k
}

func (e *ends) tryLink() (k *link, err error) {
	e.epoch++
	k = &link{ends: e, epoch: e.epoch, ssink: newSourceSink(), tsink: newTargetSink()}
	if e.deaf {
		k.tsink.notice = make(chan noticeIn)
	}
	e.grants.Raise(k.epoch)
	if k.source, err = e.listener.Expect(e.info(), k.ssink); err != nil {
		return k, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	k.target, err = e.da.Dial(ctx, e.listener.Addr(), e.info(), e.grants, k.tsink, tcp.Options{})
	return k, err
}

// begun waits until prefill's end has heard that decode is ready.
func (k *link) begun() {
	k.t.Helper()
	require.Eventually(k.t, k.source.(*source).begun, patience, time.Millisecond, "prefill's end does not begin")
}

// fence is decode's fence in its order; once.
func (k *link) fence() {
	k.t.Helper()
	k.targetOnce.Do(func() {
		k.grants.Raise(k.epoch + 1)
		k.target.Fence()
		require.NoError(k.t, await(k.t, k.tsink.done, "decode's fence"))
		require.NoError(k.t, k.grants.Wait(k.epoch+1))
	})
}

// fenceSource is prefill's fence; once.
func (k *link) fenceSource() {
	k.t.Helper()
	k.sourceOnce.Do(func() {
		k.source.Fence()
		require.NoError(k.t, await(k.t, k.ssink.done, "prefill's fence"))
	})
}

func (k *link) end() {
	k.fence()
	k.fenceSource()
}

// transfer is a lease of one part over pages of both sides, tag slot by part.
type transfer struct {
	grant spec.Grant
	batch transport.Batch
	part  spec.Part
	src   []spec.PageID
}

// transferOf writes tokens of one part from source pages to destination pages.
func (e *ends) transferOf(lease spec.LeaseID, part spec.Part, src, dst []spec.PageID) transfer {
	x := transfer{grant: spec.Grant{Lease: lease, Tokens: part.TokenHi, Parts: []spec.Part{part}}, batch: transport.Batch{ID: uint64(lease), Lease: lease}, part: part, src: src}
	sp := e.src[part.Component]
	for i := range dst {
		g := spec.GrantedPage{Page: dst[i], Gen: spec.Generation(uint64(lease)*1000 + uint64(i))}
		x.grant.Pages[part.Component] = append(x.grant.Pages[part.Component], g)
		segs, err := part.Segments(sp.Layout, uint32(i), nil)
		require.NoError(e.t, err)
		used := spec.UsedBytes(segs)
		if used == 0 {
			continue
		}
		digest := device.DigestSegments(sp.Page(src[i]), segs, device.HeaderOf(part, sp.Layout, uint32(i), used))
		x.batch.Writes = append(x.batch.Writes, transport.Write{
			Component: part.Component, Part: part.Index, Of: part, Index: uint32(i), Src: src[i], SrcSegs: segs, Dst: g,
			Tag: spec.Tag{Lease: lease, Gen: g.Gen, Part: part.Index, Index: uint32(i), Digest: digest, HasDigest: true, Used: used},
		})
	}
	return x
}

// run grants, posts, and waits until decode's half of the drain is done.
func (k *link) run(x transfer) {
	k.t.Helper()
	require.True(k.t, k.grants.Allow(x.grant))
	k.source.Post(x.batch)
	k.source.Notice(x.grant.Lease, 1)
	p := await(k.t, k.ssink.posted, "the end of the batch")
	require.NoError(k.t, p.err)
	require.Equal(k.t, x.batch.ID, p.id)
	n := await(k.t, k.ssink.noticed, "the notice's way out")
	require.NoError(k.t, n.err)
	require.NotEmpty(k.t, n.channels)
	for range n.channels {
		in := await(k.t, k.tsink.notice, "a notice")
		require.Equal(k.t, x.grant.Lease, in.lease)
	}
}

// check compares what landed: tags, and digests of the bytes as decode's layout has them.
func (e *ends) check(x transfer) {
	e.t.Helper()
	dp := e.dst[x.part.Component]
	for _, w := range x.batch.Writes {
		require.Equal(e.t, spec.TagGood, device.CheckTag(dp.Slot(w.Dst.Page, w.Part), w.Tag), "tag of page %d", w.Dst.Page)
		segs, err := x.part.Segments(dp.Layout, w.Index, nil)
		require.NoError(e.t, err)
		require.Equal(e.t, w.Tag.Digest, device.DigestSegments(dp.Page(w.Dst.Page), segs, device.HeaderOf(x.part, dp.Layout, w.Index, w.Tag.Used)), "bytes of page %d", w.Dst.Page)
	}
}

func ids(lo, n uint32) (out []spec.PageID) {
	for i := range n {
		out = append(out, spec.PageID(lo+i))
	}
	return out
}
