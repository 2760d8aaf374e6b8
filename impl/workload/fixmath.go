package workload

import "math"

// The functions here give the same bits on every machine: only additions,
// multiplications, divisions and square roots of IEEE 754, each rounded by an
// explicit conversion (which forbids fused multiply-add), and integers.
// math.Exp, math.Log and math.Sin are assembly on some machines and are not used.

// splitmix is the SplitMix64 finaliser: a bijection of 64-bit words.
func splitmix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb
	return x ^ (x >> 31)
}

// uniform maps the top 24 bits of a word to [-1, 1), exactly.
func uniform(x uint64) float32 { return float32(int64(x>>40)-(1<<23)) / (1 << 23) }

// exp is e**x for x <= 0; 0 below -700. Relative error under 1e-15.
func exp(x float64) float64 {
	if !(x > -700) { // also NaN
		return 0
	}
	if x > 0 {
		x = 0
	}
	const (
		log2e = 1.44269504088896338700e+00
		ln2hi = 6.93147180369123816490e-01
		ln2lo = 1.90821492927058770002e-10
	)
	k := math.Floor(float64(x*log2e) + 0.5)
	r := float64(x - float64(k*ln2hi))
	r = float64(r - float64(k*ln2lo))
	p := 1.0
	for i := 14; i >= 1; i-- {
		p = 1 + float64(float64(r*p)/float64(i))
	}
	return float64(p * math.Float64frombits(uint64(1023+int64(k))<<52))
}

// log is the natural logarithm of a positive, normal x.
func log(x float64) float64 {
	const ln2 = 6.93147180559945309417e-01
	frac, e := math.Frexp(x) // exact: frac in [0.5, 1)
	if frac < 0.70710678 {
		frac, e = frac*2, e-1
	}
	z := (frac - 1) / (frac + 1) // |z| < 0.172
	z2 := float64(z * z)
	sum := 0.0
	for i := 25; i >= 1; i -= 2 {
		sum = float64(sum*z2) + 1/float64(i)
	}
	return float64(float64(e)*ln2) + float64(2*float64(z*sum))
}

// sinTurn is the sine of phase/2**32 of a full turn. Error under 1e-6.
func sinTurn(phase uint32) float32 {
	const pi = math.Pi
	q := int64(int32(phase)) // [-2**31, 2**31): [-half, half) turn
	if q > 1<<30 {
		q = 1<<31 - q // sin(pi - a) = sin a
	} else if q < -(1 << 30) {
		q = -(1 << 31) - q
	}
	a := float64(float64(q) * (2 * pi / (1 << 32))) // [-pi/2, pi/2]
	a2 := float64(a * a)
	p := 1.0
	for i := 15; i >= 3; i -= 2 {
		p = 1 - float64(float64(a2*p)/float64(i*(i-1)))
	}
	return float32(a * p)
}

// cosTurn is the cosine of phase/2**32 of a full turn.
func cosTurn(phase uint32) float32 { return sinTurn(phase + 1<<30) }
