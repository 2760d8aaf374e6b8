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
	p := 0.0
	for _, c := range expTaylor {
		p = float64(p*r) + c
	}
	return float64(p * math.Float64frombits(uint64(1023+int64(k))<<52))
}

// expTaylor is 1/n! for n from 12 down to 0: |r| < 0.35 leaves 2e-16.
var expTaylor = [...]float64{
	1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720,
	1.0 / 120, 1.0 / 24, 1.0 / 6, 1.0 / 2, 1, 1,
}

// fastExp is e**x for -80 < x <= 0 and 0 below, in float32: error under 1e-6.
func fastExp(x float32) float32 {
	if !(x > -80) { // also NaN
		return 0
	}
	k := int32(float32(x*1.442695) - 0.5) // towards zero: the nearest, as x <= 0
	r := x - float32(float32(k)*0.693359375)
	r -= float32(float32(k) * -2.12194440e-4)
	p := float32(1.0 / 720)
	p = float32(p*r) + 1.0/120
	p = float32(p*r) + 1.0/24
	p = float32(p*r) + 1.0/6
	p = float32(p*r) + 1.0/2
	p = float32(p*r) + 1
	p = float32(p*r) + 1
	return float32(p * math.Float32frombits(uint32(127+k)<<23))
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
