package edges

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os/exec"
	"regexp"
	"slices"
	"strings"

	"kvfence/proofs/tla2smt"
)

// Result is what a comparison found.
type Result struct {
	States, Edges    int // states looked at, TLC's edges from them
	OnlyTLC, OnlySMT []string
	Actions          map[string]int // TLC's edges by action
}

// instance is an action with its parameters chosen.
type instance struct {
	action  string
	guard   string
	updates []tla2smt.Update
}

// Compare looks at states of the dump: each one if sample is 0, else as many as sample chosen by the seed, and beside them two
// for each action that has edges.
func Compare(ctx context.Context, l *tla2smt.Lower, f tla2smt.Finite, g Graph, sample int, seed uint64) (Result, error) {
	res := Result{Actions: map[string]int{}}
	instances, head, err := instancesOf(l, f)
	if err != nil {
		return res, err
	}
	chosen := choose(g, sample, seed)
	want := map[string]bool{}
	keys := map[string]string{}
	key := func(node string) (string, error) {
		if k, ok := keys[node]; ok {
			return k, nil
		}
		s, err := parseState(l, g.Texts[node])
		keys[node] = s.key(l.Spec.Variables)
		return keys[node], err
	}
	for _, e := range g.Edges {
		if !chosen[e.From] {
			continue
		}
		a, err := key(e.From)
		if err != nil {
			return res, err
		}
		b, err := key(e.To)
		if err != nil {
			return res, err
		}
		if name := a + "\x00" + e.Action + "\x00" + b; !want[name] {
			want[name] = true
			res.Actions[e.Action]++
		}
	}
	res.States, res.Edges = len(chosen), len(want)
	got := map[string]bool{}
	for _, node := range slices.Sorted(maps.Keys(chosen)) {
		s, err := parseState(l, g.Texts[node])
		if err != nil {
			return res, err
		}
		if err := successors(ctx, l, f, head, instances, s, got); err != nil {
			return res, err
		}
	}
	res.OnlyTLC, res.OnlySMT = difference(want, got), difference(got, want)
	return res, nil
}

func difference(a, b map[string]bool) []string {
	var out []string
	for _, x := range slices.Sorted(maps.Keys(a)) {
		if !b[x] {
			out = append(out, describe(x))
		}
	}
	return out
}

// describe is an edge as its action and the variables that change.
func describe(edge string) string {
	p := strings.SplitN(edge, "\x00", 3)
	var changed []string
	before := strings.Split(p[0], ";")
	for i, after := range strings.Split(p[2], ";") {
		if i < len(before) && before[i] != after {
			changed = append(changed, before[i]+" -> "+after)
		}
	}
	return p[1] + ": " + strings.Join(changed, "; ")
}

func choose(g Graph, sample int, seed uint64) map[string]bool {
	nodes := slices.Sorted(maps.Keys(g.Texts))
	chosen := map[string]bool{}
	if sample == 0 || sample >= len(nodes) {
		for _, n := range nodes {
			chosen[n] = true
		}
		return chosen
	}
	r := rand.New(rand.NewPCG(seed, 1))
	for _, i := range r.Perm(len(nodes))[:sample] {
		chosen[nodes[i]] = true
	}
	seen := map[string]int{}
	for _, i := range r.Perm(len(g.Edges)) {
		if e := g.Edges[i]; seen[e.Action] < 2 {
			seen[e.Action]++
			chosen[e.From] = true
		}
	}
	return chosen
}

// instancesOf lowers every action with every choice of its parameters, and lists what z3 is told before any state.
func instancesOf(l *tla2smt.Lower, f tla2smt.Finite) ([]instance, []string, error) {
	actions, err := l.Actions()
	if err != nil {
		return nil, nil, err
	}
	head := l.Declare(f)
	var out []instance
	for i := range actions {
		a := &actions[i]
		envs := []map[string]string{{}}
		for _, p := range a.Params {
			terms, defs := l.Choices(p, f)
			head = append(head, defs...)
			var next []map[string]string
			for _, env := range envs {
				for _, t := range terms {
					e := maps.Clone(env)
					e[p.Name] = t
					next = append(next, e)
				}
			}
			envs = next
		}
		for _, env := range envs {
			if err := l.OpenAt(a, env); err != nil {
				return nil, nil, err
			}
			out = append(out, instance{a.Name, a.Guard(), a.Updates})
		}
	}
	return out, head, l.Err()
}

var constant = regexp.MustCompile(`\((g|o)!(\d+) ([\w-]+)\)`)

// successors adds the edges from a state: one question which instances can happen, one what those yield.
func successors(ctx context.Context, l *tla2smt.Lower, f tla2smt.Finite, head []string, instances []instance, s State, got map[string]bool) error {
	base := slices.Clone(head)
	for _, v := range l.Spec.Variables {
		base = append(base, l.Define(v, s[v], l.Keys(v, f)))
	}
	script := slices.Clone(base)
	var names []string
	for i, in := range instances {
		script = append(script, fmt.Sprintf("(declare-const g!%d Bool)(assert (= g!%d %s))", i, i, in.guard))
		names = append(names, fmt.Sprintf("g!%d", i))
	}
	guards, err := ask(ctx, script, names)
	if err != nil {
		return err
	}
	from := s.key(l.Spec.Variables)
	script = base
	names = nil
	type place struct{ variable, key string }
	places := map[int][]place{}
	n := 0
	for i, in := range instances {
		if guards[fmt.Sprintf("g!%d", i)] != "true" {
			continue
		}
		places[i] = []place{}
		for _, u := range in.updates { // each instance has names of its own
			script = append(script, renamed(u.Definition, u.Variable, i))
			for _, k := range l.Keys(u.Variable, f) {
				term := renamed(l.Primed(u.Variable, k), u.Variable, i)
				script = append(script, fmt.Sprintf("(declare-const o!%d %s)(assert (= o!%d %s))", n, l.Shapes[u.Variable].Result, n, term))
				names = append(names, fmt.Sprintf("o!%d", n))
				places[i] = append(places[i], place{u.Variable, strings.Join(k, " ")})
				n++
			}
		}
	}
	values, err := ask(ctx, script, names)
	if err != nil {
		return err
	}
	n = 0
	for _, i := range slices.Sorted(maps.Keys(places)) {
		next := maps.Clone(s)
		for _, u := range instances[i].updates {
			next[u.Variable] = map[string]string{}
		}
		for _, p := range places[i] {
			next[p.variable][p.key] = values[fmt.Sprintf("o!%d", n)]
			n++
		}
		got[from+"\x00"+instances[i].action+"\x00"+next.key(l.Spec.Variables)] = true
	}
	return nil
}

// renamed gives the new value of a variable a name of one instance.
func renamed(text, v string, i int) string {
	return strings.Replace(text, v+"!", fmt.Sprintf("%s!%d!", v, i), 1)
}

// ask has z3 find the values of constants.
func ask(ctx context.Context, script, names []string) (map[string]string, error) {
	out := map[string]string{}
	if len(names) == 0 {
		return out, nil
	}
	// After a push z3 solves step by step and gives values; in one go it may give formulas.
	c := exec.CommandContext(ctx, "z3", "-in")
	c.Stdin = strings.NewReader(strings.Join(script, "\n") + "\n(push)\n(check-sat)\n(get-value (" + strings.Join(names, " ") + "))\n")
	pipe, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	r := bufio.NewReader(pipe)
	first, _ := r.ReadString('\n')
	rest, err := io.ReadAll(r)
	if waited := c.Wait(); err == nil {
		err = waited
	}
	if err != nil || strings.TrimSpace(first) != "sat" {
		return nil, fmt.Errorf("%w: z3 says %q, %v", ErrDump, strings.TrimSpace(first), err)
	}
	for _, m := range constant.FindAllStringSubmatch(string(rest), -1) {
		out[m[1]+"!"+m[2]] = m[3]
	}
	if len(out) != len(names) {
		return nil, fmt.Errorf("%w: z3 gave %d values of %d: %s", ErrDump, len(out), len(names), rest)
	}
	return out, nil
}
