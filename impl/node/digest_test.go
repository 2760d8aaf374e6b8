package node

import (
	"sync/atomic"
	"testing"

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
