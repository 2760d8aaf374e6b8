package workload

import (
	"context"
	"errors"
	"fmt"
)

// Errors of the package. They are wrapped with the values that caused them.
var (
	// ErrToken: a token id outside 0..Vocab-1.
	ErrToken = errors.New("workload: token id outside the vocabulary")
	// ErrRange: positions that are negative, out of order, beyond the tokens or beyond the window.
	ErrRange = errors.New("workload: positions out of range")
	// ErrSlot: the KV handed out memory of another size than the geometry says.
	ErrSlot = errors.New("workload: KV slot has the wrong size")
	// ErrConfig: a model configuration that makes no model.
	ErrConfig = errors.New("workload: bad configuration")
	// ErrTooLong: prompt and new tokens do not fit the window.
	ErrTooLong = errors.New("workload: prompt and new tokens exceed the window")
)

// Geometry is the shape of a model's KV cache.
type Geometry struct {
	Layers    int // transformer layers, at least 1
	KVHeads   int // KV heads in each layer, at least 1
	HeadDim   int // elements of one head's K (and of its V)
	ElemBytes int // bytes of one element, little-endian
	Vocab     int // token ids are 0..Vocab-1
	MaxWindow int // most positions of one request, prompt and answer together
}

// SlotBytes is the size of one (layer, K or V, head, position).
func (g Geometry) SlotBytes() int { return g.HeadDim * g.ElemBytes }

// TokenBytes is the size of all KV of one token.
func (g Geometry) TokenBytes() int { return g.Layers * 2 * g.KVHeads * g.SlotBytes() }

// KV gives access to the bytes of one request's cache. A KV belongs to one
// request and is used by one goroutine at a time.
type KV interface {
	// Slot returns the HeadDim*ElemBytes bytes of (layer, 0=K or 1=V, head,
	// position). It aliases the page's memory and is valid until the step returns.
	Slot(layer, kv, head, pos int) []byte
}

// Runner is the optional bulk side of a [KV]. A model uses it when it is there;
// the answer never depends on how long the runs are.
type Runner interface {
	// Run returns the adjacent slots of positions from, from+1, ... of one
	// (layer, kv, head): at least one and at most n of them, as many as lie next
	// to each other (usually to the end of a page). Aliasing as with Slot.
	Run(layer, kv, head, from, n int) []byte
}

// Model computes KV and logits. It is immutable, safe for concurrent use with
// different KVs, and gives the same bits on every machine.
type Model interface {
	// Name is the model's name for people, e.g. "kvfence-transformer".
	Name() string
	// Revision names everything that decides what KV bytes mean: kind, seed, shape.
	// Two models with one revision compute the same bytes.
	Revision() string
	Geometry() Geometry
	// Prefill computes the KV of positions from..to-1 of tokens and writes it
	// into kv; positions before from must be there. When to == len(tokens) it
	// returns the logits (Vocab long) after the last position, else nil.
	// It needs 0 <= from < to <= len(tokens) <= MaxWindow.
	Prefill(ctx context.Context, kv KV, tokens []int32, from, to int) (logits []float32, err error)
	// Step writes the KV of one token at position pos, reads all KV of 0..pos and
	// returns the logits of the next token. It needs 0 <= pos < MaxWindow.
	Step(ctx context.Context, kv KV, token int32, pos int) (logits []float32, err error)
}

// Kind chooses the model of a [Config].
type Kind string

const (
	// KindTransformer is the decoder-only transformer.
	KindTransformer Kind = "transformer"
	// KindRolling is the hash chain: 16 bytes of KV a token, for very long prompts.
	KindRolling Kind = "rolling"
)

// Config describes a model. The zero value of a field means its default.
type Config struct {
	Kind      Kind   // default transformer
	Seed      uint64 // everything is drawn from it; 0 is a seed like any other
	Layers    int    // transformer only, default 2, at most 64
	Heads     int    // transformer only, default 4, at most 64
	HeadDim   int    // transformer only, even, default 16, at most 128
	MaxWindow int    // default 32768 (transformer) or 1048576 (rolling)
}

// New makes the model that cfg describes. It fails with [ErrConfig].
func New(cfg Config) (Model, error) {
	switch cfg.Kind {
	case "", KindTransformer:
		return newTransformer(cfg)
	case KindRolling:
		return newRolling(cfg)
	}
	return nil, fmt.Errorf("%w: kind %q, known are %q and %q", ErrConfig, cfg.Kind, KindTransformer, KindRolling)
}

// checkPrefill is the contract of Model.Prefill.
func (g Geometry) checkPrefill(tokens []int32, from, to int) error {
	if from < 0 || from >= to || to > len(tokens) || len(tokens) > g.MaxWindow {
		return fmt.Errorf("%w: prefill %d..%d of %d tokens, window %d", ErrRange, from, to, len(tokens), g.MaxWindow)
	}
	for i, t := range tokens[from:to] {
		if t < 0 || int(t) >= g.Vocab {
			return fmt.Errorf("%w: token %d at position %d, vocabulary %d", ErrToken, t, from+i, g.Vocab)
		}
	}
	return nil
}

// checkStep is the contract of Model.Step.
func (g Geometry) checkStep(token int32, pos int) error {
	if pos < 0 || pos >= g.MaxWindow {
		return fmt.Errorf("%w: step at %d, window %d", ErrRange, pos, g.MaxWindow)
	}
	if token < 0 || int(token) >= g.Vocab {
		return fmt.Errorf("%w: token %d at position %d, vocabulary %d", ErrToken, token, pos, g.Vocab)
	}
	return nil
}
