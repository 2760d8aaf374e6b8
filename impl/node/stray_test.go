package node

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvfence/impl/config"
	"kvfence/impl/core"
	"kvfence/impl/device"
	"kvfence/impl/node/api"
	"kvfence/impl/transport"
	"kvfence/spec"
)

// A peer has begun to write a page and says, of the whole lease, that it is drained. Decode believes its receipts, so the pages come
// back; but none of them is handed out while the write goes on, and the peer is cut off.
func TestStray_PeerAcknowledgesAndWritesOn_PageIsNotHandedOutBeforeItIsOut(t *testing.T) {
	p := startPair(t, func(c *config.Config) { c.Sizes.Window, c.Sizes.Pool, c.Prefill.Chunk = 256, 256, 8 })
	d := p.decode.decode
	r := d.ranks[0]
	var mu sync.Mutex
	var order []string
	note := func(what string) { mu.Lock(); order = append(order, what); mu.Unlock() }
	var grants *transport.Grants
	var held transport.Placement
	begun := make(chan struct{})
	require.True(t, d.loop.call(func() {
		act := r.host.act
		r.host.act = func(a core.Action) error {
			err := act(a)
			if g, is := a.(core.Allow); is && grants == nil {
				grants = r.link(g.Peer).grants
				part := g.Grant.Parts[0]
				lo, _ := part.PageRange(r.mem[part.Component].Layout)
				segs, serr := part.Segments(r.mem[part.Component].Layout, lo, nil)
				why := spec.Refusal("")
				held, why = grants.Begin(g.Epoch, g.Grant.Lease, part.Component, part.Index, lo, g.Grant.Pages[part.Component][lo], spec.UsedBytes(segs))
				if serr != nil || why != "" {
					t.Errorf("the stray write: %v %q", serr, why)
				}
				d.box.put(func() { // its client leaves, before anything can have come
					for id := range d.requests {
						d.deliver(d.lead, core.ClientGone{Req: id})
					}
					close(begun)
				})
			}
			if v, is := a.(core.VoidTags); is && v.Component == spec.KV {
				note("void")
			}
			return err
		}
	}))
	_, _, err := p.answer(testRequest(200, 1, 20))
	require.Equal(t, api.ClientGone, api.CodeOf(err))
	<-begun
	p.idle() // by the honest receipt of a peer that "does not know" of its write
	mu.Lock()
	order = nil
	mu.Unlock()
	before := p.prefill.Status(t.Context()).Prefill.Ranks[0].Fences
	go func() { // the peer's write ends when decode has cut its streams, and not before
		for p.prefill.Status(context.Background()).Prefill.Ranks[0].Fences == before {
			time.Sleep(time.Millisecond)
		}
		note("stray ends")
		grants.End(held, false, 0)
	}()
	p.check(testRequest(200, 2, 20))
	mu.Lock()
	defer mu.Unlock()
	require.NotEmpty(t, order)
	require.Equal(t, "stray ends", order[0], "%v", order)
}

// Where what is being placed has no known end, because an adapter or a device was lost with it, its pages are never handed out, and the loop does not wait for
// ever: the action fails, which stops the node.
func TestStray_HasNoKnownEnd_PagesAreNotHandedOut(t *testing.T) {
	p := startPair(t, nil)
	d := p.decode.decode
	r := d.ranks[0]
	lost := errors.New("the device is lost")
	require.True(t, d.loop.call(func() {
		l := r.links[d.peers[0].id]
		before := l.grants
		defer func() { l.grants = before }()
		l.grants = transport.NewGrants(r.mem)
		layout := r.mem[spec.KV].Layout
		part := onePart(layout)
		segs, err := part.Segments(layout, 0, nil)
		require.NoError(t, err)
		m := spec.Grant{Lease: 1, Tokens: part.TokenHi, Parts: []spec.Part{part}}
		m.Pages[spec.KV] = []spec.GrantedPage{{Page: 3, Gen: 9}}
		l.grants.Raise(1)
		require.True(t, l.grants.Allow(m))
		_, why := l.grants.Begin(1, 1, spec.KV, 0, 0, m.Pages[spec.KV][0], spec.UsedBytes(segs))
		require.Empty(t, why)
		l.grants.Revoke(1)
		l.grants.Fail(lost)
		slot := r.mem[spec.KV].Slot(3, 0)
		slot[0] = 1
		require.ErrorIs(t, r.actMemory(core.VoidTags{Component: spec.KV, Pages: []spec.PageID{3}}), lost)
		require.Equal(t, byte(1), slot[0])
		slot[0] = 0
		require.NoError(t, r.actMemory(core.VoidTags{Component: spec.KV, Pages: []spec.PageID{4}}))
	}))
}

// adapterTarget is a data path whose adapter holds the right to write for a lease until the test lets it go.
type adapterTarget struct {
	quietTarget
	settling chan struct{}
	done     bool
	release  func()
}

func (t *adapterTarget) Grant(_ spec.Grant, release func()) { t.release = release }
func (t *adapterTarget) Revoke(_ spec.LeaseID, done bool)   { t.done = done }
func (t *adapterTarget) Settle([]spec.LeaseID)              { close(t.settling) }

// verifiedSpy keeps what a machine would hear of verifications.
type verifiedSpy struct {
	machine
	heard chan core.Verified
}

func (s *verifiedSpy) Step(now core.Time, ev core.Event) ([]core.Action, error) {
	if v, is := ev.(core.Verified); is {
		s.heard <- v
		return nil, nil
	}
	return s.machine.Step(now, ev)
}

// Where a peer holds the right to write for a lease, it is verified when the right is gone, and not before: what it writes until then is seen. A right that
// will never be known to be gone is a finding in every page.
func TestVerify_PeerHoldsRights_ComesWhenTheyAreGone(t *testing.T) {
	for _, lost := range []bool{false, true} {
		p := startPair(t, nil)
		d := p.decode.decode
		r := d.ranks[0]
		const stranger = core.PeerID(1 << 20)
		spy := &verifiedSpy{machine: r.host.m, heard: make(chan core.Verified, 1)}
		path := &adapterTarget{settling: make(chan struct{})}
		l := &targetLink{grants: transport.NewGrants(r.mem)}
		l.push.fence = func(transport.Target) {}
		tag := spec.Tag{Lease: 1, Gen: 9, Used: 1}
		slot := r.mem[spec.KV].Slot(3, 0)
		m := spec.Grant{Lease: 1, Tokens: 1, Parts: []spec.Part{onePart(r.mem[spec.KV].Layout)}}
		m.Pages[spec.KV] = []spec.GrantedPage{{Page: 3, Gen: 9}}
		require.True(t, d.loop.call(func() {
			r.host.m, r.links[stranger] = spy, l
			l.grants.Raise(1)
			l.grants.Enforce(1, path)
			require.True(t, l.grants.Allow(m))
			require.Empty(t, l.push.opened(l.push.open(1, func() {}), path, nil))
			device.PutTag(slot, tag)
			r.verify(core.Verify{Lease: 1, Links: []core.LinkParts{{Peer: stranger, Parts: m.Parts}}, Checks: []core.TagCheck{{Component: spec.KV, Page: 3, Want: tag}}})
		}))
		<-path.settling
		require.True(t, path.done, "its writer is: the right is taken back now")
		require.True(t, d.loop.call(func() {}))
		require.Empty(t, spy.heard, "its right stands")
		want := spec.TagTorn
		if lost {
			want = spec.TagForeign
			l.grants.Fail(errNoFence)
		} else {
			slot[0] ^= 1 // the peer writes once more
			path.release()
		}
		v := <-spy.heard
		require.Equal(t, []core.BadPart{{Component: spec.KV, State: want}}, v.Bad)
		require.True(t, d.loop.call(func() {
			clear(slot)
			r.host.m = spy.machine
			delete(r.links, stranger)
		}))
	}
}

// onePart is all of a page.
func onePart(l spec.Layout) spec.Part {
	s := l.Shape
	return spec.Part{Component: l.Component, LayerLo: s.LayerLo, LayerHi: s.LayerHi, HeadLo: s.HeadLo, HeadHi: s.HeadHi, TokenHi: l.Equal.TokensPerPage}
}

// A peer that sends notices faster than the loop takes them is read more slowly: they do not pile up.
func TestTargetSink_NoticesFasterThanTheLoop_AreBounded(t *testing.T) {
	d := emptyDecodeSide(small(t, config.RoleDecode, nil), testLog(t), time.Now(), nil, newMetrics(), nil, func(core.Stop, string) {})
	s := &targetSink{rank: &decodeRank{side: d}, end: &end[transport.Target]{epoch: 1}, credit: make(chan struct{}, noticeCredit)}
	var sent atomic.Int64
	over := make(chan struct{})
	go func() {
		defer close(over)
		for range 3 * noticeCredit {
			s.NoticeIn(0, 1, 1)
			sent.Add(1)
		}
	}()
	require.Eventually(t, func() bool { return sent.Load() == noticeCredit }, patience, time.Millisecond)
	require.Len(t, d.box.take(), noticeCredit)
	d.cancel()
	<-over // a side that ends does not hold its streams' readers
	require.Empty(t, d.box.take())
	d.step.close()
	d.work.close()
}
