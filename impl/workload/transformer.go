package workload

import (
	"context"
	"fmt"
)

// transformer is decoder-only: pre-norm blocks of causal attention (normalised
// q and k, rotary positions) and a two-layer ReLU network, an untied output, and
// a digest of all KV bytes added to the last hidden state.
//
// Normalised q and k bound every score to +-sqrt(head dim), so no position's
// attention weight vanishes; the digest makes the dependence on each byte exact.
type transformer struct {
	seed   uint64
	g      Geometry
	dim    int
	embed  matrix // [vocab, dim]
	output matrix // [vocab, dim]
	blocks []layer
	freq   []uint32 // rotary: turn/2**32 a position, for each pair of a head
}

func newTransformer(cfg Config) (*transformer, error) {
	or := func(v, def int) int {
		if v == 0 {
			return def
		}
		return v
	}
	layers, heads, dim := or(cfg.Layers, 2), or(cfg.Heads, 4), or(cfg.HeadDim, 16)
	window := or(cfg.MaxWindow, 32768)
	if layers < 1 || layers > 64 || heads < 1 || heads > 64 || dim < 2 || dim > 128 || dim%2 != 0 || window < 2 {
		return nil, fmt.Errorf("%w: transformer with %d layers (1..64), %d heads (1..64), head dim %d (even, 2..128), window %d (at least 2)",
			ErrConfig, layers, heads, dim, window)
	}
	m := &transformer{seed: cfg.Seed, dim: heads * dim, g: Geometry{
		Layers: layers, KVHeads: heads, HeadDim: dim, ElemBytes: 4, Vocab: Vocab, MaxWindow: window,
	}}
	m.embed = newMatrix(cfg.Seed, 1, Vocab, m.dim, 1)
	m.output = newMatrix(cfg.Seed, 2, Vocab, m.dim, 1.5)
	for i := range layers {
		m.blocks = append(m.blocks, newLayer(cfg.Seed, i, m.dim))
	}
	f := uint32(683565276) // one radian
	for range dim / 2 {
		m.freq = append(m.freq, max(f, 1))
		f /= 3
	}
	return m, nil
}

func (m *transformer) Name() string { return "kvfence-transformer" }

func (m *transformer) Revision() string {
	return fmt.Sprintf("transformer-1 seed=%016x layers=%d heads=%d dim=%d", m.seed, m.g.Layers, m.g.KVHeads, m.g.HeadDim)
}

func (m *transformer) Geometry() Geometry { return m.g }

func (m *transformer) Prefill(ctx context.Context, kv KV, tokens []int32, from, to int) ([]float32, error) {
	if err := m.g.checkPrefill(tokens, from, to); err != nil {
		return nil, err
	}
	s := m.newScratch(kv)
	for pos := from; pos < to; pos++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := m.forward(s, tokens[pos], pos); err != nil {
			return nil, err
		}
	}
	if to < len(tokens) {
		return nil, nil
	}
	return m.logits(s, to)
}

func (m *transformer) Step(ctx context.Context, kv KV, token int32, pos int) ([]float32, error) {
	if err := m.g.checkStep(token, pos); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s := m.newScratch(kv)
	if err := m.forward(s, token, pos); err != nil {
		return nil, err
	}
	return m.logits(s, pos+1)
}

// scratch is the working memory of one call; all vectors are [dim] but hidden
// [2*dim] and scores [positions].
type scratch struct {
	r                         reader
	x, h, q, k, v, attn, hold []float32
	hidden, scores            []float32
	sin, cos                  []float32 // of the position, for each pair of a head
}

func (m *transformer) newScratch(kv KV) *scratch {
	d := m.dim
	v, pairs := make([]float32, 9*d), len(m.freq)
	turn := make([]float32, 2*pairs)
	return &scratch{
		r: newReader(kv, m.g), x: v[:d], h: v[d : 2*d], q: v[2*d : 3*d], k: v[3*d : 4*d], v: v[4*d : 5*d],
		attn: v[5*d : 6*d], hold: v[6*d : 7*d], hidden: v[7*d : 9*d],
		sin: turn[:pairs], cos: turn[pairs:],
	}
}

// forward runs one token through all layers: writes its KV, leaves its hidden
// state in s.x.
func (m *transformer) forward(s *scratch, token int32, pos int) error {
	row := m.embed.w[int(token)*m.dim : (int(token)+1)*m.dim]
	normalise(s.x, row)
	for i, f := range m.freq {
		phase := uint32(pos) * f // wraps at a full turn, exactly
		s.sin[i], s.cos[i] = sinTurn(phase), cosTurn(phase)
	}
	for l := range m.blocks {
		b := &m.blocks[l]
		normalise(s.h, s.x)
		b.q.mul(s.q, s.h)
		b.k.mul(s.k, s.h)
		b.v.mul(s.v, s.h)
		for head := range m.g.KVHeads {
			lo, hi := head*m.g.HeadDim, (head+1)*m.g.HeadDim
			s.rotate(s.q[lo:hi])
			s.rotate(s.k[lo:hi])
			if err := m.store(s, l, head, pos); err != nil {
				return err
			}
			if err := m.attend(s, l, head, pos+1); err != nil {
				return err
			}
		}
		b.o.mul(s.hold, s.attn)
		add(s.x, s.hold)
		normalise(s.h, s.x)
		b.up.mul(s.hidden, s.h)
		for i, v := range s.hidden {
			s.hidden[i] = max(v, 0)
		}
		b.down.mul(s.hold, s.hidden)
		add(s.x, s.hold)
	}
	return nil
}

func add(x, y []float32) {
	for i := range x {
		x[i] += y[i]
	}
}

// rotate normalises one head's vector and turns its pairs by the position.
func (s *scratch) rotate(x []float32) {
	normalise(x, x)
	for i, sin := range s.sin {
		cos := s.cos[i]
		a, b := x[2*i], x[2*i+1]
		x[2*i] = float32(a*cos) - float32(b*sin)
		x[2*i+1] = float32(a*sin) + float32(b*cos)
	}
}

// logits adds the digest of the n positions to the hidden state and projects it.
func (m *transformer) logits(s *scratch, n int) ([]float32, error) {
	sum, err := digest(s.r, m.g, m.seed, n)
	if err != nil {
		return nil, err
	}
	normalise(s.h, s.x)
	for i := range s.h {
		s.h[i] += float32(uniform(splitmix(sum+uint64(i))) * 1.732)
	}
	out := make([]float32, Vocab)
	m.output.mul(out, s.h)
	for id := range out {
		out[id] += bias(int32(id))
	}
	return out, nil
}
