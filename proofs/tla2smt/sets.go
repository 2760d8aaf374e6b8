package tla2smt

import (
	"fmt"
	"maps"
	"strings"
)

// scope says what each bound name is called in SMT-LIB, and whether unprimed variables mean the state after the step.
type scope struct {
	env  map[string]string
	post bool
}

func (sc scope) with(names, terms []string) scope {
	env := maps.Clone(sc.env)
	if env == nil {
		env = map[string]string{}
	}
	for i, n := range names {
		env[n] = terms[i]
	}
	return scope{env, sc.post}
}

func and(parts ...string) string { return join("and", "true", parts) }
func or(parts ...string) string  { return join("or", "false", parts) }

func join(op, none string, parts []string) string {
	var keep []string
	for _, p := range parts {
		if p != none {
			keep = append(keep, p)
		}
	}
	switch len(keep) {
	case 0:
		return none
	case 1:
		return keep[0]
	}
	return "(" + op + " " + strings.Join(keep, " ") + ")"
}

func not(p string) string { return "(not " + p + ")" }

func implies(a, b string) string {
	if a == "true" {
		return b
	}
	return "(=> " + a + " " + b + ")"
}

func equal(a, b string) string { return "(= " + a + " " + b + ")" }

// elements are the components of a tuple, or the value itself.
func elements(n *Node) []*Node {
	if n.is("$Tuple") {
		return n.Args
	}
	return []*Node{n}
}

// member says that the tuple of terms xs is in the set.
func (l *Lower) member(xs []string, set *Node, sc scope) string {
	two := func() (string, string) { return l.member(xs, set.Args[0], sc), l.member(xs, set.Args[1], sc) }
	switch {
	case set.is("'"):
		return l.member(xs, set.Args[0], scope{sc.env, true})
	case set.Kind == Sym, set.Kind == Var:
		return l.memberOfName(xs, set, sc)
	case set.Kind == Def || set.is("Nat"):
		return l.memberOfNumbers(xs[0], set, sc)
	case set.is("BOOLEAN"):
		return "true"
	case set.is("\\union"):
		a, b := two()
		return or(a, b)
	case set.is("\\intersect"):
		a, b := two()
		return and(a, b)
	case set.is("\\"):
		a, b := two()
		if l.opt.Bug == "minus" {
			return or(a, not(b))
		}
		return and(a, not(b))
	case set.is("$IfThenElse"):
		return fmt.Sprintf("(ite %s %s %s)", l.expr(set.Args[0], sc), l.member(xs, set.Args[1], sc), l.member(xs, set.Args[2], sc))
	case set.is("$CartesianProd") && len(set.Args) == len(xs):
		var parts []string
		for i, a := range set.Args {
			parts = append(parts, l.member(xs[i:i+1], a, sc))
		}
		return and(parts...)
	case set.is("$SetEnumerate"):
		var any []string
		for _, e := range set.Args {
			any = append(any, l.sameTuple(xs, elements(e), sc))
		}
		return or(any...)
	case set.is("$SubsetOf"):
		return l.memberOfFilter(xs, set, sc)
	case set.is("$SetOfAll"):
		return l.memberOfMap(xs, set, sc)
	}
	return l.fail("membership in %s", set)
}

func (l *Lower) sameTuple(xs []string, es []*Node, sc scope) string {
	if len(xs) != len(es) {
		return l.fail("a tuple of %d among tuples of %d", len(es), len(xs))
	}
	var all []string
	for i, e := range es {
		all = append(all, equal(xs[i], l.expr(e, sc)))
	}
	return and(all...)
}

func (l *Lower) memberOfName(xs []string, set *Node, sc scope) string {
	name := sc.env[set.Name]
	if set.Kind == Sym {
		if _, variable := l.Shapes[set.Name]; !variable && !l.consts[set.Name].subset {
			if l.sortOf(set) != set.Name {
				return "false"
			}
			return "true" // every term of the sort is a member
		}
		name = l.state(set.Name, sc.post)
	}
	if sh, ok := l.aggregate(set); !ok || !sh.Relation || len(sh.Args) != len(xs) {
		return l.fail("membership of %d components in %s", len(xs), set)
	}
	return "(" + name + " " + strings.Join(xs, " ") + ")"
}

func (l *Lower) memberOfNumbers(x string, set *Node, sc scope) string {
	if b, ok := l.opt.Bounds[set.Name]; ok {
		return fmt.Sprintf("(and (<= %d %s) (<= %s %d))", b[0], x, x, b[1])
	}
	if set.Kind == Apply {
		return fmt.Sprintf("(<= 0 %s)", x)
	}
	op, err := l.Spec.Op(set.Name)
	if err != nil || !l.Spec.numberSet(set.Name) {
		return l.fail("the set %s", set)
	}
	return l.member([]string{x}, op.Body, sc)
}

// memberOfFilter is {<<a, b>> \in R : P}.
func (l *Lower) memberOfFilter(xs []string, set *Node, sc scope) string {
	b := set.Bound[0]
	if len(set.Bound) != 1 || len(b.Names) != len(xs) {
		return l.fail("the filter %s", set)
	}
	comps := product(b.Set)
	if sh, ok := l.aggregate(b.Set); ok {
		comps = sh.Domain
	}
	for i, n := range b.Names {
		if i < len(comps) {
			l.sets[n] = comps[i]
		}
	}
	return and(l.member(xs, b.Set, sc), l.expr(set.Args[0], sc.with(b.Names, xs)))
}

// memberOfMap is {<<a, f[a]>> : a \in D}: a bound name that is a component of the tuple is that component; the others exist.
func (l *Lower) memberOfMap(xs []string, set *Node, sc scope) string {
	es := elements(set.Args[0])
	if len(es) != len(xs) {
		return l.fail("a tuple of %d among tuples of %d", len(es), len(xs))
	}
	var decl, parts []string
	inner := sc
	for _, b := range set.Bound {
		if len(b.Names) != 1 {
			return l.fail("the set %s", set)
		}
		n := b.Names[0]
		term := ""
		for i, e := range es {
			if e.Kind == Var && e.Name == n {
				term = xs[i]
				break
			}
		}
		if term == "" {
			term = l.fresh(n, inner)
			decl = append(decl, fmt.Sprintf("(%s %s)", term, l.sortOf(b.Set)))
		}
		l.sets[n] = underlying(b.Set)
		parts = append(parts, l.member([]string{term}, b.Set, sc))
		inner = inner.with([]string{n}, []string{term})
	}
	parts = append(parts, l.sameTuple(xs, es, inner))
	if len(decl) == 0 {
		return and(parts...)
	}
	return fmt.Sprintf("(exists (%s) %s)", strings.Join(decl, " "), and(parts...))
}

// underlying is the set whose members a filter's are.
func underlying(set *Node) *Node {
	for set.is("$SubsetOf") && len(set.Bound) == 1 {
		set = set.Bound[0].Set
	}
	return set
}

// fresh is a name for n that no term in scope mentions.
func (l *Lower) fresh(n string, sc scope) string {
	for used := true; used; {
		used = false
		for _, t := range sc.env {
			if strings.Contains(t, n) {
				used = true
			}
		}
		if used {
			n += "!"
		}
	}
	return n
}

// sameAggregate says that two functions or sets are equal: at every member of the domain.
func (l *Lower) sameAggregate(a, b *Node, sc scope) string {
	sh, ok := l.aggregate(a)
	if !ok {
		sh, ok = l.aggregate(b)
	}
	if !ok {
		return l.fail("the equality of %s and %s", a, b)
	}
	var decl, zs, in []string
	for i, s := range sh.Args {
		z := fmt.Sprintf("z!%d", i)
		zs = append(zs, z)
		decl = append(decl, fmt.Sprintf("(%s %s)", z, s))
		in = append(in, l.member([]string{z}, sh.Domain[i], sc))
	}
	at := func(n *Node) string {
		if sh.Relation {
			return l.member(zs, n, sc)
		}
		return "(" + l.expr(n, sc) + " " + strings.Join(zs, " ") + ")"
	}
	return fmt.Sprintf("(forall (%s) %s)", strings.Join(decl, " "), implies(and(in...), equal(at(a), at(b))))
}
