package node

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvfence/impl/config"
	"kvfence/impl/core"
	"kvfence/impl/device"
	"kvfence/impl/node/api"
	"kvfence/spec"
)

// One byte of a source page changes after it was sealed and before it is sent or copied. Its tag is right; only the digest knows. No
// token is answered, the alarm is raised, the pages come back.
func TestVerify_ByteChangesBetweenSealAndLanding_NothingIsAnswered(t *testing.T) {
	for _, kind := range []string{"tcp", "shm"} {
		t.Run(kind, func(t *testing.T) {
			dir := shortDir(t)
			p := startPair(t, func(c *config.Config) { c.Transport.Kind, c.Transport.SocketDir = kind, dir })
			side := p.prefill.prefill
			r := side.ranks[0]
			var flipped atomic.Bool
			spoil := func(c spec.Component, page spec.PageID) {
				if c == spec.KV && flipped.CompareAndSwap(false, true) {
					r.mem[c].Page(page)[3] ^= 0x10
				}
			}
			require.True(t, side.loop.call(func() {
				act := r.host.act
				r.host.act = func(a core.Action) error {
					switch a := a.(type) {
					case core.Post:
						spoil(a.Items[0].Part.Component, a.Items[0].Src.Page)
					case core.Send:
						if m, is := a.Env.Body.(spec.Offer); is {
							spoil(m.Done.Component, m.Done.Source[0].Page)
						}
					}
					return act(a)
				}
			}))
			tokens, _, err := p.answer(testRequest(30, 1, 5))
			require.True(t, flipped.Load())
			require.Empty(t, tokens)
			require.Equal(t, api.KVMismatch, api.CodeOf(err), "%v", err)
			require.NotZero(t, p.decode.Status(t.Context()).Decode.Ranks[0].Alarms)
			p.ready()
			p.check(testRequest(30, 2, 5))
			p.idle()
		})
	}
}

// A slot that the plan does not use is void, or somebody wrote there.
func TestVerify_TagInAnUnusedSlot_IsForeign(t *testing.T) {
	d := startPair(t, nil).decode.decode
	r := d.ranks[0]
	require.True(t, d.loop.call(func() {
		r.mem[spec.KV].VoidTags(5)
		v := core.Verify{Lease: 1, Void: []core.VoidCheck{{Component: spec.KV, Page: 5, Index: 2}}}
		require.Empty(t, r.verified(v, nil).Bad)
		device.PutTag(r.mem[spec.KV].Slot(5, 0), spec.Tag{Lease: 9, Gen: 1, Index: 2})
		require.Equal(t, []core.BadPart{{Component: spec.KV, Index: 2, State: spec.TagForeign}}, r.verified(v, nil).Bad)
		r.mem[spec.KV].Slot(5, 0)[9] ^= 1
		require.NotEmpty(t, r.verified(v, nil).Bad)
		r.mem[spec.KV].VoidTags(5)
	}))
}

// Every rank has a copy of the auxiliary record from its one writer. Copies that differ answer nothing, whatever their tags say.
func TestFirstToken_RanksHaveDifferentRecords_NothingLeaves(t *testing.T) {
	for name, change := range map[string]func(*auxRecord){
		"first token":   func(r *auxRecord) { r.First.ID ^= 1 },
		"prompt tokens": func(r *auxRecord) { r.Tokens++ },
	} {
		t.Run(name, func(t *testing.T) {
			p := startPair(t, func(c *config.Config) { c.Decode.Workers, c.Decode.Ranks = 1, 2 })
			d := p.decode.decode
			held, release := make(chan struct{}), make(chan struct{})
			d.step.put(func() { // the one worker: what was verified waits behind it
				close(held)
				<-release
				pool := d.ranks[1].mem[spec.Aux]
				for i := range pool.Layout.Shape.Pages {
					page := pool.Page(spec.PageID(i))
					if r, err := getAux(page, d.model.Geometry().Vocab); err == nil && r.Tokens > 0 {
						change(&r)
						if err := putAux(page, r); err != nil {
							t.Error(err)
						}
					}
				}
			})
			<-held
			ended := make(chan error, 1)
			go func() {
				tokens, _, err := p.answer(testRequest(20, 1, 5))
				if len(tokens) > 0 {
					err = errors.New("a token left")
				}
				ended <- err
			}()
			require.Eventually(t, func() bool { return p.decode.Status(t.Context()).Decode.Ranks[1].Leases.Ready == 1 }, patience, time.Millisecond)
			close(release)
			err := <-ended
			require.Equal(t, api.KVMismatch, api.CodeOf(err), "%v", err)
			p.idle()
		})
	}
}
