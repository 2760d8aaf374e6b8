package model

import (
	"slices"
	"strings"
)

// Twin makes the states of one setting, with the conjuncts of its mutants dropped. It is not safe for concurrent use: Next
// works in the Twin's own memory. Make one for each goroutine.
type Twin struct {
	Settings Settings
	Mutants  []Mutant

	actions   []prepared
	variables []Variable
	next      State
}

// prepared is an action with all that its parameters can be, as a tree written out in one row: each node gives values to one
// parameter more than the one above it. Guards are judged at the first node that has all parameters they speak of; those that
// speak of no variable were judged when the row was made.
type prepared struct {
	index   int
	nodes   []node
	updates []func(*Settings, *State, *Args, *State)
}

type node struct {
	args   Args
	guards []func(*Settings, *State, *Args) bool
	leaf   bool // all parameters have values
	skip   int  // the next node that is not below this one
}

// New prepares a twin. A mutant that is not Valid drops nothing.
func New(w Settings, mutants ...Mutant) *Twin {
	t := &Twin{Settings: w, Mutants: mutants, variables: Variables()}
	for index, a := range Actions() {
		p := prepared{index: index}
		guards := make([][]judged, len(a.Params)+1)
		for i, g := range a.Guards {
			if !t.drops(Mutant{a.Name, i, -1}) {
				at := a.lastParam(g.Text)
				guards[at] = append(guards[at], judged{g.Holds, t.constant(g.Text)})
			}
		}
		p.grow(&t.Settings, bind(&t.Settings, a.Params), guards, Args{})
		for i, u := range a.Updates {
			if !t.drops(Mutant{a.Name, -1, i}) {
				p.updates = append(p.updates, u.Apply)
			}
		}
		t.actions = append(t.actions, p)
	}
	return t
}

// grow adds the node of args, and below it those of the parameters to come; guards[i] are those that i parameters more decide.
func (p *prepared) grow(w *Settings, params []bound, guards [][]judged, args Args) {
	n := node{args: args, leaf: len(params) == 0}
	for _, g := range guards[0] {
		switch {
		case !g.constant:
			n.guards = append(n.guards, g.holds)
		case !g.holds(w, nil, &args):
			return
		}
	}
	at := len(p.nodes)
	p.nodes = append(p.nodes, n)
	if !n.leaf {
		for v := params[0].low; v <= params[0].high; v++ {
			params[0].set(&args, v)
			p.grow(w, params[1:], guards[1:], args)
		}
	}
	p.nodes[at].skip = len(p.nodes)
}

// bound is a parameter with the numbers that it goes through.
type bound struct {
	set       func(*Args, uint8)
	low, high uint8
}

func bind(w *Settings, params []Param) []bound {
	var all []bound
	for _, p := range params {
		low, high := w.domain(p.Domain)
		all = append(all, bound{setters()[p.Name], low, high})
	}
	return all
}

// judged is a guard, and whether it speaks of constants and parameters only.
type judged struct {
	holds    func(*Settings, *State, *Args) bool
	constant bool
}

// constant says that text names no variable and calls no operator, which could name one.
func (t *Twin) constant(text string) bool {
	in := words(text)
	return !calls(text) && !slices.ContainsFunc(t.variables, func(v Variable) bool { return slices.Contains(in, v.Name) })
}

// calls says that a name stands right before a bracket.
func calls(text string) bool {
	for i, r := range text {
		if r == '(' && i > 0 && isName(rune(text[i-1])) {
			return true
		}
	}
	return false
}

func (t *Twin) drops(one Mutant) bool {
	for _, m := range t.Mutants {
		if m.Action == one.Action && (one.Guard >= 0 && m.Guard == one.Guard || one.Update >= 0 && m.Update == one.Update) {
			return true
		}
	}
	return false
}

// lastParam is how many parameters must have values before text can be judged. Names that text binds itself are never those of
// parameters: TLA+ forbids it.
func (a *Action) lastParam(text string) int {
	last := 0
	for _, word := range words(text) {
		for i, p := range a.Params {
			if p.Name == word {
				last = max(last, i+1)
			}
		}
	}
	return last
}

// words is the names and numbers in text.
func words(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return !isName(r) })
}

func isName(r rune) bool {
	return r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}

// Init is the initial states: there is one.
func (t *Twin) Init() []State { return []State{first(&t.Settings)} }

// Next gives every successor of s to emit, with the place of its action in Actions; the same successor comes as often as
// actions and parameters lead to it. *next is the Twin's and holds until emit returns. With a mutant, a state that is outside
// TypeOK has no successors: there is no room for what may come of them. Next allocates nothing.
func (t *Twin) Next(s *State, emit func(action int, next *State)) {
	t.Steps(s, func(action int, _ *Args, next *State) { emit(action, next) })
}

// Steps is Next with the parameters of each step; *args is the Twin's and stays as it is.
func (t *Twin) Steps(s *State, emit func(action int, args *Args, next *State)) {
	if len(t.Mutants) > 0 && !inRoom(&t.Settings, s) {
		return
	}
	for i := range t.actions {
		p := &t.actions[i]
		for at := 0; at < len(p.nodes); {
			n := &p.nodes[at]
			if !n.holds(&t.Settings, s) {
				at = n.skip
				continue
			}
			if at++; !n.leaf {
				continue
			}
			t.next = *s
			for _, apply := range p.updates {
				apply(&t.Settings, s, &n.args, &t.next)
			}
			emit(p.index, &n.args, &t.next)
		}
	}
}

func (n *node) holds(w *Settings, s *State) bool {
	for _, holds := range n.guards {
		if !holds(w, s, &n.args) {
			return false
		}
	}
	return true
}

// inRoom says that the numbers from which all others come have not left their type; only a mutant lets them.
func inRoom(w *Settings, s *State) bool {
	for k := range w.ranks() {
		if s.Ep[k] > w.NE || s.Pinc[k] > w.NI {
			return false
		}
	}
	for p := range w.pages() {
		if s.Gen[p] > w.NL {
			return false
		}
	}
	return s.Dinc <= w.ND && s.NextL <= w.NL+1
}
