package mutants

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"kvfence/model"
	"kvfence/proofs/sany"
	"kvfence/proofs/solve"
	"kvfence/proofs/tla2smt"
)

// ErrProof says that an obligation is not what the proof mutants are made for.
var ErrProof = errors.New("an obligation cannot be mutated")

// proofSettings is what is needed of proofs/transfer.json; impl/cmd/prove obeys all of it.
type proofSettings struct {
	Spec      string            `json:"spec"`
	Invariant string            `json:"invariant"`
	Steps     []string          `json:"steps"`
	Starts    []string          `json:"starts"`
	Free      []string          `json:"free"`
	Off       []string          `json:"off"`
	Never     []string          `json:"never"`
	Guards    map[string]string `json:"guards"`
}

// ProofLab has the obligations of every action, and z3. Safe for concurrent use once it is made.
type ProofLab struct {
	spec     *tla2smt.Spec
	byAction map[string][]tla2smt.Obligation
	z3       solve.Solver
	limit    time.Duration
	small    []string // declarations of worlds with one of every sort

	mu   sync.Mutex
	base map[string]bool // does an obligation hold with nothing dropped, within the limit
}

// OpenProof exports the specification and translates it. file is the settings of impl/cmd/prove; limit is processor time of a question.
func OpenProof(ctx context.Context, file, jar string, limit time.Duration) (*ProofLab, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var s proofSettings
	if err := json.NewDecoder(bytes.NewReader(raw)).Decode(&s); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if s.Invariant == "" {
		s.Invariant = "IndInv"
	}
	if jar, err = sany.FindJar(jar); err != nil {
		return nil, err
	}
	spec, err := sany.Read(ctx, jar, filepath.Join(filepath.Dir(file), s.Spec))
	if err != nil {
		return nil, err
	}
	l, err := tla2smt.NewLower(spec, tla2smt.Options{Types: "TypeOK", Init: "Init", Next: "Next", Invariant: s.Invariant, Steps: s.Steps, Starts: s.Starts, Off: s.Off, Free: s.Free})
	if err != nil {
		return nil, err
	}
	all, err := l.Obligations()
	if err != nil {
		return nil, err
	}
	z3, err := solve.Find("z3")
	if err != nil {
		return nil, err
	}
	p := &ProofLab{spec: spec, byAction: map[string][]tla2smt.Obligation{}, z3: z3, limit: limit, base: map[string]bool{}}
	for _, o := range all {
		if o.Class == tla2smt.Vacuity {
			p.small = o.Declarations
		}
		if o.Action == tla2smt.Stutter || o.Action == "Init" || o.Class != tla2smt.Kept && o.Class != tla2smt.Step || slices.Contains(s.Never, o.Action) {
			continue
		}
		p.byAction[o.Action] = append(p.byAction[o.Action], o)
	}
	return p, nil
}

// try asks z3 about the obligations of an action with something dropped until one is not true any more. change makes the question;
// near says how much an obligation has to do with what is dropped, 0 that it cannot tell: those with more are asked first.
func (p *ProofLab) try(ctx context.Context, action string, change func(*tla2smt.Obligation) string, near func(*tla2smt.Obligation) int) (Verdict, error) {
	type ranked struct {
		o    tla2smt.Obligation
		near int
	}
	var ask []ranked
	for _, o := range p.byAction[action] {
		if n := near(&o); !o.Frame && n > 0 {
			ask = append(ask, ranked{o, n})
		}
	}
	slices.SortStableFunc(ask, func(a, b ranked) int { return cmp.Compare(b.near, a.near) })
	for _, x := range ask {
		o := x.o
		r, err := p.z3.Ask(ctx, change(&o), p.limit)
		if err != nil {
			return Verdict{}, err
		}
		if r.Answer == solve.Unsat {
			continue
		}
		holds, err := p.holds(ctx, o)
		if err != nil {
			return Verdict{}, err
		}
		if !holds {
			continue
		}
		how := "refuted"
		if r.Answer != solve.Sat { // z3 finds a state more easily where there are few
			o.Declarations, how = p.small, "not proved"
			if r, err = p.z3.Ask(ctx, change(&o), p.limit); err != nil {
				return Verdict{}, err
			}
			if r.Answer == solve.Sat {
				how = "refuted"
			}
		}
		return Verdict{Killed: "proof " + o.Name(), How: how, Seen: true}, nil
	}
	return Verdict{Seen: true}, nil
}

// holds reports whether z3 proves an obligation as it stands within the limit.
func (p *ProofLab) holds(ctx context.Context, o tla2smt.Obligation) (bool, error) {
	p.mu.Lock()
	known, ok := p.base[o.Name()]
	p.mu.Unlock()
	if ok {
		return known, nil
	}
	r, err := p.z3.Ask(ctx, o.Script(), p.limit)
	if err != nil {
		return false, err
	}
	p.mu.Lock()
	p.base[o.Name()] = r.Answer == solve.Unsat
	p.mu.Unlock()
	return r.Answer == solve.Unsat, nil
}

// ProofTasks are the mutants of the obligations, under the names of the model's: each guard left out, the variables of each update left
// unchanged, of each action that can happen.
func ProofTasks(p *ProofLab) ([]Task, error) {
	var out []Task
	names := map[string]int{}
	for _, a := range model.Actions() {
		obligations := p.byAction[a.Name]
		if len(obligations) == 0 {
			continue
		}
		o := obligations[0]
		groups, err := p.groups(a.Name)
		if err != nil {
			return nil, err
		}
		if len(groups) != len(a.Guards) {
			return nil, fmt.Errorf("%w: %s has %d guards in the text, %d in the model", ErrProof, a.Name, len(groups), len(a.Guards))
		}
		hash := shortHash(strings.Join(append(slices.Clone(o.Guards), o.Definitions...), "\n"))
		add := func(kind Kind, text string, change func(*tla2smt.Obligation) string, near func(*tla2smt.Obligation) int) {
			out = append(out, Task{unique(names, a.Name, kind, text), hash, func(ctx context.Context) (Verdict, error) { return p.try(ctx, a.Name, change, near) }})
		}
		for i, g := range a.Guards {
			var without []string
			for _, at := range groups[i] {
				without = append(without, fmt.Sprintf("guard %d", at))
			}
			var about []string // variables that the guard reads
			for _, v := range p.spec.Variables {
				for _, at := range groups[i] {
					if wordIn(o.Guards[at], v) {
						about = append(about, v, v+"!")
					}
				}
			}
			add(Guard, g.Text, func(o *tla2smt.Obligation) string { return o.Script(without...) }, func(o *tla2smt.Obligation) int { return 1 + mentions(o.Goal, about) })
		}
		for _, u := range a.Updates {
			same, err := unchanged(o.Definitions, u.Vars())
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", a.Name, u.Text, err)
			}
			var primes []string
			for _, v := range u.Vars() {
				primes = append(primes, v+"!")
			}
			add(Update, u.Text, func(o *tla2smt.Obligation) string {
				changed := *o
				changed.Definitions = same
				return changed.Script()
			}, func(o *tla2smt.Obligation) int { return mentions(o.Goal, primes) })
		}
	}
	return out, nil
}

// mentions is how many of some names a formula has.
func mentions(formula string, names []string) (n int) {
	for _, v := range names {
		if wordIn(formula, v) {
			n++
		}
	}
	return n
}

// wordIn reports whether a formula has a name as a whole word.
func wordIn(formula, name string) bool {
	return slices.Contains(strings.FieldsFunc(formula, func(r rune) bool { return r == '(' || r == ')' || r == ' ' || r == '\n' }), name)
}

// groups says for each conjunct of an action's text that is a guard which of the obligations' guards come of it.
func (p *ProofLab) groups(action string) ([][]int, error) {
	op, err := p.spec.Op(action)
	if err != nil {
		return nil, err
	}
	var out [][]int
	at := 0
	for _, c := range conjuncts(op.Body) {
		whole, err := p.spec.Expand(c, nil)
		if err != nil {
			return nil, err
		}
		if primed(whole) { // an operator of one variable's module: the model has its conjuncts in its place
			for _, in := range conjuncts(whole) {
				if !primed(in) {
					out = append(out, []int{at})
				}
				at += guardsIn(in)
			}
			continue
		}
		var group []int
		for i := range guardsIn(whole) {
			group = append(group, at+i)
		}
		out = append(out, group)
		at += len(group)
	}
	return out, nil
}

func conjuncts(n *tla2smt.Node) (out []*tla2smt.Node) {
	if n.Kind != tla2smt.Apply || n.Name != "$ConjList" && n.Name != "\\land" {
		return []*tla2smt.Node{n}
	}
	for _, a := range n.Args {
		out = append(out, conjuncts(a)...)
	}
	return out
}

// guardsIn is how many guards the translator makes of a formula: each conjunct without primes, and one of an IF that has some within.
func guardsIn(n *tla2smt.Node) (count int) {
	for _, c := range conjuncts(n) {
		switch {
		case !primed(c):
			count++
		case c.Kind == tla2smt.Apply && c.Name == "$IfThenElse" && guardsIn(c.Args[1])+guardsIn(c.Args[2]) > 0:
			count++
		}
	}
	return count
}

func primed(n *tla2smt.Node) bool {
	return n.Kind == tla2smt.Apply && (n.Name == "'" || n.Name == "UNCHANGED") || slices.ContainsFunc(n.Args, primed)
}

// unchanged is definitions with those of some variables replaced by their old values.
func unchanged(definitions, vars []string) ([]string, error) {
	out := slices.Clone(definitions)
	for i, d := range definitions {
		v, same, err := identity(d)
		if err != nil {
			return nil, err
		}
		if slices.Contains(vars, v) {
			out[i] = same
		}
	}
	return out, nil
}

// unique is a mutant's name; of several alike the second is "#2".
func unique(names map[string]int, of string, kind Kind, text string) string {
	if len(text) > 110 {
		text = text[:107] + "..."
	}
	name := fmt.Sprintf("%s/%s: %s", of, kind, text)
	names[name]++
	if n := names[name]; n > 1 {
		name = fmt.Sprintf("%s #%d", name, n)
	}
	return name
}

// identity reads "(define-fun v! ((a!0 S) ...) R body)" and gives v and the definition that leaves it as it is.
func identity(definition string) (v, same string, err error) {
	rest, ok := strings.CutPrefix(definition, "(define-fun ")
	name, rest, found := strings.Cut(rest, "! (")
	if !ok || !found {
		return "", "", fmt.Errorf("%w: %.60q", ErrProof, definition)
	}
	depth, end := 1, 0
	for end < len(rest) && depth > 0 {
		switch rest[end] {
		case '(':
			depth++
		case ')':
			depth--
		}
		end++
	}
	decl, tail := rest[:max(end-1, 0)], strings.TrimPrefix(rest[end:], " ")
	sort, _, found := strings.Cut(tail, " ")
	if !found || strings.HasPrefix(sort, "(") {
		return "", "", fmt.Errorf("%w: %.60q", ErrProof, definition)
	}
	body, args := name, strings.Count(decl, "a!")
	if args > 0 {
		body = "(" + name
		for i := range args {
			body += fmt.Sprintf(" a!%d", i)
		}
		body += ")"
	}
	return name, fmt.Sprintf("(define-fun %s! (%s) %s %s)", name, decl, sort, body), nil
}

// RefutedGuards are the switches of the specification and the obligation that is false without each, as impl/cmd/prove checks them.
func RefutedGuards(file string) (map[string]string, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var s proofSettings
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return s.Guards, nil
}
