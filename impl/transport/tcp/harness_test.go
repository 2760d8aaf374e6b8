package tcp

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	mrand "math/rand"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvfence/impl/device"
	"kvfence/impl/transport"
	"kvfence/spec"
)

// TestMain fails the package if one of its goroutines outlives all tests.
func TestMain(m *testing.M) {
	code := m.Run()
	if left := leaked(); code == 0 && left != "" {
		fmt.Fprintln(os.Stderr, "goroutines left behind:\n"+left)
		code = 1
	}
	os.Exit(code)
}

// leaked waits for goroutines that are about to end, and returns those that do not.
func leaked() (left string) {
	for range 200 {
		buf := make([]byte, 1<<20)
		left = ""
		for _, g := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")[1:] {
			if strings.Contains(g, "transport/tcp") {
				left += g + "\n\n"
			}
		}
		if left == "" {
			return ""
		}
		time.Sleep(10 * time.Millisecond)
	}
	return left
}

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

func fill(b []byte, seed int64) { mrand.New(mrand.NewSource(seed)).Read(b) }

func set(b []byte, v byte) {
	b[0] = v
	for n := 1; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}

func linkInfo(epoch spec.Epoch) transport.LinkInfo {
	return transport.LinkInfo{Prefill: spec.Incarnation{1}, Decode: spec.Incarnation{2}, Epoch: epoch, Key: [32]byte{3}}
}

// sourceSink and targetSink keep what was reported; each kind can be waited for.
type sourceSink struct {
	posted  chan posted
	noticed chan noticed
	lost    chan error
	done    chan struct{}
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

func newSourceSink() *sourceSink {
	return &sourceSink{make(chan posted, 1<<16), make(chan noticed, 1<<16), make(chan error, 16), make(chan struct{})}
}

func (s *sourceSink) Posted(id uint64, err error) { s.posted <- posted{id, err} }
func (s *sourceSink) Noticed(l spec.LeaseID, ch []spec.Channel, err error) {
	s.noticed <- noticed{l, ch, err}
}
func (s *sourceSink) Lost(err error) { s.lost <- err }
func (s *sourceSink) Fenced()        { close(s.done) }

type targetSink struct {
	notice  chan noticeIn
	lost    chan error
	done    chan struct{}
	mu      sync.Mutex
	refused map[spec.Refusal]int
}

type noticeIn struct {
	channel uint32
	lease   spec.LeaseID
	number  uint64
}

func newTargetSink() *targetSink {
	return &targetSink{notice: make(chan noticeIn, 1<<16), lost: make(chan error, 16), done: make(chan struct{}), refused: map[spec.Refusal]int{}}
}

func (s *targetSink) NoticeIn(c uint32, l spec.LeaseID, n uint64) { s.notice <- noticeIn{c, l, n} }
func (s *targetSink) Refused(_ spec.LeaseID, why spec.Refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused[why]++
}
func (s *targetSink) Lost(err error) { s.lost <- err }
func (s *targetSink) Fenced()        { close(s.done) }

func (s *targetSink) count(why spec.Refusal) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused[why]
}

// link is both ends of a link in this process.
type link struct {
	src, dst device.Memory
	listener *Listener
	source   transport.Source
	target   transport.Target
	grants   *transport.Grants
	ssink    *sourceSink
	tsink    *targetSink
}

func newLink(t testing.TB, src, dst device.Memory, opts Options) *link {
	return newLinkOn(t, src, dst, src, dst, opts)
}

// newLinkOn has ends that know their memory as srcOn and dstOn; what they see of it lies in src and dst.
func newLinkOn(t testing.TB, src, dst, srcOn, dstOn device.Memory, opts Options) *link {
	k := &link{src: src, dst: dst, ssink: newSourceSink()}
	k.open(t, k.ssink, srcOn, dstOn, opts)
	t.Cleanup(k.end)
	return k
}

func (k *link) open(t testing.TB, ssink transport.SourceSink, srcOn, dstOn device.Memory, opts Options) {
	k.grants, k.tsink = transport.NewGrants(dstOn), newTargetSink()
	k.grants.Raise(1)
	var err error
	k.listener, err = Listen("127.0.0.1:0", srcOn, opts)
	require.NoError(t, err)
	k.source, err = k.listener.Expect(linkInfo(1), ssink)
	require.NoError(t, err)
	k.target, err = Dial(context.Background(), k.listener.Addr(), linkInfo(1), k.grants, k.tsink, opts)
	require.NoError(t, err)
}

// end fences both ends and waits for everything.
func (k *link) end() {
	k.grants.Raise(2)
	k.target.Fence()
	k.source.Fence()
	<-k.tsink.done
	<-k.ssink.done
	_ = k.listener.Close()
}

// tlsPair is a mutually verified pair of configurations.
var tlsPair = sync.OnceValue(func() *tls.Config {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		panic(err)
	}
	leaf, _ := x509.ParseCertificate(der)
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, RootCAs: pool, ClientCAs: pool,
		ClientAuth: tls.RequireAndVerifyClientCert, ServerName: "127.0.0.1",
	}
})

// forge is a raw prefill end that the test drives byte by byte.
type forge struct {
	net.Conn
	tcp *net.TCPConn
}

// dialForge makes a target whose peer is a forge.
func dialForge(t testing.TB, grants *transport.Grants, sink *targetSink, epoch spec.Epoch, opts Options) (transport.Target, *forge) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = ln.Close() }()
	got := make(chan *forge, 1)
	go func() {
		defer close(got)
		c, err := ln.Accept()
		if err != nil {
			return
		}
		conn, binding, err := secure(context.Background(), c.(*net.TCPConn), opts.TLS, true)
		if err != nil {
			return
		}
		if _, err := challenge(conn, binding, func(hello) ([32]byte, bool) { return linkInfo(epoch).Key, true }); err != nil {
			return
		}
		_, _ = conn.Write([]byte{1})
		got <- &forge{conn, c.(*net.TCPConn)}
	}()
	target, err := Dial(context.Background(), ln.Addr().String(), linkInfo(epoch), grants, sink, opts)
	require.NoError(t, err)
	f := <-got
	require.NotNil(t, f)
	return target, f
}

// appendFrame is a writes frame as the sender would make it.
func appendFrame(b []byte, lease spec.LeaseID, es []entry, pages [][]byte, tags []spec.Tag) []byte {
	sum := uint64(0)
	for _, e := range es {
		sum += uint64(e.bytes)
	}
	head := make([]byte, frameBytes+len(es)*entryBytes)
	frame{count: len(es), lease: lease, number: sum}.put(head)
	for i, e := range es {
		e.put(head[frameBytes+i*entryBytes:])
	}
	b = append(b, head...)
	for _, p := range pages {
		b = append(b, p...)
	}
	for _, g := range tags {
		slot := make([]byte, spec.TagBytes)
		device.PutTag(slot, g)
		b = append(b, slot...)
	}
	return b
}

func appendNotice(b []byte, lease spec.LeaseID, number uint64) []byte {
	head := make([]byte, frameBytes)
	frame{notice: true, lease: lease, number: number}.put(head)
	return append(b, head...)
}

func variants() map[string]Options {
	return map[string]Options{
		"plain": {}, "three streams": {Streams: 3}, "spinning": {Spin: 50}, "TLS": {TLS: tlsPair()}, "TLS, two streams": {TLS: tlsPair(), Streams: 2},
	}
}
