package pages

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/spec"
)

// Only a good page of its filler, in its generation, is published.
func TestPublish_RefusesWhatIsNotTheFillersGoodPage(t *testing.T) {
	l := newLedger(t, 4)
	l.AllowSharing(4)
	got, ok := l.Take(2, 1)
	require.True(t, ok)
	_, ok = l.Take(1, 2)
	require.True(t, ok)
	good := Publication{Content: contentOf(1), Domain: tenantA, Page: got[0].Page, Gen: got[0].Gen, Filler: 1}
	refused := func(want error, change func(*Publication)) {
		t.Helper()
		p := good
		change(&p)
		done, err := l.Publish(p)
		require.ErrorIs(t, err, want)
		require.False(t, done)
	}
	refused(ErrStale, func(p *Publication) { p.Gen++ })
	refused(ErrForeignOwner, func(p *Publication) { p.Filler = 2 })
	refused(ErrUnknownOwner, func(p *Publication) { p.Filler = 9 })
	refused(ErrUnknownPage, func(p *Publication) { p.Page = 99 })
	refused(ErrOtherContent, func(p *Publication) { p.Content = spec.ContentID{} })
	require.NoError(t, l.Quarantine(1, got[0].Page))
	refused(ErrQuarantined, func(*Publication) {})
	good.Page, good.Gen = got[1].Page, got[1].Gen
	require.NoError(t, l.Revoke(1))
	refused(ErrRevoked, func(*Publication) {})
	require.NoError(t, l.Check())
}

func TestStoreAndQuarantine_OfAnUnknownOwner_AreRefused(t *testing.T) {
	l := newLedger(t, 2)
	got, ok := l.Take(1, 1)
	require.True(t, ok)
	require.ErrorIs(t, l.Store(9, got[0].Page), ErrUnknownOwner)
	require.ErrorIs(t, l.Quarantine(9, got[0].Page), ErrUnknownOwner)
	require.False(t, l.Stored(got[0].Page))
	require.False(t, l.Stored(99))
	require.Equal(t, Held, l.State(got[0].Page))
	require.Equal(t, Free, l.State(99))
	require.Zero(t, l.Gen(99))
	require.Zero(t, l.Owner(99))
	require.False(t, l.HasHold(9, RequestHold()))
	require.True(t, l.HasHold(1, RequestHold()))
	require.False(t, l.HasHold(1, Hold{LinkKind, 3}))
}

// An owner that is over stays known until its last page is back, whichever hold ends first.
func TestEndGroup_OwnerWithAnotherHeldPage_StaysKnown(t *testing.T) {
	l := newLedger(t, 3)
	got, ok := l.Take(2, 1)
	require.True(t, ok)
	first, err := l.HoldPages(1, []spec.PageID{got[0].Page})
	require.NoError(t, err)
	second, err := l.HoldPages(1, []spec.PageID{got[1].Page})
	require.NoError(t, err)
	require.NotEqual(t, first, second)
	_, err = l.EndHold(1, RequestHold())
	require.NoError(t, err)
	e, err := l.EndGroup(first)
	require.NoError(t, err)
	require.EqualValues(t, 1, e.Freed)
	require.NoError(t, l.Check())
	require.EqualValues(t, 1, l.Pages(1))
	require.Equal(t, Owner(1), l.Owner(got[1].Page))
	_, err = l.EndGroup(second)
	require.NoError(t, err)
	require.EqualValues(t, 3, l.Counts().Free)
	require.Zero(t, l.Pages(1))
	require.NoError(t, l.Check())
}
