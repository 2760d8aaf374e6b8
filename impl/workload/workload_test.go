package workload

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func models(t testing.TB, seed uint64) map[Kind]Model {
	out := map[Kind]Model{}
	for _, kind := range []Kind{KindTransformer, KindRolling} {
		m, err := New(Config{Kind: kind, Seed: seed})
		require.NoError(t, err)
		out[kind] = m
	}
	return out
}

func paged(m Model, tokens, pageTokens int) *Paged {
	p := &Paged{Geometry: m.Geometry(), PageTokens: pageTokens}
	for len(p.Pages)*pageTokens < tokens {
		p.Pages = append(p.Pages, make([]byte, p.Geometry.PageBytes(pageTokens)))
	}
	return p
}

// slotOnly hides Run, so that the plain interface is exercised too.
type slotOnly struct{ kv KV }

func (s slotOnly) Slot(layer, kv, head, pos int) []byte { return s.kv.Slot(layer, kv, head, pos) }

func requireSameBits(t *testing.T, want, got []float32, msg string) {
	t.Helper()
	require.True(t, sameBits(want, got), msg)
}

func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

func TestGenerate_FixedSeed_GivesGoldenTokens(t *testing.T) {
	prompt := Encode("The quick brown fox")
	for kind, m := range models(t, 1) {
		r, err := Generate(t.Context(), m, prompt, Options{MaxTokens: 40})
		require.NoError(t, err)
		require.Equal(t, golden[kind], string(Decode(r.Tokens))+"|"+r.Finish, kind)
		r, err = Generate(t.Context(), m, prompt, Options{MaxTokens: 12, Sampling: Sampling{Temperature: 1.5, TopP: 0.95, Seed: 7}})
		require.NoError(t, err)
		require.Equal(t, goldenSampled[kind], string(Decode(r.Tokens)), kind)
	}
}

func TestGenerate_OtherSeed_GivesOtherTokens(t *testing.T) {
	a, b := models(t, 1), models(t, 2)
	for kind := range a {
		require.NotEqual(t, a[kind].Revision(), b[kind].Revision())
		ra, err := Generate(t.Context(), a[kind], Encode("hello"), Options{MaxTokens: 20})
		require.NoError(t, err)
		rb, err := Generate(t.Context(), b[kind], Encode("hello"), Options{MaxTokens: 20})
		require.NoError(t, err)
		require.NotEqual(t, ra.Tokens, rb.Tokens)
	}
}

func TestPrefill_AnyChunksAndPages_EqualsWholePrefill(t *testing.T) {
	const n = 53
	prompt := Encode(string(bytes.Repeat([]byte("abcdefg"), 8)))[:n]
	for kind, m := range models(t, 3) {
		flat := NewFlat(m.Geometry(), n)
		want, err := m.Prefill(t.Context(), flat, prompt, 0, n)
		require.NoError(t, err)
		for _, pageTokens := range []int{1, 3, 16, 64} {
			for _, chunk := range []int{1, 2, 7, 16, 52, 53} {
				p := paged(m, n, pageTokens)
				var kv KV = p
				if chunk%2 == 1 {
					kv = slotOnly{p}
				}
				var got []float32
				for from := 0; from < n; from += chunk {
					require.Nil(t, got)
					got, err = m.Prefill(t.Context(), kv, prompt, from, min(from+chunk, n))
					require.NoError(t, err)
				}
				requireSameBits(t, want, got, fmt.Sprintf("%s pages of %d, chunks of %d", kind, pageTokens, chunk))
				for pos := range n {
					require.Equal(t, flat.Slot(0, 1, 0, pos), p.Slot(0, 1, 0, pos))
				}
			}
		}
	}
}

func TestStep_TokenByToken_EqualsPrefillOfTheWhole(t *testing.T) {
	prompt := Encode("step by step by step")
	for kind, m := range models(t, 4) {
		a, b := NewFlat(m.Geometry(), len(prompt)), paged(m, len(prompt), 4)
		want, err := m.Prefill(t.Context(), a, prompt, 0, len(prompt))
		require.NoError(t, err)
		var got []float32
		for pos, token := range prompt {
			got, err = m.Step(t.Context(), b, token, pos)
			require.NoError(t, err)
		}
		requireSameBits(t, want, got, string(kind))
	}
}

// Every byte that a step reads must count: flip each in turn, bit by bit.
func TestStep_AnyByteOfAnyPageFlipped_ChangesLogits(t *testing.T) {
	const n, pageTokens = 7, 3
	prompt := Encode("canary!")
	small, err := New(Config{Seed: 5, Layers: 2, Heads: 2, HeadDim: 4})
	require.NoError(t, err)
	rolling := models(t, 5)[KindRolling]
	for _, m := range []Model{small, rolling} {
		p := paged(m, n+1, pageTokens)
		_, err := m.Prefill(t.Context(), p, prompt, 0, n)
		require.NoError(t, err)
		want, err := m.Step(t.Context(), p, 'x', n)
		require.NoError(t, err)
		flips, changedTokens := 0, 0
		for pos := range n {
			for layer := range m.Geometry().Layers {
				for kv := range 2 {
					for head := range m.Geometry().KVHeads {
						slot := p.Slot(layer, kv, head, pos)
						for i := range slot {
							bit := byte(1) << (flips % 8)
							slot[i] ^= bit
							got, err := m.Step(t.Context(), p, 'x', n)
							require.NoError(t, err)
							require.False(t, sameBits(want, got), "%s byte %d of layer %d kv %d head %d position %d", m.Name(), i, layer, kv, head, pos)
							if Sample(got, Sampling{}, 0) != Sample(want, Sampling{}, 0) {
								changedTokens++
							}
							slot[i] ^= bit
							flips++
						}
					}
				}
			}
		}
		require.Equal(t, n*m.Geometry().TokenBytes(), flips)
		require.Greater(t, changedTokens, flips/2, "a wrong byte should mostly change the very next token")
		again, err := m.Step(t.Context(), p, 'x', n)
		require.NoError(t, err)
		requireSameBits(t, want, again, "restored bytes give the old answer")
	}
}

func TestStep_ForeignStaleSwappedOrZeroPage_ChangesLogits(t *testing.T) {
	const n, pageTokens = 32, 8
	mine, theirs := Encode("tenant x says hello to the model")[:n], Encode("tenant y says hello to the model")[:n]
	for kind, m := range models(t, 6) {
		a, b := paged(m, n+1, pageTokens), paged(m, n+1, pageTokens)
		_, err := m.Prefill(t.Context(), a, mine, 0, n)
		require.NoError(t, err)
		_, err = m.Prefill(t.Context(), b, theirs, 0, n)
		require.NoError(t, err)
		want, err := m.Step(t.Context(), a, 'x', n)
		require.NoError(t, err)
		for i := range n / pageTokens {
			own := a.Pages[i]
			other := a.Pages[(i+1)%(n/pageTokens)]
			for name, page := range map[string][]byte{
				"foreign": b.Pages[i], "zero": make([]byte, len(own)), "own neighbour": other,
				"ones": bytes.Repeat([]byte{0xff}, len(own)),
			} {
				if bytes.Equal(page, own) {
					continue // the tenants' texts agree before position 7; their pages may, too
				}
				a.Pages[i] = page
				got, err := m.Step(t.Context(), a, 'x', n)
				require.NoError(t, err)
				require.False(t, sameBits(want, got), "%s page %d %s", kind, i, name)
				for _, l := range got {
					require.False(t, math.IsNaN(float64(l)))
				}
			}
			a.Pages[i] = own
		}
	}
}

func TestRolling_IncidentPrompt_RunsInWellUnderASecond(t *testing.T) {
	m := models(t, 7)[KindRolling]
	const n = 681280
	rng := rand.New(rand.NewPCG(1, 2))
	prompt := make([]int32, n)
	for i := range prompt {
		prompt[i] = int32(rng.IntN(256))
	}
	start := time.Now()
	r, err := Generate(t.Context(), m, prompt, Options{MaxTokens: 16})
	require.NoError(t, err)
	t.Logf("%d tokens and %d new ones in %v", n, len(r.Tokens), time.Since(start))
	require.NotEmpty(t, r.Tokens)
	again, err := Generate(t.Context(), m, prompt, Options{MaxTokens: 16})
	require.NoError(t, err)
	require.Equal(t, r, again)
	prompt[0] ^= 1
	other, err := Generate(t.Context(), m, prompt, Options{MaxTokens: 16})
	require.NoError(t, err)
	require.NotEqual(t, r.Tokens, other.Tokens, "the first token of 681,280 counts")
}

func TestGenerate_Ends_WithStopOrLength(t *testing.T) {
	m := models(t, 8)[KindTransformer]
	r, err := Generate(t.Context(), m, Encode("a"), Options{MaxTokens: 5})
	require.NoError(t, err)
	require.Equal(t, FinishLength, r.Finish)
	require.Len(t, r.Tokens, 5)

	cut, err := Generate(t.Context(), m, Encode("a"), Options{MaxTokens: 5, Stop: [][]int32{r.Tokens[1:3]}})
	require.NoError(t, err)
	require.Equal(t, FinishStop, cut.Finish)
	require.Equal(t, r.Tokens[:3], cut.Tokens)

	stops, quick := 0, models(t, 8)[KindRolling] // the bias of EOS is shared
	for i := range 200 {
		r, err := Generate(t.Context(), quick, Encode(fmt.Sprint("prompt ", i)), Options{MaxTokens: 24})
		require.NoError(t, err)
		require.NotContains(t, r.Tokens, EOS)
		if r.Finish == FinishStop {
			stops++
		}
	}
	t.Logf("%d of 200 answers ended by themselves", stops)
	require.Greater(t, stops, 3)
	require.Less(t, stops, 150)
}

func TestModel_BadInput_IsRefusedByName(t *testing.T) {
	for _, m := range models(t, 9) {
		g := m.Geometry()
		kv := NewFlat(g, 4)
		for _, c := range []struct{ n, from, to int }{{4, -1, 2}, {4, 2, 2}, {4, 3, 2}, {4, 0, 5}, {0, 0, 0}, {g.MaxWindow + 1, 0, 1}} {
			_, err := m.Prefill(t.Context(), kv, make([]int32, c.n), c.from, c.to)
			require.ErrorIs(t, err, ErrRange, c)
		}
		_, err := m.Prefill(t.Context(), kv, []int32{1, Vocab}, 0, 2)
		require.ErrorIs(t, err, ErrToken)
		_, err = m.Step(t.Context(), kv, -1, 0)
		require.ErrorIs(t, err, ErrToken)
		_, err = m.Step(t.Context(), kv, 1, g.MaxWindow)
		require.ErrorIs(t, err, ErrRange)
		_, err = m.Step(t.Context(), kv, 1, 4)
		require.ErrorIs(t, err, ErrSlot, "a position without memory")
		_, err = Generate(t.Context(), m, nil, Options{MaxTokens: 1})
		require.ErrorIs(t, err, ErrRange)
		_, err = Generate(t.Context(), m, Encode("abc"), Options{MaxTokens: g.MaxWindow - 2})
		require.ErrorIs(t, err, ErrTooLong)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = m.Prefill(gone, kv, []int32{1}, 0, 1)
		require.ErrorIs(t, err, context.Canceled)
	}
	for _, cfg := range []Config{{Kind: "x"}, {Heads: -1}, {HeadDim: 3}, {Layers: 65}, {MaxWindow: 1}, {Kind: KindRolling, Heads: 2}, {Kind: KindRolling, MaxWindow: -1}} {
		_, err := New(cfg)
		require.ErrorIs(t, err, ErrConfig, cfg)
	}
	require.ErrorIs(t, (&Paged{Geometry: Geometry{Layers: 1, KVHeads: 1, HeadDim: 8, ElemBytes: 1}, PageTokens: 2, Pages: [][]byte{make([]byte, 31)}}).Check(), ErrSlot)
}
