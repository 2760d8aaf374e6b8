package model

import "strings"

// Args are the values of an action's parameters, each under its name in the TLA+ text; Ks is K. S and Ks are bit sets. C is a
// channel, the kind of a receipt or the cause of a failure, as the action has it.
type Args struct{ T, U, R, N, A, F, L, X, P, K, C, I, Q, V, G, M, D, E, S, Ks uint8 }

// Param is a parameter of an action: its name and its domain in the TLA+ text.
type Param struct {
	Name, Domain string
}

// Guard is a conjunct without primes. Text is the conjunct of the TLA+ text, blanks squeezed; Holds is it in Go.
//
// A conjunct that is an operator with primes in it (Place of Fabric.tla, Quarantine) stands for that operator's conjuncts, one
// by one, its parameters replaced.
type Guard struct {
	Text  string
	Holds func(w *Settings, s *State, a *Args) bool
}

// Update is a conjunct with primes. Text is the conjunct of the TLA+ text; Apply sets its variables in n, which holds the old
// state in all that no update has set, and reads none but s.
type Update struct {
	Text  string
	Apply func(w *Settings, s *State, a *Args, n *State)
}

// Action is one action of TLA/Transfer.tla: guards and updates in the order of the conjuncts there. What no update sets stays.
type Action struct {
	Name    string
	Params  []Param
	Guards  []Guard
	Updates []Update
}

// Actions is the table of all actions in the order of the TLA+ text.
func Actions() []Action {
	var all []Action
	for _, group := range [][]Action{
		leaderActions(), leaseActions(), receiptActions(), readActions(), linkActions(), prefillActions(), sourceActions(), closingActions(), fabricActions(), plantActions(),
	} {
		all = append(all, group...)
	}
	return all
}

// Vars are the variables that the update sets, in the order in which its text names them.
func (u Update) Vars() []string {
	var vars []string
	for i, r := range u.Text {
		if r == '\'' {
			start := i
			for start > 0 && isName(rune(u.Text[start-1])) {
				start--
			}
			vars = append(vars, u.Text[start:i])
		}
	}
	if strings.Contains(u.Text, "Spoil(") {
		vars = append(vars, "dst", "qep", "pubs")
	}
	return vars
}

// Mutant drops one conjunct: the guard or the update of that place in the table, -1 for none.
type Mutant struct {
	Action        string
	Guard, Update int
}

// Valid says whether the table has what the mutant drops.
func (m Mutant) Valid() bool {
	for _, a := range Actions() {
		if a.Name == m.Action {
			return m.Guard >= -1 && m.Guard < len(a.Guards) && m.Update >= -1 && m.Update < len(a.Updates) && (m.Guard >= 0 || m.Update >= 0)
		}
	}
	return false
}

// Mutants is every mutant that drops one conjunct.
func Mutants() []Mutant {
	var all []Mutant
	for _, a := range Actions() {
		for i := range a.Guards {
			all = append(all, Mutant{a.Name, i, -1})
		}
		for i := range a.Updates {
			all = append(all, Mutant{a.Name, -1, i})
		}
	}
	return all
}
