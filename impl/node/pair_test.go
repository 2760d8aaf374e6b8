package node

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/impl/config"
	"kvfence/impl/node/api"
	"kvfence/spec"
)

// shapes are the ways in which two sides are joined.
func shapes(t *testing.T) map[string]func(*config.Config) {
	ca := newAuthority(t)
	certs := map[config.Role]config.TLS{config.RolePrefill: ca.issue("prefill"), config.RoleDecode: ca.issue("decode")}
	ranks := func(p, d int, split, kind string) func(*config.Config) {
		return func(c *config.Config) {
			c.Prefill.Ranks, c.Decode.Ranks, c.Prefill.Split, c.Transport.Kind = p, d, split, kind
		}
	}
	return map[string]func(*config.Config){
		"tcp":                        func(c *config.Config) {},
		"shm":                        func(c *config.Config) { c.Transport.Kind = "shm" },
		"tcp, TLS":                   func(c *config.Config) { c.TLS = certs[c.Role] },
		"tcp, TLS, plain data":       func(c *config.Config) { c.TLS = certs[c.Role]; c.TLS.PlainData = true },
		"tcp, guards off":            func(c *config.Config) { c.Guards.PageDigests, c.Guards.StepTagCheck = config.Off, config.Off },
		"shm, digests off":           func(c *config.Config) { c.Transport.Kind = "shm"; c.Guards.PageDigests = config.Off },
		"tcp, 2 prefill x 1 decode":  ranks(2, 1, "heads", "tcp"),
		"tcp, 1 prefill x 2 decode":  ranks(1, 2, "heads", "tcp"),
		"tcp, 4 prefill x 2 decode":  ranks(4, 2, "heads", "tcp"),
		"tcp, 2 by layers x 2 heads": ranks(2, 2, "layers", "tcp"),
		"shm, 2 prefill x 2 decode":  ranks(2, 2, "heads", "shm"),
		"shm, 2 by layers x 1":       ranks(2, 1, "layers", "shm"),
		"shm, 1 prefill x 2 decode":  ranks(1, 2, "heads", "shm"),
		"tcp, chunks":                func(c *config.Config) { c.Prefill.Chunk = 5 },
		"tcp, rolling": func(c *config.Config) {
			c.Model = config.Model{Kind: "rolling", Seed: 7}
		},
	}
}

func TestPair_AnyShape_AnswersLikeOneProcess(t *testing.T) {
	for name, change := range shapes(t) {
		t.Run(name, func(t *testing.T) {
			p := startPair(t, change)
			p.check(testRequest(40, 1, 12))
			p.check(testRequest(8, 2, 1)) // a prompt that ends with its page
			p.check(testRequest(1, 3, 9))
			sampled := testRequest(33, 4, 20)
			sampled.Temperature, sampled.TopP, sampled.Seed = 0.8, 0.9, 11
			p.check(sampled)
			p.idle()
		})
	}
}

func TestPair_ManyAtOnce_EachGetsItsOwn(t *testing.T) {
	for _, kind := range []string{"tcp", "shm"} {
		t.Run(kind, func(t *testing.T) {
			p := startPair(t, func(c *config.Config) { c.Transport.Kind = kind })
			var wg sync.WaitGroup
			for i := range int32(40) {
				wg.Go(func() {
					req := testRequest(10+int(i)*3%60, i, 16)
					tokens, _, err := p.answer(req)
					if err != nil {
						t.Errorf("request %d: %v", i, err)
						return
					}
					if want := p.oracle(req).Tokens; fmt.Sprint(want) != fmt.Sprint(tokens) {
						t.Errorf("request %d: %v, one process alone answers %v", i, tokens, want)
					}
				})
			}
			wg.Wait()
			p.idle()
		})
	}
}

func TestPair_StopSequenceAndLogprobs_AreHonoured(t *testing.T) {
	p := startPair(t, nil)
	req := testRequest(20, 5, 24)
	whole := p.oracle(req).Tokens
	require.Greater(t, len(whole), 6)
	req.Stop = [][]int32{whole[3:5]}
	p.check(req)

	req = testRequest(20, 6, 4)
	req.Logprobs, req.TopLogprobs = true, 3
	want := p.oracle(req)
	s, err := p.client.Open(t.Context(), req)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	for i := 0; ; {
		e, err := s.Next()
		if err != nil {
			require.Equal(t, len(want.Tokens), i)
			break
		}
		if e.Kind == api.KindToken {
			require.InDelta(t, want.Logprobs[i], e.Token.Logprob, 1e-6)
			require.Len(t, e.Token.Top, 3)
			require.Equal(t, want.Top[i][0].ID, e.Token.Top[0].ID)
			i++
		}
	}
	p.idle()
}

func TestPair_TooLong_400AndNothingTaken(t *testing.T) {
	for name, c := range map[string]struct {
		change         func(*config.Config)
		prompt, maxNew int
		limit          string
	}{
		"window":       {func(c *config.Config) {}, 250, 7, api.LimitWindow},
		"prefill pool": {func(c *config.Config) { c.Sizes.PrefillPool, c.Sizes.AllowWindowOverPool = 64, true }, 65, 4, api.LimitPrefillPool},
		"decode pool":  {func(c *config.Config) { c.Sizes.DecodePool, c.Sizes.AllowWindowOverPool = 64, true }, 60, 5, api.LimitDecodePool},
	} {
		t.Run(name, func(t *testing.T) {
			p := startPair(t, c.change)
			_, _, err := p.answer(testRequest(c.prompt, 1, c.maxNew))
			var e *api.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, api.ContextLengthExceeded, e.Code)
			require.Equal(t, 400, e.Status)
			require.Equal(t, string(spec.CauseTooLong), e.Cause)
			require.Equal(t, c.limit, e.Limit)
			require.Equal(t, c.prompt, e.PromptTokens)
			s := p.decode.Status(t.Context())
			require.Equal(t, spec.LeaseID(1), s.Decode.Ranks[0].Next, "no lease was ever made")
			require.Empty(t, notFree(s))
			p.check(testRequest(c.prompt-c.maxNew-1, 2, 1))
			p.idle()
		})
	}
}

func TestPair_ClientGone_PagesReturn(t *testing.T) {
	p := startPair(t, nil)
	for i := range int32(5) {
		s, err := p.client.Open(t.Context(), testRequest(100, i, 150))
		require.NoError(t, err)
		for range i {
			if _, err := s.Next(); err != nil {
				break
			}
		}
		require.NoError(t, s.Close())
	}
	p.idle()
	p.check(testRequest(30, 9, 5))
}

func TestPair_PrefillGone_502AndPagesReturn(t *testing.T) {
	p := startPair(t, nil)
	p.check(testRequest(30, 1, 5))
	require.NoError(t, p.prefill.Close())
	req := testRequest(30, 2, 5)
	_, _, err := p.answer(req)
	var e *api.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, 502, e.Status, "%v", e)
	require.Eventually(t, func() bool { return notFree(p.decode.Status(t.Context())) == "" }, patience, 1e7)
}
