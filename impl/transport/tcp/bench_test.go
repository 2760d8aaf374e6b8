package tcp

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvfence/impl/device"
	"kvfence/impl/transport"
	"kvfence/spec"
)

// BenchmarkPush measures from grant in hand (Allow) to landed and notified, over cold pools: 16 leases of random pages in turn.
// Beside it, in turn within each round, as many bytes go through one bare stream with the same congestion control (or bare crypto/tls)
// between cold pools in order, 1 MiB a call, with one acknowledgement. Both ends share this process. The metric "of-raw" is
// the median over rounds of the bare stream's time divided by the lease's.

const benchPool = 256 << 20

var benchShapes = []struct{ size, n int }{{256 << 10, 16}, {256 << 10, 256}, {1 << 20, 16}, {1 << 20, 256}}

func anon(b *testing.B, n int) []byte {
	m, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	require.NoError(b, err)
	set(m, 1)
	b.Cleanup(func() { _ = unix.Munmap(m) })
	return m
}

func benchMemory(b *testing.B, size int) (device.Memory, spec.Layout) {
	l := kvLayout(uint32(size/4096), 32, 0, 1, 1, uint32(benchPool/size))
	require.Equal(b, uint32(size), l.Shape.PageBytes)
	p, err := device.NewPool(l, anon(b, benchPool), nil)
	require.NoError(b, err)
	return device.Memory{spec.KV: p}, l
}

func BenchmarkPush(b *testing.B) {
	for _, sh := range benchShapes {
		for _, v := range []struct {
			name    string
			digests bool
			opts    Options
		}{{"plain", false, Options{}}, {"spin", false, Options{Spin: 50}}, {"digests", true, Options{}}, {"tls", false, Options{TLS: tlsPair()}}} {
			b.Run(fmt.Sprintf("%dKiBx%d/%s", sh.size>>10, sh.n, v.name), func(b *testing.B) {
				push := newBenchPush(b, sh.size, sh.n, v.digests, v.opts)
				raw := newBenchRaw(b, sh.size*sh.n, v.opts.TLS)
				b.SetBytes(int64(2 * sh.size * sh.n))
				var ratios []float64
				for b.Loop() {
					t0 := time.Now()
					push()
					t1 := time.Now()
					raw()
					ratios = append(ratios, float64(time.Since(t1))/float64(t1.Sub(t0)))
				}
				slices.Sort(ratios)
				b.ReportMetric(ratios[len(ratios)/2], "of-raw")
			})
		}
	}
}

func newBenchPush(b *testing.B, size, n int, digests bool, opts Options) func() {
	src, l := benchMemory(b, size)
	dst, _ := benchMemory(b, size)
	k := newLink(b, src, dst, opts)
	r := rand.New(rand.NewSource(1))
	type lease struct {
		g spec.Grant
		b transport.Batch
	}
	var leases []lease
	for range 16 {
		var x lease
		x.g.Digests = digests
		x.g.Parts = []spec.Part{{Component: spec.KV, LayerHi: 32, HeadHi: 1, TokenHi: l.Equal.TokensPerPage * uint32(n)}}
		s, d := r.Perm(benchPool/size), r.Perm(benchPool/size)
		for i := range n {
			g := spec.GrantedPage{Page: spec.PageID(d[i%len(d)]), Gen: 1}
			x.g.Pages[spec.KV] = append(x.g.Pages[spec.KV], g)
			x.b.Writes = append(x.b.Writes, transport.Write{Component: spec.KV, Index: uint32(i), Src: spec.PageID(s[i%len(s)]), SrcSegs: []spec.Segment{{Bytes: uint32(size)}}, Dst: g, Tag: spec.Tag{Gen: 1, Index: uint32(i)}})
		}
		leases = append(leases, x)
	}
	id := spec.LeaseID(0)
	return func() {
		x := leases[int(id)%len(leases)]
		id++
		x.g.Lease, x.b.Lease = id, id
		k.grants.Allow(x.g)
		k.source.Post(x.b)
		k.source.Notice(id, uint64(id))
		<-k.ssink.posted
		<-k.ssink.noticed
		<-k.tsink.notice
		for _, done := range k.grants.Landed(id, x.g.Parts)[0].Done {
			if !done {
				b.Fatal("a page is missing")
			}
		}
		k.grants.Revoke(id)
	}
}

func newBenchRaw(b *testing.B, bytes int, cfg *tls.Config) func() {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	done, to, from := make(chan struct{}), anon(b, benchPool), anon(b, benchPool)
	go func() {
		defer close(done)
		c, err := ln.Accept()
		if err != nil {
			return
		}
		_ = Options{}.tune(c.(*net.TCPConn))
		conn, _, err := secure(context.Background(), c.(*net.TCPConn), cfg, true)
		if err != nil {
			return
		}
		for at, left := 0, bytes; ; {
			k := min(left, callBytes, len(to)-at)
			if _, err := io.ReadFull(conn, to[at:][:k]); err != nil {
				_ = conn.Close()
				return
			}
			at = (at + k) % len(to)
			if left -= k; left == 0 {
				left = bytes
				_, _ = conn.Write([]byte{1})
			}
		}
	}()
	c, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(b, err)
	_ = Options{}.tune(c.(*net.TCPConn))
	conn, _, err := secure(context.Background(), c.(*net.TCPConn), cfg, false)
	require.NoError(b, err)
	b.Cleanup(func() {
		_ = conn.Close()
		_ = ln.Close()
		<-done
	})
	at, ack := 0, make([]byte, 1)
	return func() {
		for left := bytes; left > 0; {
			k := min(left, callBytes, len(from)-at)
			if _, err := conn.Write(from[at:][:k]); err != nil {
				b.Fatal(err)
			}
			at = (at + k) % len(from)
			left -= k
		}
		if _, err := io.ReadFull(conn, ack); err != nil {
			b.Fatal(err)
		}
	}
}
