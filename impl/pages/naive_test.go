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
	return k
}

// sweep frees every page without a reason, in the order that the ledger promises none about; only the set counts here.
func (n *naive) sweep() (freed uint32) {
	for p := range n.count {
		id := spec.PageID(p)
		if n.of[id] != 0 && n.reasons(id) == 0 {
			delete(n.of, id)
			n.free = append(n.free, id)
			freed++
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
		case o == 0:
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

func TestLedger_AgainstNaiveModel_SameAnswers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.Uint32Range(0, 12).Draw(t, "pages")
		l, err := New(count)
		require.NoError(t, err)
		n := &naive{count: count, gen: map[spec.PageID]spec.Generation{}, of: map[spec.PageID]Owner{}, holds: map[Owner][]Hold{},
			over: map[Owner]bool{}, groups: map[Group][]spec.PageID{}, bad: map[spec.PageID]bool{}}
		for p := range count {
			n.free = append(n.free, spec.PageID(p))
		}
		owner := rapid.Custom(func(t *rapid.T) Owner { return Owner(rapid.Uint64Range(1, 4).Draw(t, "owner")) })
		page := rapid.Custom(func(t *rapid.T) spec.PageID { return spec.PageID(rapid.Uint32Range(0, 13).Draw(t, "page")) })
		hold := rapid.Custom(func(t *rapid.T) Hold {
			return Hold{HoldKind(rapid.IntRange(0, 3).Draw(t, "kind")), rapid.Uint64Range(0, 1).Draw(t, "id")}
		})
		known := func(id Owner) bool { _, ok := n.holds[id]; return ok }
		taken := func(got []spec.GrantedPage, id Owner) {
			if !known(id) {
				n.holds[id] = []Hold{RequestHold()}
			}
			for _, g := range got {
				require.Zero(t, n.of[g.Page])
				n.gen[g.Page]++
				require.Equal(t, n.gen[g.Page], g.Gen)
				n.of[g.Page] = id
				n.free = slices.DeleteFunc(n.free, func(p spec.PageID) bool { return p == g.Page })
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				id, k := owner.Draw(t, "o"), rapid.Uint32Range(0, 5).Draw(t, "n")
				got, ok := l.Take(k, id)
				require.Equal(t, k <= uint32(len(n.free)) && !n.over[id], ok)
				if ok {
					require.Len(t, got, int(k))
					taken(got, id)
				}
			},
			"these": func(t *rapid.T) {
				id, ps := owner.Draw(t, "o"), rapid.SliceOfN(page, 0, 3).Draw(t, "ps")
				got, err := l.TakeThese(ps, id)
				ok := !n.over[id]
				for i, p := range ps {
					ok = ok && slices.Contains(n.free, p) && !slices.Contains(ps[:i], p)
				}
				require.Equal(t, ok, err == nil, "%v", err)
				if ok {
					taken(got, id)
				}
			},
			"add": func(t *rapid.T) {
				id, h := owner.Draw(t, "o"), hold.Draw(t, "h")
				ok := len(n.holds[id]) > 0 && !slices.Contains(n.holds[id], h)
				require.Equal(t, ok, l.AddHold(id, h) == nil)
				if ok {
					n.holds[id] = append(n.holds[id], h)
				}
			},
			"end": func(t *rapid.T) {
				id, h := owner.Draw(t, "o"), hold.Draw(t, "h")
				e, err := l.EndHold(id, h)
				at := slices.Index(n.holds[id], h)
				require.Equal(t, at >= 0, err == nil)
				if at >= 0 {
					n.holds[id] = slices.Delete(n.holds[id], at, at+1)
					require.Equal(t, len(n.holds[id]) == 0, e.Over)
					n.over[id] = n.over[id] || e.Over
					require.Equal(t, n.sweep(), e.Freed)
				}
			},
			"revoke": func(t *rapid.T) {
				id := owner.Draw(t, "o")
				require.Equal(t, known(id), l.Revoke(id) == nil)
				n.over[id] = n.over[id] || known(id)
			},
			"group": func(t *rapid.T) {
				id := owner.Draw(t, "o")
				ps := rapid.SliceOfNDistinct(page, 0, 3, rapid.ID[spec.PageID]).Draw(t, "ps")
				ok := len(n.holds[id]) > 0
				for _, p := range ps {
					ok = ok && n.of[p] == id
				}
				g, err := l.HoldPages(id, ps)
				require.Equal(t, ok, err == nil)
				if ok {
					n.groups[g] = ps
				}
			},
			"ungroup": func(t *rapid.T) {
				g := Group(rapid.Uint64Range(0, 6).Draw(t, "g"))
				_, ok := n.groups[g]
				e, err := l.EndGroup(g)
				require.Equal(t, ok, err == nil)
				if ok {
					delete(n.groups, g)
					require.Equal(t, n.sweep(), e.Freed)
				}
			},
			"quarantine": func(t *rapid.T) {
				id, p := owner.Draw(t, "o"), page.Draw(t, "p")
				ok := n.of[p] == id && uint32(p) < count
				require.Equal(t, ok, l.Quarantine(id, p) == nil)
				if ok {
					n.bad[p] = true
				}
			},
			"unquarantine": func(t *rapid.T) {
				p := page.Draw(t, "p")
				e, err := l.EndQuarantine(p)
				require.Equal(t, n.bad[p], err == nil)
				if n.bad[p] {
					delete(n.bad, p)
					require.Equal(t, n.sweep(), e.Freed)
				}
			},
			"": func(t *rapid.T) {
				require.NoError(t, l.Check())
				require.Equal(t, n.counts(), l.Counts())
				for p := range count {
					require.Equal(t, n.of[spec.PageID(p)], l.Owner(spec.PageID(p)))
					require.Equal(t, n.gen[spec.PageID(p)], l.Gen(spec.PageID(p)))
				}
				for id := Owner(1); id <= 4; id++ {
					require.Equal(t, len(n.holds[id]), l.Holds(id))
					require.Equal(t, uint32(len(n.pagesOf(id))), l.Pages(id))
				}
			},
		})
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
