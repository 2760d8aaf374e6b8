package tcp

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/impl/device"
	"kvfence/impl/transport"
	"kvfence/spec"
)

// ucx #11918: a 4 MB PUT into pages 0..15 is paused half-way, the endpoint is closed by force, the pages go to B, the socket is resumed.
func TestCaseB09_PutPausedAndEndpointClosed_NothingOfItLands(t *testing.T) {
	l := kvLayout(16, 64, 0, 2, 2, 16) // 256 KiB pages
	mem, sink := memoryOf(t, l), newTargetSink()
	require.Equal(t, uint32(256<<10), l.Shape.PageBytes)
	grants := transport.NewGrants(mem)
	grants.Raise(1)
	a := spec.Grant{Lease: 1, Parts: []spec.Part{{Component: spec.KV, LayerHi: 64, HeadHi: 2, TokenHi: 256}}}
	var es []entry
	var pages [][]byte
	var tags []spec.Tag
	for i := range uint32(16) {
		g := spec.GrantedPage{Page: spec.PageID(i), Gen: 1}
		a.Pages[spec.KV] = append(a.Pages[spec.KV], g)
		es = append(es, entry{spec.KV, 0, i, g, l.Shape.PageBytes})
		pages = append(pages, bytes.Repeat([]byte{0xaa}, int(l.Shape.PageBytes)))
		tags = append(tags, spec.Tag{Lease: 1, Gen: 1, Index: i})
	}
	grants.Allow(a)
	put := appendFrame(nil, 1, es, pages, tags)
	target, f := dialForge(t, grants, sink, 1, Options{})
	_, err := f.Write(put[:len(put)/2])
	require.NoError(t, err)
	grants.Raise(2)
	target.Fence()
	<-sink.done
	set(mem[spec.KV].Bytes, 0xbb) // B
	for i := range spec.PageID(16) {
		device.PutTag(mem[spec.KV].Slot(i, 0), spec.Tag{Lease: 2, Gen: 2})
	}
	_, _ = f.Write(put[len(put)/2:])
	_ = f.tcp.CloseWrite()
	_, _ = io.Copy(io.Discard, f.tcp)
	_ = f.Close()
	require.Equal(t, len(mem[spec.KV].Bytes), bytes.Count(mem[spec.KV].Bytes, []byte{0xbb}))
	for i := range spec.PageID(16) {
		require.Equal(t, spec.TagGood, device.CheckTag(mem[spec.KV].Slot(i, 0), spec.Tag{Lease: 2, Gen: 2}))
	}
}

// vllm #44238 and others: 4 descriptors of 2,424,832 bytes and 4 of 16,384; the last 4 KiB are late. Nothing tells decode that the
// last lease is there before they are: no notice, no done page; with them, everything, and the digests are those of the source.
func TestCaseB15_LastBytesAreLate_NoNoticeOvertakesThem(t *testing.T) {
	kv := kvLayout(16, 592, 0, 2, 2, 4)
	aux := spec.NewDense(spec.Aux, spec.Meaning{ByteOrder: "little", HeadDim: 8192, ElemBytes: 2, KVs: 1, Layers: 1, Heads: 1}, 0, 1, 0, 1, 4, 1)
	require.Equal(t, [2]uint32{2424832, 16384}, [2]uint32{kv.Shape.PageBytes, aux.Shape.PageBytes})
	mem, sink := memoryOf(t, kv, aux), newTargetSink()
	grants := transport.NewGrants(mem)
	grants.Raise(1)
	var sent []byte
	digests := map[spec.LeaseID][2]uint64{}
	parts := []spec.Part{{Component: spec.KV, LayerHi: 592, HeadHi: 2, TokenHi: 16}, {Component: spec.Aux, LayerHi: 1, HeadHi: 1}}
	for n := spec.LeaseID(1); n <= 4; n++ {
		g := spec.GrantedPage{Page: spec.PageID(n - 1), Gen: 1}
		m := spec.Grant{Lease: n, Parts: parts, Digests: true}
		m.Pages[spec.KV], m.Pages[spec.Aux] = []spec.GrantedPage{g}, []spec.GrantedPage{g}
		grants.Allow(m)
		big, small := make([]byte, 2424832), make([]byte, 16384)
		fill(big, int64(n))
		fill(small, int64(n)+10)
		digests[n] = [2]uint64{
			device.DigestSegments(big, []spec.Segment{{Bytes: 2424832}}, device.HeaderOf(parts[0], kv, 0, 0)),
			device.DigestSegments(small, []spec.Segment{{Bytes: 16384}}, device.HeaderOf(parts[1], aux, 0, 0)),
		}
		sent = appendFrame(sent, n, []entry{{spec.KV, 0, 0, g, 2424832}, {spec.Aux, 0, 0, g, 16384}}, [][]byte{big, small}, []spec.Tag{{Lease: n}, {Lease: n}})
		sent = appendNotice(sent, n, uint64(n))
	}
	target, f := dialForge(t, grants, sink, 1, Options{})
	late := len(sent) - frameBytes - 2*spec.TagBytes - 4096
	_, err := f.Write(sent[:late])
	require.NoError(t, err)
	for n := spec.LeaseID(1); n <= 3; n++ {
		require.Equal(t, noticeIn{0, n, uint64(n)}, <-sink.notice)
	}
	for _, x := range grants.Landed(4, parts) {
		require.Equal(t, []bool{false}, x.Done)
	}
	require.Empty(t, sink.notice) // the page itself is the placer's until it has landed: only the grant table may be asked
	_, err = f.Write(sent[late:])
	require.NoError(t, err)
	require.Equal(t, noticeIn{0, 4, 4}, <-sink.notice)
	for n, want := range digests {
		got := grants.Landed(n, parts)
		require.Equal(t, []bool{true, true}, []bool{got[0].Done[0], got[1].Done[0]})
		require.Equal(t, want, [2]uint64{got[0].Digest[0], got[1].Digest[0]}, "lease %d", n)
	}
	grants.Raise(2)
	target.Fence()
	<-sink.done
	_ = f.Close()
}
