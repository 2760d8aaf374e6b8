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

// Requests that begin alike share pages at decode, within one tenant; each answer is that of one process alone, token for token.
func TestPair_Sharing_AnswersLikeOneProcess(t *testing.T) {
	for name, change := range shapes(t) {
		t.Run(name, func(t *testing.T) {
			p := startPair(t, func(c *config.Config) { change(c); c.Decode.Sharing = config.On })
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
