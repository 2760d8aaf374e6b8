package tcp

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvfence/impl/transport"
	"kvfence/spec"
)

// meddler is a connection between dialer and listener that changes what the fuzzer says: the byte at a place of one direction is another
// one, or the stream ends there.
type meddler struct {
	at    int
	xor   byte // 0: the stream ends
	moved int
	hit   bool
}

// pass copies from one end to the other and closes both behind the end.
func (m *meddler) pass(from, to net.Conn) {
	defer func() { _, _ = from.Close(), to.Close() }() // the other side has ended already, or ends now
	var b [64]byte
	for {
		n, err := from.Read(b[:])
		if i := m.at - m.moved; i >= 0 && i < n {
			m.hit = true
			if m.xor == 0 {
				_, _ = to.Write(b[:i])
				return
			}
			b[i] ^= m.xor
		}
		m.moved += n
		if _, werr := to.Write(b[:n]); err != nil || werr != nil {
			return
		}
	}
}

// FuzzChallenge: whatever is changed on the way, or however the keys differ, a stream is attached only if every byte of the mutual
// challenge arrived as it was said, by a dialer and a listener that hold one key for one link.
func FuzzChallenge(f *testing.F) {
	f.Add(uint16(1000), byte(0), true, byte(0), byte(0), uint64(9), uint16(0), uint16(2))
	f.Add(uint16(20), byte(1), true, byte(0), byte(0), uint64(9), uint16(1), uint16(2))
	f.Add(uint16(40), byte(1), false, byte(1), byte(0), uint64(9), uint16(0), uint16(1))
	f.Add(uint16(100), byte(0), true, byte(0), byte(3), uint64(1), uint16(0), uint16(1))
	f.Fuzz(func(t *testing.T, at uint16, xor byte, outward bool, otherKey, otherBinding byte, epoch uint64, stream, streams uint16) {
		dialer, out := net.Pipe()
		in, listener := net.Pipe()
		for _, c := range []net.Conn{dialer, listener} {
			require.NoError(t, c.SetDeadline(time.Now().Add(20*time.Second)))
		}
		m, honest := &meddler{at: int(at) % 160, xor: xor}, &meddler{at: -1}
		toListener, toDialer := m, honest
		if !outward {
			toListener, toDialer = honest, m
		}
		ended := make(chan struct{}, 2)
		go func() { toListener.pass(out, in); ended <- struct{}{} }()
		go func() { toDialer.pass(in, out); ended <- struct{}{} }()
		h := hello{stream: int(stream), streams: int(streams), prefill: spec.Incarnation{1}, decode: spec.Incarnation{2}, epoch: spec.Epoch(epoch)}
		key := [32]byte{7}
		type attached struct {
			h   hello
			err error
		}
		heard := make(chan attached, 1)
		go func() {
			got, err := challenge(listener, make([]byte, 32), func(h hello) ([32]byte, bool) { return key, h.epoch == spec.Epoch(epoch) })
			if err == nil {
				_, err = listener.Write([]byte{1})
			}
			_ = listener.Close()
			heard <- attached{got, err}
		}()
		binding := make([]byte, 32)
		binding[3] = otherBinding
		theirs := key
		theirs[4] ^= otherKey
		err := prove(dialer, theirs, h, binding)
		_ = dialer.Close()
		got := <-heard
		<-ended
		<-ended
		legal := h.streams > 0 && h.streams <= MaxStreams && h.stream < h.streams
		if err == nil {
			require.True(t, legal)
			require.Zero(t, otherKey|otherBinding)
			require.False(t, m.hit, "a stream is attached although byte %d was changed", m.at)
			require.NoError(t, got.err)
		} else if !m.hit && legal {
			require.NotZero(t, otherKey|otherBinding, "nobody meddled: %v, %v", err, got.err)
			require.ErrorIs(t, err, transport.ErrAuth)
		}
		if got.err == nil {
			require.Equal(t, [3]any{h.stream, h.streams, h.epoch}, [3]any{got.h.stream, got.h.streams, got.h.epoch})
			require.Zero(t, otherKey|otherBinding)
		}
	})
}
