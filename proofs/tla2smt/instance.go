package tla2smt

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A module that is instantiated keeps its own names apart: SANY's export gives them the same simple names as the root module's,
// so Read calls them "Module::Name". An operator of the instance, "I!Name", has a body of Kind Subst: the operator's own body, and
// what stands for each constant and variable of the instantiated module.

// location is the module that a definition or declaration stands in.
func (e *element) location() string { return e.at("location", "filename") }

// instanced are the modules whose declarations some instance replaces.
func instanced(e *element, kinds map[string]*element, out map[string]bool) {
	if e.name == "Subst" {
		if d := kinds[e.at("OpDeclNodeRef", "UID")]; d != nil {
			out[d.location()] = true
		}
	}
	for _, k := range e.kids {
		instanced(k, kinds, out)
	}
}

// nameOf is the name of an operator, constant or variable, with its module where that is instantiated.
func (s *Spec) nameOf(kind *element) string {
	name := kind.at("uniquename")
	if kind.name != "FormalParamNode" && s.apart[kind.location()] {
		return kind.location() + "::" + name
	}
	return name
}

// subst reads the body of an instance's operator.
func (s *Spec) subst(e *element) (*Node, error) {
	body, substs := e.kid("body"), e.kid("substs")
	if body == nil || len(body.kids) != 1 || substs == nil {
		return nil, fmt.Errorf("an instance without body: %w", ErrUnsupported)
	}
	inner, err := s.tree(body.kids[0])
	if err != nil {
		return nil, err
	}
	n := &Node{Kind: Subst, Args: []*Node{inner}, With: map[string]*Node{}}
	for _, x := range substs.kids {
		d := s.kinds[x.at("OpDeclNodeRef", "UID")]
		if d == nil || len(x.kids) != 2 {
			return nil, fmt.Errorf("a substitution in an instance: %w", ErrUnsupported)
		}
		if n.With[s.nameOf(d)], err = s.tree(x.kids[1]); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// expandSubst is the body of an instance's operator with everything put in.
func (s *Spec) expandSubst(n *Node, sub map[string]*Node) (*Node, error) {
	body, err := s.Expand(n.Args[0], sub)
	if err != nil {
		return nil, err
	}
	with := map[string]*Node{}
	for _, name := range slices.Sorted(maps.Keys(n.With)) {
		if with[name], err = s.Expand(n.With[name], nil); err != nil {
			return nil, err
		}
	}
	return body.replace(with), nil
}

// replace puts expressions in the place of symbols. They are closed, so that nothing captures their names.
func (n *Node) replace(with map[string]*Node) *Node {
	if n.Kind == Sym {
		if r := with[n.Name]; r != nil {
			return r
		}
		return n
	}
	if len(n.Args)+len(n.Bound) == 0 {
		return n
	}
	out := &Node{Kind: n.Kind, Name: n.Name, Value: n.Value}
	for _, b := range n.Bound {
		out.Bound = append(out.Bound, Binding{b.Names, b.Set.replace(with)})
	}
	for _, a := range n.Args {
		out.Args = append(out.Args, a.replace(with))
	}
	return out
}

// inside is the conjuncts of an operator's body as a conjunction of calls, where it is one; those of an instance's operator
// are the instance's.
func (s *Spec) inside(name string) ([]string, bool) {
	op, err := s.Op(name)
	if err != nil {
		return nil, false
	}
	body, prefix := op.Body, ""
	if body.Kind == Subst {
		body = body.Args[0]
		if i := strings.LastIndex(name, "!"); i >= 0 {
			prefix = name[:i+1]
		}
	}
	var out []string
	for _, p := range body.conj() {
		if p.Kind != Def || len(p.Args) > 0 {
			return nil, false
		}
		_, own, apart := strings.Cut(p.Name, "::")
		if prefix != "" && apart {
			out = append(out, prefix+own)
			continue
		}
		out = append(out, p.Name)
	}
	return out, true
}

// lambda sees through primes: the function constructor that is applied, and whether it is of the state after the step.
func lambda(n *Node, post bool) (*Node, bool) {
	for n.is("'") {
		n, post = n.Args[0], true
	}
	if n.is("$FcnConstructor") {
		return n, post
	}
	return nil, post
}

// beta is the body of an applied function constructor with the scope to read it in; ok is false for any other expression.
func (l *Lower) beta(n *Node, sc scope) (body *Node, inner scope, ok bool) {
	if n.is("'") {
		return l.beta(n.Args[0], scope{sc.env, true})
	}
	if !n.is("$FcnApply") {
		return nil, sc, false
	}
	f, post := lambda(n.Args[0], sc.post)
	if f == nil {
		return nil, sc, false
	}
	idx := elements(n.Args[1])
	var names, terms []string
	var domain []*Node
	for _, b := range f.Bound {
		names = append(names, b.Names...)
		domain = append(domain, b.Set)
		for _, x := range b.Names {
			l.sets[x] = underlying(b.Set)
		}
	}
	if len(names) != len(idx) || len(domain) != len(idx) {
		l.fail("the application %s", n)
		return nil, sc, false
	}
	l.indexed(f, Shape{Domain: domain}, idx)
	for _, x := range idx {
		terms = append(terms, l.expr(x, sc))
	}
	inner = sc.with(names, terms)
	inner.post = post
	return f.Args[0], inner, true
}

// terms are the components of a tuple, or the value itself.
func (l *Lower) terms(n *Node, sc scope) []string {
	if body, inner, ok := l.beta(n, sc); ok {
		return l.terms(body, inner)
	}
	if n.is("$Tuple") {
		var out []string
		for _, a := range n.Args {
			out = append(out, l.expr(a, sc))
		}
		return out
	}
	return []string{l.expr(n, sc)}
}
