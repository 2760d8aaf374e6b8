package tla2smt

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// update is what an action does to one variable: nothing (a nil value), a new value, or either by a condition.
type update struct {
	value   *Node
	cond    *Node
	yes, no *update
}

func (u *update) unchanged() bool { return u.value == nil && u.cond == nil }

// effect is an action taken apart.
type effect struct {
	guards []*Node
	ups    map[string]*update
}

// Parameter is a parameter of an action and the set that Next chooses it from.
type Parameter struct {
	Name string
	Set  *Node
}

// Action is an action of Next.
type Action struct {
	Name    string
	Params  []Parameter
	Guards  []string // formulas over the state and the parameters
	Updates []Update
}

// Update is the new value of a variable as a definition: "v!" of the arguments "a!0", "a!1" and so on.
type Update struct {
	Variable   string
	Definition string
}

// Actions reads the actions off Next, so that none can be forgotten.
func (l *Lower) Actions() ([]Action, error) {
	op, err := l.Spec.Op(l.opt.Next)
	if err != nil {
		return nil, err
	}
	var out []Action
	if err := l.walk(op.Body, map[string]*Node{}, &out); err != nil {
		return nil, err
	}
	for i, a := range out {
		if slices.ContainsFunc(out[:i], func(b Action) bool { return b.Name == a.Name }) {
			return nil, fmt.Errorf("%s stands twice in %s: %w", a.Name, l.opt.Next, ErrUnsupported)
		}
	}
	return out, l.err
}

func (l *Lower) walk(n *Node, sets map[string]*Node, out *[]Action) error {
	switch {
	case n.is("$BoundedExists"):
		inner := maps.Clone(sets)
		for _, b := range n.Bound {
			set, err := l.Spec.Expand(b.Set, nil)
			if err != nil {
				return err
			}
			for _, name := range b.Names {
				inner[name] = set
			}
		}
		return l.walk(n.Args[0], inner, out)
	case n.is("$DisjList", "\\lor"):
		for _, a := range n.Args {
			if err := l.walk(a, sets, out); err != nil {
				return err
			}
		}
		return nil
	case n.Kind != Def:
		return fmt.Errorf("%s: %s: %w", l.opt.Next, n, ErrUnsupported)
	}
	op, err := l.Spec.Op(n.Name)
	if err != nil {
		return err
	}
	if len(n.Args) == 0 && op.Body.is("$DisjList", "\\lor", "$BoundedExists") {
		return l.walk(op.Body, sets, out)
	}
	a := Action{Name: n.Name}
	for i, x := range n.Args {
		if x.Kind != Var || sets[x.Name] == nil {
			return fmt.Errorf("%s: argument %s of %s: %w", l.opt.Next, x, n.Name, ErrUnsupported)
		}
		a.Params = append(a.Params, Parameter{op.Params[i], sets[x.Name]})
	}
	*out = append(*out, a)
	return nil
}

// effect takes the action's formula apart.
func (l *Lower) effect(n *Node) (effect, error) {
	e := effect{ups: map[string]*update{}}
	for _, c := range n.conj() {
		var part effect
		var err error
		switch {
		case !c.primes():
			part.guards = []*Node{c}
		case c.is("=") && c.Args[0].is("'") && c.Args[0].Args[0].Kind == Sym && !c.Args[1].primes():
			part.ups = map[string]*update{c.Args[0].Args[0].Name: {value: c.Args[1]}}
		case c.is("UNCHANGED"):
			part.ups = map[string]*update{}
			for _, v := range flat(c.Args[0]) {
				part.ups[v] = &update{}
			}
		case c.is("$IfThenElse") && !c.Args[0].primes():
			part, err = l.either(c)
		default:
			err = fmt.Errorf("the step %s: %w", c, ErrUnsupported)
		}
		if err != nil {
			return effect{}, err
		}
		e.guards = append(e.guards, part.guards...)
		for _, v := range slices.Sorted(maps.Keys(part.ups)) {
			if e.ups[v] != nil {
				return effect{}, fmt.Errorf("%s is assigned or unchanged twice: %w", v, ErrUnsupported)
			}
			e.ups[v] = part.ups[v]
		}
	}
	return e, nil
}

// either merges the branches of an IF; both must speak of the same variables.
func (l *Lower) either(n *Node) (effect, error) {
	yes, err := l.effect(n.Args[1])
	if err != nil {
		return effect{}, err
	}
	no, err := l.effect(n.Args[2])
	if err != nil {
		return effect{}, err
	}
	e := effect{ups: map[string]*update{}}
	if len(yes.guards)+len(no.guards) > 0 {
		list := func(g []*Node) *Node { return &Node{Kind: Apply, Name: "$ConjList", Args: g} }
		e.guards = []*Node{{Kind: Apply, Name: "$IfThenElse", Args: []*Node{n.Args[0], list(yes.guards), list(no.guards)}}}
	}
	names := slices.Sorted(maps.Keys(yes.ups))
	if !slices.Equal(names, slices.Sorted(maps.Keys(no.ups))) {
		return effect{}, fmt.Errorf("one branch of IF assigns %v, the other %v: %w", names, slices.Sorted(maps.Keys(no.ups)), ErrUnsupported)
	}
	for _, v := range names {
		a, b := yes.ups[v], no.ups[v]
		if a.unchanged() && b.unchanged() {
			e.ups[v] = &update{}
			continue
		}
		e.ups[v] = &update{cond: n.Args[0], yes: a, no: b}
	}
	return e, nil
}

// flat is the variables of a tuple of tuples.
func flat(n *Node) []string {
	if n.Kind == Sym {
		return []string{n.Name}
	}
	var out []string
	for _, a := range n.Args {
		out = append(out, flat(a)...)
	}
	return out
}

// Open lowers the action: guards, updates, and the names of the state after it, which Primed uses until the next Open.
func (l *Lower) Open(a *Action) error {
	env := map[string]string{}
	for _, p := range a.Params {
		env[p.Name] = p.Name
	}
	return l.OpenAt(a, env)
}

// OpenAt is Open with a term for each parameter.
func (l *Lower) OpenAt(a *Action, env map[string]string) error {
	op, err := l.Spec.Op(a.Name)
	if err != nil {
		return err
	}
	body, err := l.Spec.Expand(op.Body, nil)
	if err != nil {
		return err
	}
	e, err := l.effect(body)
	if err != nil {
		return fmt.Errorf("action %s: %w", a.Name, err)
	}
	sc := scope{env: env}
	for _, p := range a.Params {
		l.sets[p.Name] = underlying(p.Set)
	}
	a.Guards, a.Updates, l.post = nil, nil, map[string]string{}
	for _, g := range e.guards {
		a.Guards = append(a.Guards, l.expr(g, sc))
	}
	for _, v := range l.Spec.Variables {
		u := e.ups[v]
		if u == nil {
			return fmt.Errorf("action %s neither assigns %s nor leaves it unchanged: %w", a.Name, v, ErrUnsupported)
		}
		if u.unchanged() {
			l.post[v] = v
			continue
		}
		a.Updates = append(a.Updates, Update{v, l.define(v, "!", u, sc)})
	}
	if l.err != nil {
		return fmt.Errorf("action %s: %w", a.Name, l.err)
	}
	return nil
}

// define is the definition of a variable's value, named v and a suffix.
func (l *Lower) define(v, suffix string, u *update, sc scope) string {
	sh := l.Shapes[v]
	var xs, decl []string
	for i, s := range sh.Args {
		x := fmt.Sprintf("a!%d", i)
		xs = append(xs, x)
		decl = append(decl, fmt.Sprintf("(%s %s)", x, s))
	}
	return fmt.Sprintf("(define-fun %s%s (%s) %s %s)", v, suffix, strings.Join(decl, " "), sh.Result, l.valueOf(v, xs, u, sc))
}

func (l *Lower) valueOf(v string, xs []string, u *update, sc scope) string {
	switch {
	case u.unchanged() && len(xs) == 0:
		return v
	case u.unchanged():
		return "(" + v + " " + strings.Join(xs, " ") + ")"
	case u.cond != nil:
		return fmt.Sprintf("(ite %s %s %s)", l.expr(u.cond, sc), l.valueOf(v, xs, u.yes, sc), l.valueOf(v, xs, u.no, sc))
	case l.Shapes[v].Relation:
		return l.member(xs, u.value, sc)
	case len(xs) == 0:
		return l.expr(u.value, sc)
	}
	return l.valueAt(l.Shapes[v], u.value, xs, sc)
}

// valueAt is the value of a function-valued expression at xs.
func (l *Lower) valueAt(sh Shape, n *Node, xs []string, sc scope) string {
	switch {
	case n.is("$Except"):
		out := l.valueAt(sh, n.Args[0], xs, sc)
		for _, pair := range n.Args[1:] {
			if len(pair.Args) != 2 || len(pair.Args[0].Args) != 1 {
				return l.fail("EXCEPT %s", pair)
			}
			idx := elements(pair.Args[0].Args[0])
			if len(idx) != len(xs) {
				return l.fail("EXCEPT with %d indices of %d", len(idx), len(xs))
			}
			l.indexed(n.Args[0], sh, idx)
			out = fmt.Sprintf("(ite %s %s %s)", l.sameTuple(xs, idx, sc), l.expr(pair.Args[1], sc), out)
		}
		return out
	case n.is("$FcnConstructor"):
		var names []string
		for i, b := range n.Bound {
			names = append(names, b.Names...)
			if i >= len(sh.Domain) || b.Set.String() != sh.Domain[i].String() {
				return l.fail("a function on %s", b.Set)
			}
			for _, x := range b.Names {
				l.sets[x] = b.Set
			}
		}
		if len(names) != len(xs) {
			return l.fail("a function of %d arguments for one of %d", len(names), len(xs))
		}
		return l.expr(n.Args[0], sc.with(names, xs))
	case n.is("$IfThenElse"):
		return fmt.Sprintf("(ite %s %s %s)", l.expr(n.Args[0], sc), l.valueAt(sh, n.Args[1], xs, sc), l.valueAt(sh, n.Args[2], xs, sc))
	}
	if got, ok := l.aggregate(n); !ok || got.Relation || len(got.Args) != len(xs) {
		return l.fail("the function %s", n)
	}
	return "(" + l.expr(n, sc) + " " + strings.Join(xs, " ") + ")"
}
