package workload

import "math"

// matrix is [rows, cols] float32, row after row.
type matrix struct {
	rows, cols int
	w          []float32
}

// newMatrix draws a matrix whose products with a vector of unit mean square have
// mean square gain*gain. Each matrix has its own stream of the seed.
func newMatrix(seed, stream uint64, rows, cols int, gain float32) matrix {
	m := matrix{rows: rows, cols: cols, w: make([]float32, rows*cols)}
	// A uniform value in [-1, 1) has mean square 1/3.
	scale := float32(gain * float32(math.Sqrt(3/float64(cols))))
	key := splitmix(seed ^ splitmix(stream))
	for i := range m.w {
		m.w[i] = float32(uniform(splitmix(key+uint64(i))) * scale)
	}
	return m
}

// mul writes m*x into out; len(x) is cols, len(out) is rows.
func (m matrix) mul(out, x []float32) {
	x = x[:m.cols]
	for r := range out[:m.rows] {
		out[r] = inner(m.w[r*m.cols:(r+1)*m.cols], x)
	}
}

// inner is the product of two vectors of one length, as four sums that are added at
// the end: the order is fixed, and the sums do not wait for each other.
func inner(a, b []float32) float32 {
	var s0, s1, s2, s3 float32
	for len(a) >= 4 && len(b) >= 4 {
		s0 += float32(a[0] * b[0])
		s1 += float32(a[1] * b[1])
		s2 += float32(a[2] * b[2])
		s3 += float32(a[3] * b[3])
		a, b = a[4:], b[4:]
	}
	for i := range min(len(a), len(b)) {
		s0 += float32(a[i] * b[i])
	}
	return (s0 + s1) + (s2 + s3)
}

// normalise writes x scaled to unit mean square into out; the two may be one.
func normalise(out, x []float32) {
	var sum float32
	for _, v := range x {
		sum += float32(v * v)
	}
	mean := float32(sum/float32(len(x))) + 1e-6
	inv := 1 / float32(math.Sqrt(float64(mean)))
	for i, v := range x {
		out[i] = float32(v * inv)
	}
}

// layer holds one block's weights. Shapes: q, k, v, o [model, model],
// up [2*model, model], down [model, 2*model].
type layer struct{ q, k, v, o, up, down matrix }

func newLayer(seed uint64, index, dim int) layer {
	s := uint64(index+1) << 8
	return layer{
		q:    newMatrix(seed, s|1, dim, dim, 1),
		k:    newMatrix(seed, s|2, dim, dim, 1),
		v:    newMatrix(seed, s|3, dim, dim, 1),
		o:    newMatrix(seed, s|4, dim, dim, 1),
		up:   newMatrix(seed, s|5, 2*dim, dim, 1),
		down: newMatrix(seed, s|6, dim, 2*dim, 1),
	}
}
