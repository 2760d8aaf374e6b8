package workload

import (
	"math"
	"slices"
)

// Sampling chooses how a token is drawn from logits.
type Sampling struct {
	Temperature float32 // 0 (or less) is greedy
	TopP        float32 // nucleus, in (0, 1]; 0 means 1
	Seed        uint64  // the draw is a function of logits, seed and position alone
}

// TokenLogprob is a token with the natural logarithm of its probability at
// temperature 1.
type TokenLogprob struct {
	ID      int32
	Logprob float32
}

// Sample picks the token for a position (the token's own index in the whole
// sequence). It is a pure function: a preempted request draws the same tokens
// again. Ties go to the smaller id; NaN counts as impossible. logits must not be
// empty.
func Sample(logits []float32, s Sampling, position int) int32 {
	if !(s.Temperature > 0) {
		return argmax(logits)
	}
	order := ranked(logits)
	top := float64(logits[order[0]])
	weights := make([]float64, len(order))
	total := 0.0
	for i, id := range order {
		weights[i] = exp(float64((float64(logits[id]) - top) / float64(s.Temperature)))
		total += weights[i]
	}
	if s.TopP > 0 && s.TopP < 1 {
		limit, sum := float64(float64(s.TopP)*total), 0.0
		for i := range weights {
			sum += weights[i]
			if sum >= limit {
				order, total = order[:i+1], sum
				break
			}
		}
	}
	u := float64(splitmix(s.Seed^splitmix(uint64(position)))>>11) / (1 << 53)
	target, sum := float64(u*total), 0.0
	for i, id := range order {
		sum += weights[i]
		if target < sum {
			return id
		}
	}
	return order[0]
}

// argmax is ranked(logits)[0].
func argmax(logits []float32) int32 {
	best := int32(-1)
	for id, l := range logits {
		if possible(l) && (best < 0 || l > logits[best]) {
			best = int32(id)
		}
	}
	return max(best, 0)
}

func possible(l float32) bool { return l == l && !math.IsInf(float64(l), 0) }

// ranked returns the ids by falling logit, then rising id, without impossible
// ones (NaN, infinities); if all are, id 0 alone.
func ranked(logits []float32) []int32 {
	order := make([]int32, 0, len(logits))
	for id, l := range logits {
		if possible(l) {
			order = append(order, int32(id))
		}
	}
	if len(order) == 0 {
		return []int32{0}
	}
	slices.SortFunc(order, func(a, b int32) int {
		switch {
		case logits[a] > logits[b]:
			return -1
		case logits[a] < logits[b]:
			return 1
		}
		return int(a - b)
	})
	return order
}

// Logprobs returns the log probability of id and of the n most probable tokens.
// An impossible id has -1e4 rather than an infinity, which JSON cannot say.
func Logprobs(logits []float32, id int32, n int) (float32, []TokenLogprob) {
	order := ranked(logits)
	top := float64(logits[order[0]])
	if top != top || math.IsInf(top, 0) {
		return -1e4, nil
	}
	total := 0.0
	for _, o := range order {
		total += exp(float64(logits[o]) - top)
	}
	norm := top + log(total)
	value := func(id int32) float32 {
		if id < 0 || int(id) >= len(logits) {
			return -1e4
		}
		v := float32(float64(logits[id]) - norm)
		if !(v > -1e4) {
			return -1e4
		}
		return v
	}
	var best []TokenLogprob
	for _, o := range order[:min(max(n, 0), len(order))] {
		best = append(best, TokenLogprob{ID: o, Logprob: value(o)})
	}
	return value(id), best
}
