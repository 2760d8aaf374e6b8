package tcp

import (
	"bytes"
	"context"
	"io"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvfence/impl/transport"
	"kvfence/spec"
)

// shortWire takes any part of what it is given, never more than a call may have, and fails after a number of bytes.
type shortWire struct {
	t     *testing.T
	r     *rand.Rand
	got   []byte
	fail  int // bytes it takes in all; 0: no end
	calls int
}

func (w *shortWire) writev(v []unix.Iovec) (n int, err error) {
	w.calls++
	require.LessOrEqual(w.t, len(v), callIovs)
	total := 0
	for _, x := range v {
		total += int(x.Len)
	}
	require.LessOrEqual(w.t, total, callBytes)
	left := 1 + w.r.Intn(total)
	if w.r.Intn(2) == 0 {
		left = total
	}
	if w.fail > 0 {
		if left = min(left, w.fail-len(w.got)); left == 0 {
			return 0, io.ErrClosedPipe
		}
	}
	for _, x := range v {
		k := min(int(x.Len), left-n)
		w.got = append(w.got, bytesOf(x)[:k]...)
		n += k
	}
	return n, nil
}

func (w *shortWire) readv([]unix.Iovec) (int, error) { return 0, io.EOF }
func (w *shortWire) close()                          {}

// senderScene is a sender over a shortWire with a source of 4 KiB pages, and ops of all sizes with the bytes they must become.
func senderScene(t *testing.T, seed int64) (*sender, *shortWire, *sourceSink, []op, []byte) {
	r := rand.New(rand.NewSource(seed))
	mem, sink := memoryOf(t, kvLayout(16, 1, 0, 2, 2, 32)), newSourceSink()
	fill(mem[spec.KV].Bytes, seed)
	src := &source{mem: mem, rep: transport.NewReporter(sink), carried: map[spec.LeaseID]uint32{}, gone: func() {}}
	t.Cleanup(func() { src.Fence(); <-sink.done })
	w := &shortWire{t: t, r: r}
	s := &sender{src: src, w: w}
	s.ready.L = &src.mu
	var ops []op
	var want []byte
	for id := uint64(1); id <= 12; id++ {
		o := op{batch: &batch{id: id, left: 1}, lease: spec.LeaseID(id)}
		most := []int{3, 255, 256, 257, 900}[r.Intn(5)]
		for i := range uint32(most) {
			wr := transport.Write{Component: spec.KV, Index: i, Src: spec.PageID(r.Intn(32)), Dst: spec.GrantedPage{Page: spec.PageID(i), Gen: 3}, Tag: spec.Tag{Index: i}}
			for at := 0; at < 4096; { // many small segments exhaust the list before its bytes
				at += r.Intn(200)
				k := min(1+r.Intn(1500), 4096-at)
				if k > 0 {
					wr.SrcSegs = append(wr.SrcSegs, spec.Segment{Offset: uint32(at), Bytes: uint32(k)})
					at += k
				}
			}
			o.writes = append(o.writes, wr)
		}
		for from := 0; from < len(o.writes); from += maxEntries {
			var es []entry
			var pages [][]byte
			var tags []spec.Tag
			for _, wr := range o.writes[from:min(from+maxEntries, len(o.writes))] {
				es = append(es, entry{wr.Component, wr.Part, wr.Index, wr.Dst, spec.UsedBytes(wr.SrcSegs)})
				pages = append(pages, gather(mem[spec.KV].Page(wr.Src), wr.SrcSegs))
				tags = append(tags, wr.Tag)
			}
			want = appendFrame(want, o.lease, es, pages, tags)
		}
		want = appendNotice(want, o.lease, id)
		ops = append(ops, o, op{notice: &notice{lease: o.lease, number: id, left: 1}})
	}
	return s, w, sink, ops, want
}

func TestSender_ShortWrites_SendTheSameBytes(t *testing.T) {
	for seed := range int64(5) {
		s, w, sink, ops, want := senderScene(t, seed)
		require.NoError(t, s.sendAll(ops))
		require.True(t, bytes.Equal(want, w.got), "seed %d", seed)
		for id := uint64(1); id <= 12; id++ {
			require.Equal(t, posted{id, nil}, <-sink.posted)
			require.NoError(t, (<-sink.noticed).err)
		}
		require.Less(t, w.calls, 3*len(want)/callBytes+1500, "pages are gathered into few calls")
	}
}

// Whatever byte the stream dies at: what was not handed over whole has not ended well, and every op can still be ended.
func TestSender_StreamDies_OnlyWholeOpsAreDone(t *testing.T) {
	for seed := range int64(8) {
		s, w, sink, ops, want := senderScene(t, seed)
		w.fail = 1 + w.r.Intn(len(want)-1)
		require.ErrorIs(t, s.sendAll(ops), io.ErrClosedPipe)
		require.True(t, bytes.HasPrefix(want, w.got))
		s.src.end(s.taken, transport.ErrStream)
		s.src.end(ops, transport.ErrStream)
		failed := false
		for id := uint64(1); id <= 12; id++ {
			p := <-sink.posted
			require.Equal(t, id, p.id)
			if failed {
				require.ErrorIs(t, p.err, transport.ErrStream, "seed %d: batch %d after a failed one", seed, id)
			}
			failed = p.err != nil
		}
		require.True(t, failed, "the last batch, or its notice, was not sent")
	}
}

func TestDial_Loopback_UsesReno(t *testing.T) {
	for want, opts := range map[string]Options{"reno": {}, "": {Congestion: KeepCongestion}} {
		k := newLink(t, memoryOf(t), memoryOf(t), opts)
		c := k.target.(*target).wires[0].(*rawWire).c
		rc, err := c.SyscallConn()
		require.NoError(t, err)
		var got, def string
		require.NoError(t, rc.Control(func(fd uintptr) { got, err = unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION) }))
		require.NoError(t, err)
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		require.NoError(t, err)
		def, err = unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
		require.NoError(t, err)
		require.NoError(t, unix.Close(fd))
		if want == "" {
			want = def
		}
		require.Equal(t, want, got)
	}
	_, err := Dial(context.Background(), "127.0.0.1:1", linkInfo(1), transport.NewGrants(memoryOf(t)), newTargetSink(), Options{})
	require.Error(t, err, "nobody listens there")
}
