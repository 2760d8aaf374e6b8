//go:build verbs && rig

package verbs

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvfence/spec"
)

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
	return fenceRigOf(t, n, w, kvLayout(64, 4, 0, 1, 1, fencePages))
}

func fenceRigOf(t *testing.T, n int, w Leases, l spec.Layout) *ends {
	e := newEnds(t, memoryOf(t, l), memoryOf(t, l), Options{Rails: rails(t, n), RetryCount: 2, Timeout: 12}, Options{Rails: rails(t, n), Leases: w, unprobed: true}) // writes to a fenced end fail soon
	set(e.src[spec.KV].Bytes, storedAtSource)
	return e
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
		k.target.(*target).Settle([]spec.LeaseID{lease})
		require.Empty(t, k.grants.Strays(spec.KV, ids(0, fencePages)))
	}
}

// Assumption A7: the number of a queue pair that is kept in error is not given to another, and it is kept until the peer says that its end is shut.
func TestAssumption_A7_KeptQueuePair_KeepsItsNumber(t *testing.T) {
	e := fenceRig(t, 1, LeasesOff)
	k := e.link()
	k.begun() // a source that has not begun says nothing at its end
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
	r.cfg.Port = 9 // and nobody says that the port is down
	x := e.transferOf(1, whole(e.dst[spec.KV].Layout, 64), ids(0, 1), ids(0, 1))
	require.True(t, k.grants.Allow(x.grant))
	k.grants.Revoke(1)
	k.target.Fence()
	require.ErrorIs(t, await(t, k.tsink.done, "decode's fence"), ErrFence)
	require.NotEmpty(t, k.grants.Strays(spec.KV, ids(0, 1)))
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
