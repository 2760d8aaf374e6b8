//go:build linux

package bench

import (
	"math"
	"slices"
)

// Ratio is the median of the ratios of pairs, each taken in one round, with a 95 % interval that assumes nothing about how they
// are distributed: the order statistics between which the median lies. Half is half of the interval's width.
type Ratio struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	Pairs  int     `json:"pairs"`
}

// Half is half of the interval's width.
func (r Ratio) Half() float64 { return (r.High - r.Low) / 2 }

// ratioOf does not change v.
func ratioOf(v []float64) Ratio {
	s := slices.Sorted(slices.Values(v))
	n := len(s)
	if n == 0 {
		return Ratio{}
	}
	lo, hi := medianInterval(n)
	return Ratio{Median: quantile(s, 0.5), Low: s[lo], High: s[hi], Min: s[0], Max: s[n-1], Pairs: n}
}

// medianInterval gives the indexes of the narrowest symmetric pair of order statistics of n that holds the median with at least
// 95 %; with fewer than six there is none, and it is the whole range.
func medianInterval(n int) (lo, hi int) {
	tail, p := 0.0, math.Pow(0.5, float64(n))
	for k := 0; k < n/2; k++ {
		tail += p // P(at most k of n lie below the median)
		if tail > 0.025 {
			return max(k-1, 0), n - 1 - max(k-1, 0)
		}
		p *= float64(n-k) / float64(k+1)
	}
	return max(n/2-1, 0), n - 1 - max(n/2-1, 0)
}

// quantile of sorted values, the nearest one.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	if q == 0.5 && len(sorted)%2 == 0 {
		return (sorted[len(sorted)/2-1] + sorted[len(sorted)/2]) / 2
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// Times is how long requests took, in microseconds, and the throughput that follows from the median.
type Times struct {
	Requests int     `json:"requests"`
	Min      float64 `json:"min_us"`
	P50      float64 `json:"p50_us"`
	P99      float64 `json:"p99_us"`
	Max      float64 `json:"max_us"`
	GBps     float64 `json:"gb_per_s"` // of the median
}

func timesOf(ns []int64, bytes int) Times {
	us := make([]float64, len(ns))
	for i, n := range ns {
		us[i] = float64(n) / 1e3
	}
	slices.Sort(us)
	if len(us) == 0 {
		return Times{}
	}
	t := Times{Requests: len(us), Min: us[0], P50: quantile(us, 0.5), P99: quantile(us, 0.99), Max: us[len(us)-1]}
	if t.P50 > 0 {
		t.GBps = float64(bytes) / t.P50 / 1e3
	}
	return t
}
