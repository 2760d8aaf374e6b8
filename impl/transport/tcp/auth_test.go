package tcp

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvfence/impl/transport"
	"kvfence/spec"
)

// dialPeer attaches a raw stream to a listener, as a target would.
func dialPeer(t testing.TB, addr string, info transport.LinkInfo, stream, streams int, opts Options) net.Conn {
	conn, err := tryPeer(addr, info, stream, streams, opts)
	require.NoError(t, err)
	return conn
}

func tryPeer(addr string, info transport.LinkInfo, stream, streams int, opts Options) (net.Conn, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	conn, binding, err := secure(context.Background(), c.(*net.TCPConn), opts.TLS, false)
	if err == nil {
		err = prove(conn, info.Key, hello{stream: stream, streams: streams, prefill: info.Prefill, decode: info.Decode, epoch: info.Epoch}, binding)
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return conn, nil
}

func newExpecting(t *testing.T, opts Options) (*Listener, *sourceSink) {
	ln, err := Listen("127.0.0.1:0", memoryOf(t, kvLayout(1, 1, 0, 1, 1, 4)), opts)
	require.NoError(t, err)
	sink := newSourceSink()
	src, err := ln.Expect(linkInfo(1), sink)
	require.NoError(t, err)
	t.Cleanup(func() {
		src.Fence()
		<-sink.done
		require.NoError(t, ln.Close())
	})
	return ln, sink
}

func TestAuth_AnythingDifferent_IsDenied(t *testing.T) {
	cases := map[string]func(*transport.LinkInfo){
		"key":     func(i *transport.LinkInfo) { i.Key[31] ^= 1 },
		"epoch":   func(i *transport.LinkInfo) { i.Epoch++ },
		"prefill": func(i *transport.LinkInfo) { i.Prefill[0]++ },
		"decode":  func(i *transport.LinkInfo) { i.Decode[15]++ },
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			ln, _ := newExpecting(t, Options{})
			info := linkInfo(1)
			change(&info)
			_, err := Dial(context.Background(), ln.Addr(), info, transport.NewGrants(memoryOf(t)), newTargetSink(), Options{})
			require.ErrorIs(t, err, transport.ErrAuth)
			_ = dialPeer(t, ln.Addr(), linkInfo(1), 0, 1, Options{}).Close()
		})
	}
}

// A dialer that cannot make the second proof gets no stream, whatever it answers; nor does the listener's own answer serve as one.
func TestAuth_DialerWithoutKey_IsDenied(t *testing.T) {
	answers := map[string]func(listener []byte) []byte{
		"zeros":                 func([]byte) []byte { return make([]byte, macBytes) },
		"the listener's answer": func(l []byte) []byte { return l[nonceBytes:] },
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			ln, _ := newExpecting(t, Options{})
			c, err := net.Dial("tcp", ln.Addr())
			require.NoError(t, err)
			defer func() { _ = c.Close() }()
			i := linkInfo(1)
			var hb [helloBytes]byte
			hello{streams: 1, prefill: i.Prefill, decode: i.Decode, epoch: 1}.put(hb[:])
			_, _ = c.Write(hb[:])
			got := make([]byte, nonceBytes+macBytes)
			_, err = io.ReadFull(c, got)
			require.NoError(t, err)
			_, _ = c.Write(answer(got))
			n, err := c.Read(got)
			require.Zero(t, n)
			require.Error(t, err)
			for ln.Denied() == 0 {
				time.Sleep(time.Millisecond)
			}
		})
	}
}

// A listener that does not hold the key learns nothing and gets no target.
func TestAuth_ListenerWithoutKey_IsRefused(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = ln.Close() }()
	go func() {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		_, _ = challenge(c, make([]byte, 32), func(hello) ([32]byte, bool) { return [32]byte{0xff}, true })
		_ = c.Close()
	}()
	_, err = Dial(context.Background(), ln.Addr().String(), linkInfo(1), transport.NewGrants(memoryOf(t)), newTargetSink(), Options{})
	require.ErrorIs(t, err, transport.ErrAuth)
	require.ErrorContains(t, err, "does not hold the key")
}

func TestAuth_ReplayedProof_IsDenied(t *testing.T) {
	key := [32]byte{1}
	hb := make([]byte, helloBytes)
	a := mac(key, "decode", hb, []byte("nonce one"), make([]byte, 32))
	require.Equal(t, a, mac(key, "decode", hb, []byte("nonce one"), make([]byte, 32)))
	require.NotEqual(t, a, mac(key, "decode", hb, []byte("nonce two"), make([]byte, 32)))
	require.NotEqual(t, a, mac(key, "prefill", hb, []byte("nonce one"), make([]byte, 32)))
	require.NotEqual(t, a, mac(key, "decode", hb, []byte("nonce one"), append(make([]byte, 31), 1)), "another TLS session")
}

func TestAuth_Garbage_IsDenied(t *testing.T) {
	for name, b := range map[string][]byte{"other protocol": []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n" + string(make([]byte, 96))), "zeros": make([]byte, 96)} {
		t.Run(name, func(t *testing.T) {
			ln, _ := newExpecting(t, Options{})
			c, err := net.Dial("tcp", ln.Addr())
			require.NoError(t, err)
			_, _ = c.Write(b)
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
			for ln.Denied() == 0 {
				time.Sleep(time.Millisecond)
			}
		})
	}
}

func TestHello_OutOfBounds_IsRefused(t *testing.T) {
	for name, h := range map[string]hello{"no streams": {}, "stream beyond": {stream: 2, streams: 2}, "too many": {streams: MaxStreams + 1}} {
		var b [helloBytes]byte
		h.put(b[:])
		_, err := parseHello(b[:])
		require.ErrorIs(t, err, transport.ErrAuth, name)
	}
	h := hello{stream: 1, streams: 2, prefill: spec.Incarnation{1}, decode: spec.Incarnation{2}, epoch: 9, nonce: [32]byte{7}}
	var b [helloBytes]byte
	h.put(b[:])
	got, err := parseHello(b[:])
	require.NoError(t, err)
	require.Equal(t, h, got)
	for _, at := range []int{0, 4, 10, 15, 56, 63} {
		b[at] ^= 0x40
		_, err := parseHello(b[:])
		require.ErrorIs(t, err, transport.ErrAuth, "byte %d", at)
		b[at] ^= 0x40
	}
}

func TestAuth_SecondStreamOfOneNumber_IsDenied(t *testing.T) {
	ln, sink := newExpecting(t, Options{})
	c := dialPeer(t, ln.Addr(), linkInfo(1), 0, 2, Options{})
	_, err := tryPeer(ln.Addr(), linkInfo(1), 0, 2, Options{})
	require.ErrorIs(t, err, transport.ErrAuth, "attached already")
	_, err = tryPeer(ln.Addr(), linkInfo(1), 1, 3, Options{})
	require.ErrorIs(t, err, transport.ErrAuth, "another number of streams")
	require.Empty(t, sink.lost, "a stranger's attempt costs the link nothing")
	_ = c.Close()
	require.ErrorIs(t, <-sink.lost, transport.ErrStream)
}

func TestAuth_SilentConnections_AreClosedAndBounded(t *testing.T) {
	ln, _ := newExpecting(t, Options{Handshake: 50 * time.Millisecond, Pending: 2})
	var held []net.Conn
	for range 5 {
		c, err := net.Dial("tcp", ln.Addr())
		require.NoError(t, err)
		held = append(held, c)
	}
	for _, c := range held {
		_, err := io.Copy(io.Discard, c) // returns when the listener closes
		_ = err
		_ = c.Close()
	}
	for ln.Denied() < 5 {
		time.Sleep(time.Millisecond)
	}
	_ = dialPeer(t, ln.Addr(), linkInfo(1), 0, 1, Options{}).Close()
}

func TestAuth_NoKey_IsNoLink(t *testing.T) {
	ln, _ := newExpecting(t, Options{})
	i := linkInfo(2)
	i.Key = [32]byte{}
	_, err := ln.Expect(i, newSourceSink())
	require.ErrorIs(t, err, transport.ErrAuth)
	_, err = Dial(context.Background(), ln.Addr(), i, transport.NewGrants(memoryOf(t)), newTargetSink(), Options{})
	require.ErrorIs(t, err, transport.ErrAuth)
	_, err = ln.Expect(linkInfo(1), newSourceSink())
	require.ErrorIs(t, err, ErrExpected)
}

func TestAuth_PlainDialerToTLS_AndTheReverse_AreDenied(t *testing.T) {
	ln, _ := newExpecting(t, Options{TLS: tlsPair(), Handshake: 200 * time.Millisecond})
	_, err := Dial(context.Background(), ln.Addr(), linkInfo(1), transport.NewGrants(memoryOf(t)), newTargetSink(), Options{})
	require.ErrorIs(t, err, transport.ErrAuth)
	plain, _ := newExpecting(t, Options{Handshake: 200 * time.Millisecond})
	_, err = Dial(context.Background(), plain.Addr(), linkInfo(1), transport.NewGrants(memoryOf(t)), newTargetSink(), Options{TLS: tlsPair()})
	require.ErrorIs(t, err, transport.ErrAuth)
	noCert := tlsPair().Clone()
	noCert.Certificates = nil
	_, err = Dial(context.Background(), ln.Addr(), linkInfo(1), transport.NewGrants(memoryOf(t)), newTargetSink(), Options{TLS: noCert})
	require.ErrorIs(t, err, transport.ErrAuth, "TLS is mutual where the listener asks for it")
}

func TestDial_ContextEnds_Returns(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0") // accepts in the kernel and never answers
	require.NoError(t, err)
	defer func() { _ = ln.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	_, err = Dial(ctx, ln.Addr().String(), linkInfo(1), transport.NewGrants(memoryOf(t)), newTargetSink(), Options{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestOptions_OutOfBounds_AreRefused(t *testing.T) {
	for _, o := range []Options{{Streams: MaxStreams + 1}, {Streams: -1}, {MaxQueued: -1}, {Spin: -1}} {
		_, err := Listen("127.0.0.1:0", memoryOf(t), o)
		require.ErrorIs(t, err, ErrOptions)
	}
	ln, _ := newExpecting(t, Options{})
	_, err := Dial(context.Background(), ln.Addr(), linkInfo(1), transport.NewGrants(memoryOf(t)), newTargetSink(), Options{Congestion: "no such control"})
	require.ErrorIs(t, err, ErrOptions)
}

// FuzzHello takes any bytes: what is accepted is exactly what a dialer writes.
func FuzzHello(f *testing.F) {
	var b [helloBytes]byte
	hello{stream: 1, streams: 2, prefill: spec.Incarnation{1}, decode: spec.Incarnation{2}, epoch: 9, nonce: [32]byte{7}}.put(b[:])
	f.Add(b[:])
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) < helloBytes {
			return
		}
		h, err := parseHello(in)
		if err != nil {
			return
		}
		h.put(b[:])
		require.Equal(t, in[:helloBytes], b[:])
		require.Less(t, h.stream, h.streams)
		require.LessOrEqual(t, h.streams, MaxStreams)
	})
}
