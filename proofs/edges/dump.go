// Package edges compares the translator with TLC: for states that TLC dumped, z3 says which actions the translated guards let
// happen and what the translated updates yield, and the edges must be TLC's, none more and none less. So a misreading of TLA+ in
// proofs/tla2smt shows although both solvers believe it. It proves nothing by itself. impl/cmd/prove and its own tests call it.
package edges

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"kvfence/proofs/dump"
	"kvfence/proofs/tla2smt"
)

// ErrDump is what is said of a dump that cannot be read.
var ErrDump = dump.ErrDump

// State is a state: of each variable the values by key, in SMT-LIB terms.
type State map[string]map[string]string

// Graph is TLC's dump.
type Graph struct {
	Texts map[string]string // state's number in the dump -> its text
	Edges []Edge
}

// Edge is a step from one state to another.
type Edge struct{ From, Action, To string }

// ReadDump reads what TLC's -dump dot,actionlabels wrote.
func ReadDump(r io.Reader) (Graph, error) {
	g := Graph{Texts: map[string]string{}}
	err := dump.Read(r, dump.Receiver{
		State: func(fp int64, label []byte, _ bool) error {
			g.Texts[strconv.FormatInt(fp, 10)] = string(label)
			return nil
		},
		Step: func(from int64, action []byte, to int64) error {
			g.Edges = append(g.Edges, Edge{strconv.FormatInt(from, 10), string(action), strconv.FormatInt(to, 10)})
			return nil
		},
	})
	if err == nil && len(g.Texts) == 0 {
		err = fmt.Errorf("%w: no states", ErrDump)
	}
	return g, err
}

// term is an atom in SMT-LIB, or the terms of a tuple with spaces between.
func term(v dump.Value) string {
	if v.Kind == dump.Tuple {
		var parts []string
		for _, i := range v.Items {
			parts = append(parts, term(i))
		}
		return strings.Join(parts, " ")
	}
	if name, ok := strings.CutPrefix(v.Text, `"`); ok {
		return "s_" + strings.TrimSuffix(name, `"`)
	}
	switch v.Text {
	case "TRUE", "FALSE":
		return strings.ToLower(v.Text)
	}
	return v.Text
}

// parseState reads a node's label.
func parseState(l *tla2smt.Lower, label string) (State, error) {
	values, err := dump.Values(label)
	if err != nil {
		return nil, err
	}
	out := State{}
	for name, v := range values {
		sh, known := l.Shapes[name]
		if !known {
			return nil, fmt.Errorf("%w: variable %s", ErrDump, name)
		}
		vals := map[string]string{}
		switch {
		case sh.Relation:
			for _, i := range v.Items {
				vals[term(i)] = "true"
			}
		case len(sh.Domain) == 0:
			vals[""] = term(v)
		case v.Kind == dump.Tuple: // TLC prints a function on 1..n as a tuple
			for i, x := range v.Items {
				vals[fmt.Sprint(i+1)] = term(x)
			}
		default:
			for _, pair := range v.Items {
				vals[term(pair.Items[0])] = term(pair.Items[1])
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
