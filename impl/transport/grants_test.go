package transport_test

import (
	"errors"
	"math/rand"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"kvfence/impl/device"
	"kvfence/impl/transport"
	"kvfence/spec"
)

// twoPools has a KV pool of 8 pages of 4 tokens (2 layers, K and V, 2 heads of 4 bytes: 128 bytes a page) with 2 tag slots, and an Aux pool.
func twoPools(t testing.TB, pages uint32) device.Memory {
	kv := spec.NewDense(spec.KV, spec.Meaning{ByteOrder: "little", HeadDim: 4, ElemBytes: 1, KVs: 2, TokensPerPage: 4, Layers: 2, Heads: 2}, 0, 2, 0, 2, pages, 2)
	aux := spec.NewDense(spec.Aux, spec.Meaning{ByteOrder: "little", HeadDim: 16, ElemBytes: 1, KVs: 1, Layers: 1, Heads: 1}, 0, 1, 0, 1, 4, 1)
	var m device.Memory
	for _, l := range []spec.Layout{kv, aux} {
		p, err := device.NewPool(l, nil, nil)
		require.NoError(t, err)
		m[l.Component] = p
	}
	return m
}

// grant is lease 5: tokens 0..10 in pages 6, 2 and 4 with generations 11, 12 and 13, in two parts by head; one Aux record.
func grant() spec.Grant {
	g := spec.Grant{Lease: 5, Tokens: 10, Parts: []spec.Part{
		{Component: spec.KV, Index: 0, LayerHi: 2, HeadLo: 0, HeadHi: 1, TokenHi: 10},
		{Component: spec.KV, Index: 1, LayerHi: 2, HeadLo: 1, HeadHi: 2, TokenHi: 10},
		{Component: spec.Aux, Index: 0, LayerHi: 1, HeadHi: 1},
	}}
	g.Pages[spec.KV] = []spec.GrantedPage{{Page: 6, Gen: 11}, {Page: 2, Gen: 12}, {Page: 4, Gen: 13}}
	g.Pages[spec.Aux] = []spec.GrantedPage{{Page: 3, Gen: 7}}
	return g
}

// ask is one call of Begin.
type ask struct {
	epoch spec.Epoch
	lease spec.LeaseID
	c     spec.Component
	part  spec.PartIndex
	index uint32
	dst   spec.GrantedPage
	bytes uint32
}

func (a ask) begin(g *transport.Grants) (transport.Placement, spec.Refusal) {
	return g.Begin(a.epoch, a.lease, a.c, a.part, a.index, a.dst, a.bytes)
}

func good() ask {
	return ask{3, 5, spec.KV, 1, 1, spec.GrantedPage{Page: 2, Gen: 12}, 64}
}

func granted(t testing.TB) *transport.Grants {
	g := transport.NewGrants(twoPools(t, 8))
	g.Raise(3)
	require.True(t, g.Allow(grant()))
	return g
}

func TestGrants_AllowedWrite_MayLandInItsOwnBytesOnly(t *testing.T) {
	mem := twoPools(t, 8)
	g := transport.NewGrants(mem)
	g.Raise(3)
	g.Allow(grant())
	p, why := good().begin(g)
	require.Empty(t, why)
	require.Same(t, &mem[spec.KV].Page(2)[0], &p.Page[0])
	require.Same(t, &mem[spec.KV].Slot(2, 1)[0], &p.Slot[0])
	require.Equal(t, []spec.Segment{{Offset: 16, Bytes: 16}, {Offset: 48, Bytes: 16}, {Offset: 80, Bytes: 16}, {Offset: 112, Bytes: 16}}, p.Segs)
	require.Equal(t, device.DigestHeader{TokenLo: 4, TokenHi: 8, Used: 64}, p.Header)
	g.End(p, true, 0)
	p, why = ask{3, 5, spec.Aux, 0, 0, spec.GrantedPage{Page: 3, Gen: 7}, 16}.begin(g)
	require.Empty(t, why)
	require.Equal(t, device.DigestHeader{Component: spec.Aux, Used: 16}, p.Header)
	g.End(p, true, 0)
}

func TestGrants_TailPage_TakesItsTokensOnly(t *testing.T) {
	g := granted(t)
	tail := ask{3, 5, spec.KV, 0, 2, spec.GrantedPage{Page: 4, Gen: 13}, 64}
	_, why := tail.begin(g)
	require.Equal(t, spec.RefuseNotGranted, why, "a whole page's bytes")
	tail.bytes = 32
	p, why := tail.begin(g)
	require.Empty(t, why)
	require.Equal(t, []spec.Segment{{Offset: 0, Bytes: 8}, {Offset: 32, Bytes: 8}, {Offset: 64, Bytes: 8}, {Offset: 96, Bytes: 8}}, p.Segs)
	require.Equal(t, device.DigestHeader{TokenLo: 8, TokenHi: 10, Used: 32}, p.Header)
}

func TestGrants_EveryRefusal(t *testing.T) {
	cases := map[string]struct {
		change func(*ask)
		want   spec.Refusal
	}{
		"older epoch":              {func(a *ask) { a.epoch = 2 }, spec.RefuseStaleEpoch},
		"epoch not raised yet":     {func(a *ask) { a.epoch = 4 }, spec.RefuseStaleEpoch},
		"lease never granted":      {func(a *ask) { a.lease = 6 }, spec.RefuseUnknownLease},
		"no lease":                 {func(a *ask) { a.lease = 0 }, spec.RefuseUnknownLease},
		"no such component":        {func(a *ask) { a.c = 200 }, spec.RefuseOutOfRange},
		"component without pool":   {func(a *ask) { a.c = spec.State }, spec.RefuseOutOfRange},
		"page outside of the pool": {func(a *ask) { a.dst.Page = 8 }, spec.RefuseOutOfRange},
		"part without slot":        {func(a *ask) { a.part = 2 }, spec.RefuseOutOfRange},
		"local part":               {func(a *ask) { a.part = spec.PartLocal }, spec.RefuseOutOfRange},
		"another page":             {func(a *ask) { a.dst.Page = 6 }, spec.RefuseNotGranted},
		"another generation":       {func(a *ask) { a.dst.Gen = 11 }, spec.RefuseNotGranted},
		"another index":            {func(a *ask) { a.index = 0 }, spec.RefuseNotGranted},
		"index past the end":       {func(a *ask) { a.index = 3 }, spec.RefuseNotGranted},
		"index far past the end":   {func(a *ask) { a.index = 0xffffffff }, spec.RefuseNotGranted},
		"too short":                {func(a *ask) { a.bytes = 63 }, spec.RefuseNotGranted},
		"too long":                 {func(a *ask) { a.bytes = 65 }, spec.RefuseNotGranted},
		"empty":                    {func(a *ask) { a.bytes = 0 }, spec.RefuseNotGranted},
		"part not owed": {func(a *ask) {
			*a = ask{3, 5, spec.Aux, 1, 0, spec.GrantedPage{Page: 3, Gen: 7}, 16}
		}, spec.RefuseOutOfRange},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g, a := granted(t), good()
			c.change(&a)
			_, why := a.begin(g)
			require.Equal(t, c.want, why)
			g.Raise(4)
			require.NoError(t, g.Wait(4)) // a refused write is no placer
		})
	}
}

func TestGrants_PartOfAnotherLink_IsNotGranted(t *testing.T) {
	g, m := transport.NewGrants(twoPools(t, 8)), grant()
	m.Parts = m.Parts[:1]
	g.Raise(3)
	g.Allow(m)
	_, why := good().begin(g)
	require.Equal(t, spec.RefuseNotGranted, why)
}

func TestGrants_SecondWriteOfAPage_IsDuplicate(t *testing.T) {
	for name, done := range map[string]bool{"after it landed": true, "after it broke off": false} {
		t.Run(name, func(t *testing.T) {
			g := granted(t)
			p, _ := good().begin(g)
			_, why := good().begin(g)
			require.Equal(t, spec.RefuseDuplicate, why, "while the first is being placed")
			g.End(p, done, 0)
			_, why = good().begin(g)
			require.Equal(t, spec.RefuseDuplicate, why)
		})
	}
}

func TestGrants_ReleasedLease_RefusesItsWrites(t *testing.T) {
	g := granted(t)
	g.Revoke(5)
	_, why := good().begin(g)
	require.Equal(t, spec.RefuseUnknownLease, why)
	require.Nil(t, g.Landed(5, grant().Parts))
	g.Revoke(5)
	g.Revoke(99)
}

// A repeated Grant must not open again what has landed (I18) or was released.
func TestGrants_AllowedAgain_OpensNothing(t *testing.T) {
	g := granted(t)
	p, _ := good().begin(g)
	g.End(p, true, 0)
	require.False(t, g.Allow(grant()))
	_, why := good().begin(g)
	require.Equal(t, spec.RefuseDuplicate, why)
	g.Revoke(5)
	require.False(t, g.Allow(grant()))
	_, why = good().begin(g)
	require.Equal(t, spec.RefuseUnknownLease, why)
	lower := grant()
	lower.Lease = 4
	require.False(t, g.Allow(lower), "leases rise in the order of grants")
}

func TestGrants_PartsThatNameNoBytes_AreLeftOut(t *testing.T) {
	g, m := transport.NewGrants(twoPools(t, 8)), grant()
	m.Parts = []spec.Part{
		{Component: 77, LayerHi: 1, HeadHi: 1, TokenHi: 4},
		{Component: spec.State, LayerHi: 1, HeadHi: 1},
		{Component: spec.KV, Index: 0, LayerHi: 9, HeadHi: 1, TokenHi: 4},
		{Component: spec.KV, Index: 0, LayerHi: 2, HeadHi: 1},
		{Component: spec.KV, Index: 1, LayerHi: 2, HeadHi: 1, TokenHi: 4},
		{Component: spec.KV, Index: 1, LayerHi: 2, HeadHi: 2, TokenHi: 4}, // a second claim on slot 1
	}
	require.True(t, g.Allow(m))
	got := g.Landed(5, m.Parts)
	require.Len(t, got, 2, "the one part, asked for twice")
	require.Equal(t, uint32(1), got[0].Part.HeadHi)
}

func TestGrants_PartBeyondThePages_IsRefusedThere(t *testing.T) {
	g, m := transport.NewGrants(twoPools(t, 8)), grant()
	m.Pages[spec.KV] = m.Pages[spec.KV][:1]
	g.Raise(3)
	g.Allow(m)
	_, why := good().begin(g)
	require.Equal(t, spec.RefuseNotGranted, why)
}

func TestGrants_Landed_NamesWhatIsDoneWithItsDigest(t *testing.T) {
	g, m := transport.NewGrants(twoPools(t, 8)), grant()
	m.Digests = true
	g.Raise(3)
	g.Allow(m)
	p, _ := good().begin(g)
	require.True(t, p.Digest)
	g.End(p, true, 42)
	q, _ := ask{3, 5, spec.KV, 0, 0, spec.GrantedPage{Page: 6, Gen: 11}, 64}.begin(g)
	g.End(q, false, 43)
	got := g.Landed(5, m.Parts[:2])
	require.Equal(t, []bool{false, false, false}, got[0].Done)
	require.Equal(t, []bool{false, true, false}, got[1].Done)
	require.Equal(t, []uint64{0, 42, 0}, got[1].Digest)
	m.Lease, m.Digests = 6, false
	g.Allow(m)
	require.Len(t, g.Landed(6, m.Parts)[0].Digest, 3, "parallel to Done without digests, too")
}

func TestGrants_Raised_RevokesAllAndNeverSinks(t *testing.T) {
	g := granted(t)
	g.Raise(4)
	_, why := good().begin(g)
	require.Equal(t, spec.RefuseStaleEpoch, why)
	a := good()
	a.epoch = 4
	_, why = a.begin(g)
	require.Equal(t, spec.RefuseUnknownLease, why, "leases of the older epoch are gone")
	g.Raise(3)
	_, why = good().begin(g)
	require.Equal(t, spec.RefuseStaleEpoch, why)
}

func TestGrants_WaitWithAPlacerBetweenCheckAndCopy_WaitsForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := twoPools(t, 8)
		g := transport.NewGrants(mem)
		g.Raise(3)
		g.Allow(grant())
		p, why := good().begin(g)
		require.Empty(t, why)
		g.Raise(4)
		seen := make(chan byte, 1)
		go func() {
			_ = g.Wait(4)
			b := &mem[spec.KV].Page(2)[16]
			was := *b // the copy was over when Wait returned; -race sees it otherwise
			*b = 0    // the page's next owner
			seen <- was
		}()
		synctest.Wait() // it has come to where it waits, or to its end
		require.Empty(t, seen, "a placer had passed the check and Wait returned")
		p.Page[p.Segs[0].Offset] = 9
		g.End(p, true, 0)
		require.Equal(t, byte(9), <-seen)
		require.Equal(t, byte(0), mem[spec.KV].Page(2)[16])
	})
}

// Many placers run against raises; after each Wait the fencer writes every page itself without a lock. -race finds any placer left.
func TestGrants_PlacersAgainstRaises_NoneIsLeftAfterWait(t *testing.T) {
	mem := twoPools(t, 8)
	g := transport.NewGrants(mem)
	g.Raise(1)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for k := range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			r := rand.New(rand.NewSource(int64(k)))
			for {
				select {
				case <-stop:
					return
				default:
				}
				e := spec.Epoch(r.Intn(60))
				at := uint32(k % 2)
				p, why := g.Begin(e, spec.LeaseID(e), spec.KV, spec.PartIndex(k/2), at, grant().Pages[spec.KV][at], 64)
				if why != "" {
					continue
				}
				for _, s := range p.Segs {
					clear(p.Page[s.Offset:][:s.Bytes])
				}
				device.PutTag(p.Slot, spec.Tag{Lease: spec.LeaseID(e)})
				g.End(p, true, 0)
			}
		}()
	}
	for e := spec.Epoch(1); e < 60; e++ {
		m := grant()
		m.Lease = spec.LeaseID(e)
		g.Allow(m)
		for range 50 {
			_ = g.Landed(m.Lease, m.Parts)
		}
		g.Raise(e + 1)
		_ = g.Wait(e + 1)
		for _, p := range m.Pages[spec.KV] {
			clear(mem[spec.KV].Page(p.Page))
			mem[spec.KV].VoidTags(p.Page)
		}
	}
	close(stop)
	wg.Wait()
}

// A lease of the incident's size: 681,280 tokens in pages of 16. Checks cost the same wherever the page stands.
func BenchmarkGrants_LeaseOf42580Pages_BeginEnd(b *testing.B) {
	const pages = 42580
	g := transport.NewGrants(twoPools(b, pages))
	g.Raise(1)
	m := spec.Grant{Parts: []spec.Part{{Component: spec.KV, LayerHi: 2, HeadHi: 2, TokenHi: 4 * pages}}, Digests: true}
	for i := range uint32(pages) {
		m.Pages[spec.KV] = append(m.Pages[spec.KV], spec.GrantedPage{Page: spec.PageID(i), Gen: 1})
	}
	at := uint32(pages)
	for b.Loop() {
		if at == pages {
			g.Revoke(m.Lease)
			m.Lease++
			g.Allow(m)
			at = 0
		}
		p, why := g.Begin(1, m.Lease, spec.KV, 0, at, m.Pages[spec.KV][at], 128)
		if why != "" {
			b.Fatal(why)
		}
		g.End(p, true, 1)
		at++
	}
}

// What was being placed when its adapter or device was lost counts for ever; whoever waits is told, and what ends by itself still does.
func TestGrants_Fail_WaitersAreToldAndNothingIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := granted(t)
		p, why := good().begin(g)
		require.Empty(t, why)
		g.Revoke(5)
		said := make(chan error, 2)
		go func() { said <- g.WaitStrays() }()
		go func() { said <- g.Wait(4) }()
		synctest.Wait()
		require.Empty(t, said)
		lost := errors.New("the device is lost")
		g.Fail(lost)
		g.Fail(errors.New("another"))
		require.ErrorIs(t, <-said, lost)
		require.ErrorIs(t, <-said, lost)
		require.NotEmpty(t, g.Strays(spec.KV, []spec.PageID{2}))
		require.ErrorIs(t, g.WaitStrays(), lost)
		g.End(p, false, 0) // it came to its end after all
		require.NoError(t, g.WaitStrays())
		require.NoError(t, g.Wait(4))
	})
}
