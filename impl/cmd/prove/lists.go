package main

import (
	"context"
	"fmt"
	"maps"
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

// guards drops each guard in turn and asks z3 for an action that then breaks a conjunct.
func guards(ctx context.Context, o options, set *settings, spec *tla2smt.Spec) error {
	z3, err := solve.Find("z3")
	if err != nil {
		return err
	}
	began := time.Now()
	refuted := 0
	names := slices.Sorted(maps.Keys(set.Guards))
	for _, g := range names {
		opt := set.options()
		opt.Off = append(slices.Clone(opt.Off), g)
		l, err := tla2smt.NewLower(spec, opt)
		if err != nil {
			return err
		}
		obligations, err := l.Obligations()
		if err != nil {
			return err
		}
		var qs []question
		for i := range obligations {
			ob := &obligations[i]
			if !ob.Frame && slices.Contains(set.Guards[g], ob.Action) && (ob.Class == tla2smt.Kept || ob.Class == tla2smt.Step) && o.only.MatchString(ob.Name()) {
				qs = append(qs, question{obligation: ob, solver: z3, script: ob.Script(), wanted: solve.Sat})
			}
		}
		var broken, unknown []string
		if err := answer(ctx, o, solve.Cache{}, qs, func(q *question) {
			switch q.result.Answer {
			case solve.Sat:
				broken = append(broken, q.obligation.Name())
			case solve.Unknown:
				unknown = append(unknown, q.obligation.Name())
			}
		}); err != nil {
			return err
		}
		slices.Sort(broken)
		slices.Sort(unknown)
		word := "NOT REFUTED"
		if len(broken) > 0 {
			word = "refuted"
			refuted++
		}
		fmt.Printf("%-16s %s: %s", g, word, strings.Join(broken, " "))
		if len(unknown) > 0 {
			fmt.Printf(" (no answer: %s)", strings.Join(unknown, " "))
		}
		fmt.Println()
	}
	fmt.Printf("%s: guards refuted %d of %d by z3 %s, %.0f s\n", set.Spec, refuted, len(names), z3.Version, time.Since(began).Seconds())
	if refuted != len(names) {
		return fmt.Errorf("%w: %d guards can go", errFailed, len(names)-refuted)
	}
	return nil
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
			if ob.Frame || ob.Class == tla2smt.Vacuity || ob.Class == tla2smt.Initial || ob.Conjunct == name || !o.only.MatchString(name) {
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
