package coq

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
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

var word = regexp.MustCompile(`<<|>>|:>|@@|[(){},]|"[^"]*"|\w+`)

// parse reads a node's label: of each variable the values by key. A set's members have the value "in", a plain value no key.
func parse(label string) (map[string]map[string]string, error) {
	text := strings.ReplaceAll(label, `\"`, `"`)
	text = strings.ReplaceAll(strings.ReplaceAll(text, `\\`, `\`), `\n`, " ")
	out := map[string]map[string]string{}
	for _, part := range strings.Split(text, `/\ `) {
		name, raw, ok := strings.Cut(strings.TrimSpace(part), " = ")
		if !ok {
			continue
		}
		r := &reader{words: word.FindAllString(raw, -1)}
		out[name] = map[string]string{}
		switch first := r.peek(); first {
		case "{":
			for r.next(); r.peek() != "}" && r.peek() != ""; r.skip(",") {
				out[name][r.atom()] = "in"
			}
		case "(":
			for r.next(); r.peek() != ")" && r.peek() != ""; r.skip("@@") {
				key := r.atom()
				r.skip(":>")
				out[name][key] = r.atom()
			}
		case "<<": // a function on 1..n
			for i, x := range strings.Fields(r.atom()) {
				out[name][strconv.Itoa(i+1)] = x
			}
		case "":
			return nil, fmt.Errorf("%w: %s", ErrGraph, part)
		default:
			out[name][""] = r.atom()
		}
	}
	return out, nil
}

type reader struct {
	words []string
	at    int
}

func (r *reader) peek() string {
	if r.at < len(r.words) {
		return r.words[r.at]
	}
	return ""
}

func (r *reader) next() string {
	w := r.peek()
	r.at++
	return w
}

func (r *reader) skip(w string) {
	if r.peek() == w {
		r.at++
	}
}

// atom is one word, or a tuple of words with spaces between.
func (r *reader) atom() string {
	w := r.next()
	if w != "<<" {
		return w
	}
	var parts []string
	for r.peek() != ">>" && r.peek() != "" {
		parts = append(parts, r.atom())
		r.skip(",")
	}
	r.next()
	return strings.Join(parts, " ")
}
