package node

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvfence/impl/config"
	"kvfence/impl/core"
	"kvfence/impl/node/api"
	"kvfence/impl/transport"
	"kvfence/spec"
)

var errNoFence = errors.New("the device refuses")

// unfenceable makes every fence of a decode node's data paths fail, as an adapter's would that cannot do one of its steps.
func (d *decodeSide) unfenceable(t *testing.T) {
	require.True(t, d.loop.call(func() {
		for peer, l := range d.ranks[0].links {
			e := l.push.list[0]
			s := &targetSink{rank: d.ranks[0], peer: peer, link: l, end: e}
			l.push.fence = func(transport.Target) { go transport.Fenced(s, errNoFence) }
		}
	}))
}

// A fence that cannot be completed is never taken for one: decode's node stops itself and says why; the pages that peers could still write to are in
// quarantine until the process ends; the request under way fails, and no other is taken.
func TestFenceFailed_AtDecode_PagesStayHeldAndTheNodeStops(t *testing.T) {
	p := startPair(t, func(c *config.Config) { c.Sizes.Window, c.Sizes.Pool, c.Prefill.Chunk = 16384, 16384, 32 })
	p.check(testRequest(30, 1, 3))
	d := p.decode.decode
	d.unfenceable(t)
	ended := make(chan error, 1)
	go func() {
		_, _, err := p.answer(testRequest(8000, 2, 1000))
		ended <- err
	}()
	require.Eventually(t, func() bool { return p.decode.Status(t.Context()).Decode.Leader.Filling == 1 }, patience, time.Millisecond)
	held := heldPages(p.decode.Status(t.Context()))
	require.Positive(t, held)
	require.True(t, d.loop.call(func() {
		for peer, l := range d.ranks[0].links {
			d.later(d.ranks[0].host, core.DataLost{Peer: peer, Epoch: l.push.list[0].epoch})
		}
	}))
	require.Error(t, <-ended)
	<-p.decode.Stopped()
	require.ErrorIs(t, p.decode.Err(), ErrStopped)
	s := p.decode.Status(t.Context())
	require.Contains(t, s.Stopped, "a fence could not be done")
	require.GreaterOrEqual(t, heldPages(s), held, "pages came back without proof")
	_, _, err := p.answer(testRequest(10, 3, 2))
	require.Equal(t, api.Internal, api.CodeOf(err))
	var e *api.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, string(spec.CauseInvariant), e.Cause)
}

// heldPages counts decode's pages that are not free.
func heldPages(s Status) (n uint32) {
	for _, r := range s.Decode.Ranks {
		for _, p := range r.Pools {
			n += p.Total - p.Free
		}
	}
	return n
}

// The same at prefill: a page that may still be read there is not written anew, so the node stops itself.
func TestFenceFailed_AtPrefill_TheNodeStops(t *testing.T) {
	p := startPair(t, func(c *config.Config) { c.Sizes.Window, c.Sizes.Pool, c.Prefill.Chunk = 16384, 16384, 32 })
	p.check(testRequest(30, 1, 3))
	side := p.prefill.prefill
	require.True(t, side.loop.call(func() {
		for peer, l := range side.ranks[0].links {
			s := &sourceSink{rank: side.ranks[0], peer: peer, link: l, end: l.push.list[0]}
			l.push.fence = func(sourcePath) { go transport.Fenced(s, errNoFence) }
			side.later(side.ranks[0].host, core.DataLost{Peer: peer, Epoch: l.push.list[0].epoch})
		}
	}))
	<-p.prefill.Stopped()
	require.ErrorIs(t, p.prefill.Err(), ErrStopped)
	require.Contains(t, p.prefill.Status(t.Context()).Stopped, "a fence at prefill could not be done")
	_, _, err := p.answer(testRequest(20, 3, 2))
	require.Error(t, err)
}
