package tla2smt

import (
	"fmt"
	"slices"
	"strings"
)

// Where says where to look for a state: an operator's conjuncts "f[x] = e" for all x, "v = e" and "S = {}" as definitions of those
// variables, which spare a solver the search, and the others as formulas. A definition says it of values outside the domain, too; no
// formula asks for those, and a state that is found is a state.
func (l *Lower) Where(name string) (fixed map[string]string, rest []string, err error) {
	tree, err := l.Spec.Expanded(name)
	if err != nil {
		return nil, nil, err
	}
	fixed = map[string]string{}
	for _, c := range tree.conj() {
		if !l.fix(c, nil, fixed) {
			rest = append(rest, l.expr(c, scope{}))
		}
	}
	return fixed, rest, l.err
}

// fix reads a formula as definitions; it leaves fixed alone where it cannot.
func (l *Lower) fix(n *Node, bound []string, fixed map[string]string) bool {
	switch {
	case n.is("$BoundedForall"):
		for _, b := range n.Bound {
			bound = append(bound, b.Names...)
		}
		return l.fix(n.Args[0], bound, fixed)
	case n.is("$ConjList", "\\land"):
		more := map[string]string{}
		for _, a := range n.Args {
			if !l.fix(a, bound, more) {
				return false
			}
		}
		for v, d := range more {
			fixed[v] = d
		}
		return true
	case !n.is("="):
		return false
	}
	f, idx := n.Args[0], []*Node(nil)
	if f.is("$FcnApply") {
		f, idx = f.Args[0], elements(f.Args[1])
	}
	sh, variable := l.Shapes[f.Name]
	if f.Kind != Sym || !variable || fixed[f.Name] != "" {
		return false
	}
	env := map[string]string{}
	var decl []string
	for i, s := range sh.Args {
		x := fmt.Sprintf("a!%d", i)
		decl = append(decl, fmt.Sprintf("(%s %s)", x, s))
		if sh.Relation {
			continue
		}
		if i >= len(idx) || idx[i].Kind != Var || !slices.Contains(bound, idx[i].Name) || env[idx[i].Name] != "" {
			return false
		}
		env[idx[i].Name] = x
	}
	value := n.Args[1]
	text := "false"
	switch {
	case sh.Relation && value.is("$SetEnumerate") && len(value.Args) == 0:
	case !sh.Relation && len(idx) == len(sh.Args) && l.plain(value, env):
		text = l.expr(value, scope{env: env})
	default:
		return false
	}
	fixed[f.Name] = fmt.Sprintf("(define-fun %s (%s) %s %s)", f.Name, strings.Join(decl, " "), sh.Result, text)
	return true
}

// plain reports whether a value needs nothing but the names bound.
func (l *Lower) plain(n *Node, env map[string]string) bool {
	if n.is("$IfThenElse", "=") {
		return !slices.ContainsFunc(n.Args, func(a *Node) bool { return !l.plain(a, env) })
	}
	return n.Kind == Num || n.Kind == Str || n.Kind == Var && env[n.Name] != "" || n.is("TRUE", "FALSE")
}
