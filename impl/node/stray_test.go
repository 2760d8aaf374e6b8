package node

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvfence/impl/config"
	"kvfence/impl/core"
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
