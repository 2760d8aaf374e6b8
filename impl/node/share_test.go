package node

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/impl/config"
	"kvfence/impl/node/api"
)

// hits are the pages that the decode ranks have taken as shares.
func (p *pair) hits() (n uint64) {
	for _, r := range p.decode.Status(p.t.Context()).Decode.Ranks {
		n += r.Hits
	}
	return n
}

// Requests that begin alike share pages at decode, within one tenant, and are computed behind what they share at prefill; each answer is that
// of one process alone, token for token.
func TestPair_Sharing_AnswersLikeOneProcess(t *testing.T) {
	for name, change := range shapes(t) {
		t.Run(name, func(t *testing.T) {
			p := startPair(t, func(c *config.Config) { change(c); c.Decode.Sharing, c.Prefill.Sharing = config.On, config.On })
			ranks := uint64(len(p.decode.Status(t.Context()).Decode.Ranks))
			base := testRequest(70, 1, 12)
			ask := func(tenant string, prompt []int32, pages uint64) {
				t.Helper()
				before := p.hits()
				r := testRequest(len(prompt), 1, 12)
				r.Tenant, r.Prompt = tenant, prompt
				p.check(r)
				require.Equal(t, pages*ranks, p.hits()-before)
			}
			ask("a", base.Prompt, 0)
			ask("a", base.Prompt, 8)
			ask("a", base.Prompt[:64], 7)
			ask("b", base.Prompt, 0)
			other := slices.Clone(base.Prompt)
			other[30]++
			ask("a", other, 3)
			ask("a", base.Prompt[:5], 0)
			sampled := testRequest(70, 1, 20)
			sampled.Tenant, sampled.Temperature, sampled.TopP, sampled.Seed = "a", 0.8, 0.9, 11
			p.check(sampled)
			p.idle()
		})
	}
}

// Prefill alone shares: every request moves its whole prompt, from pages that were computed once.
func TestPair_PrefillSharing_AnswersLikeOneProcess(t *testing.T) {
	for name, change := range shapes(t) {
		t.Run(name, func(t *testing.T) {
			p := startPair(t, func(c *config.Config) { change(c); c.Prefill.Sharing = config.On })
			base := testRequest(70, 1, 12)
			for i, n := range []int{70, 70, 64, 33, 70} {
				r := testRequest(70, 1, 12)
				r.Prompt = slices.Clone(base.Prompt[:n])
				if i == 4 {
					r.Prompt[40]++
				}
				p.check(r)
				p.idle()
			}
			shared := uint64(0)
			for _, r := range p.prefill.Status(t.Context()).Prefill.Ranks {
				shared += r.Hits
			}
			if p.prefill.prefill.cfg.Transport.Kind == "shm" {
				require.Zero(t, shared, "pulled pages are not shared")
				return
			}
			require.Equal(t, uint64(8+7+4+5), shared/uint64(len(p.prefill.Status(t.Context()).Prefill.Ranks)))
		})
	}
}

// Off is the default: nothing is published, nothing is shared.
func TestPair_SharingOff_EveryRequestMovesItsWholePrompt(t *testing.T) {
	p := startPair(t, nil)
	var r *api.Request
	for range 2 {
		r = testRequest(40, 1, 4)
		p.check(r)
	}
	require.Zero(t, p.hits())
	require.Zero(t, p.decode.Status(t.Context()).Decode.Ranks[0].Published)
}
