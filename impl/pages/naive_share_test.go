package pages

import (
	"maps"
	"slices"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kvfence/spec"
)

// Sharing, driven alike in the ledger and in the naive one.

func (x *pair) content() spec.ContentID {
	return spec.ContentID{rapid.ByteRange(0, 3).Draw(x.t, "content")}
}

func (x *pair) domain() spec.Domain { return spec.Domain{rapid.ByteRange(1, 2).Draw(x.t, "domain")} }

func (x *pair) publish(*rapid.T) {
	p := Publication{Content: x.content(), Domain: x.domain(), Page: x.page(), Filler: x.owner()}
	p.Gen = x.n.gen[p.Page] - spec.Generation(rapid.IntRange(0, 4).Draw(x.t, "old")/4)
	_, stored := x.n.stored[p.Page]
	stored = stored && x.n.stored[p.Page] == x.n.gen[p.Page]
	known := x.n.known(p.Content) >= 0
	ok := x.n.most > 0 && x.n.of[p.Page] == p.Filler && p.Gen == x.n.gen[p.Page] && len(x.n.holds[p.Filler]) > 0 && !x.n.over[p.Filler] &&
		!x.n.bad[p.Page] && !stored && x.n.published(p.Page) < 0 && !p.Content.IsZero()
	room := len(x.n.pubs) < x.n.most
	if ok && !known && !room {
		room = x.n.makeRoom()
	}
	known = known || !room
	done, err := x.l.Publish(p)
	require.Equal(x.t, ok || x.n.most == 0, err == nil, "%v", err)
	require.Equal(x.t, ok && !known, done)
	if done {
		x.n.pubs = append(x.n.pubs, p)
	}
}

// makeRoom ends the oldest publication that nobody shares; a shared one was in use.
func (n *naive) makeRoom() bool {
	for range nearby {
		if len(n.sharers(n.pubs[0].Page)) == 0 {
			n.end(0)
			return true
		}
		n.use(0)
	}
	return false
}

func (x *pair) share(*rapid.T) {
	id, d := x.owner(), x.domain()
	var want []Publication
	ok := true
	for range rapid.IntRange(0, 2).Draw(x.t, "shares") {
		p := Publication{Content: x.content(), Page: x.page()}
		if at := x.n.known(p.Content); at >= 0 && rapid.IntRange(0, 5).Draw(x.t, "stray") > 0 {
			p = x.n.pubs[at]
			p.Gen -= spec.Generation(rapid.IntRange(0, 5).Draw(x.t, "stale") / 5)
		}
		at := x.n.published(p.Page)
		ok = ok && at >= 0 && x.n.pubs[at].Content == p.Content && x.n.pubs[at].Domain == d && x.n.pubs[at].Gen == p.Gen
		want = append(want, p)
	}
	g, err := x.l.Share(id, d, want)
	require.Equal(x.t, ok, err == nil, "%v", err)
	if !ok {
		return
	}
	s := naiveShare{by: id}
	for _, p := range want {
		s.pages = append(s.pages, p.Page)
		if x.n.of[p.Page] == 0 {
			x.n.kept[p.Page] = true
			x.n.free = slices.DeleteFunc(x.n.free, func(q spec.PageID) bool { return q == p.Page })
		}
		x.n.use(x.n.published(p.Page))
	}
	x.n.shares[g] = s
}

func (x *pair) endShare(*rapid.T) {
	if len(x.n.shares) == 0 {
		return
	}
	g := rapid.SampledFrom(slices.Sorted(maps.Keys(x.n.shares))).Draw(x.t, "share")
	e, err := x.l.EndGroup(g)
	require.NoError(x.t, err)
	delete(x.n.shares, g)
	require.Equal(x.t, x.n.sweep(), e.Freed)
	_, err = x.l.EndGroup(g)
	require.ErrorIs(x.t, err, ErrUnknownHold)
}

func (x *pair) store(*rapid.T) {
	id, p := x.owner(), x.page()
	ok := x.n.of[p] == id && x.n.published(p) < 0 && len(x.n.sharers(p)) == 0
	require.Equal(x.t, ok, x.l.Store(id, p) == nil)
	if ok {
		x.n.stored[p] = x.n.gen[p]
	}
}

func (x *pair) unpublish(*rapid.T) {
	p := x.page()
	at := x.n.published(p)
	require.Equal(x.t, at >= 0, x.l.Unpublish(p) == nil)
	x.n.end(at)
}

func (x *pair) quarantineShared(*rapid.T) {
	g := Group(rapid.Uint64Range(0, 6).Draw(x.t, "g"))
	at, p := rapid.Uint32Range(0, 2).Draw(x.t, "at"), x.page()
	s := x.n.shares[g]
	ok := int(at) < len(s.pages) && s.pages[at] == p
	require.Equal(x.t, ok, x.l.QuarantineShared(g, at, p) == nil)
	if ok {
		x.n.bad[p] = true
		x.n.end(x.n.published(p))
	}
}

// sameShares compares what the ledger tells of published and shared pages.
func (x *pair) sameShares() {
	require.Equal(x.t, x.n.ended, x.l.Ended())
	x.n.ended = nil
	for p := range x.n.count {
		id := spec.PageID(p)
		pub, is := x.l.Published(id)
		at := x.n.published(id)
		require.Equal(x.t, at >= 0, is)
		if is {
			require.Equal(x.t, x.n.pubs[at], pub)
			found, ok := x.l.Find(pub.Content)
			require.True(x.t, ok)
			require.Equal(x.t, pub, found)
		}
		want := x.n.sharers(id)
		slices.Sort(want)
		require.Equal(x.t, slices.Compact(want), x.l.Sharers(id))
		gen, stored := x.n.stored[id]
		require.Equal(x.t, stored && gen == x.n.gen[id], x.l.Stored(id))
	}
}
