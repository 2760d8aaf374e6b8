// Package edges compares the translator with TLC: for states that TLC dumped, z3 says which actions the translated guards let
// happen and what the translated updates yield, and the edges must be TLC's, none more and none less. So a misreading of TLA+ in
// proofs/tla2smt shows although both solvers believe it. It proves nothing by itself. impl/cmd/prove and its own tests call it.
package edges

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"kvfence/proofs/tla2smt"
)

// ErrDump is what is said of a dump that cannot be read.
var ErrDump = errors.New("bad dump of TLC")

// State is a state: of each variable the values by key, in SMT-LIB terms.
type State map[string]map[string]string

// Graph is TLC's dump.
type Graph struct {
	Texts map[string]string // state's number in the dump -> its text
	Edges []Edge
}

// Edge is a step from one state to another.
type Edge struct{ From, Action, To string }

var (
	edgeLine  = regexp.MustCompile(`^(-?\d+) -> (-?\d+) \[label="(\w+)"`)
	stateLine = regexp.MustCompile(`^(-?\d+) \[label="(.*)"(?:,style = filled)?\];?$`)
	valueWord = regexp.MustCompile(`<<|>>|:>|@@|[(){}\[\],]|"[^"]*"|-?\d+|\w+`)
)

// ReadDump reads what TLC's -dump dot,actionlabels wrote.
func ReadDump(r io.Reader) (Graph, error) {
	g := Graph{Texts: map[string]string{}}
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		line := strings.TrimRight(sc.Text(), " ")
		if m := edgeLine.FindStringSubmatch(line); m != nil {
			g.Edges = append(g.Edges, Edge{m[1], m[3], m[2]})
		} else if m := stateLine.FindStringSubmatch(line); m != nil {
			g.Texts[m[1]] = m[2]
		}
	}
	if len(g.Texts) == 0 && sc.Err() == nil {
		return g, fmt.Errorf("%w: no states", ErrDump)
	}
	return g, sc.Err()
}

// value is a value as TLC prints it.
type value struct {
	atom  string
	items []value // of a tuple, set or function; a function's are pairs
	kind  byte    // 'a' atom, 't' tuple, 's' set, 'f' function
}

type reader struct {
	words []string
	at    int
}

func (r *reader) next() string {
	if r.at >= len(r.words) {
		return ""
	}
	r.at++
	return r.words[r.at-1]
}

func (r *reader) list(end string) []value {
	var out []value
	for r.at < len(r.words) && r.words[r.at] != end {
		out = append(out, r.value())
		if r.at < len(r.words) && r.words[r.at] == "," {
			r.at++
		}
	}
	r.at++
	return out
}

func (r *reader) value() value {
	switch w := r.next(); w {
	case "<<":
		return value{kind: 't', items: r.list(">>")}
	case "{":
		return value{kind: 's', items: r.list("}")}
	case "(":
		f := value{kind: 'f'}
		for {
			key := r.value()
			r.next() // :>
			f.items = append(f.items, value{kind: 't', items: []value{key, r.value()}})
			if w := r.next(); w != "@@" {
				return f
			}
		}
	default:
		return value{kind: 'a', atom: w}
	}
}

// term is an atom in SMT-LIB, or the terms of a tuple with spaces between.
func (v value) term() string {
	if v.kind == 't' {
		var parts []string
		for _, i := range v.items {
			parts = append(parts, i.term())
		}
		return strings.Join(parts, " ")
	}
	if name, ok := strings.CutPrefix(v.atom, `"`); ok {
		return "s_" + strings.TrimSuffix(name, `"`)
	}
	switch v.atom {
	case "TRUE", "FALSE":
		return strings.ToLower(v.atom)
	}
	return v.atom
}

// parseState reads a node's label.
func parseState(l *tla2smt.Lower, label string) (State, error) {
	text := strings.ReplaceAll(label, `\"`, `"`)
	text = strings.ReplaceAll(strings.ReplaceAll(text, `\\`, `\`), `\n`, " ")
	out := State{}
	for _, part := range strings.Split(text, `/\ `) {
		name, raw, ok := strings.Cut(strings.TrimSpace(part), " = ")
		if !ok {
			continue
		}
		sh, known := l.Shapes[name]
		if !known {
			return nil, fmt.Errorf("%w: variable %s", ErrDump, name)
		}
		r := &reader{words: valueWord.FindAllString(raw, -1)}
		v := r.value()
		vals := map[string]string{}
		switch {
		case sh.Relation:
			for _, i := range v.items {
				vals[i.term()] = "true"
			}
		case len(sh.Domain) == 0:
			vals[""] = v.term()
		case v.kind == 't': // TLC prints a function on 1..n as a tuple
			for i, x := range v.items {
				vals[fmt.Sprint(i+1)] = x.term()
			}
		default:
			for _, pair := range v.items {
				vals[pair.items[0].term()] = pair.items[1].term()
			}
		}
		out[name] = vals
	}
	if len(out) != len(l.Spec.Variables) {
		return nil, fmt.Errorf("%w: %d variables of %d", ErrDump, len(out), len(l.Spec.Variables))
	}
	return out, nil
}

// key is a text that is the same for the same state.
func (s State) key(vars []string) string {
	var b strings.Builder
	for _, v := range vars {
		b.WriteString(v + ":")
		var parts []string
		for k, x := range s[v] {
			if x != "false" || k == "" {
				parts = append(parts, k+"="+x)
			}
		}
		slices.Sort(parts)
		b.WriteString(strings.Join(parts, ",") + ";")
	}
	return b.String()
}
