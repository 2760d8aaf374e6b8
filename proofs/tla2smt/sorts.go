package tla2smt

import (
	"fmt"
	"slices"
	"strings"
)

// Shape is the type of a variable: a scalar (no Domain), a function, or a relation (a set of tuples).
type Shape struct {
	Domain   []*Node // the sets of the arguments, or of a relation's components
	Args     []string
	Result   string
	Relation bool
	Range    *Node // the set of a scalar's or function's values; nil for a relation
}

// constant is what the assumptions say of a constant: a member of Set, or a subset of it. A nil Set is a sort of its own.
type constant struct {
	set    *Node
	subset bool
}

const (
	sortInt  = "Int"
	sortBool = "Bool"
	sortStr  = "Str"
)

// Options choose what is proved.
type Options struct {
	Types     string   // the operator that types the variables: TypeOK
	Init      string   // and so on
	Next      string   //
	Invariant string   // a conjunction of names, each to be preserved
	Steps     []string // properties of steps, conjunctions of names or names; also those of an instance, "I!Step"
	Starts    []string // properties of the start beside the invariant: an instance's "I!Init"
	Off       []string // switches that are FALSE
	Free      []string // switches that may be either; all others are TRUE

	// Bounds replace sets of numbers as a configuration of TLC does, for comparison with its edges; nil in proofs.
	Bounds map[string][2]int
	// Bug plants a fault in the translation, for tests of what must notice it: "minus" reads set minus as "or not", "less" reads
	// < as <=.
	Bug string
}

// Lower holds a specification whose variables and constants have sorts, and turns its expressions into SMT-LIB. The first
// error sticks: Err. Not safe for concurrent use.
type Lower struct {
	Spec   *Spec
	Shapes map[string]Shape
	Sorts  []string
	// Switches are the Boolean constants, Sets the constants that are subsets, Members those that are members of a set.
	Switches, Sets, Members []string
	IllIndexed              []string // applications that are not well-defined by syntax

	opt      Options
	err      error
	types    []*Node
	consts   map[string]constant
	assumed  []*Node
	unsorted map[string]bool  // constants that an assumption made something else than a sort
	sets     map[string]*Node // bound name or parameter -> its set
	post     map[string]string
}

// NewLower types the specification.
func NewLower(s *Spec, opt Options) (*Lower, error) {
	l := &Lower{Spec: s, opt: opt, Shapes: map[string]Shape{}, consts: map[string]constant{}, unsorted: map[string]bool{}, sets: map[string]*Node{}}
	if err := l.assumptions(); err != nil {
		return nil, err
	}
	body, err := s.Expanded(opt.Types)
	if err != nil {
		return nil, err
	}
	l.types = body.conj()
	for _, c := range l.types {
		if !c.is("\\in") || c.Args[0].Kind != Sym {
			return nil, fmt.Errorf("%s: conjunct %s: %w", opt.Types, c, ErrUnsupported)
		}
		l.Shapes[c.Args[0].Name] = l.shapeOf(c.Args[1])
	}
	for _, v := range s.Variables {
		if _, ok := l.Shapes[v]; !ok {
			l.fail("%s does not type %s", opt.Types, v)
		}
	}
	l.classify()
	for _, w := range slices.Concat(opt.Off, opt.Free) {
		if !slices.Contains(l.Switches, w) {
			l.fail("no switch %s", w)
		}
	}
	return l, l.err
}

// Err is the first error.
func (l *Lower) Err() error { return l.err }

func (l *Lower) fail(format string, args ...any) string {
	if l.err == nil {
		l.err = fmt.Errorf(format+": %w", append(args, ErrUnsupported)...)
	}
	return "false"
}

// assumptions reads which constants are members and subsets of what.
func (l *Lower) assumptions() error {
	for _, a := range l.Spec.assumes {
		body := a.kid("body")
		if body == nil || len(body.kids) == 0 {
			continue
		}
		t, err := l.Spec.tree(body.kids[0])
		if err != nil {
			return err
		}
		if t, err = l.Spec.Expand(t, nil); err != nil {
			return err
		}
		for _, c := range t.conj() {
			switch {
			case c.is("\\subseteq") && c.Args[0].is("$SetEnumerate") && c.Args[1].is("BOOLEAN"):
				for _, x := range c.Args[0].Args {
					l.unsorted[x.Name] = true
					l.Switches = append(l.Switches, x.Name)
				}
			case c.is("\\subseteq") && c.Args[0].Kind == Sym:
				l.constant(c.Args[0].Name, constant{c.Args[1], true})
			case c.is("\\in") && c.Args[0].Kind == Sym && c.Args[1].is("BOOLEAN"):
				l.unsorted[c.Args[0].Name] = true
				l.Switches = append(l.Switches, c.Args[0].Name)
			case c.is("\\in") && c.Args[0].Kind == Sym:
				l.constant(c.Args[0].Name, constant{c.Args[1], false})
			default:
				return fmt.Errorf("assumption %s: %w", c, ErrUnsupported)
			}
			if !c.Args[1].is("BOOLEAN") {
				l.assumed = append(l.assumed, c)
			}
		}
	}
	return nil
}

func (l *Lower) constant(name string, c constant) {
	l.unsorted[name] = true
	l.consts[name] = c
	if c.subset {
		l.Sets = append(l.Sets, name)
	} else {
		l.Members = append(l.Members, name)
	}
}

// classify takes the constants that no assumption speaks of: a sort if it was used as a set, NoX for a sort X a member of it,
// else a switch.
func (l *Lower) classify() {
	for _, c := range l.Spec.Constants {
		if l.unsorted[c] || slices.Contains(l.Sorts, c) {
			continue
		}
		if of, ok := strings.CutPrefix(c, "No"); ok && slices.Contains(l.Sorts, of) {
			l.consts[c] = constant{&Node{Kind: Sym, Name: of}, false}
			l.Members = append(l.Members, c)
			continue
		}
		l.Switches = append(l.Switches, c)
	}
}

// sortOf is the sort of the members of a set.
func (l *Lower) sortOf(set *Node) string {
	switch {
	case set.Kind == Sym:
		if c, ok := l.consts[set.Name]; ok && c.subset {
			return l.sortOf(c.set)
		}
		if l.unsorted[set.Name] {
			return l.fail("%s as a set", set.Name)
		}
		if !slices.Contains(l.Sorts, set.Name) {
			l.Sorts = append(l.Sorts, set.Name)
		}
		return set.Name
	case set.Kind == Var && l.sets[set.Name].is("SUBSET"):
		return l.sortOf(l.sets[set.Name].Args[0])
	case set.Kind == Def || set.is("Nat", ".."):
		return sortInt
	case set.is("BOOLEAN"):
		return sortBool
	case set.is("\\union", "\\", "\\intersect"):
		return l.sortOf(set.Args[0])
	case set.is("$SubsetOf") && len(set.Bound) == 1:
		return l.sortOf(set.Bound[0].Set)
	case set.is("$SetEnumerate") && len(set.Args) > 0:
		if set.Args[0].Kind == Str {
			return sortStr
		}
		return sortInt
	}
	return l.fail("no sort for the members of %s", set)
}

func product(set *Node) []*Node {
	if set.is("$CartesianProd") {
		return set.Args
	}
	return []*Node{set}
}

// shapeOf is the shape of a value that is a member of the set.
func (l *Lower) shapeOf(set *Node) Shape {
	var sh Shape
	switch {
	case set.is("$SetOfFcns"):
		sh = Shape{Domain: product(set.Args[0]), Range: set.Args[1], Result: l.sortOf(set.Args[1])}
	case set.is("SUBSET"):
		sh = Shape{Domain: product(set.Args[0]), Relation: true, Result: sortBool}
	default:
		return Shape{Range: set, Result: l.sortOf(set)}
	}
	for _, d := range sh.Domain {
		sh.Args = append(sh.Args, l.sortOf(d))
	}
	return sh
}

// aggregate is the shape of a function- or set-valued expression, if it is one whose shape shows.
func (l *Lower) aggregate(n *Node) (Shape, bool) {
	switch {
	case n.is("'"):
		return l.aggregate(n.Args[0])
	case n.Kind == Sym:
		if c, ok := l.consts[n.Name]; ok && c.subset {
			return l.shapeOf(&Node{Kind: Apply, Name: "SUBSET", Args: []*Node{c.set}}), true
		}
		sh := l.Shapes[n.Name]
		return sh, len(sh.Domain) > 0
	case n.Kind == Var && l.sets[n.Name].is("SUBSET", "$SetOfFcns"):
		return l.shapeOf(l.sets[n.Name]), true
	case n.is("\\union", "\\", "\\intersect") && len(n.Args) == 2:
		if sh, ok := l.aggregate(n.Args[0]); ok {
			return sh, ok
		}
		return l.aggregate(n.Args[1])
	}
	return Shape{}, false
}
