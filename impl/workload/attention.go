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

// sane is the largest value that a model writes or computes here.
const sane = 1000

// load reads a float32 of the cache. What no model wrote (NaN, infinity, huge)
// counts as 0, so that wrong bytes give a wrong answer and not a poisoned one;
// the digest has seen them all the same.
func load(b []byte) float32 {
	f := raw(b)
	if !(f <= sane && f >= -sane) {
		return 0
	}
	return f
}

func raw(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }

// score is q times the K in b. The plain product is tried first; one that no sane K
// gives is taken again through load.
func score(q []float32, b []byte) float32 {
	b = b[:4*len(q)]
	var s0, s1 float32
	x, v := q, b
	for len(x) >= 4 && len(v) >= 16 { // constant indices: no bounds checks
		s0 += float32(x[0] * raw(v[0:4]))
		s1 += float32(x[1] * raw(v[4:8]))
		s0 += float32(x[2] * raw(v[8:12]))
		s1 += float32(x[3] * raw(v[12:16]))
		x, v = x[4:], v[16:]
	}
	for len(x) >= 2 && len(v) >= 8 { // the head dim is even
		s0 += float32(x[0] * raw(v[0:4]))
		s1 += float32(x[1] * raw(v[4:8]))
		x, v = x[2:], v[8:]
	}
	if sum := s0 + s1; sum <= sane && sum >= -sane {
		return sum
	}
	var sum float32
	for i, x := range q {
		sum += float32(x * load(b[4*i:]))
	}
	return sum
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
			scores[pos] = float32(score(q, b) * scale)
			top = max(top, scores[pos])
			pos++
		}
	}
	var total float32
	for i, x := range scores {
		scores[i] = fastExp(x - top)
		total += scores[i]
	}
	out := s.attn[head*dim : (head+1)*dim]
	if err := s.weigh(out, layer, head, scores, false); err != nil {
		return err
	}
	ok := true
	for i := range out {
		out[i] /= total // at least 1: the top score's own weight
		ok = ok && out[i] <= sane && out[i] >= -sane
	}
	if ok {
		return nil
	}
	if err := s.weigh(out, layer, head, scores, true); err != nil {
		return err
	}
	for i := range out {
		out[i] /= total
	}
	return nil
}

// weigh leaves in out the sum of V times its weight; careful reads each element
// through load.
func (s *scratch) weigh(out []float32, layer, head int, weights []float32, careful bool) error {
	clear(out)
	for pos := 0; pos < len(weights); {
		b, err := s.r.next(layer, 1, head, pos, len(weights)-pos)
		if err != nil {
			return err
		}
		for ; len(b) > 0; b = b[4*len(out):] {
			accumulate(out, b[:4*len(out)], weights[pos], careful)
			pos++
		}
	}
	return nil
}

// accumulate adds w times the V in v to out.
func accumulate(out []float32, v []byte, w float32, careful bool) {
	if careful {
		for i := range out {
			out[i] += float32(w * load(v[4*i:]))
		}
		return
	}
	for len(out) >= 2 && len(v) >= 8 { // the head dim is even
		out[0] += float32(w * raw(v[0:4]))
		out[1] += float32(w * raw(v[4:8]))
		out, v = out[2:], v[8:]
	}
}
