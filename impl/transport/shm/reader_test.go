//go:build linux

package shm

import (
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvfence/impl/device"
	"kvfence/impl/transport"
	"kvfence/spec"
)

func TestReader_Job_BytesAndTagsLand(t *testing.T) {
	g := newRig(t)
	for _, digests := range []bool{false, true} {
		for _, n := range []int{1, 6} { // 6 MiB bypass the cache
			sink := newReaderSink()
			epoch := spec.Epoch(2 + n)
			if digests {
				epoch += 100
			}
			_, err := g.e.Offer(testLink(epoch), g.sink)
			require.NoError(t, err)
			cfg := g.config(sink)
			cfg.Link = testLink(epoch)
			r := g.dial(cfg)
			j := transport.CopyJob{ID: 4, Lease: 11, Digests: digests}
			for i := range n {
				j.Copies = append(j.Copies, g.seal(spec.KV, spec.PageID(i), 11, uint32(i), spec.GrantedPage{Page: spec.PageID(7 - i), Gen: 3}))
			}
			j.Copies = append(j.Copies, g.seal(spec.Aux, 3, 11, 0, spec.GrantedPage{Page: 2, Gen: 8}))
			r.Copy(j)
			require.Equal(t, transport.CopyResult{Job: 4, Lease: 11}, <-sink.copied)
			for _, c := range j.Copies {
				landed(t, g.pools[c.Component].Pool, cfg.Memory[c.Component], c)
			}
			untouched(t, cfg.Memory[spec.KV], 0)
		}
	}
}

func TestReader_SourceTagDiffers_DestinationTagStaysVoid(t *testing.T) {
	cases := []struct {
		name   string
		change func(p *device.Pool)
		state  spec.TagState
		digest bool
	}{
		{"void", func(p *device.Pool) { p.VoidTags(1) }, spec.TagVoid, false},
		{"foreign", func(p *device.Pool) { device.PutTag(p.Slot(1, 0), spec.Tag{Lease: 12, Gen: 6}) }, spec.TagForeign, false},
		{"torn", func(p *device.Pool) { p.Slot(1, 0)[3] ^= 1 }, spec.TagTorn, false},
		{"flipped byte", func(p *device.Pool) { p.Page(1)[pageSize-1] ^= 1 }, spec.TagGood, true},
		{"reused", func(p *device.Pool) { p.VoidTags(1); p.Page(1)[5] ^= 1 }, spec.TagVoid, true},
	}
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t)
			sink := newReaderSink()
			cfg := g.config(sink)
			cfg.StreamBytes = uint64(1 + i%2*(4<<20))
			r := g.dial(cfg)
			j := transport.CopyJob{ID: 1, Lease: 11, Digests: true, Copies: []transport.Copy{
				g.seal(spec.KV, 1, 11, 3, spec.GrantedPage{Page: 4, Gen: 3}), g.seal(spec.KV, 2, 11, 4, spec.GrantedPage{Page: 5, Gen: 3}),
			}}
			c.change(g.pools[spec.KV].Pool)
			r.Copy(j)
			res := <-sink.copied
			require.NoError(t, res.Err)
			require.Equal(t, []transport.BadCopy{{Component: spec.KV, Index: 3, State: c.state, Digest: c.digest}}, res.Bad)
			require.Equal(t, spec.TagVoid, device.CheckTag(cfg.Memory[spec.KV].Slot(4, 0), j.Copies[0].DstTag))
			landed(t, g.pools[spec.KV].Pool, cfg.Memory[spec.KV], j.Copies[1])
		})
	}
}

// The source is rewritten between the copy and the check: only the order (tag after bytes) finds it.
func TestReader_SourceReusedAfterTheBytes_IsFoundByTheTag(t *testing.T) {
	g := newRig(t)
	sink := newReaderSink()
	cfg := g.config(sink)
	cfg.hook = func(p point) {
		if p == afterBytes {
			g.pools[spec.KV].Pool.VoidTags(1)
		}
	}
	r := g.dial(cfg)
	r.Copy(transport.CopyJob{ID: 1, Copies: []transport.Copy{g.seal(spec.KV, 1, 11, 0, spec.GrantedPage{Page: 4, Gen: 3})}})
	require.Equal(t, []transport.BadCopy{{Component: spec.KV, State: spec.TagVoid}}, (<-sink.copied).Bad)
	require.Equal(t, spec.TagVoid, device.CheckTag(cfg.Memory[spec.KV].Slot(4, 0), spec.Tag{}))
}

func TestReader_ManifestWithoutDigest_IsBadWhereDigestsAreInForce(t *testing.T) {
	g := newRig(t)
	sink := newReaderSink()
	r := g.dial(g.config(sink))
	c := g.seal(spec.KV, 1, 11, 0, spec.GrantedPage{Page: 4, Gen: 3})
	c.SrcTag.HasDigest = false
	r.Copy(transport.CopyJob{ID: 1, Digests: true, Copies: []transport.Copy{c}})
	res := <-sink.copied
	require.Len(t, res.Bad, 1)
	require.True(t, res.Bad[0].Digest)
}

func TestReader_PagesCutDifferently_SameBytesLand(t *testing.T) {
	g := newRig(t)
	sink := newReaderSink()
	cfg := g.config(sink)
	half := kvLayout() // decode holds heads 4..8 only
	half = spec.NewDense(spec.KV, half.Equal, 0, 16, 4, 8, pageCount, 2)
	var err error
	cfg.Memory[spec.KV], err = device.NewPool(half, nil, nil)
	require.NoError(t, err)
	r := g.dial(cfg)
	p := spec.Part{Component: spec.KV, LayerHi: 16, HeadLo: 4, HeadHi: 8, TokenHi: 16}
	src := g.pools[spec.KV].Pool
	c := g.seal(spec.KV, 1, 11, 0, spec.GrantedPage{Page: 4, Gen: 3})
	c.SrcSegs, err = p.Segments(src.Layout, 0, nil)
	require.NoError(t, err)
	c.DstSegs, err = p.Segments(half, 0, nil)
	require.NoError(t, err)
	require.NotEqual(t, len(c.SrcSegs), len(c.DstSegs))
	c.Head = device.HeaderOf(p, half, 0, spec.UsedBytes(c.DstSegs))
	c.SrcTag.Digest = device.DigestSegments(src.Page(1), c.SrcSegs, c.Head)
	device.PutTag(src.Slot(1, 0), c.SrcTag)
	r.Copy(transport.CopyJob{ID: 1, Digests: true, Copies: []transport.Copy{c}})
	require.Equal(t, transport.CopyResult{Job: 1}, <-sink.copied)
	require.Equal(t, c.SrcTag.Digest, device.DigestSegments(cfg.Memory[spec.KV].Page(4), c.DstSegs, c.Head))
}

func TestReader_JobOutsideOfThePools_WritesNothing(t *testing.T) {
	g := newRig(t)
	sink := newReaderSink()
	cfg := g.config(sink)
	r := g.dial(cfg)
	good := g.seal(spec.KV, 1, 11, 0, spec.GrantedPage{Page: 4, Gen: 3})
	for _, change := range []func(c *transport.Copy){
		func(c *transport.Copy) { c.Component = spec.State },
		func(c *transport.Copy) { c.Component = 200 },
		func(c *transport.Copy) { c.Src.Page = pageCount },
		func(c *transport.Copy) { c.Src.Page = ^spec.PageID(0) },
		func(c *transport.Copy) { c.Dst.Page = pageCount },
		func(c *transport.Copy) { c.SrcSlot = 2 },
		func(c *transport.Copy) { c.Part = spec.PartLocal },
		func(c *transport.Copy) { c.SrcSegs = []spec.Segment{{Offset: 8, Bytes: pageSize}} },
		func(c *transport.Copy) { c.DstSegs = []spec.Segment{{Offset: 0, Bytes: 8}} },
	} {
		c := good
		change(&c)
		r.Copy(transport.CopyJob{ID: 1, Lease: 11, Copies: []transport.Copy{c}})
		res := <-sink.copied
		require.True(t, isAny(res.Err, ErrJob, device.ErrSegments), "%v", res.Err)
		untouched(t, cfg.Memory[spec.KV], 4)
	}
	none(t, sink.lost, "a bad job is no loss")
}

func TestReader_UnsealedSourceShrinks_JobFails(t *testing.T) {
	l := kvLayout()
	fd, err := unix.MemfdCreate("engine", unix.MFD_CLOEXEC)
	require.NoError(t, err)
	f := os.NewFile(uintptr(fd), "engine")
	defer f.Close()
	n := int64(pageCount * pageSize)
	require.NoError(t, f.Truncate(n))
	m, err := unix.Mmap(fd, 0, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	require.NoError(t, err)
	defer unix.Munmap(m)
	adopted, err := device.AdoptPool(l, m, f, device.Region{Length: n})
	require.NoError(t, err)

	g := newRig(t, func(c *ExporterConfig) {
		require.NoError(t, c.Pools[spec.KV].Close())
		c.Pools[spec.KV] = adopted
	})
	g.pools[spec.KV] = adopted
	sink := newReaderSink()
	r := g.dial(g.config(sink))
	good := g.seal(spec.KV, 0, 11, 0, spec.GrantedPage{Page: 1, Gen: 3})
	gone := g.seal(spec.KV, 7, 11, 1, spec.GrantedPage{Page: 2, Gen: 3})
	r.Copy(transport.CopyJob{ID: 1, Copies: []transport.Copy{good}})
	require.Equal(t, transport.CopyResult{Job: 1}, <-sink.copied)
	require.NoError(t, f.Truncate(n/2))
	r.Copy(transport.CopyJob{ID: 2, Copies: []transport.Copy{gone}})
	require.ErrorIs(t, (<-sink.copied).Err, ErrSource)
	require.ErrorIs(t, <-sink.lost, transport.ErrStream)
	r.Copy(transport.CopyJob{ID: 3, Copies: []transport.Copy{good}})
	require.NoError(t, (<-sink.copied).Err, "the worker lives on until it is fenced")
}

func TestReader_ExporterShutsTheLink_RunningCopyStops(t *testing.T) {
	g := newRig(t)
	sink := newReaderSink()
	cfg := g.config(sink)
	steps := 0
	cfg.hook = func(p point) {
		if steps++; p == beforeStep && steps == 2 {
			g.x.Shut()
		}
	}
	r := g.dial(cfg)
	r.Copy(transport.CopyJob{ID: 1, Copies: []transport.Copy{g.seal(spec.KV, 1, 11, 0, spec.GrantedPage{Page: 4, Gen: 3})}})
	require.ErrorIs(t, (<-sink.copied).Err, transport.ErrStream)
	require.ErrorIs(t, <-sink.lost, transport.ErrStream)
	require.Equal(t, spec.TagVoid, device.CheckTag(cfg.Memory[spec.KV].Slot(4, 0), spec.Tag{}))
	r.Fence()
	<-sink.fenced
	none(t, g.sink.lost, "the exporter closed it itself")
}

func TestReader_FencedWithQueue_EachJobEndsOnceThenFenced(t *testing.T) {
	g := newRig(t)
	sink := newReaderSink()
	cfg := g.config(sink)
	running, start := make(chan struct{}, 9), make(chan struct{})
	cfg.hook = func(p point) {
		if p == beforeStep {
			running <- struct{}{}
			<-start
		}
	}
	r := g.dial(cfg)
	c := g.seal(spec.KV, 1, 11, 0, spec.GrantedPage{Page: 4, Gen: 3})
	for id := range uint64(5) {
		r.Copy(transport.CopyJob{ID: id, Copies: []transport.Copy{c}})
	}
	<-running
	r.Fence()
	r.Fence()
	none(t, sink.fenced, "a copy is running")
	close(start)
	for id := range uint64(5) {
		res := <-sink.copied
		require.Equal(t, id, res.Job)
		require.ErrorIs(t, res.Err, transport.ErrFenced)
	}
	<-sink.fenced
	r.Copy(transport.CopyJob{ID: 9, Copies: []transport.Copy{c}})
	require.ErrorIs(t, (<-sink.copied).Err, transport.ErrFenced)
	require.NoError(t, r.Close())
	require.NoError(t, r.Close())
	none(t, sink.fenced, "fenced twice")
	none(t, sink.lost, "a fenced link cannot be lost")
	untouched(t, cfg.Memory[spec.KV], 4)
	require.True(t, errors.Is(<-g.sink.lost, transport.ErrStream), "the exporter learns that the socket is gone")
}
