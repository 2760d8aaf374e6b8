package workload

import (
	"context"
	"fmt"
)

// Finish reasons, as the HTTP API names them.
const (
	FinishStop   = "stop"   // the model drew EOS, or a stop sequence was complete
	FinishLength = "length" // the maximum of new tokens was reached
)

// Options of [Generate].
type Options struct {
	MaxTokens   int // most new tokens; 0: what the window leaves
	Sampling    Sampling
	Logprobs    bool
	TopLogprobs int       // alternatives a token, with Logprobs
	Stop        [][]int32 // ends after the token that completes one of these
}

// Result of [Generate]. EOS is in neither list.
type Result struct {
	Tokens   []int32
	Logprobs []float32        // one a token, with Options.Logprobs
	Top      [][]TokenLogprob // one a token, with Options.TopLogprobs
	Finish   string
}

// Generate answers a whole request in one process over private memory. It is the
// oracle: what the nodes answer must equal its tokens. Errors: [ErrTooLong],
// [ErrRange] (empty prompt), [ErrToken], the context's.
func Generate(ctx context.Context, m Model, prompt []int32, o Options) (Result, error) {
	g := m.Geometry()
	limit := o.MaxTokens
	if limit <= 0 {
		limit = max(g.MaxWindow-len(prompt), 1)
	}
	if limit > g.MaxWindow || len(prompt) > g.MaxWindow-limit {
		return Result{}, fmt.Errorf("%w: %d + %d, window %d", ErrTooLong, len(prompt), limit, g.MaxWindow)
	}
	kv := &growing{Paged{Geometry: g, PageTokens: 64}}
	kv.reserve(len(prompt))
	logits, err := m.Prefill(ctx, kv, prompt, 0, len(prompt))
	if err != nil {
		return Result{}, err
	}
	var r Result
	for {
		pos := len(prompt) + len(r.Tokens)
		id := Sample(logits, o.Sampling, pos)
		if id == EOS {
			r.Finish = FinishStop
			return r, nil
		}
		r.Tokens = append(r.Tokens, id)
		if o.Logprobs {
			lp, top := Logprobs(logits, id, o.TopLogprobs)
			r.Logprobs, r.Top = append(r.Logprobs, lp), append(r.Top, top)
		}
		if StopHit(r.Tokens, o.Stop) {
			r.Finish = FinishStop
			return r, nil
		}
		if len(r.Tokens) == limit {
			r.Finish = FinishLength
			return r, nil
		}
		kv.reserve(pos + 1)
		if logits, err = m.Step(ctx, kv, id, pos); err != nil {
			return Result{}, err
		}
	}
}

// growing is private paged memory that grows with the answer, so that an oracle
// run without a maximum does not reserve the window.
type growing struct{ Paged }

func (k *growing) reserve(positions int) {
	for len(k.Pages)*k.PageTokens < positions {
		k.Pages = append(k.Pages, make([]byte, k.Geometry.PageBytes(k.PageTokens)))
	}
}
