package pages

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/spec"
)

func newLedger(t *testing.T, n uint32) *Ledger {
	l, err := New(n)
	require.NoError(t, err)
	return l
}

func ids(gs []spec.GrantedPage) (out []spec.PageID) {
	for _, g := range gs {
		out = append(out, g.Page)
	}
	return out
}

func TestTake_AllOrNone_RaisesGenerations(t *testing.T) {
	l := newLedger(t, 4)
	a, ok := l.Take(3, 1)
	require.True(t, ok)
	require.Equal(t, []spec.GrantedPage{{Page: 0, Gen: 1}, {Page: 1, Gen: 1}, {Page: 2, Gen: 1}}, a)
	_, ok = l.Take(2, 2)
	require.False(t, ok)
	require.Equal(t, Counts{Free: 1, Held: 3, Total: 4}, l.Counts())
	_, ok = l.Take(1, 0)
	require.False(t, ok, "0 is nobody")
	e, err := l.EndHold(1, RequestHold())
	require.NoError(t, err)
	require.Equal(t, Ended{Freed: 3, Over: true}, e)
	b, ok := l.Take(4, 2)
	require.True(t, ok)
	require.Equal(t, []spec.GrantedPage{{Page: 3, Gen: 1}, {Page: 0, Gen: 2}, {Page: 1, Gen: 2}, {Page: 2, Gen: 2}}, b, "first in, first out")
	require.NoError(t, l.Check())
}

func TestTake_NoPages_IsAnOwnerWithHolds(t *testing.T) {
	l := newLedger(t, 1)
	_, ok := l.Take(0, 9)
	require.True(t, ok)
	require.NoError(t, l.AddHold(9, Hold{LinkKind, 1}))
	_, err := l.EndHold(9, RequestHold())
	require.NoError(t, err)
	e, err := l.EndHold(9, Hold{LinkKind, 1})
	require.NoError(t, err)
	require.Equal(t, Ended{Over: true}, e)
	require.ErrorIs(t, l.Revoke(9), ErrUnknownOwner)
	require.NoError(t, l.Check())
}

// TestCaseB01_DeferredRelease: a page has as many lifetimes as reasons to keep it; the last one decides.
func TestCaseB01_DeferredRelease_PageStaysUntilItsLastHoldEnds(t *testing.T) {
	l := newLedger(t, 2)
	got, _ := l.Take(2, 1)
	require.NoError(t, l.AddHold(1, Hold{LinkKind, 7}))
	require.NoError(t, l.Revoke(1))
	require.Equal(t, Counts{Revoking: 2, Total: 2}, l.Counts())
	_, err := l.EndHold(1, RequestHold())
	require.NoError(t, err)
	_, ok := l.Take(1, 2)
	require.False(t, ok, "a remote write may still land")
	_, err = l.TakeThese(ids(got), 2)
	require.ErrorIs(t, err, ErrNotFree)
	e, err := l.EndHold(1, Hold{LinkKind, 7})
	require.NoError(t, err)
	require.Equal(t, Ended{Freed: 2, Over: true}, e)
	_, ok = l.Take(2, 2)
	require.True(t, ok)
}

// TestCaseB31_TwoCompletions: two operations are two holds; each ends once, in any order, a third end is refused.
func TestCaseB31_TwoCompletions_FreedOnceAndThirdRefused(t *testing.T) {
	for _, order := range [][]uint64{{1, 2}, {2, 1}} {
		l := newLedger(t, 3)
		_, _ = l.Take(3, 5)
		require.NoError(t, l.AddHold(5, Hold{OperationKind, 1}))
		require.NoError(t, l.AddHold(5, Hold{OperationKind, 2}))
		_, err := l.EndHold(5, RequestHold())
		require.NoError(t, err)
		e, err := l.EndHold(5, Hold{OperationKind, order[0]})
		require.NoError(t, err)
		require.Zero(t, e)
		_, err = l.EndHold(5, Hold{OperationKind, order[0]})
		require.ErrorIs(t, err, ErrUnknownHold)
		e, err = l.EndHold(5, Hold{OperationKind, order[1]})
		require.NoError(t, err)
		require.Equal(t, Ended{Freed: 3, Over: true}, e)
		_, err = l.EndHold(5, Hold{OperationKind, order[1]})
		require.ErrorIs(t, err, ErrUnknownOwner)
		require.NoError(t, l.Check())
	}
}

func TestGroups_HoldSomePagesBeyondTheirOwner(t *testing.T) {
	l := newLedger(t, 4)
	got, _ := l.Take(4, 1)
	g, err := l.HoldPages(1, ids(got)[1:3])
	require.NoError(t, err)
	e, err := l.EndHold(1, RequestHold())
	require.NoError(t, err)
	require.Equal(t, Ended{Freed: 2, Over: true}, e)
	require.Equal(t, Counts{Free: 2, Revoking: 2, Total: 4}, l.Counts())
	require.Equal(t, Owner(1), l.Owner(got[1].Page))
	require.ErrorIs(t, l.AddHold(1, Hold{KernelKind, 1}), ErrRevoked)
	_, err = l.HoldPages(1, ids(got)[1:2])
	require.ErrorIs(t, err, ErrRevoked)
	require.NoError(t, l.Check())
	e, err = l.EndGroup(g)
	require.NoError(t, err)
	require.Equal(t, uint32(2), e.Freed)
	_, err = l.EndGroup(g)
	require.ErrorIs(t, err, ErrUnknownHold)
	require.NoError(t, l.Check())
}

func TestQuarantine_OutlivesEverythingElse(t *testing.T) {
	l := newLedger(t, 3)
	got, _ := l.Take(2, 1)
	_, _ = l.Take(1, 2)
	require.NoError(t, l.Quarantine(1, got[0].Page))
	require.NoError(t, l.Quarantine(1, got[0].Page))
	require.Equal(t, Counts{Held: 2, Quarantined: 1, Total: 3}, l.Counts())
	require.ErrorIs(t, l.Quarantine(2, got[1].Page), ErrForeignOwner)
	require.ErrorIs(t, l.Quarantine(1, 99), ErrUnknownPage)
	e, err := l.EndHold(1, RequestHold())
	require.NoError(t, err)
	require.Equal(t, Ended{Freed: 1, Over: true}, e)
	require.Equal(t, Quarantined, l.State(got[0].Page))
	_, ok := l.Take(2, 3)
	require.False(t, ok)
	e, err = l.EndQuarantine(got[0].Page)
	require.NoError(t, err)
	require.Equal(t, uint32(1), e.Freed)
	_, err = l.EndQuarantine(got[0].Page)
	require.ErrorIs(t, err, ErrNotBad)
	_, err = l.EndQuarantine(99)
	require.ErrorIs(t, err, ErrUnknownPage)
	require.ErrorIs(t, l.Quarantine(2, got[0].Page), ErrDoubleFree)
	require.NoError(t, l.Check())
}

func TestTakeThese_RefusesWhatIsNotFree(t *testing.T) {
	l := newLedger(t, 4)
	a, err := l.TakeThese([]spec.PageID{2, 0}, 1)
	require.NoError(t, err)
	require.Equal(t, []spec.GrantedPage{{Page: 2, Gen: 1}, {Page: 0, Gen: 1}}, a)
	for _, c := range []struct {
		pages []spec.PageID
		owner Owner
		want  error
	}{
		{[]spec.PageID{1, 2}, 2, ErrNotFree}, {[]spec.PageID{1, 1}, 2, ErrNotFree}, {[]spec.PageID{4}, 2, ErrUnknownPage}, {[]spec.PageID{1}, 0, ErrUnknownOwner},
	} {
		_, err := l.TakeThese(c.pages, c.owner)
		require.ErrorIs(t, err, c.want)
		require.Equal(t, Counts{Free: 2, Held: 2, Total: 4}, l.Counts())
	}
	require.NoError(t, l.Revoke(1))
	_, err = l.TakeThese([]spec.PageID{1}, 1)
	require.ErrorIs(t, err, ErrRevoked)
	_, ok := l.Take(1, 1)
	require.False(t, ok)
	require.NoError(t, l.Check())
}

func TestCheck_FindsAPageInTwoPlaces(t *testing.T) {
	l := newLedger(t, 3)
	_, _ = l.Take(1, 1)
	l.pages[0].owner = none
	require.ErrorIs(t, l.Check(), ErrBroken)
	l = newLedger(t, 3)
	l.counts[Free]--
	require.ErrorIs(t, l.Check(), ErrBroken)
}

// A pool of 16 million pages with 100,000 live leases stays within 100 bytes a page, and an operation does not depend on the pool.
func TestLedger_SixteenMillionPages_WithinItsBudget(t *testing.T) {
	const pages, leases, each = 16 << 20, 100_000, 100
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	l := newLedger(t, pages)
	for id := Owner(1); id <= leases; id++ {
		if _, ok := l.Take(each, id); !ok {
			t.Fatal("no room")
		}
		if err := l.AddHold(id, Hold{LinkKind, 1}); err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	perPage := float64(after.HeapAlloc-before.HeapAlloc) / pages
	t.Logf("%.1f bytes a page", perPage)
	require.Less(t, perPage, 100.0)
	require.Equal(t, Counts{Free: pages - leases*each, Held: leases * each, Total: pages}, l.Counts())
	for id := Owner(1); id <= leases; id++ {
		if err := l.Revoke(id); err != nil {
			t.Fatal(err)
		}
		if _, err := l.EndHold(id, RequestHold()); err != nil {
			t.Fatal(err)
		}
		if e, err := l.EndHold(id, Hold{LinkKind, 1}); err != nil || e.Freed != each {
			t.Fatal(e, err)
		}
	}
	require.Equal(t, Counts{Free: pages, Total: pages}, l.Counts())
	runtime.KeepAlive(l)
}
