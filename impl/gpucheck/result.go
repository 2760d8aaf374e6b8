package gpucheck

import (
	"fmt"
	"slices"
)

// Row is one figure. Goal is empty where there is none.
type Row struct {
	Name  string
	Value float64
	Unit  string
	Goal  string
	Met   bool
}

// Result is what one section found.
type Result struct {
	Section string
	Card    string
	Checks  int      // comparisons that held
	Failed  []string // those that did not, and errors
	Skipped string   // why nothing was done
	Rows    []Row
	Notes   []string
	Seconds float64
}

func (r *Result) fail(err error) {
	if err != nil {
		r.Failed = append(r.Failed, err.Error())
	}
}

func (r *Result) check(ok bool, what string, args ...any) {
	if ok {
		r.Checks++
		return
	}
	r.Failed = append(r.Failed, fmt.Sprintf(what, args...))
}

func (r *Result) figure(name string, value float64, unit string) {
	r.Rows = append(r.Rows, Row{Name: name, Value: value, Unit: unit})
}

// goal is a figure that should be at least, or at most, a bound.
func (r *Result) goal(name string, value float64, unit, relation string, bound float64) {
	met := value >= bound
	if relation == "<=" {
		met = value <= bound
	}
	r.Rows = append(r.Rows, Row{name, value, unit, fmt.Sprintf("%s %g %s", relation, bound, unit), met})
}

// median of values, which it sorts.
func median(v []float64) float64 {
	slices.Sort(v)
	if len(v) == 0 {
		return 0
	}
	return v[len(v)/2]
}

// medianInterval is the median of 21 values or so with the interval of at least 95 % by order statistics, which asks nothing of how the values
// are distributed: between the k-th lowest and the k-th highest, k the largest whose binomial tail is at most 2.5 % on each side.
func medianInterval(v []float64) (low, mid, high float64) {
	mid = median(v)
	n := len(v)
	if n == 0 {
		return 0, 0, 0
	}
	k, tail, term := 0, 0.0, 1.0
	for range n {
		term /= 2
	}
	for i := 0; i < n; i++ { // term is C(n,i) / 2^n
		if tail += term; tail > 0.025 {
			break
		}
		k = i + 1
		term *= float64(n-i) / float64(i+1)
	}
	k = max(k, 1)
	return v[k-1], mid, v[n-k]
}
