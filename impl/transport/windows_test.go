package transport_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"kvfence/impl/transport"
	"kvfence/spec"
)

// windows records what a table asks of an adapter.
type windows struct {
	granted []spec.LeaseID
	revoked []spec.LeaseID
	done    []bool
	release map[spec.LeaseID]func()
}

func (w *windows) Grant(m spec.Grant, release func()) {
	w.granted = append(w.granted, m.Lease)
	w.release[m.Lease] = release
}

func (w *windows) Revoke(l spec.LeaseID, done bool) {
	w.revoked = append(w.revoked, l)
	w.done = append(w.done, done)
}

// A lease whose rights stand in the adapter counts as being placed, revoked or not, until the adapter has taken them back.
func TestGrants_WindowsOfARevokedLease_AreStraysUntilReleased(t *testing.T) {
	w := &windows{release: map[spec.LeaseID]func(){}}
	g := transport.NewGrants(twoPools(t, 8))
	g.Raise(3)
	g.Enforce(3, w)
	require.True(t, g.Allow(grant()))
	require.False(t, g.Allow(grant()), "a repeated grant opens nothing")
	require.Equal(t, []spec.LeaseID{5}, w.granted)
	require.Empty(t, g.Strays(spec.KV, []spec.PageID{2}), "not revoked")
	g.Revoke(5)
	g.Revoke(5)
	require.Equal(t, []spec.LeaseID{5}, w.revoked)
	require.NotEmpty(t, g.Strays(spec.KV, []spec.PageID{2}))
	require.Empty(t, g.Strays(spec.KV, []spec.PageID{1}), "not its page")
	w.release[5]()
	w.release[5]()
	require.Empty(t, g.Strays(spec.KV, []spec.PageID{2}))
	require.NoError(t, g.WaitStrays())
}

// A fence waits for the rights of its epoch; the next epoch's leases go to the next adapter.
func TestGrants_WindowsOfAnOldEpoch_HoldItsFence(t *testing.T) {
	w := &windows{release: map[spec.LeaseID]func(){}}
	g := transport.NewGrants(twoPools(t, 8))
	g.Raise(3)
	g.Enforce(3, w)
	require.True(t, g.Allow(grant()))
	g.Raise(4)
	waited := make(chan struct{})
	go func() {
		_ = g.Wait(4)
		close(waited)
	}()
	select {
	case <-waited:
		t.Fatal("the fence did not wait for the adapter")
	default:
	}
	again := grant()
	again.Lease = 6
	require.True(t, g.Allow(again))
	require.Equal(t, []spec.LeaseID{5}, w.granted, "its adapter belongs to the old epoch")
	w.release[5]()
	<-waited
}

// Nothing of a lease lands any more once its own rights are gone, and those of epochs that are over; another lease's do not matter.
func TestGrants_WaitLease_WaitsForItsRightsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &windows{release: map[spec.LeaseID]func(){}}
		g := transport.NewGrants(twoPools(t, 8))
		g.Raise(3)
		g.Enforce(3, w)
		other := grant()
		require.True(t, g.Allow(other))
		other.Lease = 6
		require.True(t, g.Allow(other))
		g.Revoke(5)
		g.Revoke(6)
		said := make(chan error, 1)
		wait := func() { said <- g.WaitLease(5) }
		go wait()
		synctest.Wait()
		require.Empty(t, said)
		w.release[5]()
		require.NoError(t, <-said)
		g.Raise(4)
		go wait()
		synctest.Wait()
		require.Empty(t, said, "the epoch of lease 6 is over, and it is not")
		lost := errors.New("the device is lost")
		g.Fail(lost)
		require.ErrorIs(t, <-said, lost)
	})
}

// An adapter hears whether the writer of a lease is done, and of an epoch that is over nobody hears any more.
func TestGrants_TakeBack_SaysThatTheWriterIsDone(t *testing.T) {
	w, late := &windows{release: map[spec.LeaseID]func(){}}, &windows{release: map[spec.LeaseID]func(){}}
	g := transport.NewGrants(twoPools(t, 8))
	g.Raise(3)
	g.Enforce(3, w)
	g.Enforce(2, late)
	other := grant()
	require.True(t, g.Allow(other))
	other.Lease = 6
	require.True(t, g.Allow(other))
	g.Revoke(5)
	g.TakeBack(6)
	require.Equal(t, []bool{false, true}, w.done)
	require.Empty(t, late.granted)
	require.Equal(t, []spec.LeaseID{5, 6}, g.Strays(spec.KV, []spec.PageID{2}))
}
