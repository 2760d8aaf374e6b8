//go:build linux

package shm

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvfence/impl/device"
	"kvfence/impl/transport"
	"kvfence/spec"
)

// perfPool is the size of each pool; perfPairs how often both are measured, one right after the other; perfSlice for how long.
const (
	perfPool  = 512 << 20
	perfPairs = 21
	perfSlice = 40 * time.Millisecond
)

// TestThroughput_AgainstCMemcpy_MeetsTheGoal compares the whole way of a job, queue to result with all checks, with C copying the
// same shapes past the cache. It says something on a quiet machine only, so it runs on demand.
func TestThroughput_AgainstCMemcpy_MeetsTheGoal(t *testing.T) {
	if os.Getenv("KVFENCE_PERF") == "" {
		t.Skip("a measurement: set KVFENCE_PERF=1 on a quiet machine")
	}
	ref := startReference(t, "nt")
	plain := startReference(t, "plain")
	t.Logf("copies past the cache: %s", device.StreamKind())
	for _, size := range []int{256 << 10, 1 << 20} {
		p := newPerf(t, size)
		for _, n := range []int{16, 256} {
			var bare, digest, againstPlain []float64
			var gbps [4][]float64
			for range perfPairs {
				c, b, d, m := ref.measure(size, n), p.measure(n, false), p.measure(n, true), plain.measure(size, n)
				bare, digest, againstPlain = append(bare, b/c), append(digest, d/c), append(againstPlain, b/m)
				for i, v := range []float64{c, b, d, m} {
					gbps[i] = append(gbps[i], v)
				}
			}
			t.Logf("%4d KiB x %3d: C nt %.2f GB/s, C memcpy %.2f; shm %.2f = %.3f of nt, %.2f of memcpy; with digests %.2f = %.3f of nt", size>>10, n,
				median(gbps[0]), median(gbps[3]), median(gbps[1]), median(bare), median(againstPlain), median(gbps[2]), median(digest))
			require.GreaterOrEqual(t, median(bare), 1.0, "without digests")
			require.GreaterOrEqual(t, median(digest), 0.85, "with digests")
		}
	}
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// reference is a C process that copies on demand.
type reference struct {
	t   *testing.T
	in  *bufio.Writer
	out *bufio.Reader
}

func startReference(t *testing.T, how string) *reference {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler")
	}
	bin := filepath.Join(t.TempDir(), "cmemcpy")
	out, err := exec.Command(cc, "-O2", "-o", bin, "../../bench/ref/cmemcpy.c").CombinedOutput()
	require.NoError(t, err, string(out))
	cmd := exec.Command(bin, how, fmt.Sprint(perfPool>>20))
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	o, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { require.NoError(t, in.Close()); require.NoError(t, cmd.Wait()) })
	return &reference{t, bufio.NewWriter(in), bufio.NewReader(o)}
}

// measure is GB/s.
func (r *reference) measure(size, n int) (gbps float64) {
	fmt.Fprintln(r.in, size, n, perfSlice.Milliseconds())
	require.NoError(r.t, r.in.Flush())
	line, err := r.out.ReadString('\n')
	require.NoError(r.t, err)
	_, err = fmt.Sscan(line, &gbps)
	require.NoError(r.t, err, line)
	return gbps
}

// perf is a reader over pools of perfPool bytes.
type perf struct {
	t    *testing.T
	size int
	sink *readerSink
	r    *Reader
	all  []transport.Copy // source page i with its tag, to destination page 0
	rng  *rand.Rand
}

func newPerf(t *testing.T, size int) *perf {
	m := spec.Meaning{ByteOrder: "little", DType: "bf16", HeadDim: 128, ElemBytes: 2, KVs: 2, TokensPerPage: uint32(size / (128 * 2 * 2 * 16)), Layers: 16, Heads: 1}
	l := spec.NewDense(spec.KV, m, 0, 16, 0, 1, uint32(perfPool/size), 1)
	require.Equal(t, size, int(l.Shape.PageBytes))
	shared, err := device.NewSharedPool(l)
	require.NoError(t, err)
	var pools [spec.ComponentCount]*device.Shared
	pools[spec.KV] = shared
	e, err := Listen(ExporterConfig{Path: filepath.Join(t.TempDir(), "s"), Pools: pools})
	require.NoError(t, err)
	sink := newExportSink()
	_, err = e.Offer(testLink(1), sink)
	require.NoError(t, err)
	var mem device.Memory
	mem[spec.KV], err = device.NewPool(l, nil, nil)
	require.NoError(t, err)
	for i := range mem[spec.KV].Bytes {
		mem[spec.KV].Bytes[i] = 1
	}
	p := &perf{t: t, size: size, sink: newReaderSink(), rng: rand.New(rand.NewPCG(1, 2))}
	cfg := ReaderConfig{Address: e.Address(), Link: testLink(1), Memory: mem, Sink: p.sink}
	cfg.Source[spec.KV] = &l
	p.r, err = Dial(context.Background(), cfg)
	require.NoError(t, err)
	g := &rig{t: t, pools: pools}
	for i := range perfPool / size {
		p.all = append(p.all, g.seal(spec.KV, spec.PageID(i), 11, 0, spec.GrantedPage{Gen: 3}))
	}
	t.Cleanup(func() {
		require.NoError(t, p.r.Close())
		require.NoError(t, e.Close())
		require.NoError(t, shared.Close())
	})
	return p
}

// jobs are 16 random lists of n pages.
func (p *perf) jobs(n int, digests bool) (js []transport.CopyJob) {
	for id := range uint64(16) {
		from, to := p.rng.Perm(len(p.all)), p.rng.Perm(len(p.all))
		j := transport.CopyJob{ID: id, Digests: digests}
		for i := range n {
			c := p.all[from[i]]
			c.Dst.Page = spec.PageID(to[i])
			j.Copies = append(j.Copies, c)
		}
		js = append(js, j)
	}
	return js
}

// measure is GB/s.
func (p *perf) measure(n int, digests bool) float64 {
	js := p.jobs(n, digests)
	start, bytes := time.Now(), 0
	for i := 0; i < 3 || time.Since(start) < perfSlice; i++ {
		p.r.Copy(js[i%len(js)])
		res := <-p.sink.copied
		require.NoError(p.t, res.Err)
		require.Empty(p.t, res.Bad)
		bytes += n * p.size
	}
	return float64(bytes) / 1e9 / time.Since(start).Seconds()
}
