package workload

import (
	"encoding/binary"
	"fmt"
	"math"
)

// store writes K and V of one head at pos as little-endian float32.
func (m *transformer) store(s *scratch, layer, head, pos int) error {
	lo := head * m.g.HeadDim
	for kv, src := range [2][]float32{s.k, s.v} {
		b := s.r.kv.Slot(layer, kv, head, pos)
		if len(b) != s.r.slot {
			return fmt.Errorf("%w: %d bytes for layer %d kv %d head %d position %d, want %d", ErrSlot, len(b), layer, kv, head, pos, s.r.slot)
		}
		for i := range m.g.HeadDim {
			binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(src[lo+i]))
		}
	}
	return nil
}

// load reads a float32 of the cache. What no model wrote (NaN, infinity, huge)
// counts as 0, so that wrong bytes give a wrong answer and not a poisoned one;
// the digest has seen them all the same.
func load(b []byte) float32 {
	bits := binary.LittleEndian.Uint32(b)
	if bits&0x7fffffff > 0x447a0000 { // 1000
		return 0
	}
	return math.Float32frombits(bits)
}

// attend leaves in s.attn (this head's part) the softmax-weighted V of n positions.
func (m *transformer) attend(s *scratch, layer, head, n int) error {
	dim := m.g.HeadDim
	q := s.q[head*dim : (head+1)*dim]
	if cap(s.scores) < n {
		s.scores = make([]float32, 0, 2*n)
	}
	scores := s.scores[:n]
	scale := 1 / float32(math.Sqrt(float64(dim)))
	top := float32(math.Inf(-1))
	for pos := 0; pos < n; {
		b, err := s.r.next(layer, 0, head, pos, n-pos)
		if err != nil {
			return err
		}
		for ; len(b) > 0; b = b[4*dim:] {
			var dot float32
			for i, x := range q {
				dot += float32(x * load(b[4*i:]))
			}
			scores[pos] = float32(dot * scale)
			top = max(top, scores[pos])
			pos++
		}
	}
	out := s.attn[head*dim : (head+1)*dim]
	clear(out)
	var total float32
	for pos := 0; pos < n; {
		b, err := s.r.next(layer, 1, head, pos, n-pos)
		if err != nil {
			return err
		}
		for ; len(b) > 0; b = b[4*dim:] {
			w := float32(exp(float64(scores[pos] - top)))
			total += w
			for i := range out {
				out[i] += float32(w * load(b[4*i:]))
			}
			pos++
		}
	}
	for i := range out {
		out[i] /= total // at least 1: the top score's own weight
	}
	return nil
}
