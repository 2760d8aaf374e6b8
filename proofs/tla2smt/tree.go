package tla2smt

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Kind says what a Node is.
type Kind int

// The kinds of nodes.
const (
	Num   Kind = iota // a numeral, Value
	Str               // a string, Name
	Var               // a bound name or formal parameter
	Sym               // a constant or variable of the specification
	Def               // a call of an operator of the specification
	Apply             // a call of a built-in operator
	Bind              // a quantifier, set or function that binds names
	Subst             // the body of an instance's operator, With what it puts in
)

// Node is an expression. Nodes are shared and never changed.
type Node struct {
	Kind  Kind
	Name  string
	Value int
	Args  []*Node
	Bound []Binding
	With  map[string]*Node // of a Subst only
}

// Binding binds names to members of a set: one name, or the components of a tuple where there are several.
type Binding struct {
	Names []string
	Set   *Node
}

// builtin operators are the standard modules' that have a meaning of their own here.
func builtin(name string) bool {
	return name == "Nat" || name == ".." || arith(name) != ""
}

// arith is the SMT-LIB name of an operator of numbers, "" for others.
func arith(name string) string {
	switch name {
	case "\\div":
		return "div"
	case "+", "-", "*", "<", ">":
		return name
	case "\\leq":
		return "<="
	case "\\geq":
		return ">="
	}
	return ""
}

func (n *Node) is(names ...string) bool {
	return n != nil && (n.Kind == Apply || n.Kind == Bind) && slices.Contains(names, n.Name)
}

// conj is the conjuncts of n, flattened.
func (n *Node) conj() []*Node {
	if !n.is("$ConjList", "\\land") {
		return []*Node{n}
	}
	var out []*Node
	for _, a := range n.Args {
		out = append(out, a.conj()...)
	}
	return out
}

// String is n in a form for messages and for comparison of sets: equal text, equal expression.
func (n *Node) String() string {
	if n == nil {
		return "?"
	}
	switch n.Kind {
	case Num:
		return strconv.Itoa(n.Value)
	case Str:
		return strconv.Quote(n.Name)
	case Var, Sym:
		return n.Name
	}
	var b strings.Builder
	b.WriteString(n.Name)
	for _, x := range n.Bound {
		fmt.Fprintf(&b, " %v:%v", x.Names, x.Set)
	}
	if len(n.Args) > 0 {
		b.WriteString("(")
		for i, a := range n.Args {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(a.String())
		}
		b.WriteString(")")
	}
	return b.String()
}

// primes reports whether n speaks of the state after a step.
func (n *Node) primes() bool {
	if n.is("'", "UNCHANGED") {
		return true
	}
	if slices.ContainsFunc(n.Args, (*Node).primes) {
		return true
	}
	return slices.ContainsFunc(n.Bound, func(b Binding) bool { return b.Set.primes() })
}

// mentions reports whether the name occurs free in n. (Bound names carry the parser's number, so a name bound in n is not
// free elsewhere in it.)
func (n *Node) mentions(name string) bool {
	if n.Kind == Var {
		return n.Name == name
	}
	return slices.ContainsFunc(n.Args, func(a *Node) bool { return a.mentions(name) }) ||
		slices.ContainsFunc(n.Bound, func(b Binding) bool { return b.Set.mentions(name) })
}

// numberSet reports whether an operator without parameters names a set of numbers: Nat, or Nat without some. Such names are
// kept, others are replaced by their bodies.
func (s *Spec) numberSet(name string) bool {
	op, err := s.Op(name)
	return err == nil && len(op.Params) == 0 && (op.Body.is("Nat", "..") || op.Body.is("\\") && op.Body.Args[0].is("Nat"))
}

// Expand replaces every operator of the specification by its body, except the names of sets of numbers. sub gives what stands
// for formal parameters.
func (s *Spec) Expand(n *Node, sub map[string]*Node) (*Node, error) {
	switch n.Kind {
	case Var:
		if r := sub[n.Name]; r != nil {
			return r, nil
		}
		return n, nil
	case Num, Str, Sym:
		return n, nil
	case Def:
		if s.numberSet(n.Name) {
			return n, nil
		}
		op, err := s.Op(n.Name)
		if err != nil {
			return nil, err
		}
		if len(op.Params) != len(n.Args) {
			return nil, fmt.Errorf("%s with %d arguments: %w", n.Name, len(n.Args), ErrUnsupported)
		}
		inner := map[string]*Node{}
		for i, p := range op.Params {
			if inner[p], err = s.Expand(n.Args[i], sub); err != nil {
				return nil, err
			}
		}
		return s.Expand(op.Body, inner)
	}
	if n.Kind == Subst {
		return s.expandSubst(n, sub)
	}
	out := &Node{Kind: n.Kind, Name: n.Name}
	if n.Kind == Bind {
		var err error
		if out.Bound, sub, err = s.expandBound(n, sub); err != nil {
			return nil, err
		}
	}
	for _, a := range n.Args {
		x, err := s.Expand(a, sub)
		if err != nil {
			return nil, err
		}
		out.Args = append(out.Args, x)
	}
	return out, nil
}

// expandBound expands the sets of n's bound names, and renames the names that an argument put in would be captured by.
func (s *Spec) expandBound(n *Node, sub map[string]*Node) ([]Binding, map[string]*Node, error) {
	var out []Binding
	renamed := sub
	for _, b := range n.Bound {
		set, err := s.Expand(b.Set, sub)
		if err != nil {
			return nil, nil, err
		}
		names := slices.Clone(b.Names)
		for i, name := range names {
			for captured(sub, names[i]) {
				names[i] += "!"
			}
			if names[i] == name {
				continue
			}
			next := map[string]*Node{name: {Kind: Var, Name: names[i]}}
			for k, v := range renamed {
				if k != name {
					next[k] = v
				}
			}
			renamed = next
		}
		out = append(out, Binding{names, set})
	}
	return out, renamed, nil
}

func captured(sub map[string]*Node, name string) bool {
	for _, r := range sub {
		if r.mentions(name) {
			return true
		}
	}
	return false
}

// Expanded is the body of an operator without parameters, expanded.
func (s *Spec) Expanded(name string) (*Node, error) {
	return s.Expand(&Node{Kind: Def, Name: name}, nil)
}
