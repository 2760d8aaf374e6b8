package workload

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/bits"
)

// rolling is a model of one layer and one head with 8 bytes of K and 8 of V a
// token. The KV of a token is a keyed hash chain over all tokens up to it; the
// logits are drawn from a hash over all KV bytes. It does what a transformer does
// to the bytes at a thousandth of the cost, so prompts of a million tokens run.
type rolling struct {
	seed uint64
	g    Geometry
}

func newRolling(cfg Config) (*rolling, error) {
	window := cfg.MaxWindow
	if window == 0 {
		window = 1 << 20
	}
	if window < 2 || cfg.Layers != 0 || cfg.Heads != 0 || cfg.HeadDim != 0 {
		return nil, fmt.Errorf("%w: rolling with window %d (at least 2) takes no layers, heads or head dim", ErrConfig, window)
	}
	return &rolling{seed: cfg.Seed, g: Geometry{
		Layers: 1, KVHeads: 1, HeadDim: 8, ElemBytes: 1, Vocab: Vocab, MaxWindow: window,
	}}, nil
}

func (m *rolling) Name() string       { return "kvfence-rolling" }
func (m *rolling) Revision() string   { return fmt.Sprintf("rolling-1 seed=%016x", m.seed) }
func (m *rolling) Geometry() Geometry { return m.g }

// link is the chain's step: K and V of the position before, and this token.
func (m *rolling) link(k, v uint64, token int32) (uint64, uint64) {
	k = splitmix(k ^ bits.RotateLeft64(v, 29) ^ splitmix(m.seed^uint64(token)))
	return k, splitmix(k ^ 0x56)
}

func (m *rolling) Prefill(ctx context.Context, kv KV, tokens []int32, from, to int) ([]float32, error) {
	if err := m.g.checkPrefill(tokens, from, to); err != nil {
		return nil, err
	}
	if err := m.fill(ctx, kv, tokens[from:to], from); err != nil || to < len(tokens) {
		return nil, err
	}
	return m.logits(kv, to)
}

func (m *rolling) Step(ctx context.Context, kv KV, token int32, pos int) ([]float32, error) {
	if err := m.g.checkStep(token, pos); err != nil {
		return nil, err
	}
	if err := m.fill(ctx, kv, []int32{token}, pos); err != nil {
		return nil, err
	}
	return m.logits(kv, pos+1)
}

// fill writes the KV of tokens, the first of them at position from.
func (m *rolling) fill(ctx context.Context, kv KV, tokens []int32, from int) error {
	r := newReader(kv, m.g)
	k, v := splitmix(m.seed), splitmix(^m.seed)
	if from > 0 {
		kb, err := r.next(0, 0, 0, from-1, 1)
		if err != nil {
			return err
		}
		vb, err := r.next(0, 1, 0, from-1, 1)
		if err != nil {
			return err
		}
		k, v = binary.LittleEndian.Uint64(kb), binary.LittleEndian.Uint64(vb)
	}
	for i := 0; i < len(tokens); {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(len(tokens)-i, 1<<14)
		kb, err := r.next(0, 0, 0, from+i, n)
		if err != nil {
			return err
		}
		n = min(n, len(kb)/8)
		vb, err := r.next(0, 1, 0, from+i, n)
		if err != nil {
			return err
		}
		n = min(n, len(vb)/8)
		for j := range n {
			k, v = m.link(k, v, tokens[i+j])
			binary.LittleEndian.PutUint64(kb[j*8:], k)
			binary.LittleEndian.PutUint64(vb[j*8:], v)
		}
		i += n
	}
	return nil
}

func (m *rolling) logits(kv KV, n int) ([]float32, error) {
	sum, err := digest(newReader(kv, m.g), m.g, m.seed, n)
	if err != nil {
		return nil, err
	}
	out := make([]float32, Vocab)
	for id := range out {
		u := uniform(splitmix(sum^uint64(id))) + uniform(splitmix(sum^uint64(id)^1<<32))
		out[id] = float32(u*3) + bias(int32(id))
	}
	return out, nil
}
