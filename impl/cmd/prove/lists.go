package main

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"kvfence/proofs/solve"
	"kvfence/proofs/tla2smt"
)

// check compares the obligations with the settings' lists: a property is a conjunct or a step that is to be proved, or it is
// listed as open, and never both.
func (s *settings) check(obligations []tla2smt.Obligation) error {
	has := map[string]bool{}
	for _, o := range obligations {
		has[o.Conjunct] = true
	}
	for _, p := range s.Properties {
		_, open := s.Open[p]
		if has[p] == open {
			return fmt.Errorf("%w: property %s: to be proved %t, listed as open %t", errSettings, p, has[p], open)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(s.Open)) {
		if !slices.Contains(s.Properties, p) || s.Open[p] == "" {
			return fmt.Errorf("%w: open %s is no property, or has no reason", errSettings, p)
		}
	}
	return nil
}

// guards drops each guard in turn and has z3 find a step of the listed action, from a state within the invariant, that breaks the
// listed conjunct. The obligation may be an expression that several match; the first that z3 refutes counts.
func guards(ctx context.Context, o options, set *settings, spec *tla2smt.Spec) error {
	z3, err := solve.Find("z3")
	if err != nil {
		return err
	}
	began := time.Now()
	refuted := 0
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(set.Guards)), func(g string) bool { return !o.only.MatchString(g) })
	for _, g := range names {
		found, err := refute(ctx, o, set, spec, z3, g)
		if err != nil {
			return err
		}
		if found == "" {
			fmt.Printf("  %-16s NOT REFUTED at %s\n", g, set.Guards[g])
			continue
		}
		refuted++
		fmt.Printf("  %-16s refuted at %s\n", g, found)
	}
	fmt.Printf("%s: guards refuted %d of %d by z3 %s, %.0f s\n", set.Spec, refuted, len(names), z3.Version, time.Since(began).Seconds())
	if refuted != len(names) {
		return fmt.Errorf("%w: %d guards not refuted", errFailed, len(names)-refuted)
	}
	return nil
}

// refute is the name of the first obligation that is false without the guard, or "".
func refute(ctx context.Context, o options, set *settings, spec *tla2smt.Spec, z3 solve.Solver, guard string) (string, error) {
	at, err := regexp.Compile("^(" + set.Guards[guard] + ")$")
	if err != nil {
		return "", err
	}
	opt := set.options()
	opt.Off = append(slices.Clone(opt.Off), guard)
	opt.Free = slices.DeleteFunc(slices.Clone(opt.Free), func(f string) bool { return f == guard })
	l, err := tla2smt.NewLower(spec, opt)
	if err != nil {
		return "", err
	}
	obligations, err := l.Obligations()
	if err != nil {
		return "", err
	}
	for i := range obligations {
		ob := &obligations[i]
		if ob.Frame || ob.Class != tla2smt.Kept && ob.Class != tla2smt.Step || !at.MatchString(ob.Name()) {
			continue
		}
		found, err := set.counterexample(ctx, l, ob, z3, o.limit)
		if found || err != nil {
			return ob.Name(), err
		}
	}
	return "", nil
}

// counterexample reports whether z3 finds a state and a step that break the obligation. Each place to look gets a tenth of the limit: with one
// member of each sort, with two of one sort, with two of each; the last tries get all of it.
func (s *settings) counterexample(ctx context.Context, l *tla2smt.Lower, ob *tla2smt.Obligation, z3 solve.Solver, limit time.Duration) (bool, error) {
	for _, share := range []time.Duration{limit / 10, limit} {
		for i := range len(l.Sorts) + 2 {
			members, two := 1, ""
			if i == len(l.Sorts)+1 {
				members = 2
			} else if i > 0 {
				two = l.Sorts[i-1]
			}
			scripts, err := s.scripts(l, *ob, members, two)
			if err != nil {
				return false, err
			}
			for _, script := range scripts {
				r, err := z3.Ask(ctx, script, share)
				if err != nil || r.Answer == solve.Sat {
					return err == nil, err
				}
			}
		}
	}
	return false, nil
}

// scripts are an obligation as questions for a model, the narrowest first.
func (s *settings) scripts(l *tla2smt.Lower, o tla2smt.Obligation, members int, two string) ([]string, error) {
	var out []string
	for _, list := range append(slices.Clone(s.Witnesses), nil) {
		o.Extra = nil
		fixed := map[string]string{}
		for _, w := range list {
			f, rest, err := l.Where(w)
			if err != nil {
				return nil, err
			}
			maps.Copy(fixed, f)
			o.Extra = append(o.Extra, rest...)
		}
		o.Declarations = l.Small(members, two, fixed)
		out = append(out, o.Script())
	}
	return out, nil
}

// needed drops each conjunct of the invariant in turn, to see which obligations of others need it.
func needed(ctx context.Context, o options, cache solve.Cache, obligations []tla2smt.Obligation) error {
	z3, err := solve.Find("z3")
	if err != nil {
		return err
	}
	var names []string
	for _, ob := range obligations {
		if ob.Class == tla2smt.Initial {
			names = append(names, ob.Conjunct)
		}
	}
	unneeded := 0
	for _, name := range names {
		var qs []question
		for i := range obligations {
			ob := &obligations[i]
			if ob.Frame || ob.Class == tla2smt.Vacuity || ob.Class == tla2smt.Initial || ob.Class == tla2smt.Start || ob.Conjunct == name || !o.only.MatchString(name) {
				continue
			}
			qs = append(qs, question{obligation: ob, solver: z3, script: ob.Script(name), wanted: solve.Unsat})
		}
		var missed []string
		if err := answer(ctx, o, cache, qs, func(q *question) {
			if q.result.Answer != solve.Unsat {
				missed = append(missed, q.obligation.Name())
			}
		}); err != nil {
			return err
		}
		if len(missed) == 0 {
			unneeded++
		}
		slices.Sort(missed)
		fmt.Printf("%-16s needed by %d: %s\n", name, len(missed), strings.Join(missed[:min(5, len(missed))], " "))
	}
	fmt.Printf("conjuncts %d, needed by no other %d\n", len(names), unneeded)
	return nil
}
