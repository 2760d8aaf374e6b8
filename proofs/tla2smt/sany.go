// Package tla2smt turns a TLA+ specification into proof obligations for SMT solvers, one per action and conjunct of its
// inductive invariant. It reads the XML export of SANY, the parser that TLC uses, so that what is proved is what is checked.
//
// The subset: variables typed by one operator as scalars, functions over products of sets, or relations (SUBSET of a product);
// actions that are conjunctions of guards, v' = e and UNCHANGED, with IF between them; first-order bodies; parameters of actions
// may range over SUBSET S. Anything else is an error, never a guess. A constant used as a set of unknown members becomes an
// uninterpreted sort, a set of numbers becomes Int with a range, strings become one enumeration: nothing is bounded.
//
// It runs no solver (proofs/solve does) and does not know TLC's values (proofs/edges does). impl/cmd/prove calls it. Read next:
// Spec, then Lower, then Obligations. The rules that keep proofs automatic are in proofs/README.md.
package tla2smt

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// ErrUnsupported is what the translator says of a specification outside its subset.
var ErrUnsupported = errors.New("outside the translator's subset")

// element is one XML element.
type element struct {
	name string
	text string
	kids []*element
}

func (e *element) kid(name string) *element {
	if e == nil {
		return nil
	}
	for _, k := range e.kids {
		if k.name == name {
			return k
		}
	}
	return nil
}

// at follows a path of element names and returns the text there, "" if there is none.
func (e *element) at(path ...string) string {
	for _, p := range path {
		e = e.kid(p)
	}
	if e == nil {
		return ""
	}
	return e.text
}

func readXML(r io.Reader) (*element, error) {
	dec := xml.NewDecoder(r)
	top := &element{}
	stack := []*element{top}
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return top, nil
		}
		if err != nil {
			return nil, err
		}
		last := stack[len(stack)-1]
		switch t := tok.(type) {
		case xml.StartElement:
			e := &element{name: t.Name.Local}
			last.kids = append(last.kids, e)
			stack = append(stack, e)
		case xml.EndElement:
			stack = stack[:len(stack)-1]
		case xml.CharData:
			last.text += string(t)
		}
	}
}

// Spec is a parsed specification. Not safe for concurrent use.
type Spec struct {
	Constants []string
	Variables []string
	Strings   []string // every string constant, in order of the text

	kinds   map[string]*element
	defs    map[string]*element
	assumes []*element
	ops     map[string]*Op
	apart   map[string]bool // modules that are instantiated
}

// Op is an operator: the names of its parameters and its body.
type Op struct {
	Params []string
	Body   *Node
}

// Read reads SANY's XML export.
func Read(r io.Reader) (*Spec, error) {
	top, err := readXML(r)
	if err != nil {
		return nil, fmt.Errorf("SANY's export: %w", err)
	}
	ctx := top.kid("modules").kid("context")
	if ctx == nil {
		return nil, fmt.Errorf("SANY's export has no context: %w", ErrUnsupported)
	}
	s := &Spec{kinds: map[string]*element{}, defs: map[string]*element{}, ops: map[string]*Op{}, apart: map[string]bool{}}
	var nodes []*element
	for _, entry := range ctx.kids {
		for _, k := range entry.kids {
			if k.name != "UID" {
				s.kinds[entry.at("UID")] = k
				nodes = append(nodes, k)
			}
		}
	}
	instanced(ctx, s.kinds, s.apart)
	for _, node := range nodes {
		name := s.nameOf(node)
		switch node.name {
		case "UserDefinedOpKind":
			s.defs[name] = node
		case "OpDeclNode":
			if s.apart[node.location()] {
				continue
			}
			if node.at("kind") == "2" {
				s.Constants = append(s.Constants, name)
			} else {
				s.Variables = append(s.Variables, name)
			}
		case "AssumeNode":
			if s.apart[node.location()] {
				return nil, fmt.Errorf("an ASSUME in the instantiated module %s: %w", node.location(), ErrUnsupported)
			}
			s.assumes = append(s.assumes, node)
		}
	}
	s.strings(ctx)
	return s, nil
}

// Has reports whether an operator is defined.
func (s *Spec) Has(name string) bool { return s.defs[name] != nil }

func (s *Spec) strings(e *element) {
	if e.name == "StringNode" && !slices.Contains(s.Strings, e.at("StringValue")) {
		s.Strings = append(s.Strings, e.at("StringValue"))
	}
	for _, k := range e.kids {
		s.strings(k)
	}
}

// Op returns the operator of that name.
func (s *Spec) Op(name string) (*Op, error) {
	if op := s.ops[name]; op != nil {
		return op, nil
	}
	d := s.defs[name]
	if d == nil || d.kid("body") == nil || len(d.kid("body").kids) == 0 {
		return nil, fmt.Errorf("no operator %s: %w", name, ErrUnsupported)
	}
	op := &Op{}
	if ps := d.kid("params"); ps != nil {
		for _, p := range ps.kids {
			uid := p.at("FormalParamNodeRef", "UID")
			op.Params = append(op.Params, s.kinds[uid].at("uniquename")+"_"+uid)
		}
	}
	body, err := s.tree(d.kid("body").kids[0])
	if err != nil {
		return nil, fmt.Errorf("operator %s: %w", name, err)
	}
	op.Body = body
	s.ops[name] = op
	return op, nil
}

// tree turns an XML expression into a Node with all names resolved.
func (s *Spec) tree(e *element) (*Node, error) {
	switch e.name {
	case "NumeralNode":
		n, err := strconv.Atoi(e.at("IntValue"))
		return &Node{Kind: Num, Value: n}, err
	case "StringNode":
		return &Node{Kind: Str, Name: e.at("StringValue")}, nil
	case "OpApplNode":
	case "SubstInNode":
		return s.subst(e)
	default:
		return nil, fmt.Errorf("a node %s: %w", e.name, ErrUnsupported)
	}
	op := e.kid("operator")
	if op == nil || len(op.kids) == 0 || s.kinds[op.kids[0].at("UID")] == nil {
		return nil, fmt.Errorf("an application without operator: %w", ErrUnsupported)
	}
	uid := op.kids[0].at("UID")
	kind := s.kinds[uid]
	name := s.nameOf(kind)
	var args []*Node
	if ops := e.kid("operands"); ops != nil {
		for _, k := range ops.kids {
			a, err := s.tree(k)
			if err != nil {
				return nil, err
			}
			args = append(args, a)
		}
	}
	switch {
	case kind.name == "FormalParamNode":
		return &Node{Kind: Var, Name: name + "_" + uid}, nil
	case kind.name == "OpDeclNode":
		return &Node{Kind: Sym, Name: name}, nil
	case e.kid("boundSymbols") != nil:
		bound, err := s.bindings(e.kid("boundSymbols"))
		return &Node{Kind: Bind, Name: name, Bound: bound, Args: args}, err
	case kind.name == "UserDefinedOpKind" && kind.kid("body") != nil && !builtin(name):
		return &Node{Kind: Def, Name: name, Args: args}, nil
	}
	return &Node{Kind: Apply, Name: name, Args: args}, nil
}

// bindings reads the bound names of a quantifier, set or function.
func (s *Spec) bindings(e *element) ([]Binding, error) {
	var out []Binding
	for _, b := range e.kids {
		var names []string
		var dom *Node
		tuple := false
		for _, c := range b.kids {
			switch c.name {
			case "FormalParamNodeRef":
				names = append(names, s.kinds[c.at("UID")].at("uniquename")+"_"+c.at("UID"))
			case "tuple":
				tuple = true
			default:
				d, err := s.tree(c)
				if err != nil {
					return nil, err
				}
				dom = d
			}
		}
		if dom == nil {
			return nil, fmt.Errorf("an unbounded %v: %w", names, ErrUnsupported)
		}
		if tuple {
			out = append(out, Binding{names, dom})
			continue
		}
		for _, n := range names {
			out = append(out, Binding{[]string{n}, dom})
		}
	}
	return out, nil
}
