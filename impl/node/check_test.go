package node

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvfence/impl/config"
	"kvfence/impl/core"
	"kvfence/impl/node/api"
	"kvfence/impl/transport"
	"kvfence/impl/workload"
	"kvfence/spec"
)

// between runs f on the bytes of each step, before the model reads them and after it has, between the node's two checks.
type between struct {
	workload.Model
	before, after func()
}

func (m *between) Step(ctx context.Context, kv workload.KV, token int32, pos int) ([]float32, error) {
	m.before()
	out, err := m.Model.Step(ctx, kv, token, pos)
	m.after()
	return out, err
}

// Tags that are wrong at one of the two checks only, at any rank: the step's token does not leave. The first check alone sees what is
// put right before the second, the second alone what is spoilt behind the first.
func TestStep_TagIsWrongAtOneCheckOnly_TokenDoesNotLeave(t *testing.T) {
	for _, second := range []bool{false, true} {
		for rank := range 2 {
			t.Run(fmt.Sprintf("second=%v rank %d", second, rank), func(t *testing.T) {
				p := startPair(t, func(c *config.Config) { c.Decode.Workers, c.Decode.Ranks, c.Sizes.Window = 1, 2, 1000 })
				d := p.decode.decode
				req, want := p.longAnswer(80)
				spoil := func() { flip(d.ranks[rank].mem[spec.KV].Tags, 3) }
				const at = 10 // the step that is spoilt, or that is followed by the spoiling
				steps, spoilt := 0, false
				m := &between{Model: d.model, before: func() {
					if spoilt && !second { // the first check did not see it: it is put right for the second
						spoil()
					}
				}, after: func() {
					if steps++; steps != at {
						return
					}
					spoilt = true
					if second {
						spoil()
					} else {
						d.step.put(spoil) // runs before the next step, which is not queued yet
					}
				}}
				set := make(chan struct{})
				d.step.put(func() { d.model = m; close(set) }) // before any request
				<-set
				s, err := p.client.Open(t.Context(), req)
				require.NoError(t, err)
				defer func() { require.NoError(t, s.Close()) }()
				n := 0
				for err == nil {
					var e api.Event
					if e, err = s.Next(); err == nil && e.Kind == api.KindToken {
						require.Equal(t, want.Tokens[n], e.Token.ID, "what went out before stands")
						n++
					}
				}
				require.Equal(t, api.KVMismatch, api.CodeOf(err), "%v", err)
				good := 1 + at // the first token, and one of each step before the check that fails
				if second {
					good--
				}
				require.Equal(t, good, n, "tokens that left")
				p.ready()
				p.idle()
			})
		}
	}
}

// A link is fenced while a write of it is being placed: the page stays with its lease until that write has ended, however long that is.
func TestFence_WriteIsBeingPlaced_PagesStayUntilItEnds(t *testing.T) {
	p := startPair(t, func(c *config.Config) { c.Sizes.Window, c.Sizes.Pool, c.Prefill.Chunk = 256, 256, 8 })
	d := p.decode.decode
	r := d.ranks[0]
	var grants *transport.Grants
	var held transport.Placement
	var again func() spec.Refusal // another write of that epoch comes to its check
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
				again = func() spec.Refusal {
					_, why := grants.Begin(g.Epoch, g.Grant.Lease, part.Component, part.Index, lo, g.Grant.Pages[part.Component][lo], spec.UsedBytes(segs))
					return why
				}
				held, why = grants.Begin(g.Epoch, g.Grant.Lease, part.Component, part.Index, lo, g.Grant.Pages[part.Component][lo], spec.UsedBytes(segs))
				if serr != nil || why != "" {
					t.Errorf("the write: %v %q", serr, why)
				}
				d.box.put(func() { d.deliver(r.host, core.DataLost{Peer: g.Peer, Epoch: g.Epoch}) })
			}
			return err
		}
	}))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _, _ = p.answer(testRequest(200, 1, 20)) // tried again or failed: by how long the link is gone
	}()
	revoking := func() uint32 { return p.decode.Status(t.Context()).Decode.Ranks[0].Pools["kv"].Revoking }
	require.Eventually(t, func() bool { return revoking() > 0 }, patience, time.Millisecond)
	require.Equal(t, spec.RefuseStaleEpoch, again(), "the fence raises the epoch, then it waits")
	for range 50 { // the fence has all the time that it would need
		time.Sleep(2 * time.Millisecond)
		require.NotZero(t, revoking(), "pages were freed under a write")
	}
	grants.End(held, false, 0)
	<-ended
	p.ready()
	p.idle()
}
