package sim

import (
	"fmt"
	"strconv"
	"strings"
)

// ParseSeeds reads A-B, or one seed, as the first seed and how many.
func ParseSeeds(s string) (from, count uint64, err error) {
	a, b, two := strings.Cut(s, "-")
	if !two {
		b = a
	}
	lo, err1 := strconv.ParseUint(a, 10, 62)
	hi, err2 := strconv.ParseUint(b, 10, 62)
	if err1 != nil || err2 != nil || hi < lo {
		return 0, 0, fmt.Errorf("%w: seeds %q, first-last is wanted", ErrPlan, s)
	}
	return lo, hi - lo + 1, nil
}

// ParseShard reads i/n, with i from 0.
func ParseShard(s string) (i, n int, err error) {
	a, b, _ := strings.Cut(s, "/")
	i, err1 := strconv.Atoi(a)
	n, err2 := strconv.Atoi(b)
	if err1 != nil || err2 != nil || n < 1 || i < 0 || i >= n {
		return 0, 0, fmt.Errorf("%w: shard %q, i/n with i from 0 is wanted", ErrPlan, s)
	}
	return i, n, nil
}
