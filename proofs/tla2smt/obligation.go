package tla2smt

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Class says what an obligation is for.
type Class int

// The classes of obligations. All but Vacuity are to be unsatisfiable; a Vacuity one is to be satisfiable.
const (
	Initial Class = iota // Init implies the conjunct
	Kept                 // the invariant, a conjunct and an action imply the conjunct after it
	Step                 // the invariant and an action imply a property of steps
	Vacuity              // the invariant and the action's guards hold somewhere
	Start                // Init implies what an instance's Init says
)

// Formula is a named formula.
type Formula struct{ Name, Text string }

// Obligation is one question for a solver.
type Obligation struct {
	Action, Conjunct string
	Class            Class
	// Frame is true where the conjunct reads the same before and after the action, and where a property of steps reads as it
	// does of the step that changes nothing, which is asked once: true without a solver.
	Frame bool
	// The parts of the question, in order: what is declared, what is assumed, guards, definitions, the goal's negation.
	Declarations []string
	Hypotheses   []Formula
	Parameters   []string
	Guards       []string
	Definitions  []string
	Extra        []string // formulas assumed beside: where to look for a model first
	Goal         string   // "" for Vacuity
}

// ActionNames are the actions of the specification that the obligations are about, in the order of Next.
func ActionNames(obligations []Obligation) []string {
	var out []string
	for _, o := range obligations {
		if o.Class == Vacuity { // each action has one
			out = append(out, o.Action)
		}
	}
	return out
}

// Name is Action.Conjunct.
func (o *Obligation) Name() string { return o.Action + "." + o.Conjunct }

// Script is the question in SMT-LIB. Without is the names of hypotheses and the numbers of guards ("guard 3") left out.
func (o *Obligation) Script(without ...string) string {
	var b strings.Builder
	b.WriteString("(set-logic ALL)\n")
	for _, d := range o.Declarations {
		b.WriteString(d + "\n")
	}
	for _, h := range o.Hypotheses {
		if h.Text != "true" && !slices.Contains(without, h.Name) {
			fmt.Fprintf(&b, "(assert %s) ; %s\n", h.Text, h.Name)
		}
	}
	for _, p := range o.Parameters {
		b.WriteString(p + "\n")
	}
	for i, g := range o.Guards {
		if !slices.Contains(without, fmt.Sprintf("guard %d", i)) {
			fmt.Fprintf(&b, "(assert %s) ; guard %d\n", g, i)
		}
	}
	for _, d := range o.Definitions {
		b.WriteString(d + "\n")
	}
	for _, e := range o.Extra {
		fmt.Fprintf(&b, "(assert %s) ; where to look\n", e)
	}
	if o.Goal != "" {
		fmt.Fprintf(&b, "(assert (not %s)) ; goal\n", o.Goal)
	}
	b.WriteString("(check-sat)\n")
	return renumber(b.String())
}

// numbered is a bound name with the parser's number.
var numbered = regexp.MustCompile(`_\d+`)

// renumber counts the parser's numbers anew in each question, so that an edit elsewhere in the text leaves the question as it was.
func renumber(script string) string {
	seen := map[string]string{}
	return numbered.ReplaceAllStringFunc(script, func(old string) string {
		if seen[old] == "" {
			seen[old] = fmt.Sprintf("_%d", len(seen))
		}
		return seen[old]
	})
}

// Conjunct is a named conjunct of the invariant, expanded.
type Conjunct struct {
	Name string
	Tree *Node
}

// Conjuncts are the types, one for each variable, and the invariant's.
func (l *Lower) Conjuncts() ([]Conjunct, error) {
	var out []Conjunct
	for _, c := range l.types {
		out = append(out, Conjunct{"Type_" + c.Args[0].Name, c})
	}
	more, err := l.named(l.opt.Invariant)
	if err != nil {
		return nil, err
	}
	for _, m := range more {
		if m.Name != l.opt.Types {
			out = append(out, m)
		}
	}
	for i, c := range out {
		if slices.ContainsFunc(out[:i], func(d Conjunct) bool { return d.Name == c.Name }) {
			return nil, fmt.Errorf("conjunct %s stands twice: %w", c.Name, ErrUnsupported)
		}
	}
	return out, nil
}

// named is the names that an operator is a conjunction of; the operator itself where it is none.
func (l *Lower) named(name string) ([]Conjunct, error) {
	parts, onlyNames := l.Spec.inside(name)
	if !onlyNames {
		tree, err := l.Spec.Expanded(name)
		return []Conjunct{{name, tree}}, err
	}
	var out []Conjunct
	for _, p := range parts {
		more, err := l.named(p)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// Small declares what Obligations do, but (unless members is 0) gives each sort that many members, the sort named two, and makes the
// free switches TRUE, and it defines the variables that are fixed: a model of it is a model of the other, and easier to find.
func (l *Lower) Small(members int, two string, fixed map[string]string) []string {
	return l.declarations(members, two, fixed)
}

// declarations are the sorts, strings, constants and variables, for any number of members of a sort where members is 0.
func (l *Lower) declarations(members int, two string, fixed map[string]string) []string {
	small := members > 0
	var out []string
	for _, s := range l.Sorts {
		if small {
			var names []string
			n := members
			if s == two {
				n = 2
			}
			for i := range n {
				names = append(names, fmt.Sprintf("(%s!%d)", s, i+1))
			}
			out = append(out, fmt.Sprintf("(declare-datatypes ((%s 0)) ((%s)))", s, strings.Join(names, " ")))
			continue
		}
		out = append(out, fmt.Sprintf("(declare-sort %s 0)", s))
	}
	if len(l.Spec.Strings) > 0 {
		var names []string
		for _, s := range l.Spec.Strings {
			names = append(names, "("+symbol(s)+")")
		}
		out = append(out, fmt.Sprintf("(declare-datatypes ((%s 0)) ((%s)))", sortStr, strings.Join(names, " ")))
	}
	for _, s := range l.Switches {
		switch {
		case !small && slices.Contains(l.opt.Free, s):
			out = append(out, fmt.Sprintf("(declare-const %s Bool)", s))
		default:
			out = append(out, fmt.Sprintf("(define-fun %s () Bool %t)", s, !slices.Contains(l.opt.Off, s)))
		}
	}
	for _, c := range l.Sets {
		out = append(out, fmt.Sprintf("(declare-fun %s (%s) Bool)", c, l.sortOf(l.consts[c].set)))
	}
	for _, c := range l.Members {
		out = append(out, fmt.Sprintf("(declare-const %s %s)", c, l.sortOf(l.consts[c].set)))
	}
	for _, v := range l.Spec.Variables {
		sh := l.Shapes[v]
		if d := fixed[v]; d != "" {
			out = append(out, d)
			continue
		}
		out = append(out, fmt.Sprintf("(declare-fun %s (%s) %s)", v, strings.Join(sh.Args, " "), sh.Result))
	}
	return out
}

// assumedFormulas are the ASSUMEs about constants.
func (l *Lower) assumedFormulas() []Formula {
	var out []Formula
	for _, a := range l.assumed {
		f := ""
		if a.is("\\subseteq") {
			name := a.Args[0].Name
			f = l.typed(a.Args[0], &Node{Kind: Apply, Name: "SUBSET", Args: []*Node{l.consts[name].set}}, scope{})
		} else {
			f = l.in(a.Args[0], a.Args[1], scope{})
		}
		out = append(out, Formula{"ASSUME " + a.Args[0].Name, f})
	}
	return out
}

// parameters declares an action's parameters.
func (l *Lower) parameters(a *Action) []string {
	var out []string
	for _, p := range a.Params {
		member := ""
		x := &Node{Kind: Var, Name: p.Name}
		sc := scope{env: map[string]string{p.Name: p.Name}}
		if p.Set.is("SUBSET", "$SetOfFcns") {
			sh := l.shapeOf(p.Set)
			out = append(out, fmt.Sprintf("(declare-fun %s (%s) %s)", p.Name, strings.Join(sh.Args, " "), sh.Result))
			member = l.typed(x, p.Set, sc)
		} else {
			out = append(out, fmt.Sprintf("(declare-const %s %s)", p.Name, l.sortOf(p.Set)))
			member = l.member([]string{p.Name}, p.Set, sc)
		}
		if member != "true" {
			out = append(out, "(assert "+member+")")
		}
	}
	return out
}

// Obligations are all of them, in order of Init, then the actions of Next; of each action the conjuncts, the properties of
// steps, and that it can happen.
func (l *Lower) Obligations() ([]Obligation, error) {
	conjuncts, err := l.Conjuncts()
	if err != nil {
		return nil, err
	}
	steps, err := l.all(l.opt.Steps)
	if err != nil {
		return nil, err
	}
	actions, err := l.Actions()
	if err != nil {
		return nil, err
	}
	hyps := l.assumedFormulas()
	assumed := hyps
	for _, c := range conjuncts {
		hyps = append(hyps, Formula{c.Name, l.expr(c.Tree, scope{})})
	}
	decl, small := l.declarations(0, "", nil), l.declarations(1, "", nil)
	out, err := l.initial(conjuncts, decl, assumed)
	if err != nil {
		return nil, err
	}
	still := l.stutter(steps, Obligation{Action: Stutter, Declarations: decl, Hypotheses: hyps})
	out = append(out, still...)
	for i := range actions {
		a := &actions[i]
		if err := l.Open(a); err != nil {
			return nil, err
		}
		base := Obligation{Action: a.Name, Declarations: decl, Hypotheses: hyps, Parameters: l.parameters(a), Guards: a.Guards}
		for _, u := range a.Updates {
			base.Definitions = append(base.Definitions, u.Definition)
		}
		for j, c := range conjuncts {
			o := base
			o.Conjunct, o.Class, o.Goal = c.Name, Kept, l.expr(c.Tree, scope{post: true})
			o.Frame = o.Goal == hyps[len(assumed)+j].Text
			out = append(out, o)
		}
		for j, s := range steps {
			o := base
			o.Conjunct, o.Class, o.Goal = s.Name, Step, l.expr(s.Tree, scope{})
			o.Frame = o.Goal == still[j].Goal
			out = append(out, o)
		}
		base.Conjunct, base.Class, base.Declarations = "happens", Vacuity, small
		out = append(out, base)
	}
	return out, l.err
}

// Stutter is the action of obligations about the step that changes nothing.
const Stutter = "Stutter"

// stutter is the obligations that properties of steps hold of the step that changes nothing.
func (l *Lower) stutter(steps []Conjunct, base Obligation) []Obligation {
	l.post = map[string]string{}
	for _, v := range l.Spec.Variables {
		l.post[v] = v
	}
	var out []Obligation
	for _, s := range steps {
		o := base
		o.Conjunct, o.Class, o.Goal = s.Name, Step, l.expr(s.Tree, scope{})
		out = append(out, o)
	}
	return out
}

// all is the named conjuncts of several operators.
func (l *Lower) all(names []string) ([]Conjunct, error) {
	var out []Conjunct
	for _, n := range names {
		more, err := l.named(n)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

func (l *Lower) initial(conjuncts []Conjunct, decl []string, assumed []Formula) ([]Obligation, error) {
	body, err := l.Spec.Expanded(l.opt.Init)
	if err != nil {
		return nil, err
	}
	base := Obligation{Action: l.opt.Init, Class: Initial, Declarations: decl, Hypotheses: assumed}
	done := map[string]bool{}
	l.post = nil
	for _, c := range body.conj() {
		if !c.is("=") || c.Args[0].Kind != Sym || done[c.Args[0].Name] {
			return nil, fmt.Errorf("%s: %s: %w", l.opt.Init, c, ErrUnsupported)
		}
		v := c.Args[0].Name
		done[v] = true
		base.Definitions = append(base.Definitions, l.define(v, "!", &update{value: c.Args[1]}, scope{}))
	}
	for _, v := range l.Spec.Variables {
		if !done[v] {
			return nil, fmt.Errorf("%s does not set %s: %w", l.opt.Init, v, ErrUnsupported)
		}
	}
	var out []Obligation
	for _, c := range conjuncts {
		o := base
		o.Conjunct, o.Goal = c.Name, l.expr(c.Tree, scope{post: true})
		out = append(out, o)
	}
	starts, err := l.all(l.opt.Starts)
	if err != nil {
		return nil, err
	}
	for _, c := range starts {
		o := base
		o.Class, o.Conjunct, o.Goal = Start, c.Name, l.expr(c.Tree, scope{post: true})
		out = append(out, o)
	}
	return out, l.err
}
