package tla2smt

import (
	"fmt"
	"strconv"
	"strings"
)

// symbol is the SMT-LIB name of a string.
func symbol(s string) string { return "s_" + s }

// state is the name of a variable's or constant's function in the state before or after the step. An unchanged variable has one name.
func (l *Lower) state(v string, post bool) string {
	if _, ok := l.Shapes[v]; !ok || !post {
		return v
	}
	if name, ok := l.post[v]; ok {
		return name
	}
	return v + "!"
}

// expr is a formula, number, string or member of a sort.
func (l *Lower) expr(n *Node, sc scope) string {
	switch n.Kind {
	case Num:
		return strconv.Itoa(n.Value)
	case Str:
		return symbol(n.Name)
	case Var:
		t, ok := sc.env[n.Name]
		if !ok {
			return l.fail("%s out of scope", n.Name)
		}
		return t
	case Sym:
		return l.state(n.Name, sc.post)
	case Def:
		return l.fail("the set %s as a value", n.Name)
	case Bind:
		return l.quantified(n, sc)
	}
	if len(n.Args) == 2 && arith(n.Name) != "" {
		op := arith(n.Name)
		if l.opt.Bug == "less" && op == "<" {
			op = "<="
		}
		return fmt.Sprintf("(%s %s %s)", op, l.expr(n.Args[0], sc), l.expr(n.Args[1], sc))
	}
	return l.operator(n, sc)
}

func (l *Lower) operator(n *Node, sc scope) string {
	arg := func(i int) string { return l.expr(n.Args[i], sc) }
	all := func() (out []string) {
		for i := range n.Args {
			out = append(out, arg(i))
		}
		return out
	}
	switch n.Name {
	case "TRUE":
		return "true"
	case "FALSE":
		return "false"
	case "$ConjList", "\\land":
		return and(all()...)
	case "$DisjList", "\\lor":
		return or(all()...)
	case "\\lnot":
		return not(arg(0))
	case "=>":
		return implies(arg(0), arg(1))
	case "=", "\\equiv":
		return l.same(n.Args[0], n.Args[1], sc)
	case "/=":
		return not(l.same(n.Args[0], n.Args[1], sc))
	case "$IfThenElse":
		return fmt.Sprintf("(ite %s %s %s)", arg(0), arg(1), arg(2))
	case "'":
		return l.expr(n.Args[0], scope{sc.env, true})
	case "$FcnApply":
		return l.apply(n, sc)
	case "\\in":
		return l.in(n.Args[0], n.Args[1], sc)
	case "\\notin":
		return not(l.in(n.Args[0], n.Args[1], sc))
	}
	return l.fail("the operator %s", n.Name)
}

// same is equality; of functions and sets, member by member.
func (l *Lower) same(a, b *Node, sc scope) string {
	set := func(n *Node) bool {
		_, ok := l.aggregate(n)
		return ok || n.is("$SetEnumerate", "$SubsetOf", "$SetOfAll")
	}
	if set(a) || set(b) {
		return l.sameAggregate(a, b, sc)
	}
	as, bs := l.terms(a, sc), l.terms(b, sc)
	if len(as) != len(bs) {
		return l.fail("the equality of %s and %s", a, b)
	}
	var all []string
	for i := range as {
		all = append(all, equal(as[i], bs[i]))
	}
	return and(all...)
}

func (l *Lower) quantified(n *Node, sc scope) string {
	if !n.is("$BoundedForall", "$BoundedExists") {
		return l.fail("%s as a value", n.Name)
	}
	var decl, in []string
	inner := sc
	for _, b := range n.Bound {
		if len(b.Names) != 1 {
			return l.fail("a quantifier over tuples")
		}
		x := l.fresh(b.Names[0], inner)
		decl = append(decl, fmt.Sprintf("(%s %s)", x, l.sortOf(b.Set)))
		in = append(in, l.member([]string{x}, b.Set, sc))
		l.sets[b.Names[0]] = underlying(b.Set)
		inner = inner.with(b.Names, []string{x})
	}
	body := l.expr(n.Args[0], inner)
	if n.Name == "$BoundedForall" {
		return fmt.Sprintf("(forall (%s) %s)", strings.Join(decl, " "), implies(and(in...), body))
	}
	return fmt.Sprintf("(exists (%s) %s)", strings.Join(decl, " "), and(append(in, body)...))
}

// apply is f[x], f[x, y] and f'[x].
func (l *Lower) apply(n *Node, sc scope) string {
	if body, inner, ok := l.beta(n, sc); ok {
		return l.expr(body, inner)
	}
	f := n.Args[0]
	sh, ok := l.aggregate(f)
	idx := elements(n.Args[1])
	if !ok || sh.Relation || len(idx) != len(sh.Args) {
		return l.fail("the application %s", n)
	}
	l.indexed(f, sh, idx)
	var terms []string
	for _, x := range idx {
		terms = append(terms, l.expr(x, sc))
	}
	return "(" + l.expr(f, sc) + " " + strings.Join(terms, " ") + ")"
}

// indexed notes an application that is not well-defined by syntax: an index must be a bound name or parameter of exactly the
// domain. SMT-LIB functions are total, TLA+'s are not.
func (l *Lower) indexed(f *Node, sh Shape, idx []*Node) {
	for i, x := range idx {
		if x.Kind == Var && l.sets[x.Name].String() == sh.Domain[i].String() {
			continue
		}
		if c, ok := l.consts[x.Name]; ok && x.Kind == Sym && c.set.String() == sh.Domain[i].String() {
			continue
		}
		what := fmt.Sprintf("%s[.. %s ..]", f, x)
		for _, w := range l.IllIndexed {
			if w == what {
				return
			}
		}
		l.IllIndexed = append(l.IllIndexed, what)
	}
}

func (l *Lower) in(x, set *Node, sc scope) string {
	if set.is("SUBSET", "$SetOfFcns") {
		return l.typed(x, set, sc)
	}
	var terms []string
	for _, e := range elements(x) {
		terms = append(terms, l.expr(e, sc))
	}
	return l.member(terms, set, sc)
}

// typed says that a function or relation has values of its type only, inside its domain.
func (l *Lower) typed(x, set *Node, sc scope) string {
	sh := l.shapeOf(set)
	var decl, zs, in []string
	for i, s := range sh.Args {
		z := fmt.Sprintf("z!%d", i)
		zs = append(zs, z)
		decl = append(decl, fmt.Sprintf("(%s %s)", z, s))
		in = append(in, l.member([]string{z}, sh.Domain[i], sc))
	}
	domain := and(in...)
	body := ""
	if sh.Relation {
		if domain == "true" {
			return "true"
		}
		body = implies(l.member(zs, x, sc), domain)
	} else {
		value := l.member([]string{"(" + l.expr(x, sc) + " " + strings.Join(zs, " ") + ")"}, sh.Range, sc)
		if value == "true" {
			return "true"
		}
		body = implies(domain, value)
	}
	return fmt.Sprintf("(forall (%s) %s)", strings.Join(decl, " "), body)
}
