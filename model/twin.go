package model

import "strings"

// Twin makes the states of one setting, with the conjuncts of its mutants dropped. It is not safe for concurrent use: Next
// works in the Twin's own memory. Make one for each goroutine.
type Twin struct {
	Settings Settings
	Mutants  []Mutant

	actions []prepared
	args    Args
	next    State
	emit    func(action int, next *State)
}

// prepared is an action with its guards by the parameter after which they can be judged: guards[0] need none, guards[i] need
// the i-th and none after it.
type prepared struct {
	index   int
	params  []bound
	guards  [][]func(*Settings, *State, *Args) bool
	updates []func(*Settings, *State, *Args, *State)
}

// bound is a parameter with the numbers that it goes through.
type bound struct {
	set       func(*Args, uint8)
	low, high uint8
}

// New prepares a twin. A mutant that is not Valid drops nothing.
func New(w Settings, mutants ...Mutant) *Twin {
	t := &Twin{Settings: w, Mutants: mutants}
	for index, a := range Actions() {
		p := prepared{index: index, guards: make([][]func(*Settings, *State, *Args) bool, len(a.Params)+1)}
		for _, param := range a.Params {
			p.params = append(p.params, param.bind(&w))
		}
		for i, g := range a.Guards {
			if !t.drops(Mutant{a.Name, i, -1}) {
				at := a.lastParam(g.Text)
				p.guards[at] = append(p.guards[at], g.Holds)
			}
		}
		for i, u := range a.Updates {
			if !t.drops(Mutant{a.Name, -1, i}) {
				p.updates = append(p.updates, u.Apply)
			}
		}
		t.actions = append(t.actions, p)
	}
	return t
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
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return !isName(r) }) {
		for i, p := range a.Params {
			if p.Name == word {
				last = max(last, i+1)
			}
		}
	}
	return last
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
	if len(t.Mutants) > 0 && !inRoom(&t.Settings, s) {
		return
	}
	t.emit = emit
	for i := range t.actions {
		t.bind(&t.actions[i], 0, s)
	}
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

// bind judges the guards that have all their parameters, gives the next parameter its values, and at the end applies the updates.
func (t *Twin) bind(p *prepared, depth int, s *State) {
	for _, holds := range p.guards[depth] {
		if !holds(&t.Settings, s, &t.args) {
			return
		}
	}
	if depth == len(p.params) {
		t.next = *s
		for _, apply := range p.updates {
			apply(&t.Settings, s, &t.args, &t.next)
		}
		t.emit(p.index, &t.next)
		return
	}
	for v := p.params[depth].low; v <= p.params[depth].high; v++ {
		p.params[depth].set(&t.args, v)
		t.bind(p, depth+1, s)
	}
}
