//go:build verbs && rig

package verbs

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvfence/impl/transport"
	"kvfence/spec"
)

// rounds is how many random points a fence is tried at.
func rounds() int {
	if n, err := strconv.Atoi(os.Getenv("KVFENCE_RDMA_ROUNDS")); err == nil {
		return n
	}
	return 200
}

func set(b []byte, v byte) {
	for i := range b {
		b[i] = v
	}
}

func all(b []byte, v byte) bool { return bytes.Count(b, []byte{v}) == len(b) }

const (
	storedAtSource = 0x11
	before         = 0x22
	reused         = 0x33
	fencePages     = 24
)

// fenceRig has pages of 32 KiB, whose writes take the emulation about a millisecond each.
func fenceRig(t *testing.T, n int, w Leases) *ends {
	l := kvLayout(64, 4, 0, 1, 1, fencePages)
	e := newEnds(t, memoryOf(t, l), memoryOf(t, l), Options{Rails: rails(t, n), RetryCount: 2, Timeout: 12}, Options{Rails: rails(t, n), Leases: w, unprobed: true}) // writes to a fenced end fail soon
	set(e.src[spec.KV].Bytes, storedAtSource)
	return e
}

// state is how far a write had come when the page was given out again.
type state struct{ landed, inFlight int }

// pausedAndReused posts all pages, lets the moment pass, fences decode's end alone while prefill goes on, and hands the pages out again. It returns how many
// bytes of the new owner were overwritten, in the end, when prefill's end is shut, too.
func (e *ends) pausedAndReused(t *testing.T, lease spec.LeaseID, moment time.Duration, fence func(k *link)) (overwritten int, at state) {
	k := e.link()
	dst := e.dst[spec.KV]
	set(dst.Bytes, before)
	x := e.transferOf(lease, whole(dst.Layout, 64*fencePages), ids(0, fencePages), ids(0, fencePages))
	require.True(t, k.grants.Allow(x.grant))
	for i := range x.batch.Writes { // a batch each: as much as possible is under way, and it is known how far
		k.source.Post(transport.Batch{ID: uint64(i + 1), Lease: lease, Writes: x.batch.Writes[i : i+1]})
	}
	for until := time.Now().Add(moment); time.Now().Before(until); {
	}
	fence(k)
	at.landed = fencePages - bytes.Count(firstBytes(dst.Bytes, len(dst.Bytes)/fencePages), []byte{before})
	set(dst.Bytes, reused)
	set(dst.Tags, reused)
	for range x.batch.Writes {
		if p := await(t, k.ssink.posted, "the end of a batch"); p.err != nil {
			at.inFlight++
		}
	}
	k.fenceSource()
	overwritten = len(dst.Bytes) - bytes.Count(dst.Bytes, []byte{reused})
	overwritten += len(dst.Tags) - bytes.Count(dst.Tags, []byte{reused})
	clear(dst.Tags)
	return overwritten, at
}

func firstBytes(b []byte, stride int) (out []byte) {
	for i := 0; i < len(b); i += stride {
		out = append(out, b[i])
	}
	return out
}

// A write is paused at a random point of its way, decode fences alone, and the page is handed out again: nothing lands in it.
func TestFence_WritesInFlight_NothingLandsInReusedPages(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	var took []time.Duration
	flying, partly := 0, 0
	lease, reminders, wakes := spec.LeaseID(0), uint64(0), uint64(0)
	for _, w := range []Leases{LeasesWindows, LeasesRegions, LeasesOff} {
		for _, n := range []int{1, 2} {
			e := fenceRig(t, n, w)
			for range rounds() / 6 {
				lease++
				bad, at := e.pausedAndReused(t, lease, time.Duration(rng.IntN(30_000))*time.Microsecond, func(k *link) {
					begin := time.Now()
					k.fence()
					took = append(took, time.Since(begin))
				})
				require.Zero(t, bad, "bytes landed after the fence (leases by %s, %d rails, round %d)", w, n, lease)
				if at.inFlight > 0 {
					flying++
				}
				if at.landed > 0 && at.inFlight > 0 {
					partly++
				}
			}
			reminders += e.da.Stats().Reminders + e.pa.Stats().Reminders
			wakes += e.da.Stats().Wakes + e.pa.Stats().Wakes
		}
	}
	slices.Sort(took)
	figure("fence_rounds", len(took), "fences")
	figure("fence_rounds_with_writes_in_flight", flying, "fences")
	figure("fence_wakes", wakes, "looks")
	figure("fence_reminders", reminders, "markers")
	figure("fence_rounds_in_the_middle", partly, "fences")
	for name, d := range map[string]time.Duration{"min": took[0], "median": took[len(took)/2], "max": took[len(took)-1]} {
		figure("fence_time_"+name, fmt.Sprintf("%.2f", d.Seconds()*1e3), "ms")
	}
	require.Greater(t, flying, len(took)/4, "the moments are too late to show anything")
	require.Greater(t, partly, len(took)/20, "the moments are not in the middle of anything")
}

// The check above finds a fence that only ends the stream, which is all that an engine on sockets would do.
func TestFence_ThatOnlyEndsTheStream_IsFound(t *testing.T) {
	e := fenceRig(t, 1, LeasesOff)
	found := 0
	for lease := spec.LeaseID(1); lease <= 40 && found == 0; lease++ {
		found, _ = e.pausedAndReused(t, lease, time.Millisecond, func(k *link) { _ = k.target.(*target).conn.Close() })
	}
	require.Positive(t, found, "a fence that does nothing passes")
}

// Assumption A1: a queue pair in error takes nothing.
func TestAssumption_A1_QueuePairInError_TakesNothing(t *testing.T) {
	e := fenceRig(t, 1, LeasesOff)
	k := e.link()
	x := e.transferOf(1, whole(e.dst[spec.KV].Layout, 64), ids(0, 1), ids(0, 1))
	require.True(t, k.grants.Allow(x.grant))
	k.fence()
	require.NoError(t, k.target.(*target).queues[0].inError())
	set(e.dst[spec.KV].Bytes, reused)
	s := k.source.(*source)
	s.mu.Lock()
	s.over = nil // the end of the stream may have been seen: post all the same
	s.mu.Unlock()
	k.source.Post(x.batch)
	require.Error(t, await(t, k.ssink.posted, "the end of the batch").err)
	require.True(t, all(e.dst[spec.KV].Bytes, reused))
	require.Zero(t, device0(e))
}

func device0(e *ends) (n int) {
	return len(e.dst[spec.KV].Tags) - bytes.Count(e.dst[spec.KV].Tags, []byte{0})
}

// Assumption A2: the query tells a working queue pair from one in error.
func TestAssumption_A2_Query_TellsTheState(t *testing.T) {
	e := fenceRig(t, 1, LeasesOff)
	k := e.link()
	q := k.target.(*target).queues[0]
	require.ErrorContains(t, q.inError(), "not in ERROR")
	k.fence()
	require.NoError(t, q.inError())
}

// Assumption A3: behind the marker everything has completed, receives and requests.
func TestAssumption_A3_Marker_IsBehindEverything(t *testing.T) {
	e := fenceRig(t, 1, LeasesRegions)
	for lease := spec.LeaseID(1); lease <= 10; lease++ {
		k := e.link()
		q := k.target.(*target).queues[0]
		x := e.transferOf(lease, whole(e.dst[spec.KV].Layout, 64*fencePages), ids(0, fencePages), ids(0, fencePages))
		require.True(t, k.grants.Allow(x.grant)) // binds may be under way
		k.fence()
		require.True(t, q.drained())
		require.Empty(t, q.ends, "a job has not ended")
	}
}

// Assumption A6: when a notice is in, all that was written before it on its rail is in memory: run and check read at once.
func TestAssumption_A6_Notice_IsBehindItsWrites(t *testing.T) {
	e := fenceRig(t, 2, LeasesRegions)
	k := e.link()
	for lease := spec.LeaseID(1); lease <= 12; lease++ {
		fill(e.src[spec.KV].Bytes, uint64(lease))
		x := e.transferOf(lease, whole(e.dst[spec.KV].Layout, 64*fencePages), ids(0, fencePages), ids(0, fencePages))
		k.run(x)
		e.check(x)
		k.grants.Revoke(lease)
		k.target.(*target).Settle()
		require.False(t, k.grants.Strays(spec.KV, ids(0, fencePages)))
	}
}

// Assumption A7: the number of a queue pair that is kept in error is not given to another, and it is kept until the peer says that its end is shut.
func TestAssumption_A7_KeptQueuePair_KeepsItsNumber(t *testing.T) {
	e := fenceRig(t, 1, LeasesOff)
	k := e.link()
	number := qpn(k.target.(*target).queues[0])
	k.fence()
	require.Equal(t, 1, e.da.Stats().Kept)
	r := e.da.rails[0]
	for range 50 {
		q, err := newQueue(r, 0, false, func(error) {}, nil)
		require.NoError(t, err)
		require.NotEqual(t, number, qpn(q))
		require.NoError(t, q.free())
	}
	require.Equal(t, 1, e.da.Stats().Kept)
	k.fenceSource()
	require.Eventually(t, func() bool { return e.da.Stats().Kept == 0 }, patience, time.Millisecond, "prefill has said that its end is shut")
}

// A flush read that does not come back proves nothing, whatever else is wrong with the port: FenceFailed in place of Fenced, and what had rights counts as being placed.
func TestFence_FlushReadFails_IsNoFence(t *testing.T) {
	e := fenceRig(t, 1, LeasesRegions)
	k := e.link()
	r := e.da.rails[0]
	f, err := newFlusher(r, e.da.firstBytes())
	require.NoError(t, err)
	require.NoError(t, f.reader.stop()) // no read goes out
	r.mu.Lock()
	r.flusher = f
	r.mu.Unlock()
	r.cfg.GID = 250 // and the port, which is up, has no address there
	x := e.transferOf(1, whole(e.dst[spec.KV].Layout, 64), ids(0, 1), ids(0, 1))
	require.True(t, k.grants.Allow(x.grant))
	k.grants.Revoke(1)
	k.target.Fence()
	require.ErrorIs(t, await(t, k.tsink.done, "decode's fence"), ErrFence)
	require.True(t, k.grants.Strays(spec.KV, ids(0, 1)))
	k.targetOnce.Do(func() {})
}

// A farewell that is lost with its stream is made good by the next opening.
func TestFence_KeptQueuePair_IsFreedByTheNextOpening(t *testing.T) {
	e := fenceRig(t, 1, LeasesOff)
	k := e.link()
	_ = k.source.(*source).conn.Close()
	await(t, k.tsink.lost, "the loss")
	k.fence()
	k.fenceSource()
	require.Equal(t, 1, e.da.Stats().Kept)
	e.link()
	require.Zero(t, e.da.Stats().Kept)
}

// A fence comes again and again, and at any time: it ends once.
func TestFence_Twice_EndsOnce(t *testing.T) {
	e := fenceRig(t, 1, LeasesRegions)
	k := e.link()
	k.target.Fence()
	k.source.Fence()
	k.target.Fence()
	k.source.Fence()
	require.NoError(t, await(t, k.tsink.done, "decode's fence"))
	require.NoError(t, await(t, k.ssink.done, "prefill's fence"))
	require.Empty(t, k.tsink.done)
	k.targetOnce.Do(func() {})
	k.sourceOnce.Do(func() {})
}
