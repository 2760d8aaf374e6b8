package pages

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/spec"
)

var tenantA, tenantB = spec.Domain{1}, spec.Domain{2}

func contentOf(n byte) spec.ContentID { return spec.ContentID{n} }

// published is a ledger of n pages in which owner 1 has the first k and has published them, contents 1 upwards.
func publishedLedger(t *testing.T, n, k uint32) (*Ledger, []Publication) {
	l := newLedger(t, n)
	l.AllowSharing(int(n))
	got, ok := l.Take(k, 1)
	require.True(t, ok)
	var out []Publication
	for i, g := range got {
		p := Publication{Content: contentOf(byte(i + 1)), Domain: tenantA, Page: g.Page, Gen: g.Gen, Filler: 1, Tags: []spec.Tag{{Lease: 1, Gen: g.Gen}}, Granted: []uint64{7}}
		done, err := l.Publish(p)
		require.NoError(t, err)
		require.True(t, done)
		out = append(out, p)
	}
	return l, out
}

// A published page that nothing holds is a cache: it can be shared as it is, or handed out in its next generation, which ends what was
// published. A share taken by then keeps it.
func TestShare_FreePage_IsACacheUntilItIsHandedOut(t *testing.T) {
	l, pubs := publishedLedger(t, 2, 2)
	_, err := l.EndHold(1, RequestHold())
	require.NoError(t, err)
	require.Equal(t, Counts{Free: 2, Total: 2}, l.Counts())
	found, ok := l.Find(contentOf(1))
	require.True(t, ok)
	require.Equal(t, pubs[0], found)

	g, err := l.Share(9, tenantA, pubs[:1])
	require.NoError(t, err)
	require.Equal(t, Counts{Free: 1, Held: 1, Total: 2}, l.Counts())
	require.Equal(t, pubs[0].Gen, l.Gen(pubs[0].Page), "sharing is no hand-out")
	_, ok = l.Take(2, 3)
	require.False(t, ok, "a share holds the page")
	_, err = l.TakeThese([]spec.PageID{pubs[0].Page}, 3)
	require.ErrorIs(t, err, ErrNotFree)
	_, ok = l.Take(1, 3)
	require.True(t, ok)
	require.Equal(t, []Publication{pubs[1]}, l.Ended())
	_, ok = l.Find(contentOf(2))
	require.False(t, ok)

	e, err := l.EndGroup(g)
	require.NoError(t, err)
	require.Equal(t, uint32(1), e.Freed)
	_, ok = l.Find(contentOf(1))
	require.True(t, ok, "free again, and still known")
	require.NoError(t, l.Check())
}

// The filler ends first: its page stays for whoever shares it, and comes back with the last share.
func TestShare_FillerEnds_PageStaysHeldUntilTheLastShare(t *testing.T) {
	l, pubs := publishedLedger(t, 3, 2)
	require.NoError(t, l.AddHold(1, Hold{KernelKind, 1}))
	a, err := l.Share(2, tenantA, pubs)
	require.NoError(t, err)
	b, err := l.Share(3, tenantA, pubs[:1])
	require.NoError(t, err)
	require.Equal(t, []Owner{2, 3}, l.Sharers(pubs[0].Page))
	require.NoError(t, l.Revoke(1))
	require.Equal(t, Counts{Free: 1, Revoking: 2, Total: 3}, l.Counts())
	_, err = l.EndHold(1, RequestHold())
	require.NoError(t, err)
	e, err := l.EndHold(1, Hold{KernelKind, 1})
	require.NoError(t, err)
	require.Equal(t, Ended{Over: true}, e)
	require.Equal(t, Counts{Free: 1, Held: 2, Total: 3}, l.Counts())
	require.Zero(t, l.Owner(pubs[0].Page))
	e, err = l.EndGroup(a)
	require.NoError(t, err)
	require.Equal(t, uint32(1), e.Freed)
	e, err = l.EndGroup(b)
	require.NoError(t, err)
	require.Equal(t, uint32(1), e.Freed)
	require.Equal(t, Counts{Free: 3, Total: 3}, l.Counts())
	require.NoError(t, l.Check())
}

// A share is compared in the ledger when it is taken, whatever its owner found before: by then the page may be another's.
func TestShare_PageHandedOutSinceItWasFound_IsStale(t *testing.T) {
	l, pubs := publishedLedger(t, 1, 1)
	_, err := l.EndHold(1, RequestHold())
	require.NoError(t, err)
	found, ok := l.Find(contentOf(1))
	require.True(t, ok)
	got, ok := l.Take(1, 2)
	require.True(t, ok)
	_, err = l.Share(3, tenantA, []Publication{found})
	require.ErrorIs(t, err, ErrStale)
	done, err := l.Publish(Publication{Content: contentOf(5), Domain: tenantA, Page: got[0].Page, Gen: got[0].Gen, Filler: 2})
	require.NoError(t, err)
	require.True(t, done)
	_, err = l.Share(3, tenantA, []Publication{found})
	require.ErrorIs(t, err, ErrStale)
	found.Gen = got[0].Gen
	_, err = l.Share(3, tenantA, []Publication{found})
	require.ErrorIs(t, err, ErrOtherContent)
	require.Equal(t, pubs, l.Ended())
	require.NoError(t, l.Check())
}

// Equal ids in two domains do not happen (spec, content-id.md); where they did, the ledger's own comparison would still refuse.
func TestShare_OtherDomain_IsRefusedAndNoneIsTaken(t *testing.T) {
	l, pubs := publishedLedger(t, 3, 2)
	_, err := l.Share(2, tenantB, pubs)
	require.ErrorIs(t, err, ErrOtherDomain)
	other := pubs[1]
	other.Page = 99
	_, err = l.Share(2, tenantA, []Publication{pubs[0], other})
	require.ErrorIs(t, err, ErrUnknownPage)
	other.Page = 2
	_, err = l.Share(2, tenantA, []Publication{pubs[0], other})
	require.ErrorIs(t, err, ErrStale)
	require.Empty(t, l.Sharers(pubs[0].Page))
	require.NoError(t, l.Check())
}

// What this side stored into is never published, and what is published or shared is never stored into.
func TestStore_AndPublish_ExcludeEachOther(t *testing.T) {
	l, pubs := publishedLedger(t, 3, 1)
	require.ErrorIs(t, l.Store(1, pubs[0].Page), ErrPublished)
	g, err := l.Share(2, tenantA, pubs)
	require.NoError(t, err)
	require.NoError(t, l.Unpublish(pubs[0].Page))
	require.ErrorIs(t, l.Unpublish(pubs[0].Page), ErrNotPublished)
	require.ErrorIs(t, l.Store(1, pubs[0].Page), ErrPublished, "a share stands")
	_, err = l.Share(3, tenantA, pubs)
	require.ErrorIs(t, err, ErrNotPublished)
	_, err = l.EndGroup(g)
	require.NoError(t, err)
	require.NoError(t, l.Store(1, pubs[0].Page))
	require.True(t, l.Stored(pubs[0].Page))
	_, err = l.Publish(pubs[0])
	require.ErrorIs(t, err, ErrStored)
	_, err = l.EndHold(1, RequestHold())
	require.NoError(t, err)
	got, ok := l.Take(3, 4)
	require.True(t, ok)
	require.False(t, l.Stored(pubs[0].Page), "another generation")
	for _, x := range got {
		if x.Page == pubs[0].Page {
			done, err := l.Publish(Publication{Content: contentOf(1), Domain: tenantA, Page: x.Page, Gen: x.Gen, Filler: 4})
			require.NoError(t, err)
			require.True(t, done)
		}
	}
	require.NoError(t, l.Check())
}

// A finding takes the page out of use for everyone, and it comes back by the end of quarantine and of the last share.
func TestQuarantineShared_EndsThePublicationAndWaitsForBoth(t *testing.T) {
	l, pubs := publishedLedger(t, 2, 1)
	g, err := l.Share(2, tenantA, pubs)
	require.NoError(t, err)
	_, err = l.EndHold(1, RequestHold())
	require.NoError(t, err)
	require.ErrorIs(t, l.QuarantineShared(g, 1, pubs[0].Page), ErrUnknownHold)
	require.NoError(t, l.QuarantineShared(g, 0, pubs[0].Page))
	require.NoError(t, l.QuarantineShared(g, 0, pubs[0].Page))
	require.Equal(t, Counts{Free: 1, Quarantined: 1, Total: 2}, l.Counts())
	_, err = l.Share(3, tenantA, pubs)
	require.ErrorIs(t, err, ErrNotPublished)
	e, err := l.EndQuarantine(pubs[0].Page)
	require.NoError(t, err)
	require.Zero(t, e.Freed)
	require.Equal(t, Counts{Free: 1, Held: 1, Total: 2}, l.Counts())
	e, err = l.EndGroup(g)
	require.NoError(t, err)
	require.Equal(t, uint32(1), e.Freed)
	require.NoError(t, l.Check())
}

// Room for publications is bounded: the one that was not used for longest ends.
func TestPublish_NoRoom_EndsTheOneUnusedForLongest(t *testing.T) {
	l, pubs := publishedLedger(t, 3, 3)
	l.AllowSharing(3)
	_, err := l.Share(2, tenantA, pubs[:1])
	require.NoError(t, err)
	got, _ := l.Take(0, 3)
	require.Empty(t, got)
	require.NoError(t, l.Unpublish(pubs[2].Page))
	l.AllowSharing(2)
	done, err := l.Publish(pubs[2])
	require.NoError(t, err)
	require.True(t, done)
	require.Equal(t, []Publication{pubs[2], pubs[1]}, l.Ended())
	done, err = l.Publish(Publication{Content: contentOf(1), Domain: tenantA, Page: pubs[1].Page, Gen: pubs[1].Gen, Filler: 1})
	require.NoError(t, err)
	require.False(t, done, "known already, elsewhere")
	_, err = l.Share(3, tenantA, pubs[2:])
	require.NoError(t, err)
	done, err = l.Publish(Publication{Content: contentOf(9), Domain: tenantA, Page: pubs[1].Page, Gen: pubs[1].Gen, Filler: 1})
	require.NoError(t, err)
	require.False(t, done, "all that are known are shared: they stay")
	require.Empty(t, l.Ended())
	_, err = l.Publish(Publication{Domain: tenantA, Page: pubs[1].Page, Gen: pubs[1].Gen, Filler: 1})
	require.ErrorIs(t, err, ErrOtherContent)
	require.NoError(t, l.Check())
}

// Sharing costs a page no memory as long as it is not published.
func TestLedger_Memory_IsThatOfThePagesWithoutPublications(t *testing.T) {
	const n = 1 << 20
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	l := newLedger(t, n)
	l.AllowSharing(1 << 16)
	runtime.GC()
	runtime.ReadMemStats(&after)
	require.Less(t, float64(after.HeapAlloc-before.HeapAlloc)/n, 34.0)
	runtime.KeepAlive(l)
}

// The longest prefix ends at the first content that is not published, or that is refused.
func TestPrefix_EndsAtTheFirstThatIsMissingOrRefused(t *testing.T) {
	l, pubs := publishedLedger(t, 4, 3)
	contents := []spec.ContentID{contentOf(1), contentOf(2), contentOf(3), contentOf(9)}
	require.Equal(t, pubs, l.Prefix(contents, nil))
	require.Equal(t, pubs[:2], l.Prefix(contents, func(i uint32, p Publication) bool {
		require.Equal(t, pubs[i], p)
		return i < 2
	}))
	require.NoError(t, l.Unpublish(pubs[1].Page))
	require.Equal(t, pubs[:1], l.Prefix(contents, nil), "what is behind a gap is no prefix")
	require.Empty(t, l.Prefix(contents[3:], nil))
	require.Empty(t, l.Prefix(nil, nil))
}
