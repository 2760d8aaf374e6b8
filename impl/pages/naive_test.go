package pages

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kvfence/spec"
)

// naive is the ledger as one would write it without thought for size: each page has a list of reasons.
type naive struct {
	count  uint32
	free   []spec.PageID
	gen    map[spec.PageID]spec.Generation
	of     map[spec.PageID]Owner
	holds  map[Owner][]Hold
	over   map[Owner]bool // revoked
	groups map[Group][]spec.PageID
	bad    map[spec.PageID]bool

	most   int
	pubs   []Publication // in order of use
	shares map[Group]naiveShare
	stored map[spec.PageID]spec.Generation
	kept   map[spec.PageID]bool // filled by somebody who is over, kept by shares
	ended  []Publication
}

type naiveShare struct {
	by    Owner
	pages []spec.PageID
}

func (n *naive) pagesOf(id Owner) (out []spec.PageID) {
	for p := range n.count {
		if n.of[spec.PageID(p)] == id {
			out = append(out, spec.PageID(p))
		}
	}
	return out
}

func (n *naive) reasons(p spec.PageID) int {
	k := len(n.holds[n.of[p]])
	for _, g := range n.groups {
		if slices.Contains(g, p) {
			k++
		}
	}
	if n.bad[p] {
		k++
	}
	return k + len(n.sharers(p))
}

// own are the reasons that leave a page with its owner.
func (n *naive) own(p spec.PageID) int { return n.reasons(p) - len(n.sharers(p)) }

func (n *naive) sharers(p spec.PageID) (out []Owner) {
	for _, g := range n.shares {
		for _, q := range g.pages {
			if q == p {
				out = append(out, g.by)
			}
		}
	}
	return out
}

func (n *naive) published(p spec.PageID) int {
	return slices.IndexFunc(n.pubs, func(x Publication) bool { return x.Page == p })
}

func (n *naive) known(c spec.ContentID) int {
	return slices.IndexFunc(n.pubs, func(x Publication) bool { return x.Content == c })
}

// end ends the publication at an index; a page without one is none.
func (n *naive) end(at int) {
	if at >= 0 {
		n.ended = append(n.ended, n.pubs[at])
		n.pubs = slices.Delete(n.pubs, at, at+1)
	}
}

func (n *naive) use(at int) {
	x := n.pubs[at]
	n.pubs = append(slices.Delete(n.pubs, at, at+1), x)
}

// sweep frees every page without a reason, in the order that the ledger promises none about; only the set counts here.
func (n *naive) sweep() (freed uint32) {
	for p := range n.count {
		id := spec.PageID(p)
		if (n.of[id] != 0 || n.kept[id]) && n.reasons(id) == 0 {
			delete(n.of, id)
			delete(n.kept, id)
			n.free = append(n.free, id)
			freed++
		} else if n.of[id] != 0 && n.own(id) == 0 {
			delete(n.of, id)
			n.kept[id] = true
		}
	}
	for id := range n.holds {
		if len(n.holds[id]) == 0 && len(n.pagesOf(id)) == 0 {
			delete(n.holds, id)
			delete(n.over, id)
		}
	}
	return freed
}

func (n *naive) counts() (c Counts) {
	c.Total = n.count
	for p := range n.count {
		id := spec.PageID(p)
		switch o := n.of[id]; {
		case o == 0 && !n.kept[id]:
			c.Free++
		case n.bad[id]:
			c.Quarantined++
		case n.over[o]:
			c.Revoking++
		default:
			c.Held++
		}
	}
	return c
}

// pair is the ledger and the naive one, driven alike.
type pair struct {
	t *rapid.T
	l *Ledger
	n *naive
}

func newPair(t *rapid.T) *pair {
	count := rapid.Uint32Range(0, 12).Draw(t, "pages")
	l, err := New(count)
	require.NoError(t, err)
	n := &naive{count: count, gen: map[spec.PageID]spec.Generation{}, of: map[spec.PageID]Owner{}, holds: map[Owner][]Hold{},
		over: map[Owner]bool{}, groups: map[Group][]spec.PageID{}, bad: map[spec.PageID]bool{},
		most: rapid.SampledFrom([]int{0, 1, 2, 5}).Draw(t, "most"), shares: map[Group]naiveShare{}, stored: map[spec.PageID]spec.Generation{}, kept: map[spec.PageID]bool{}}
	l.AllowSharing(n.most)
	for p := range count {
		n.free = append(n.free, spec.PageID(p))
	}
	return &pair{t, l, n}
}

func (x *pair) owner() Owner      { return Owner(rapid.Uint64Range(1, 4).Draw(x.t, "owner")) }
func (x *pair) page() spec.PageID { return spec.PageID(rapid.Uint32Range(0, 13).Draw(x.t, "page")) }
func (x *pair) pages() []spec.PageID {
	return rapid.SliceOfN(rapid.Map(rapid.Uint32Range(0, 13), func(p uint32) spec.PageID { return spec.PageID(p) }), 0, 3).Draw(x.t, "pages")
}

func (x *pair) hold() Hold {
	return Hold{HoldKind(rapid.IntRange(0, 3).Draw(x.t, "kind")), rapid.Uint64Range(0, 1).Draw(x.t, "id")}
}

// taken books pages that the ledger handed out.
func (x *pair) taken(got []spec.GrantedPage, id Owner) {
	if _, known := x.n.holds[id]; !known {
		x.n.holds[id] = []Hold{RequestHold()}
	}
	for _, g := range got {
		require.Zero(x.t, x.n.of[g.Page])
		require.False(x.t, x.n.kept[g.Page])
		x.n.end(x.n.published(g.Page))
		x.n.gen[g.Page]++
		require.Equal(x.t, x.n.gen[g.Page], g.Gen)
		x.n.of[g.Page] = id
		x.n.free = slices.DeleteFunc(x.n.free, func(p spec.PageID) bool { return p == g.Page })
	}
}

func (x *pair) take(*rapid.T) {
	id, k := x.owner(), rapid.Uint32Range(0, 5).Draw(x.t, "n")
	got, ok := x.l.Take(k, id)
	require.Equal(x.t, k <= uint32(len(x.n.free)) && !x.n.over[id], ok)
	if ok {
		require.Len(x.t, got, int(k))
		x.taken(got, id)
	}
}

func (x *pair) takeThese(*rapid.T) {
	id, ps := x.owner(), x.pages()
	got, err := x.l.TakeThese(ps, id)
	ok := !x.n.over[id]
	for i, p := range ps {
		ok = ok && slices.Contains(x.n.free, p) && !slices.Contains(ps[:i], p)
	}
	require.Equal(x.t, ok, err == nil, "%v", err)
	if ok {
		x.taken(got, id)
	}
}

func (x *pair) addHold(*rapid.T) {
	id, h := x.owner(), x.hold()
	ok := len(x.n.holds[id]) > 0 && !slices.Contains(x.n.holds[id], h)
	require.Equal(x.t, ok, x.l.AddHold(id, h) == nil)
	if ok {
		x.n.holds[id] = append(x.n.holds[id], h)
	}
}

func (x *pair) endHold(*rapid.T) {
	id, h := x.owner(), x.hold()
	e, err := x.l.EndHold(id, h)
	at := slices.Index(x.n.holds[id], h)
	require.Equal(x.t, at >= 0, err == nil)
	if at >= 0 {
		x.n.holds[id] = slices.Delete(x.n.holds[id], at, at+1)
		require.Equal(x.t, len(x.n.holds[id]) == 0, e.Over)
		x.n.over[id] = x.n.over[id] || e.Over
		require.Equal(x.t, x.n.sweep(), e.Freed)
	}
}

func (x *pair) revoke(*rapid.T) {
	id := x.owner()
	_, known := x.n.holds[id]
	require.Equal(x.t, known, x.l.Revoke(id) == nil)
	x.n.over[id] = x.n.over[id] || known
}

func (x *pair) group(*rapid.T) {
	id, ps := x.owner(), x.pages()
	ok := len(x.n.holds[id]) > 0
	for _, p := range ps {
		ok = ok && x.n.of[p] == id
	}
	g, err := x.l.HoldPages(id, ps)
	require.Equal(x.t, ok, err == nil)
	if ok {
		x.n.groups[g] = ps
	}
}

func (x *pair) endGroup(*rapid.T) {
	g := Group(rapid.Uint64Range(0, 6).Draw(x.t, "g"))
	_, ok := x.n.groups[g]
	_, share := x.n.shares[g]
	e, err := x.l.EndGroup(g)
	require.Equal(x.t, ok || share, err == nil)
	if ok || share {
		delete(x.n.groups, g)
		delete(x.n.shares, g)
		require.Equal(x.t, x.n.sweep(), e.Freed)
	}
}

func (x *pair) quarantine(*rapid.T) {
	id, p := x.owner(), x.page()
	ok := x.n.of[p] == id
	require.Equal(x.t, ok, x.l.Quarantine(id, p) == nil)
	if ok {
		x.n.bad[p] = true
		x.n.end(x.n.published(p))
	}
}

func (x *pair) endQuarantine(*rapid.T) {
	p := x.page()
	e, err := x.l.EndQuarantine(p)
	require.Equal(x.t, x.n.bad[p], err == nil)
	if x.n.bad[p] {
		delete(x.n.bad, p)
		require.Equal(x.t, x.n.sweep(), e.Freed)
	}
}

// same compares everything that the ledger tells.
func (x *pair) same(*rapid.T) {
	require.NoError(x.t, x.l.Check())
	require.Equal(x.t, x.n.counts(), x.l.Counts())
	for p := range x.n.count {
		require.Equal(x.t, x.n.of[spec.PageID(p)], x.l.Owner(spec.PageID(p)))
		require.Equal(x.t, x.n.gen[spec.PageID(p)], x.l.Gen(spec.PageID(p)))
	}
	x.sameShares()
	for id := Owner(1); id <= 4; id++ {
		require.Equal(x.t, len(x.n.holds[id]), x.l.Holds(id))
		require.Equal(x.t, uint32(len(x.n.pagesOf(id))), x.l.Pages(id))
	}
}

func TestLedger_AgainstNaiveModel_SameAnswers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newPair(t)
		t.Repeat(map[string]func(*rapid.T){"take": x.take, "takeThese": x.takeThese, "addHold": x.addHold, "endHold": x.endHold, "revoke": x.revoke, "group": x.group,
			"endGroup": x.endGroup, "quarantine": x.quarantine, "endQuarantine": x.endQuarantine, "publish": x.publish, "publish2": x.publish, "share": x.share, "share2": x.share,
			"endShare": x.endShare, "store": x.store, "unpublish": x.unpublish, "quarantineShared": x.quarantineShared, "": x.same})
	})
}

func TestSet_OneOwnerInAllPools(t *testing.T) {
	s, err := NewSet([]spec.Layout{{Component: spec.KV, Shape: spec.Shape{Pages: 4}}, {Component: spec.Aux, Shape: spec.Shape{Pages: 1}}})
	require.NoError(t, err)
	got, ok := s.Take([spec.ComponentCount]uint32{spec.KV: 3, spec.Aux: 1}, 1)
	require.True(t, ok)
	require.Len(t, got[spec.KV], 3)
	_, ok = s.Take([spec.ComponentCount]uint32{spec.KV: 1, spec.Aux: 1}, 2)
	require.False(t, ok)
	require.Equal(t, uint32(1), s[spec.KV].Counts().Free, "none is none, in every pool")
	_, ok = s.Take([spec.ComponentCount]uint32{spec.State: 1}, 2)
	require.False(t, ok, "no such pool")
	require.NoError(t, s.AddHold(1, Hold{LinkKind, 1}))
	require.ErrorIs(t, s.AddHold(1, Hold{LinkKind, 1}), ErrHoldExists)
	require.NoError(t, s.Revoke(1))
	_, ok = s.Take([spec.ComponentCount]uint32{spec.KV: 1}, 1)
	require.False(t, ok, "revoked")
	_, err = s.EndHold(1, RequestHold())
	require.NoError(t, err)
	e, err := s.EndHold(1, Hold{LinkKind, 1})
	require.NoError(t, err)
	require.Equal(t, Ended{Freed: 4, Over: true}, e)
	require.NoError(t, s.Check())
	_, err = NewSet([]spec.Layout{{Component: spec.KV}, {Component: spec.KV}})
	require.Error(t, err)
}
