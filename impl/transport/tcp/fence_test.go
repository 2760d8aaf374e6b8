package tcp

import (
	"bytes"
	"io"
	"math/rand"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/impl/device"
	"kvfence/impl/transport"
	"kvfence/spec"
)

// halfWay is one round's scene: a pool, a lease of four pages, and the bytes of its frame.
type halfWay struct {
	mem    device.Memory
	grants *transport.Grants
	sink   *targetSink
	target transport.Target
	forge  *forge
	first  []byte // a whole frame and a notice
	second []byte // the frame that is paused
	page   int    // bytes of one write
}

func newHalfWay(t *testing.T, r *rand.Rand, opts Options) *halfWay {
	l := kvLayout(16, 4, 0, 4, 4, 16) // 32 KiB pages in one piece or, for half of the heads, in 8
	h := &halfWay{mem: memoryOf(t, l), sink: newTargetSink()}
	h.grants = transport.NewGrants(h.mem)
	h.grants.Raise(7)
	heads := uint32(4)
	if r.Intn(2) == 0 {
		heads = 2
	}
	m := spec.Grant{Lease: 1, Digests: r.Intn(2) == 0, Parts: []spec.Part{{Component: spec.KV, LayerHi: 4, HeadHi: heads, TokenHi: 16 * 5}}}
	for i, p := range perm(r, 16)[:5] {
		m.Pages[spec.KV] = append(m.Pages[spec.KV], spec.GrantedPage{Page: p, Gen: spec.Generation(i + 1)})
	}
	h.grants.Allow(m)
	h.target, h.forge = dialForge(t, h.grants, h.sink, 7, opts)
	n := (8 << 10) * heads
	h.page = int(n)
	var es []entry
	var pages [][]byte
	var tags []spec.Tag
	for i, p := range m.Pages[spec.KV] {
		es = append(es, entry{spec.KV, 0, uint32(i), p, n})
		pages = append(pages, bytes.Repeat([]byte{0xaa}, int(n)))
		tags = append(tags, spec.Tag{Lease: 1, Gen: p.Gen, Index: uint32(i), Used: n})
	}
	h.first = appendNotice(appendFrame(nil, 1, es[:1], pages[:1], tags[:1]), 1, 1)
	h.second = appendNotice(appendFrame(nil, 1, es[1:], pages[1:], tags[1:]), 1, 2)
	return h
}

// A write is paused half-way; the epoch is fenced; the pages are handed to another request, which fills them and their tags; the
// write is resumed. Not one byte of the whole pool and of all tags changes. The pause is at any byte of the frame, head, page, tag
// or notice; in some rounds the peer does not pause at all and goes on writing through the fence.
func TestFence_WritePausedHalfWay_NothingLands(t *testing.T) {
	for name, opts := range map[string]Options{"plain": {}, "spinning": {Spin: 20}, "TLS": {TLS: tlsPair()}} {
		t.Run(name, func(t *testing.T) {
			rounds, whole, partial := 0, 0, 0
			for ; rounds < 60 || partial == 0 && rounds < 600; rounds++ { // longer where the scheduler lets no fence come inside of a page
				seed := rounds
				r := rand.New(rand.NewSource(int64(seed)))
				h := newHalfWay(t, r, opts)
				_, err := h.forge.Write(h.first)
				require.NoError(t, err, "seed %d", seed)
				<-h.sink.notice
				cut := r.Intn(len(h.second) + 1)
				resume, written := make(chan struct{}), make(chan struct{})
				if seed%4 == 3 {
					close(resume) // no pause
				}
				go func() {
					defer close(written)
					if _, err := h.forge.Write(h.second[:cut]); err != nil {
						return
					}
					<-resume
					_, _ = h.forge.Write(h.second[cut:]) // into a closed stream, or into nothing
				}()
				for range r.Intn(400) {
					runtime.Gosched()
				}
				h.grants.Raise(8)
				h.target.Fence()
				<-h.sink.done
				pool := h.mem[spec.KV]
				switch n := bytes.Count(pool.Bytes, []byte{0xaa}); {
				case n >= h.page && n%h.page == 0:
					whole++
				case n > h.page:
					partial++
				}
				fill(pool.Bytes, int64(seed)) // the next owner
				fill(pool.Tags, int64(seed)+1)
				bytesBefore, tagsBefore := bytes.Clone(pool.Bytes), bytes.Clone(pool.Tags)
				if seed%4 != 3 {
					close(resume)
				}
				<-written
				_ = h.forge.tcp.CloseWrite()
				_, _ = io.Copy(io.Discard, h.forge.tcp) // until the target's end is gone for the kernel, too
				_ = h.forge.Close()
				require.True(t, bytes.Equal(bytesBefore, pool.Bytes), "seed %d: bytes landed after the fence", seed)
				require.True(t, bytes.Equal(tagsBefore, pool.Tags), "seed %d: a tag landed after the fence", seed)
				require.Empty(t, h.sink.lost, "a fence is no loss")
			}
			require.Equal(t, rounds, whole+partial, "the first frame of each round had landed: the scene is alive")
			require.NotZero(t, partial, "some readers were inside of a page")
			t.Logf("%d of %d fences came inside of a page", partial, rounds)
		})
	}
}

// The reader stands between Begin and its bytes when the fence comes: Fenced waits for it, and the page counts as not done.
func TestFence_ReaderInsideAPage_EndsWithoutIt(t *testing.T) {
	h := newHalfWay(t, rand.New(rand.NewSource(4)), Options{})
	defer func() { _ = h.forge.Close() }()
	_, err := h.forge.Write(h.second[:len(h.second)/2])
	require.NoError(t, err)
	begun := func() bool { // a placer of epoch 7 makes Wait(8) block
		over := make(chan struct{})
		go func() { _ = h.grants.Wait(8); close(over) }()
		for range 100 {
			select {
			case <-over:
				return false
			default:
				runtime.Gosched()
			}
		}
		return true
	}
	for !begun() {
		runtime.Gosched()
	}
	h.grants.Raise(8)
	h.target.Fence()
	<-h.sink.done
	require.NoError(t, h.grants.Wait(8))
	h.target.Fence() // again: nothing happens, Fenced is not called twice
	require.Empty(t, h.sink.notice)
}

// After Raise a stream of the old epoch is refused even where no fence has closed it yet.
func TestFence_RaisedButNotClosed_RefusesEveryNewPage(t *testing.T) {
	h := newHalfWay(t, rand.New(rand.NewSource(4)), Options{})
	defer func() { _ = h.forge.Close() }()
	h.grants.Raise(8)
	_, err := h.forge.Write(h.second)
	require.NoError(t, err)
	<-h.sink.notice
	require.Equal(t, 4, h.sink.count(spec.RefuseStaleEpoch))
	require.Equal(t, make([]byte, len(h.mem[spec.KV].Bytes)), h.mem[spec.KV].Bytes)
	require.Equal(t, make([]byte, len(h.mem[spec.KV].Tags)), h.mem[spec.KV].Tags)
	h.target.Fence()
	<-h.sink.done
}

// After Fenced the source's pages go to another request. A peer that reads what is left in the socket finds only bytes from before.
func TestSource_FenceWhileSending_ReadsNoPageAfterwards(t *testing.T) {
	for name, opts := range map[string]Options{"plain": {}, "TLS": {TLS: tlsPair()}} {
		t.Run(name, func(t *testing.T) {
			for seed := range 10 {
				r := rand.New(rand.NewSource(int64(seed)))
				l := kvLayout(16, 16, 0, 16, 16, 48) // 512 KiB pages: more than the sockets hold
				mem, sink := memoryOf(t, l), newSourceSink()
				set(mem[spec.KV].Bytes, 0xaa)
				ln, err := Listen("127.0.0.1:0", mem, opts)
				require.NoError(t, err)
				src, err := ln.Expect(linkInfo(1), sink)
				require.NoError(t, err)
				peer := dialPeer(t, ln.Addr(), linkInfo(1), 0, 1, opts)
				for i := range uint32(40) {
					src.Post(transport.Batch{ID: uint64(i), Lease: 1, Writes: []transport.Write{{Component: spec.KV, Index: i, Src: spec.PageID(i), SrcSegs: []spec.Segment{{Bytes: l.Shape.PageBytes}}}}})
				}
				src.Notice(1, 1)
				_, err = io.CopyN(io.Discard, peer, int64(r.Intn(3<<20)))
				require.NoError(t, err)
				src.Fence()
				<-sink.done
				set(mem[spec.KV].Bytes, 0xbb) // the next owner's
				rest, _ := io.ReadAll(peer)
				require.Negative(t, bytes.Index(rest, bytes.Repeat([]byte{0xbb}, 8)), "seed %d", seed)
				failed := 0
				for range 40 {
					if p := <-sink.posted; p.err != nil {
						require.ErrorIs(t, p.err, transport.ErrFenced)
						failed++
					}
				}
				require.NotZero(t, failed, "20 MiB do not fit into the sockets")
				nd := <-sink.noticed
				require.ErrorIs(t, nd.err, transport.ErrFenced)
				require.Empty(t, nd.channels)
				require.Empty(t, sink.lost)
				src.Post(transport.Batch{ID: 99, Lease: 1})
				_ = peer.Close()
				require.NoError(t, ln.Close())
			}
		})
	}
}
