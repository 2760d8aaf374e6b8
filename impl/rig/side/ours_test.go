//go:build verbs && rig

package side

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvfence/impl/device"
	"kvfence/impl/transport"
	"kvfence/impl/transport/tcp"
	"kvfence/impl/transport/verbs"
	"kvfence/spec"
)

// senderVar makes this binary the sending process: device, page bytes, what enforces leases.
const senderVar = "KVFENCE_RIG_SENDER"

const patience = time.Minute

// layoutOf has pages of size bytes, trialBytes in all.
func layoutOf(size int) spec.Layout {
	m := spec.Meaning{ByteOrder: "little", HeadDim: 64, ElemBytes: 2, KVs: 2, TokensPerPage: 16, Layers: uint32(size / (16 * 64 * 2 * 2 * 4)), Heads: 4}
	return spec.NewDense(spec.KV, m, 0, m.Layers, 0, m.Heads, uint32(trialBytes/size), 1)
}

// memoryOf is one pool; the sender's bytes are the same in both processes.
func memoryOf(l spec.Layout, filled bool) (m device.Memory, err error) {
	m[spec.KV], err = device.NewPool(l, nil, nil)
	if err == nil && filled {
		_, _ = rand.NewChaCha8([32]byte{1}).Read(m[spec.KV].Bytes)
	}
	return m, err
}

func linkInfo() transport.LinkInfo {
	return transport.LinkInfo{Prefill: spec.Incarnation{1}, Decode: spec.Incarnation{2}, Epoch: 1, Key: [32]byte{3}}
}

// transfer is a lease over all pages. With leases of their own neighbours go to neighbours, as a fresh pool gives them out; with one key, where that makes no
// difference to the adapter, any page to any page.
func transfer(l spec.Layout, lease spec.LeaseID, w verbs.Leases) (spec.Grant, spec.Part, []spec.GrantedPage) {
	n, s := int(l.Shape.Pages), l.Shape
	part := spec.Part{Component: l.Component, LayerHi: s.LayerHi, HeadHi: s.HeadHi, TokenHi: l.Equal.TokensPerPage * s.Pages}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	if w == verbs.LeasesOff {
		order = rand.New(rand.NewPCG(uint64(lease), 1)).Perm(n)
	}
	g := spec.Grant{Lease: lease, Tokens: part.TokenHi, Parts: []spec.Part{part}}
	for i, p := range order {
		g.Pages[spec.KV] = append(g.Pages[spec.KV], spec.GrantedPage{Page: spec.PageID(p), Gen: spec.Generation(uint64(lease)*10000 + uint64(i))})
	}
	return g, part, g.Pages[spec.KV]
}

// ours is the receiving half: decode's adapter in this process, prefill's in another.
type ours struct {
	in      io.WriteCloser
	out     *bufio.Reader
	want    device.Memory
	mem     device.Memory
	adapter *verbs.Adapter
	grants  *transport.Grants
	target  transport.Target
	leases  verbs.Leases
	lease   spec.LeaseID
	pages   uint64
}

type targetSink struct{ done chan error }

func (targetSink) NoticeIn(uint32, spec.LeaseID, uint64) {}
func (targetSink) Refused(spec.LeaseID, spec.Refusal)    {}
func (s targetSink) Lost(err error)                      { fmt.Fprintln(os.Stderr, "lost:", err) }
func (s targetSink) Fenced()                             { s.done <- nil }
func (s targetSink) FenceFailed(err error)               { s.done <- err }
func rails(device string) []verbs.Rail {
	return []verbs.Rail{{Device: device, Port: 1, GID: verbs.GIDAuto}}
}

func startOurs(t *testing.T, dev string, size int, w verbs.Leases) *ours {
	o := &ours{leases: w}
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), senderVar+"="+fmt.Sprintf("%s %d %s", dev, size, w))
	child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	child.Stderr = os.Stderr
	var err error
	o.in, err = child.StdinPipe()
	require.NoError(t, err)
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	o.out = bufio.NewReader(out)
	require.NoError(t, child.Start())
	l := layoutOf(size)
	require.Equal(t, uint32(size), l.Shape.PageBytes)
	o.want, err = memoryOf(l, true)
	require.NoError(t, err)
	o.mem, err = memoryOf(l, false)
	require.NoError(t, err)
	o.grants = transport.NewGrants(o.mem)
	o.adapter, err = verbs.Open(verbs.Options{Rails: rails(dev), Target: true, Leases: w}, o.mem)
	require.NoError(t, err)
	o.grants.Raise(1)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	sink := targetSink{make(chan error, 1)}
	o.target, err = o.adapter.Dial(ctx, o.line(t), linkInfo(), o.grants, sink, tcp.Options{})
	require.NoError(t, err)
	t.Cleanup(func() {
		o.grants.Raise(2)
		o.target.Fence()
		require.NoError(t, <-sink.done)
		require.NoError(t, o.in.Close())
		require.NoError(t, child.Wait())
		require.NoError(t, o.adapter.Close())
	})
	return o
}

func (o *ours) line(t *testing.T) string {
	s, err := o.out.ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(s)
}

// trial grants all pages, lets the sender write them, and compares every byte; the time is the sender's, from posting to the last completion, keys of the lease included.
func (o *ours) trial(t *testing.T) float64 {
	o.lease++
	pool, want := o.mem[spec.KV], o.want[spec.KV]
	clear(pool.Bytes)
	g, _, pages := transfer(pool.Layout, o.lease, o.leases)
	require.True(t, o.grants.Allow(g))
	_, err := fmt.Fprintln(o.in, o.lease)
	require.NoError(t, err)
	var nanos, requests, signalled uint64
	_, err = fmt.Sscan(o.line(t), &nanos, &requests, &signalled)
	require.NoError(t, err)
	for i, p := range pages {
		require.True(t, bytes.Equal(want.Page(spec.PageID(i)), pool.Page(p.Page)), "page %d", i)
	}
	o.pages += uint64(len(pages))
	o.grants.TakeBack(o.lease)
	if s, ok := o.target.(transport.Settler); ok {
		s.Settle([]spec.LeaseID{o.lease})
	}
	return float64(trialBytes) / (1 << 20) / (float64(nanos) / 1e9)
}

// cost prints what a page costs in work requests at the sender.
func (o *ours) cost(t *testing.T, size int) {
	_, err := fmt.Fprintln(o.in, 0)
	require.NoError(t, err)
	var nanos, requests, signalled uint64
	_, err = fmt.Sscan(o.line(t), &nanos, &requests, &signalled)
	require.NoError(t, err)
	fmt.Printf("figure: requests_per_page_%dKiB %.2f requests\n", size>>10, float64(requests)/float64(o.pages))
	fmt.Printf("figure: signalled_per_page_%dKiB %.2f requests\n", size>>10, float64(signalled)/float64(o.pages))
}

type sourceSink struct {
	posted chan error
	done   chan error
}

func (s sourceSink) Posted(_ uint64, err error)                { s.posted <- err }
func (sourceSink) Noticed(spec.LeaseID, []spec.Channel, error) {}
func (s sourceSink) Lost(err error)                            { fmt.Fprintln(os.Stderr, "sender lost:", err) }
func (s sourceSink) Fenced()                                   { s.done <- nil }
func (s sourceSink) FenceFailed(err error)                     { s.done <- err }

// send is the sending process: it writes each lease that is named to it, and answers with the time that it took; lease 0 only with its counts.
func send(in io.Reader, out io.Writer) (err error) {
	var dev string
	var size int
	var w verbs.Leases
	if _, err := fmt.Sscan(os.Getenv(senderVar), &dev, &size, &w); err != nil {
		return err
	}
	l := layoutOf(size)
	mem, err := memoryOf(l, true)
	if err != nil {
		return err
	}
	a, err := verbs.Open(verbs.Options{Rails: rails(dev)}, mem)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	listener, err := a.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, listener.Close()) }()
	sink := sourceSink{make(chan error, 1), make(chan error, 1)}
	source, err := listener.Expect(linkInfo(), sink)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, listener.Addr())
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var lease spec.LeaseID
		if _, err := fmt.Sscan(lines.Text(), &lease); err != nil {
			return err
		}
		took := time.Duration(0)
		if lease != 0 {
			b, err := batchOf(mem, lease, w)
			if err != nil {
				return err
			}
			begin := time.Now()
			source.Post(b)
			if err := <-sink.posted; err != nil {
				return err
			}
			took = time.Since(begin)
		}
		s := a.Stats()
		fmt.Fprintln(out, took.Nanoseconds(), s.Requests, s.Signalled)
	}
	source.Fence()
	return <-sink.done
}

func batchOf(mem device.Memory, lease spec.LeaseID, w verbs.Leases) (b transport.Batch, err error) {
	pool := mem[spec.KV]
	_, part, pages := transfer(pool.Layout, lease, w)
	b = transport.Batch{ID: uint64(lease), Lease: lease}
	for i, p := range pages {
		segs, err := part.Segments(pool.Layout, uint32(i), nil)
		if err != nil {
			return b, err
		}
		used := spec.UsedBytes(segs)
		b.Writes = append(b.Writes, transport.Write{
			Component: spec.KV, Of: part, Index: uint32(i), Src: spec.PageID(i), SrcSegs: segs, Dst: p,
			Tag: spec.Tag{Lease: lease, Gen: p.Gen, Index: uint32(i), Digest: device.DigestSegments(pool.Page(spec.PageID(i)), segs, device.HeaderOf(part, pool.Layout, uint32(i), used)), HasDigest: true, Used: used},
		})
	}
	return b, nil
}
