package tcp

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/impl/transport"
	"kvfence/spec"
)

func write(src spec.PageID, segs ...spec.Segment) transport.Write {
	return transport.Write{Component: spec.KV, Src: src, SrcSegs: segs}
}

func TestSource_PostedBeforeAttach_WaitsInOrder(t *testing.T) {
	ln, sink := newExpecting(t, Options{})
	src := ln.expected[keyOf(linkInfo(1))].(*source)
	src.Post(transport.Batch{ID: 1, Lease: 1, Writes: []transport.Write{write(2, spec.Segment{Bytes: 128})}})
	src.Notice(1, 5)
	c := dialPeer(t, ln.Addr(), linkInfo(1), 0, 2, Options{})
	defer func() { _ = c.Close() }()
	require.Empty(t, sink.posted, "one of two streams")
	d := dialPeer(t, ln.Addr(), linkInfo(1), 1, 2, Options{})
	defer func() { _ = d.Close() }()
	require.Equal(t, posted{1, nil}, <-sink.posted)
	require.Equal(t, noticed{1, []spec.Channel{{ID: 0, Notice: 5}}, nil}, <-sink.noticed)
	got := make([]byte, frameBytes+entryBytes+128+spec.TagBytes+frameBytes)
	_, err := io.ReadFull(c, got)
	require.NoError(t, err)
	f, err := parseFrame(got[len(got)-frameBytes:])
	require.NoError(t, err)
	require.Equal(t, frame{notice: true, lease: 1, number: 5}, f, "the notice is behind the write")
}

func TestSource_NoticeOfALeaseThatCarriedNothing_GoesOnEveryStream(t *testing.T) {
	k := newLink(t, memoryOf(t, kvLayout(1, 1, 0, 1, 1, 4)), memoryOf(t, kvLayout(1, 1, 0, 1, 1, 4)), Options{Streams: 3})
	k.source.Notice(4, 9)
	require.Equal(t, []spec.Channel{{ID: 0, Notice: 9}, {ID: 1, Notice: 9}, {ID: 2, Notice: 9}}, (<-k.ssink.noticed).channels)
	seen := map[uint32]bool{}
	for range 3 {
		in := <-k.tsink.notice
		require.Equal(t, uint64(9), in.number)
		seen[in.channel] = true
	}
	require.Len(t, seen, 3)
}

func TestSource_WriteOutsideOfThePool_EndsUnsent(t *testing.T) {
	k := newLink(t, memoryOf(t, kvLayout(1, 1, 0, 1, 1, 4)), memoryOf(t, kvLayout(1, 1, 0, 1, 1, 4)), Options{})
	bad := map[string]transport.Write{
		"page": write(4, spec.Segment{Bytes: 1}), "segment": write(0, spec.Segment{Offset: 100, Bytes: 29}), "overflow": write(0, spec.Segment{Offset: 0xffffffff, Bytes: 2}),
		"empty": write(0), "component": {Component: spec.State, SrcSegs: []spec.Segment{{Bytes: 1}}}, "no component": {Component: 9, SrcSegs: []spec.Segment{{Bytes: 1}}},
	}
	for name, w := range bad {
		k.source.Post(transport.Batch{ID: 3, Lease: 1, Writes: []transport.Write{w}})
		require.ErrorIs(t, (<-k.ssink.posted).err, ErrWrite, name)
	}
	k.source.Post(transport.Batch{ID: 3, Writes: []transport.Write{write(0, spec.Segment{Bytes: 1})}})
	require.ErrorIs(t, (<-k.ssink.posted).err, ErrWrite, "lease 0")
	k.source.Notice(0, 1)
	require.ErrorIs(t, (<-k.ssink.noticed).err, ErrWrite)
	k.source.Post(transport.Batch{ID: 4, Lease: 1})
	require.Equal(t, posted{4, nil}, <-k.ssink.posted, "an empty batch is done")
	k.source.Post(transport.Batch{ID: 5, Lease: 1, Writes: []transport.Write{write(0, spec.Segment{Bytes: 128})}})
	require.Equal(t, posted{5, nil}, <-k.ssink.posted, "the link goes on")
}

func TestSource_QueueOverItsBound_EndsWithFull(t *testing.T) {
	ln, sink := newExpecting(t, Options{MaxQueued: 3})
	src := ln.expected[keyOf(linkInfo(1))].(*source)
	w := write(0, spec.Segment{Bytes: 128})
	src.Post(transport.Batch{ID: 1, Lease: 1, Writes: []transport.Write{w, w}})
	src.Post(transport.Batch{ID: 2, Lease: 1, Writes: []transport.Write{w, w}})
	p := <-sink.posted
	require.Equal(t, uint64(2), p.id)
	require.ErrorIs(t, p.err, ErrQueueFull)
	src.Post(transport.Batch{ID: 3, Lease: 1, Writes: []transport.Write{w}})
	c := dialPeer(t, ln.Addr(), linkInfo(1), 0, 1, Options{})
	defer func() { _ = c.Close() }()
	require.Equal(t, posted{1, nil}, <-sink.posted)
	require.Equal(t, posted{3, nil}, <-sink.posted)
	src.Post(transport.Batch{ID: 4, Lease: 1, Writes: []transport.Write{w, w, w}})
	require.Equal(t, posted{4, nil}, <-sink.posted, "what was sent no longer counts")
}

func TestSource_FencedOrLost_EndsEverythingOnce(t *testing.T) {
	big := kvLayout(32, 16, 0, 16, 16, 16) // 1 MiB pages
	for _, fence := range []bool{true, false} {
		ln, err := Listen("127.0.0.1:0", memoryOf(t, big), Options{})
		require.NoError(t, err)
		sink := newSourceSink()
		src, err := ln.Expect(linkInfo(1), sink)
		require.NoError(t, err)
		peers := []io.Closer{dialPeer(t, ln.Addr(), linkInfo(1), 0, 2, Options{}), dialPeer(t, ln.Addr(), linkInfo(1), 1, 2, Options{})}
		for i := range uint64(30) {
			src.Post(transport.Batch{ID: i, Lease: 1, Writes: []transport.Write{write(0, spec.Segment{Bytes: 1 << 20}), write(1, spec.Segment{Bytes: 1 << 20})}})
		}
		want := transport.ErrFenced
		if !fence {
			want = transport.ErrStream
			_ = peers[1].Close()
			require.ErrorIs(t, <-sink.lost, transport.ErrStream)
			src.Post(transport.Batch{ID: 30, Lease: 1, Writes: []transport.Write{write(0, spec.Segment{Bytes: 1})}})
			src.Notice(1, 1)
			require.ErrorIs(t, (<-sink.noticed).err, want)
		} else {
			src.Fence()
		}
		src.Fence()
		src.Fence()
		<-sink.done
		seen := map[uint64]error{}
		for len(sink.posted) > 0 {
			p := <-sink.posted
			require.NotContains(t, seen, p.id)
			seen[p.id] = p.err
		}
		require.GreaterOrEqual(t, len(seen), 30, "each batch ends")
		require.ErrorIs(t, seen[29], want)
		require.Empty(t, sink.lost, "one loss, one report; a fence is none")
		for _, c := range peers {
			_ = c.Close()
		}
		require.NoError(t, ln.Close())
		require.Empty(t, ln.expected)
	}
}

func TestSource_PeerThatSends_IsLost(t *testing.T) {
	ln, sink := newExpecting(t, Options{})
	c := dialPeer(t, ln.Addr(), linkInfo(1), 0, 1, Options{})
	defer func() { _ = c.Close() }()
	_, _ = c.Write([]byte{1})
	require.ErrorIs(t, <-sink.lost, ErrFrame)
}

func TestTarget_StreamEnds_IsLostOnce(t *testing.T) {
	k := newLink(t, memoryOf(t, kvLayout(1, 1, 0, 1, 1, 4)), memoryOf(t, kvLayout(1, 1, 0, 1, 1, 4)), Options{Streams: 3})
	k.source.Fence()
	<-k.ssink.done
	require.ErrorIs(t, <-k.tsink.lost, transport.ErrStream)
	k.grants.Raise(2)
	k.target.Fence()
	<-k.tsink.done
	require.Empty(t, k.tsink.lost)
}

func TestTarget_Garbage_IsLost(t *testing.T) {
	s := newScene(t)
	target, f := dialForge(t, s.grants, s.sink, 3, Options{})
	_, err := f.Write(make([]byte, 100))
	require.NoError(t, err)
	lost := <-s.sink.lost
	require.ErrorIs(t, lost, ErrFrame)
	require.ErrorIs(t, lost, transport.ErrStream)
	require.Equal(t, s.before, s.mem[spec.KV].Bytes)
	s.grants.Raise(4)
	target.Fence()
	<-s.sink.done
	_ = f.Close()
}
