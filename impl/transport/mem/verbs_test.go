package mem

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/spec"
)

// verbsRig is one link over verbs.
func verbsRig(t *testing.T, v Verbs, rails uint32) *rig {
	v.On, v.Rails = true, int(rails)
	return rigOn(t, NewVerbs(Faults{}, v), rails)
}

func (g *rig) verbsLease(id spec.LeaseID, dst spec.PageID, n uint32) {
	b := g.lease(id, dst, n)
	for i := range b.Writes {
		b.Writes[i].Of = part(n)
	}
	g.src.Post(b)
}

func TestVerbs_Drained_LandsWithoutTheTable(t *testing.T) {
	for _, windows := range []bool{false, true} {
		g := verbsRig(t, Verbs{Windows: windows}, 2)
		g.verbsLease(1, 0, 3)
		g.src.Notice(1, 7)
		g.f.Drain()
		g.heard("posted 10 ok", "notice in channel 0 lease 1 number 7", "notice in channel 1 lease 1 number 7", "noticed 1 [{0 7} {1 7}] ok")
		g.page(2, 18, 18, spec.TagGood, tagOf(1, 2))
		require.Equal(t, []bool{false, false, false}, g.grants.Landed(1, []spec.Part{part(3)})[0].Done, "no placer has counted it")
	}
}

func TestVerbs_Completion_ComesWithTheAcknowledgement(t *testing.T) {
	g := verbsRig(t, Verbs{}, 1)
	g.verbsLease(1, 0, 2)
	first, second, b := g.write(10, 0), g.write(10, 1), find(t, g.f, Batch, nil)
	g.step(first, Advance)
	g.step(second, Advance)
	require.ErrorIs(t, g.f.Step(b, Advance), ErrNotNow, "the sources may be read once more")
	require.ErrorIs(t, g.f.Step(second, Advance), ErrNotNow, "in order within a queue pair")
	g.fill(0, 99)
	g.step(first, Advance)
	g.step(second, Advance)
	g.step(b, Advance)
	g.heard("posted 10 ok")
	g.f.Drain()
	g.page(0, 99, 99, spec.TagGood, tagOf(1, 0))
}

// What fails on one rail completes flushed there, and only there; what was launched lands all the same.
func TestVerbs_RailFails_FlushesAndLandsLate(t *testing.T) {
	g := verbsRig(t, Verbs{}, 2)
	g.verbsLease(1, 0, 4) // 0 and 2 on the first rail
	g.src.Notice(1, 7)
	g.step(g.write(10, 0), Advance)
	g.step(g.write(10, 2), Fail)
	g.f.Drain()
	g.heard("posted 10 write 2: failed by the fabric", "notice in channel 1 lease 1 number 7", "noticed 1 [] "+ErrFlushed.Error(), "source lost", "target lost")
	g.page(0, 16, 16, spec.TagGood, tagOf(1, 0))
	g.page(1, 17, 17, spec.TagGood, tagOf(1, 1))
	g.page(2, 0, 0, spec.TagVoid, tagOf(1, 2))
	g.verbsLease(2, 4, 1)
	g.f.Drain()
	require.Contains(t, g.take()[0], ErrFlushed.Error(), "a queue pair in error flushes what is posted")
}

// A number that is given to the next queue pair lets an old packet in; one that is kept does not.
func TestVerbs_NumberComesBack_OldPacketsAreTakenIn(t *testing.T) {
	for _, free := range []bool{false, true} {
		g := verbsRig(t, Verbs{NumberFree: free}, 1)
		g.verbsLease(1, 0, 1)
		w := g.write(10, 0)
		g.step(w, Advance)
		g.grants.Raise(2)
		g.dst.Fence()
		require.NoError(t, g.f.Hold(w, true))
		g.f.Drain()
		require.Contains(t, g.take(), "target fenced")
		_, err := g.f.OpenTarget(link(2), g.to, g.grants, targetSink{g.log})
		require.NoError(t, err)
		handOver(g, 0)
		require.NoError(t, g.f.Hold(w, false))
		g.f.Drain()
		if free {
			g.page(0, 16, 16, spec.TagForeign, tagOf(9, 0))
		} else {
			g.page(0, 200, 200, spec.TagGood, tagOf(9, 0))
		}
	}
}

func TestVerbs_WriteOutsideOfItsWindow_BreaksTheQueuePair(t *testing.T) {
	g := verbsRig(t, Verbs{Windows: true}, 1)
	b := g.lease(1, 0, 1)
	b.Writes[0].Of, b.Writes[0].Dst.Page = part(1), 3
	g.src.Post(b)
	g.f.Drain()
	g.heard("posted 10 write 0: "+ErrFlushed.Error(), "source lost", "target lost")
	g.page(3, 0, 0, spec.TagVoid, tagOf(1, 0))
}
