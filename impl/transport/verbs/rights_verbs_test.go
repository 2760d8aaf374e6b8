//go:build verbs && rig

package verbs

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/impl/transport"
	"kvfence/spec"
)

// forged posts one raw write of n bytes to an address with a key, as a writer that keeps to nothing would.
func (k *link) forged(remote uint64, key uint32, n int) error {
	s := k.source.(*source)
	done := make(chan error, 1)
	s.queues[0].push(job{build: rawWrite(s, remote, key, n), end: func(err error) { done <- err }})
	return await(k.t, done, "the end of the forged write")
}

// granted grants pages under a lease and returns the key and address of its first window.
func (k *link) granted(lease spec.LeaseID, pages []spec.PageID) (remote uint64, key uint32) {
	l := k.dst[spec.KV].Layout
	x := k.transferOf(lease, whole(l, l.Equal.TokensPerPage*uint32(len(pages))), ids(0, uint32(len(pages))), pages)
	k.run(x)
	t := k.target.(*target)
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.leases[lease].rights {
		if !w.of.Tags {
			return uint64(addressOf(w.memory)), w.of.Key
		}
	}
	k.t.Fatal("no window")
	return 0, 0
}

// A write that leaves its lease by one byte is stopped by the adapter, whichever way; the link is lost with it, and nothing has changed.
// What enforces it is what this device's windows, tried at start, allow.
func TestLeases_OneByteOutside_IsStopped(t *testing.T) {
	l := kvLayout(64, 4, 0, 1, 1, 16)
	size := uint64(l.Shape.PageBytes)
	cases := map[string]func(k *link, at uint64, key uint32) error{
		"one byte behind": func(k *link, at uint64, key uint32) error { return k.forged(at+2*size-63, key, 64) },
		"one byte before": func(k *link, at uint64, key uint32) error { return k.forged(at-1, key, 64) },
		"the page behind": func(k *link, at uint64, key uint32) error { return k.forged(at+2*size, key, 1) },
		"another lease's page": func(k *link, at uint64, key uint32) error {
			_, _ = k.granted(2, ids(9, 2))
			return k.forged(at+5*size, key, 64)
		},
		"tag slots with this key": func(k *link, _ uint64, key uint32) error {
			return k.forged(uint64(addressOf(k.dst[spec.KV].Tags)), key, 64)
		},
		"a key that was guessed": func(k *link, at uint64, key uint32) error { return k.forged(at, key+0x100, 64) },
		"an older key of it":     func(k *link, at uint64, key uint32) error { return k.forged(at, key&^0xff|(key-1)&0xff, 64) },
		"a read": func(k *link, at uint64, key uint32) error {
			s := k.source.(*source)
			done := make(chan error, 1)
			s.queues[0].push(job{build: rawRead(s, at, key, 64), end: func(err error) { done <- err }})
			return await(k.t, done, "the end of the read")
		},
	}
	for name, forge := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnds(t, memoryOf(t, l), memoryOf(t, l), Options{Rails: rails(t, 1)}, Options{Rails: rails(t, 1)})
			by, why := e.da.Leases()
			require.NotEqual(t, LeasesOff, by, why)
			fill(e.src[spec.KV].Bytes, 3)
			k := e.link()
			at, key := k.granted(1, ids(4, 2))
			memory := append([]byte(nil), e.dst[spec.KV].Bytes...)
			err := forge(k, at, key)
			if name == "another lease's page" {
				copy(memory[9*size:11*size], e.dst[spec.KV].Bytes[9*size:11*size]) // its own write, before
				require.NotEqual(t, byte(0), memory[9*size])
			}
			require.ErrorIs(t, err, transport.ErrStream)
			await(t, k.ssink.lost, "prefill's loss")
			await(t, k.tsink.lost, "decode's loss")
			require.Equal(t, memory, e.dst[spec.KV].Bytes)
			k.end()
			require.NoError(t, e.mustWork(), "the next epoch works")
		})
	}
}

// A key of one link opens nothing to another link, whose peer has seen or guessed it.
func TestLeases_KeyOfAnotherLink_OpensNothing(t *testing.T) {
	for _, by := range []Leases{LeasesWindows, LeasesRegions} {
		t.Run(string(by), func(t *testing.T) {
			l := kvLayout(64, 4, 0, 1, 1, 16)
			e := newEnds(t, memoryOf(t, l), memoryOf(t, l), Options{Rails: rails(t, 1)}, Options{Rails: rails(t, 1), Leases: by, unprobed: true})
			k := e.link()
			at, key := k.granted(1, ids(4, 2))
			other := e.second(t)
			_, own := other.granted(1, ids(9, 2))
			require.NotEqual(t, key, own)
			memory := append([]byte(nil), e.dst[spec.KV].Bytes...)
			set(other.src[spec.KV].Bytes, 9)
			require.ErrorIs(t, other.forged(at, key, 64), transport.ErrStream)
			await(t, other.tsink.lost, "decode's loss of the link that tried")
			require.Equal(t, memory, e.dst[spec.KV].Bytes)
			set(e.src[spec.KV].Bytes, 7)
			require.NoError(t, k.forged(at, key, 64), "the link whose key it is goes on")
			require.True(t, all(e.dst[spec.KV].Bytes[4*int(l.Shape.PageBytes):][:64], 7))
		})
	}
}

// second is a link of another prefill process to the same decode process.
func (e *ends) second(t *testing.T) *link {
	o := &ends{t: t, src: memoryOf(t, e.src[spec.KV].Layout), dst: e.dst, da: e.da, grants: transport.NewGrants(e.dst), prefill: 9}
	var err error
	o.pa, err = Open(Options{Rails: rails(t, 1)}, o.src)
	require.NoError(t, err)
	o.listener, err = o.pa.Listen("127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, o.listener.Close())
		require.NoError(t, o.pa.Close())
	})
	return o.link()
}

// mustWork opens the next epoch and moves a lease.
func (e *ends) mustWork() error {
	k, err := e.tryLink()
	if err != nil {
		return err
	}
	defer k.end()
	l := e.dst[spec.KV].Layout
	x := e.transferOf(spec.LeaseID(1000*uint64(k.epoch)), whole(l, 2*l.Equal.TokensPerPage), ids(0, 2), ids(1, 2))
	k.run(x)
	e.check(x)
	return nil
}

// The checker is alive: inside of the lease a forged write lands.
func TestLeases_Inside_Lands(t *testing.T) {
	for _, by := range []Leases{LeasesWindows, LeasesRegions} {
		t.Run(string(by), func(t *testing.T) { insideLands(t, by) })
	}
}

func insideLands(t *testing.T, by Leases) {
	l := kvLayout(64, 4, 0, 1, 1, 16)
	e := newEnds(t, memoryOf(t, l), memoryOf(t, l), Options{Rails: rails(t, 1)}, Options{Rails: rails(t, 1), Leases: by, unprobed: true})
	k := e.link()
	at, key := k.granted(1, ids(4, 2))
	set(e.src[spec.KV].Bytes, 7)
	require.NoError(t, k.forged(at+2*uint64(l.Shape.PageBytes)-64, key, 64))
	require.NoError(t, k.forged(at, key, 64))
	size := int(l.Shape.PageBytes)
	require.True(t, all(e.dst[spec.KV].Bytes[6*size-64:6*size], 7))
	require.True(t, all(e.dst[spec.KV].Bytes[4*size:4*size+64], 7))
}

// Assumption A4: a window that was taken back with success takes nothing, nor does its old key when its pages are granted again; one that goes
// with its queue pair, too.
func TestAssumption_A4_WindowTakenBack_TakesNothing(t *testing.T) {
	l := kvLayout(64, 4, 0, 1, 1, 16)
	for i := range 4 {
		by, again := []Leases{LeasesWindows, LeasesRegions}[i/2], i%2 == 1
		e := newEnds(t, memoryOf(t, l), memoryOf(t, l), Options{Rails: rails(t, 1)}, Options{Rails: rails(t, 1), Leases: by, unprobed: true})
		fill(e.src[spec.KV].Bytes, 3)
		k := e.link()
		at, key := k.granted(1, ids(4, 2))
		require.Empty(t, k.grants.Strays(spec.KV, ids(4, 2)))
		k.grants.Revoke(1)
		k.target.(*target).Settle([]spec.LeaseID{1})
		require.Empty(t, k.grants.Strays(spec.KV, ids(4, 2)), "taken back")
		require.Equal(t, uint64(2), e.da.Stats().TakenBack)
		if again {
			_, other := k.granted(2, ids(4, 2))
			require.NotEqual(t, key, other)
		}
		memory := append([]byte(nil), e.dst[spec.KV].Bytes...)
		set(e.src[spec.KV].Bytes, 9)
		require.ErrorIs(t, k.forged(at, key, 64), transport.ErrStream)
		require.Equal(t, memory, e.dst[spec.KV].Bytes)
		k.end()
	}
}

// A lease that is aborted in the middle keeps its windows, and counts as being placed, until its pages are handed out: taking them from under
// writes that are under way would break the link for all other leases.
func TestLeases_Aborted_AreTakenBackWhenTheirPagesAreHandedOut(t *testing.T) {
	for _, by := range []Leases{LeasesWindows, LeasesRegions} {
		t.Run(string(by), func(t *testing.T) { abortedAndHandedOut(t, by) })
	}
}

func abortedAndHandedOut(t *testing.T, by Leases) {
	l := kvLayout(64, 4, 0, 1, 1, 16)
	e := newEnds(t, memoryOf(t, l), memoryOf(t, l), Options{Rails: rails(t, 1)}, Options{Rails: rails(t, 1), Leases: by, unprobed: true})
	k := e.link()
	x := e.transferOf(1, whole(l, 128), ids(0, 2), ids(4, 2))
	require.True(t, k.grants.Allow(x.grant))
	k.source.Post(x.batch)
	k.grants.Revoke(1)
	require.NoError(t, await(t, k.ssink.posted, "the end of the batch").err, "it was not cut off")
	require.NotEmpty(t, k.grants.Strays(spec.KV, ids(5, 1)))
	k.target.(*target).Settle([]spec.LeaseID{1})
	require.Empty(t, k.grants.Strays(spec.KV, ids(5, 1)))
	x = e.transferOf(2, whole(l, 128), ids(0, 2), ids(4, 2))
	k.run(x)
	e.check(x)
}

// A lease that is aborted in the middle of its writes is left alone when another of its link is verified, or its pages are handed out: taking its rights would break
// the link under everybody.
func TestLeases_AbortedUnderWay_OthersAreTakenBackWithoutIt(t *testing.T) {
	for _, by := range []Leases{LeasesWindows, LeasesRegions} {
		for _, n := range []int{1, 2} {
			e := fenceRig(t, n, by)
			k := e.link()
			half := uint32(fencePages / 2)
			b := e.transferOf(1, whole(e.dst[spec.KV].Layout, 64*2), ids(0, 2), ids(half, 2))
			k.run(b)
			a := e.transferOf(2, whole(e.dst[spec.KV].Layout, 64*half), ids(0, half), ids(0, half))
			require.True(t, k.grants.Allow(a.grant))
			k.source.Post(a.batch)
			k.source.Notice(2, 1)
			k.grants.Revoke(2)
			k.grants.TakeBack(1)
			k.target.(*target).Settle([]spec.LeaseID{1})
			require.NoError(t, k.grants.WaitLease(1))
			require.NoError(t, await(t, k.ssink.posted, "the end of the aborted lease's batch").err, "leases by %s, %d rails", by, n)
			require.Empty(t, k.tsink.lost)
			require.NotEmpty(t, k.grants.Strays(spec.KV, ids(0, 1)), "its rights stand")
			k.end()
		}
	}
}

// Cut ends a link whose writer does not keep to its word: the windows go with the queue pair.
func TestCut_WritesUnderWay_RightsEndWithTheQueuePair(t *testing.T) {
	for _, by := range []Leases{LeasesWindows, LeasesRegions} {
		t.Run(string(by), func(t *testing.T) { cutUnderWay(t, by) })
	}
}

func cutUnderWay(t *testing.T, by Leases) {
	e := fenceRig(t, 2, by)
	k := e.link()
	x := e.transferOf(1, whole(e.dst[spec.KV].Layout, 64*fencePages), ids(0, fencePages), ids(0, fencePages))
	require.True(t, k.grants.Allow(x.grant))
	k.source.Post(x.batch)
	k.grants.Revoke(1)
	require.NotEmpty(t, k.grants.Strays(spec.KV, ids(3, 1)))
	k.target.(transport.Cutter).Cut()
	require.NoError(t, k.grants.WaitStrays())
	await(t, k.tsink.lost, "the loss")
	set(e.dst[spec.KV].Bytes, reused)
	k.end()
	require.True(t, all(e.dst[spec.KV].Bytes, reused))
}

// A link is cut although nobody hears its notices: the node's loop, which would, waits for the cut.
func TestCut_NoticesAreNotHeard_RightsEndAllTheSame(t *testing.T) {
	e := fenceRig(t, 1, LeasesRegions)
	e.deaf = true
	k := e.link()
	pages := e.dst[spec.KV].Layout.Shape.Pages / 2
	x := e.transferOf(1, whole(e.dst[spec.KV].Layout, 64*pages), ids(0, pages), ids(0, pages))
	require.True(t, k.grants.Allow(x.grant))
	k.source.Post(x.batch)
	for n := range uint64(20) {
		k.source.Notice(1, n+1)
	}
	require.NoError(t, await(t, k.ssink.posted, "the end of the batch").err)
	x = e.transferOf(2, whole(e.dst[spec.KV].Layout, 64*pages), ids(0, pages), ids(pages, pages))
	require.True(t, k.grants.Allow(x.grant))
	k.grants.Revoke(2)
	require.NotEmpty(t, k.grants.Strays(spec.KV, ids(pages, 1)))
	k.target.(transport.Cutter).Cut()
	gone := make(chan error, 1)
	go func() { gone <- k.grants.WaitStrays() }()
	require.NoError(t, await(t, gone, "the end of the rights"))
	go func() {
		for range k.tsink.notice {
		}
	}()
	k.end()
	close(k.tsink.notice)
}

// Windows that a device announces are tried before they are believed, and refused where they were demanded and do not hold.
func TestOpen_WindowsThatDoNotHold_AreNotUsed(t *testing.T) {
	l := kvLayout(16, 1, 0, 1, 1, 4)
	a, err := Open(Options{Rails: rails(t, 1), Target: true}, memoryOf(t, l))
	require.NoError(t, err)
	by, why := a.Leases()
	require.NoError(t, a.Close())
	_, err = Open(Options{Rails: rails(t, 1), Target: true, Leases: LeasesWindows}, memoryOf(t, l))
	if by == LeasesWindows {
		require.NoError(t, err, "windows hold here")
		return
	}
	require.Contains(t, why, "do not hold their bounds")
	require.ErrorIs(t, err, ErrNoDevice)
	require.ErrorContains(t, err, "do not hold their bounds")
}
