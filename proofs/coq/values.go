package coq

import (
	"fmt"
	"strconv"
	"strings"

	"kvfence/proofs/dump"
)

// variable is a variable of Heart.tla: the sorts of its domain, and whether it is a set or a function to BOOLEAN.
type variable struct {
	name   string
	domain [][]string
	member bool
}

// variables are in the order of Instance.v's code.
func (s Setting) variables() []variable {
	l, p, k, c := names("", s.Leases), names("p", s.Pages), names("k", s.Ranks), names("c", s.Chans)
	kinds := []string{`"complete"`, `"ack"`}
	numbers := func(last int) []string {
		out := []string{"0"}
		return append(out, names("", last)...)
	}
	lk, lp, write := [][]string{l, k}, [][]string{l, p}, [][]string{l, k, p, c}
	return []variable{
		{"own", [][]string{p}, false}, {"gen", [][]string{p}, false}, {"dst", [][]string{l}, false}, {"hold", lk, true},
		{"got", lk, true}, {"nin", [][]string{l, k, c}, true}, {"krn", lp, true}, {"ep", [][]string{k}, false},
		{"fencing", [][]string{k}, true}, {"dinc", nil, false}, {"gpage", lp, false}, {"owes", lk, true}, {"gep", lk, false},
		{"ginc", lk, false}, {"dof", [][]string{l}, false}, {"pinc", [][]string{k}, false},
		{"pfenced", [][]string{k, numbers(s.Decode), numbers(s.Epochs)}, true}, {"sent", write, true},
		{"nsent", [][]string{l, k, c}, true}, {"ans", [][]string{kinds, l, k}, true}, {"queued", write, true}, {"flying", write, true},
		{"placing", write, true}, {"unseen", write, true}, {"pay", write, false}, {"mem", [][]string{p, k}, false},
	}
}

// product lists the keys of a domain, the last sort fastest.
func product(sorts [][]string) []string {
	keys := []string{""}
	for i, sort := range sorts {
		var next []string
		for _, k := range keys {
			for _, x := range sort {
				if i > 0 {
					next = append(next, k+" "+x)
				} else {
					next = append(next, x)
				}
			}
		}
		keys = next
	}
	return keys
}

// parse reads a node's label: of each variable the values by key. A set's members have the value "in", a plain value no key.
func parse(label string) (map[string]map[string]string, error) {
	values, err := dump.Values(label)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrGraph, err)
	}
	out := map[string]map[string]string{}
	for name, v := range values {
		vals := map[string]string{}
		for i, x := range v.Items {
			switch v.Kind {
			case dump.Set:
				vals[atom(x)] = "in"
			case dump.Function:
				vals[atom(x.Items[0])] = atom(x.Items[1])
			case dump.Tuple: // a function on 1..n
				vals[strconv.Itoa(i+1)] = atom(x)
			}
		}
		if v.Kind == dump.Atom {
			vals[""] = v.Text
		}
		out[name] = vals
	}
	return out, nil
}

// atom is one word, or a tuple of words with spaces between.
func atom(v dump.Value) string {
	if v.Kind != dump.Tuple {
		return v.Text
	}
	parts := make([]string, len(v.Items))
	for i, x := range v.Items {
		parts[i] = atom(x)
	}
	return strings.Join(parts, " ")
}
