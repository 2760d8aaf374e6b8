package mem

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/impl/device"
	"kvfence/impl/transport"
	"kvfence/spec"
)

func putTag(slot []byte, t spec.Tag) { device.PutTag(slot, t) }

// pullRig is one pull link; the push link beside it is not used.
type pullRig struct {
	*rig
	x *Export
	r *Reader
}

func newPull(t *testing.T, faults Faults) *pullRig {
	g := &pullRig{rig: newRig(t, faults, 1)}
	var err error
	_, err = g.f.OpenReader(link(3), g.to, readerSink{g.log})
	require.ErrorIs(t, err, transport.ErrAuth)
	g.x, err = g.f.OpenExport(link(3), g.from, exportSink{g.log})
	require.NoError(t, err)
	_, err = g.f.OpenExport(link(3), g.from, exportSink{g.log})
	require.ErrorIs(t, err, transport.ErrAuth)
	bad := link(3)
	bad.Key[1]++
	_, err = g.f.OpenReader(bad, g.to, readerSink{g.log})
	require.ErrorIs(t, err, transport.ErrAuth)
	g.r, err = g.f.OpenReader(link(3), g.to, readerSink{g.log})
	require.NoError(t, err)
	_, err = g.f.OpenReader(link(3), g.to, readerSink{g.log})
	require.ErrorIs(t, err, transport.ErrAuth)
	g.f.Drain()
	g.heard("opened")
	return g
}

// sealed fills source pages 0 and 1 and returns the job that copies them to pages 4 and 5.
func (g *pullRig) sealed(id uint64) transport.CopyJob {
	j := transport.CopyJob{ID: id, Lease: 1, Digests: true}
	for i := range uint32(2) {
		g.fill(spec.PageID(i), 30+byte(i))
		segs, err := part(2).Segments(layout(), i, nil)
		require.NoError(g.t, err)
		h := device.HeaderOf(part(2), layout(), i, pageSize)
		tag := tagOf(1, i)
		tag.HasDigest, tag.Digest = true, device.DigestSegments(g.from[spec.KV].Page(spec.PageID(i)), segs, h)
		putTag(g.from[spec.KV].Slot(spec.PageID(i), 0), tag)
		j.Copies = append(j.Copies, transport.Copy{Index: i, Src: spec.SourcePage{Page: spec.PageID(i), Gen: 1}, SrcSegs: segs, Head: h, SrcTag: tag,
			Dst: spec.GrantedPage{Page: spec.PageID(4 + i), Gen: 2}, DstSegs: segs, DstTag: tagOf(2, i)})
	}
	return j
}

func (g *pullRig) job(id uint64) OpRef {
	return find(g.t, g.f, Job, func(o Op) bool { return o.ID == id })
}

func TestPull_Drained_BytesAndTagsLand(t *testing.T) {
	g := newPull(t, Faults{})
	g.r.Copy(g.sealed(1))
	g.r.Copy(transport.CopyJob{ID: 2})
	require.ErrorIs(t, g.f.Step(g.job(2), Advance), ErrNotNow, "one job after another")
	g.f.Drain()
	g.heard("copied 1 bad [] ok", "copied 2 bad [] ok")
	g.page(4, 30, 30, spec.TagGood, tagOf(2, 0))
	g.page(5, 31, 31, spec.TagGood, tagOf(2, 1))
}

func TestPull_StepByStep_TagComesAfterTheChecks(t *testing.T) {
	g := newPull(t, Faults{})
	g.r.Copy(g.sealed(1))
	j := g.job(1)
	g.step(j, Advance)
	g.page(4, 30, 0, spec.TagVoid, tagOf(2, 0))
	g.step(j, Advance, Advance)
	require.Equal(t, Checked, g.f.Pending()[0].State)
	g.page(4, 30, 30, spec.TagVoid, tagOf(2, 0))
	g.step(j, Advance)
	require.Equal(t, 1, g.f.Pending()[0].Index)
	g.page(4, 30, 30, spec.TagGood, tagOf(2, 0))
	g.step(j, Advance, Advance, Advance, Advance)
	require.Empty(t, g.take(), "the job's end is a step of its own")
	g.step(j, Advance)
	g.heard("copied 1 bad [] ok")
}

// The source page is reused while the reader sleeps in the middle of its copy.
func TestPull_SourceReusedHalfWay_IsFoundAndNotTagged(t *testing.T) {
	reuse := func(g *pullRig) {
		g.from[spec.KV].VoidTags(0)
		g.fill(0, 90)
	}
	for at, want := range []string{
		"copied 1 bad [{kv 0 0 void true}] ok", "copied 1 bad [{kv 0 0 void true}] ok", "copied 1 bad [{kv 0 0 void false}] ok", "copied 1 bad [] ok",
	} {
		g := newPull(t, Faults{})
		g.r.Copy(g.sealed(1))
		for range at {
			g.step(g.job(1), Advance)
		}
		reuse(g)
		g.f.Drain()
		g.heard(want)
		state := spec.TagVoid
		if at == 3 {
			state = spec.TagGood // all was read and checked before
		}
		require.Equal(t, state, device.CheckTag(g.to[spec.KV].Slot(4, 0), tagOf(2, 0)))
		g.page(5, 31, 31, spec.TagGood, tagOf(2, 1))
	}
	g := newPull(t, Faults{TrustSource: true})
	g.r.Copy(g.sealed(1))
	g.step(g.job(1), Advance)
	reuse(g)
	g.f.Drain()
	g.page(4, 30, 90, spec.TagGood, tagOf(2, 0)) // what falls without the guard
}

// A copy paused half-way, fence, the page handed to another request, the copy resumed: not one byte lands.
func TestReaderFence_CopyPausedHalfWay_NotOneByteLands(t *testing.T) {
	for steps := 0; steps <= 4; steps++ {
		g := newPull(t, Faults{})
		g.r.Copy(g.sealed(1))
		g.r.Copy(g.sealed(2))
		for range steps {
			g.step(g.job(1), Advance)
		}
		g.r.Fence()
		g.r.Fence()
		fence := find(t, g.f, ReaderFence, nil)
		require.ErrorIs(t, g.f.Step(fence, Advance), ErrNotNow)
		g.f.Drain()
		index := "0"
		if steps >= 3 { // the first page was checked before: it is finished, and the second not begun
			index = "1"
		}
		g.heard("copied 1 bad [] lease 1, copy "+index+": epoch is fenced", "copied 2 bad [] lease 1, copy 0: epoch is fenced", "reader fenced", "export lost")
		handOver(g.rig, 4)
		handOver(g.rig, 5)
		g.r.Copy(g.sealed(3))
		g.f.Drain()
		g.heard("copied 3 bad [] lease 1, copy 0: epoch is fenced")
		g.page(4, 200, 200, spec.TagGood, tagOf(9, 0))
		g.page(5, 200, 200, spec.TagGood, tagOf(9, 0))
	}
}

func TestReaderFence_AtOnce_ThePausedCopyLands(t *testing.T) {
	g := newPull(t, Faults{FenceAtOnce: true})
	g.r.Copy(g.sealed(1))
	g.step(g.job(1), Advance)
	g.r.Fence()
	g.step(find(t, g.f, ReaderFence, nil), Advance)
	handOver(g.rig, 4)
	g.f.Drain()
	g.page(4, 200, 30, spec.TagGood, tagOf(9, 0))
}

func TestReader_Crashed_EndsOnceAndStopsWhereItIs(t *testing.T) {
	g := newPull(t, Faults{})
	g.r.Copy(g.sealed(1))
	g.step(g.job(1), Advance)
	g.r.Crash()
	g.r.Crash()
	g.r.Copy(g.sealed(2))
	ended := find(t, g.f, ReaderEnded, nil)
	require.ErrorIs(t, g.f.Step(ended, Lose), ErrNotNow, "the end of a process is never missed")
	g.f.Drain()
	g.heard("export lost", "reader ended")
	g.page(4, 30, 0, spec.TagVoid, tagOf(2, 0))
}

func TestReader_EndReportedFirst_NoLossFollows(t *testing.T) {
	g := newPull(t, Faults{})
	g.r.Crash()
	g.step(find(t, g.f, ReaderEnded, nil), Advance)
	g.f.Drain()
	g.heard("reader ended")
}

func TestExport_Shut_CopiesEndAtTheirNextCheck(t *testing.T) {
	g := newPull(t, Faults{})
	g.r.Copy(g.sealed(1))
	g.step(g.job(1), Advance)
	g.x.Shut()
	g.f.Drain()
	g.heard("copied 1 bad [] lease 1, copy 0: data stream lost: source has ended epoch 3", "reader lost")
	g.page(4, 30, 30, spec.TagVoid, tagOf(2, 0))
}

func TestExport_Crashed_TheReaderLosesItAndMayCopyOn(t *testing.T) {
	g := newPull(t, Faults{})
	g.r.Copy(g.sealed(1))
	g.x.Crash()
	g.f.Drain()
	g.heard("copied 1 bad [] ok", "reader lost")
	g.r.Crash()
	g.f.Drain()
	g.heard()
}

func TestCutPull_ProvesNothing_CopiesGoOn(t *testing.T) {
	g := newPull(t, Faults{})
	g.r.Copy(g.sealed(1))
	g.f.CutPull(link(3))
	g.f.CutPull(link(9))
	g.f.Drain()
	g.heard("copied 1 bad [] ok", "export lost", "reader lost")
}

func TestPull_JobOutsideOfThePools_WritesNothing(t *testing.T) {
	for _, change := range []func(c *transport.Copy){
		func(c *transport.Copy) { c.Component = spec.State },
		func(c *transport.Copy) { c.Component = 77 },
		func(c *transport.Copy) { c.Src.Page = 8 },
		func(c *transport.Copy) { c.Dst.Page = 8 },
		func(c *transport.Copy) { c.SrcSlot = 1 },
		func(c *transport.Copy) { c.Part = 1 },
		func(c *transport.Copy) { c.SrcSegs = []spec.Segment{{Offset: 60, Bytes: 8}} },
		func(c *transport.Copy) { c.DstSegs = []spec.Segment{{Offset: 0, Bytes: 8}} },
	} {
		g := newPull(t, Faults{})
		j := g.sealed(1)
		change(&j.Copies[0])
		g.r.Copy(j)
		g.f.Drain()
		require.Contains(t, g.take()[0], ErrJob.Error())
		g.page(4, 0, 0, spec.TagVoid, tagOf(2, 0))
	}
}

func TestPull_JobFailed_EndsWithItsError(t *testing.T) {
	g := newPull(t, Faults{})
	g.r.Copy(g.sealed(1))
	g.step(g.job(1), Advance, Fail)
	g.heard("copied 1 bad [] lease 1, copy 0: failed by the fabric")
	require.Empty(t, g.f.Pending())
}
