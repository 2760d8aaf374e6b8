package lockstep

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kvfence/impl/pages"
	"kvfence/spec"
)

// plain is a ledger in the words of TLA/Sharing.tla and Transfer.tla, written without thought: every page says by itself what it is, and
// free pages stand in a row. It is driven beside the real one, and all of the state is compared after each step, the order of hand-outs
// included.
type plain struct {
	page   []plainPage
	free   []spec.PageID
	owners map[pages.Owner]*plainOwner
	shares map[pages.Group]plainShare
}

type plainPage struct {
	gen       spec.Generation
	owner     pages.Owner
	kept      bool // its filler is over, shares keep it
	bad, app  bool
	published *pages.Publication
}

type plainOwner struct {
	holds   []pages.Hold
	pages   []spec.PageID // in the order in which it got them
	revoked bool
}

type plainShare struct {
	by    pages.Owner
	pages []spec.PageID
}

func (n *plain) sharers(p spec.PageID) (out []pages.Owner) {
	for _, s := range n.shares {
		if slices.Contains(s.pages, p) {
			out = append(out, s.by)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// let lets a page go if nothing of its owner is in the way: to those that share it, or to the end of the row.
func (n *plain) let(p spec.PageID) {
	x := &n.page[p]
	o := n.owners[x.owner]
	if x.bad || o != nil && len(o.holds) > 0 || o == nil && !x.kept {
		return
	}
	if o != nil {
		o.pages = slices.DeleteFunc(o.pages, func(q spec.PageID) bool { return q == p })
		if len(o.pages) == 0 {
			delete(n.owners, x.owner)
		}
	}
	x.owner, x.kept = 0, len(n.sharers(p)) > 0
	if !x.kept {
		n.free = append(n.free, p)
	}
}

func (n *plain) state(p spec.PageID) pages.State {
	x := n.page[p]
	switch o := n.owners[x.owner]; {
	case o == nil && !x.kept:
		return pages.Free
	case x.bad:
		return pages.Quarantined
	case o != nil && o.revoked:
		return pages.Revoking
	}
	return pages.Held
}

// ledgers are the two, with the draws of one run.
type ledgers struct {
	t *rapid.T
	l *pages.Ledger
	n *plain
}

func (x *ledgers) owner() pages.Owner {
	return pages.Owner(rapid.Uint64Range(1, 4).Draw(x.t, "owner"))
}
func (x *ledgers) at() spec.PageID {
	return spec.PageID(rapid.IntRange(0, len(x.n.page)-1).Draw(x.t, "page"))
}
func (x *ledgers) link() pages.Hold {
	return pages.Hold{Kind: pages.LinkKind, ID: rapid.Uint64Range(1, 2).Draw(x.t, "link")}
}

func (x *ledgers) take(*rapid.T) {
	id, k := x.owner(), rapid.IntRange(0, 3).Draw(x.t, "n")
	o := x.n.owners[id]
	got, ok := x.l.Take(uint32(k), id)
	require.Equal(x.t, k <= len(x.n.free) && (o == nil || !o.revoked), ok)
	if !ok {
		return
	}
	if o == nil {
		o = &plainOwner{holds: []pages.Hold{pages.RequestHold()}}
		x.n.owners[id] = o
	}
	for i, g := range got {
		require.Equal(x.t, x.n.free[i], g.Page, "the page that is free for longest goes first")
		p := &x.n.page[g.Page]
		p.gen, p.owner, p.app, p.published = p.gen+1, id, false, nil
		require.Equal(x.t, p.gen, g.Gen)
		o.pages = append(o.pages, g.Page)
	}
	x.n.free = x.n.free[k:]
}

func (x *ledgers) addHold(*rapid.T) {
	id, h := x.owner(), x.link()
	o := x.n.owners[id]
	ok := o != nil && len(o.holds) > 0 && !slices.Contains(o.holds, h)
	require.Equal(x.t, ok, x.l.AddHold(id, h) == nil)
	if ok {
		o.holds = append(o.holds, h)
	}
}

func (x *ledgers) endHold(*rapid.T) {
	id, h := x.owner(), x.link()
	if rapid.Bool().Draw(x.t, "request") {
		h = pages.RequestHold()
	}
	o := x.n.owners[id]
	ok := o != nil && slices.Contains(o.holds, h)
	_, err := x.l.EndHold(id, h)
	require.Equal(x.t, ok, err == nil)
	if !ok {
		return
	}
	if o.holds = slices.DeleteFunc(o.holds, func(y pages.Hold) bool { return y == h }); len(o.holds) > 0 {
		return
	}
	o.revoked = true
	for _, p := range slices.Clone(o.pages) {
		x.n.let(p)
	}
	if len(o.pages) == 0 {
		delete(x.n.owners, id)
	}
}

func (x *ledgers) revoke(*rapid.T) {
	id := x.owner()
	o := x.n.owners[id]
	require.Equal(x.t, o != nil, x.l.Revoke(id) == nil)
	if o != nil {
		o.revoked = true
	}
}

func (x *ledgers) publish(*rapid.T) {
	p, id := x.at(), x.owner()
	pub := pages.Publication{Content: spec.ContentID{byte(rapid.IntRange(1, 4).Draw(x.t, "content"))}, Domain: spec.Domain{byte(rapid.IntRange(1, 2).Draw(x.t, "domain"))}, Page: p, Gen: x.n.page[p].gen, Filler: id}
	o, y := x.n.owners[id], &x.n.page[p]
	ok := o != nil && y.owner == id && len(o.holds) > 0 && !o.revoked && !y.bad && !y.app && y.published == nil
	known := slices.ContainsFunc(x.n.page, func(q plainPage) bool { return q.published != nil && q.published.Content == pub.Content })
	done, err := x.l.Publish(pub)
	require.Equal(x.t, ok, err == nil, "%v", err)
	require.Equal(x.t, ok && !known, done)
	if done {
		y.published = &pub
	}
}

func (x *ledgers) share(*rapid.T) {
	p, id := x.at(), x.owner()
	y := &x.n.page[p]
	if y.published == nil {
		return
	}
	pub, domain := *y.published, y.published.Domain
	if rapid.IntRange(0, 4).Draw(x.t, "foreign") == 4 {
		domain = spec.Domain{9}
	}
	g, err := x.l.Share(id, domain, []pages.Publication{pub})
	require.Equal(x.t, domain == pub.Domain, err == nil)
	if err != nil {
		return
	}
	x.n.shares[g] = plainShare{id, []spec.PageID{p}}
	if y.owner == 0 && !y.kept {
		y.kept = true
		x.n.free = slices.DeleteFunc(x.n.free, func(q spec.PageID) bool { return q == p })
	}
}

func (x *ledgers) endShare(*rapid.T) {
	if len(x.n.shares) == 0 {
		return
	}
	g := rapid.SampledFrom(sortedKeys(x.n.shares)).Draw(x.t, "share")
	_, err := x.l.EndGroup(g)
	require.NoError(x.t, err)
	p := x.n.shares[g].pages[0]
	delete(x.n.shares, g)
	if x.n.page[p].owner == 0 {
		if len(x.n.sharers(p)) == 0 {
			x.n.let(p)
		}
	}
}

func (x *ledgers) store(*rapid.T) {
	p, id := x.at(), x.owner()
	y := &x.n.page[p]
	ok := y.owner == id && x.n.owners[id] != nil && y.published == nil && len(x.n.sharers(p)) == 0
	require.Equal(x.t, ok, x.l.Store(id, p) == nil)
	y.app = y.app || ok
}

func (x *ledgers) quarantine(*rapid.T) {
	p, id := x.at(), x.owner()
	y := &x.n.page[p]
	ok := y.owner == id && x.n.owners[id] != nil
	require.Equal(x.t, ok, x.l.Quarantine(id, p) == nil)
	if ok {
		y.bad, y.published = true, nil
	}
}

func (x *ledgers) endQuarantine(*rapid.T) {
	p := x.at()
	y := &x.n.page[p]
	_, err := x.l.EndQuarantine(p)
	require.Equal(x.t, y.bad, err == nil)
	if y.bad {
		y.bad = false
		x.n.let(p)
	}
}

// same compares the whole state.
func (x *ledgers) same(*rapid.T) {
	require.NoError(x.t, x.l.Check())
	x.l.Ended()
	for i, y := range x.n.page {
		p := spec.PageID(i)
		require.Equal(x.t, y.owner, x.l.Owner(p))
		require.Equal(x.t, y.gen, x.l.Gen(p))
		require.Equal(x.t, x.n.state(p), x.l.State(p))
		require.Equal(x.t, y.app, x.l.Stored(p))
		require.Equal(x.t, x.n.sharers(p), x.l.Sharers(p))
		pub, is := x.l.Published(p)
		require.Equal(x.t, y.published != nil, is)
		if is {
			require.Equal(x.t, *y.published, pub)
		}
	}
	for id := pages.Owner(1); id <= 4; id++ {
		o := x.n.owners[id]
		if o == nil {
			o = &plainOwner{}
		}
		require.Equal(x.t, uint32(len(o.pages)), x.l.Pages(id))
		require.Equal(x.t, len(o.holds), x.l.Holds(id))
	}
	require.Equal(x.t, uint32(len(x.n.free)), x.l.Counts().Free)
}

func TestLockstep_LedgerBesideAPlainOne_SameStateAndSameOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(1, 8).Draw(t, "pages")
		l, err := pages.New(uint32(count))
		require.NoError(t, err)
		l.AllowSharing(100)
		x := &ledgers{t, l, &plain{page: make([]plainPage, count), owners: map[pages.Owner]*plainOwner{}, shares: map[pages.Group]plainShare{}}}
		for p := range count {
			x.n.free = append(x.n.free, spec.PageID(p))
		}
		t.Repeat(map[string]func(*rapid.T){"take": x.take, "take2": x.take, "addHold": x.addHold, "endHold": x.endHold, "revoke": x.revoke, "publish": x.publish, "publish2": x.publish,
			"share": x.share, "share2": x.share, "endShare": x.endShare, "store": x.store, "quarantine": x.quarantine, "endQuarantine": x.endQuarantine, "": x.same})
	})
}
