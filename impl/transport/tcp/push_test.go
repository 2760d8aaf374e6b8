package tcp

import (
	"bytes"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/impl/device"
	"kvfence/impl/transport"
	"kvfence/spec"
)

// job is one lease: which source pages go where.
type job struct {
	grant spec.Grant
	srcs  []spec.PageID // by page index
	used  map[[2]uint32][]byte
}

// plan makes a lease of n tokens whose pages are taken from free lists in random order, one KV part for each half of the heads.
func (k *link) plan(t testing.TB, r *rand.Rand, lease spec.LeaseID, tokens uint32, dst, src []spec.PageID, digests bool) (job, transport.Batch) {
	dl, sl := k.dst[spec.KV].Layout, k.src[spec.KV].Layout
	j := job{grant: spec.Grant{Lease: lease, Tokens: tokens, Digests: digests, Domain: spec.Domain{9}}}
	for i := range dl.PagesFor(tokens) {
		j.grant.Pages[spec.KV] = append(j.grant.Pages[spec.KV], spec.GrantedPage{Page: dst[i], Gen: spec.Generation(r.Intn(1000) + 1)})
		j.srcs = append(j.srcs, src[i])
	}
	mid := (dl.Shape.HeadLo + dl.Shape.HeadHi) / 2
	j.grant.Parts = []spec.Part{
		{Component: spec.KV, Index: 0, LayerHi: dl.Shape.LayerHi, HeadLo: dl.Shape.HeadLo, HeadHi: mid, TokenHi: tokens},
		{Component: spec.KV, Index: 1, LayerHi: dl.Shape.LayerHi, HeadLo: mid, HeadHi: dl.Shape.HeadHi, TokenHi: tokens},
	}
	b := transport.Batch{ID: uint64(lease) * 10, Lease: lease}
	for _, p := range j.grant.Parts {
		lo, hi := p.PageRange(dl)
		for i := lo; i < hi; i++ {
			segs, err := p.Segments(sl, i, nil)
			require.NoError(t, err)
			g := j.grant.Pages[spec.KV][i]
			page := k.src[spec.KV].Page(j.srcs[i])
			tag := spec.Tag{Lease: lease, Gen: g.Gen, Part: p.Index, Index: i, Domain: j.grant.Domain, Used: spec.UsedBytes(segs), HasDigest: digests,
				Digest: device.DigestSegments(page, segs, device.HeaderOf(p, sl, i, 0))}
			b.Writes = append(b.Writes, transport.Write{Component: spec.KV, Part: p.Index, Of: p, Index: i, Src: j.srcs[i], SrcSegs: segs, Dst: g, Tag: tag})
		}
	}
	r.Shuffle(len(b.Writes), func(x, y int) { b.Writes[x], b.Writes[y] = b.Writes[y], b.Writes[x] })
	return j, b
}

// verify checks bytes, tags, states and digests of a lease.
func (k *link) verify(t *testing.T, j job, b transport.Batch) {
	t.Helper()
	landed := k.grants.Landed(j.grant.Lease, j.grant.Parts)
	require.Len(t, landed, len(j.grant.Parts))
	for _, w := range b.Writes {
		part := j.grant.Parts[w.Part]
		segs, err := part.Segments(k.dst[spec.KV].Layout, w.Index, nil)
		require.NoError(t, err)
		require.Equal(t, gather(k.src[spec.KV].Page(w.Src), w.SrcSegs), gather(k.dst[spec.KV].Page(w.Dst.Page), segs))
		require.Equal(t, spec.TagGood, device.CheckTag(k.dst[spec.KV].Slot(w.Dst.Page, w.Part), w.Tag))
		require.True(t, landed[w.Part].Done[w.Index-landed[w.Part].Lo])
		if j.grant.Digests {
			require.Equal(t, w.Tag.Digest, landed[w.Part].Digest[w.Index-landed[w.Part].Lo], "digest of what landed")
		}
	}
}

func gather(page []byte, segs []spec.Segment) (out []byte) {
	for _, s := range segs {
		out = append(out, page[s.Offset:][:s.Bytes]...)
	}
	return out
}

func perm(r *rand.Rand, n int) (out []spec.PageID) {
	for _, i := range r.Perm(n) {
		out = append(out, spec.PageID(i))
	}
	return out
}

// shapes go from pages of 256 bytes in hundreds of writes to pages of several calls; source and destination cut differently.
var shapes = map[string]struct{ src, dst spec.Layout }{
	"256 B":        {kvLayout(1, 1, 0, 2, 2, 700), kvLayout(1, 1, 0, 2, 2, 700)},
	"16 KiB cut":   {kvLayout(16, 2, 0, 4, 4, 64), kvLayout(16, 2, 0, 4, 4, 64)},
	"subset heads": {kvLayout(16, 2, 0, 8, 8, 64), kvLayout(16, 2, 2, 6, 8, 64)},
	"2.5 MiB":      {kvLayout(16, 640, 0, 2, 2, 6), kvLayout(16, 640, 0, 2, 2, 6)},
}

func TestPush_LeasesOverAllVariants_LandWholeAndOnce(t *testing.T) {
	for vname, opts := range variants() {
		for sname, shape := range shapes {
			t.Run(vname+"/"+sname, func(t *testing.T) {
				k := newLink(t, memoryOf(t, shape.src), memoryOf(t, shape.dst), opts)
				k.pushAll(t, rand.New(rand.NewSource(int64(len(vname)+len(sname)))))
			})
		}
	}
}

// pushAll moves some leases at once and looks at what landed.
func (k *link) pushAll(t *testing.T, r *rand.Rand) {
	shape := struct{ src, dst spec.Layout }{k.src[spec.KV].Layout, k.dst[spec.KV].Layout}
	fill(k.src[spec.KV].Bytes, 1)
	n := int(shape.dst.Shape.Pages)
	dst, src := perm(r, n), perm(r, n)
	tokens := shape.dst.Equal.TokensPerPage
	var jobs []job
	var batches []transport.Batch
	for lease, at := spec.LeaseID(1), 0; at < n && lease < 6; lease++ {
		pages := min(n-at, 1+r.Intn(n))
		j, b := k.plan(t, r, lease, tokens*uint32(pages)-uint32(r.Intn(int(tokens))), dst[at:], src[at:], r.Intn(2) == 0)
		at += pages
		require.True(t, k.grants.Allow(j.grant))
		k.source.Post(b)
		k.source.Notice(lease, uint64(lease)+100)
		jobs, batches = append(jobs, j), append(batches, b)
	}
	want := map[spec.LeaseID]map[noticeIn]bool{}
	for range jobs {
		p := <-k.ssink.posted
		require.NoError(t, p.err)
		nd := <-k.ssink.noticed
		require.NoError(t, nd.err)
		require.NotEmpty(t, nd.channels)
		want[nd.lease] = map[noticeIn]bool{}
		for _, c := range nd.channels {
			want[nd.lease][noticeIn{c.ID, nd.lease, c.Notice}] = true
		}
	}
	checked := 0
	for checked < len(jobs) {
		in := <-k.tsink.notice
		require.True(t, want[in.lease][in], "%+v is no notice that the source listed", in)
		delete(want[in.lease], in)
		if len(want[in.lease]) == 0 {
			k.verify(t, jobs[in.lease-1], batches[in.lease-1])
			checked++
		}
	}
	require.Empty(t, k.tsink.refused)
}

// What was not granted stays as it was, also beside parts that land in the same page.
func TestPush_HalfOfAPage_LeavesTheOtherHalf(t *testing.T) {
	k := newLink(t, memoryOf(t, kvLayout(16, 2, 0, 4, 4, 8)), memoryOf(t, kvLayout(16, 2, 0, 4, 4, 8)), Options{})
	fill(k.src[spec.KV].Bytes, 1)
	fill(k.dst[spec.KV].Bytes, 2)
	before := append([]byte(nil), k.dst[spec.KV].Bytes...)
	r := rand.New(rand.NewSource(5))
	j, b := k.plan(t, r, 1, 50, perm(r, 8), perm(r, 8), true)
	j.grant.Parts = j.grant.Parts[:1]
	k.grants.Allow(j.grant)
	all := b.Writes
	b.Writes = nil
	for _, w := range all {
		if w.Part == 0 {
			b.Writes = append(b.Writes, w)
		}
	}
	k.source.Post(b)
	k.source.Notice(1, 1)
	<-k.tsink.notice
	k.verify(t, j, b)
	after := k.dst[spec.KV].Bytes
	for _, w := range b.Writes {
		segs, err := j.grant.Parts[0].Segments(k.dst[spec.KV].Layout, w.Index, nil)
		require.NoError(t, err)
		for _, s := range segs { // undo what may land
			at := int(w.Dst.Page)*int(k.dst[spec.KV].Layout.Shape.PageBytes) + int(s.Offset)
			copy(after[at:][:s.Bytes], before[at:][:s.Bytes])
		}
	}
	require.True(t, bytes.Equal(before, after))
}
