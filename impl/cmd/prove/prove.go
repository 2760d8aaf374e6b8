package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"kvfence/proofs/sany"
	"kvfence/proofs/solve"
	"kvfence/proofs/tla2smt"
)

// question is an obligation for one solver.
type question struct {
	obligation *tla2smt.Obligation
	solver     solve.Solver
	script     string
	first      []string // questions whose sat is as good: the same about fewer states
	wanted     solve.Answer

	result solve.Result
	cached bool
	err    error
}

// ask asks the narrower questions for a sixth of the time each, then the question itself.
func (q *question) ask(ctx context.Context, limit time.Duration) {
	var spent time.Duration
	for _, s := range append(slices.Clone(q.first), q.script) {
		share := limit - spent
		if s != q.script {
			share = limit / 6
		}
		q.result, q.err = q.solver.Ask(ctx, s, share)
		spent += q.result.Took
		q.result.Took = spent
		if q.err != nil || q.result.Answer == solve.Sat {
			return
		}
	}
}

// answer asks all questions, some at a time, and tells each as it comes.
func answer(ctx context.Context, o options, cache solve.Cache, qs []question, tell func(*question)) error {
	var wg sync.WaitGroup
	var mu sync.Mutex
	next := make(chan *question)
	for range max(1, o.jobs) {
		wg.Go(func() {
			for q := range next {
				if q.wanted == solve.Unsat && cache.Proved(q.solver, q.script) {
					q.result.Answer, q.cached = solve.Unsat, true
				} else {
					q.ask(ctx, o.limit)
					if q.err == nil && q.result.Answer == solve.Unsat && q.wanted == solve.Unsat {
						q.err = cache.Keep(q.solver, q.script)
					}
				}
				mu.Lock()
				tell(q)
				mu.Unlock()
			}
		})
	}
	for i := range qs {
		next <- &qs[i]
	}
	close(next)
	wg.Wait()
	for i := range qs {
		if qs[i].err != nil {
			return qs[i].err
		}
	}
	return ctx.Err()
}

func prove(ctx context.Context, o options) error {
	began := time.Now()
	set, err := loadSettings(o.settings)
	if err != nil {
		return err
	}
	jar, err := sany.FindJar(o.jar)
	if err != nil {
		return err
	}
	if o.edges {
		return compareEdges(ctx, set, jar)
	}
	spec, err := set.read(ctx, jar)
	if err != nil {
		return err
	}
	l, err := tla2smt.NewLower(spec, set.options())
	if err != nil {
		return err
	}
	obligations, err := l.Obligations()
	if err != nil {
		return err
	}
	if err := set.check(obligations); err != nil {
		return err
	}
	if o.actions {
		for _, name := range tla2smt.ActionNames(obligations) {
			fmt.Println(name)
		}
		return nil
	}
	if len(l.IllIndexed) > 0 {
		return fmt.Errorf("%w: applications that are not well-defined by syntax: %v", errFailed, l.IllIndexed)
	}
	cache := solve.Cache{}
	if o.cache != "" {
		if cache, err = solve.OpenCache(o.cache); err != nil {
			return err
		}
	}
	switch {
	case o.guards:
		return guards(ctx, o, set, spec)
	case o.needed:
		return needed(ctx, o, cache, obligations)
	}
	return discharge(ctx, o, set, l, cache, obligations, began)
}

// discharge asks both solvers about all obligations.
func discharge(ctx context.Context, o options, set *settings, l *tla2smt.Lower, cache solve.Cache, obligations []tla2smt.Obligation, began time.Time) error {
	qs, frame, count, err := questions(o, set, l, obligations)
	if err != nil {
		return err
	}
	if o.whole {
		if err := figuresOf(set, obligations, frame, count).compare(figuresFile(o.settings), o.write); err != nil {
			return err
		}
	}
	if o.list {
		for _, q := range qs {
			fmt.Println(q.solver.Name, q.obligation.Name())
		}
		return nil
	}
	var t tally
	if err := answer(ctx, o, cache, qs, func(q *question) { t.add(o, q) }); err != nil {
		return err
	}
	proved := map[*tla2smt.Obligation]int{}
	happens := 0
	for i := range qs {
		q := &qs[i]
		switch {
		case q.obligation.Class == tla2smt.Vacuity && q.result.Answer == q.wanted:
			happens++
		case q.wanted == solve.Unsat && q.result.Answer == solve.Unsat:
			proved[q.obligation]++
		}
	}
	n := 0
	for _, k := range proved {
		if k == len(o.solvers) {
			n++
		}
	}
	var names []string
	for _, q := range qs {
		if name := q.solver.Name + " " + q.solver.Version; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	actions := len(qs) - count*len(o.solvers)
	fmt.Printf("%s: obligations %d of %d by %v, %d more by frame alone; actions that can happen as expected %d of %d; open properties %d of %d; worst %s; %.0f s of processor, %.0f s\n",
		set.Spec, n, count, names, frame, happens, actions, len(set.Open), len(set.Properties), t.worst, t.spent.Seconds(), time.Since(began).Seconds())
	if n != count || happens != actions {
		return fmt.Errorf("%w: %d obligations, %d actions", errFailed, count-n, actions-happens)
	}
	return nil
}

// questions are what to ask, how many obligations are true by frame alone, and how many are to be proved.
func questions(o options, set *settings, l *tla2smt.Lower, obligations []tla2smt.Obligation) (qs []question, frame, count int, err error) {
	var solvers []solve.Solver
	for _, name := range o.solvers {
		s, err := solve.Find(name)
		if err != nil {
			return nil, 0, 0, err
		}
		solvers = append(solvers, s)
	}
	for i := range obligations {
		ob := &obligations[i]
		if !o.only.MatchString(ob.Name()) {
			continue
		}
		switch {
		case ob.Frame:
			frame++
		case ob.Class == tla2smt.Vacuity:
			if !o.vacuity || !slices.Contains(o.solvers, "z3") {
				continue
			}
			q, err := happens(set, l, ob, solvers[slices.Index(o.solvers, "z3")])
			if err != nil {
				return nil, 0, 0, err
			}
			qs = append(qs, q)
		default:
			count++
			script := ob.Script()
			for _, s := range solvers {
				qs = append(qs, question{obligation: ob, solver: s, script: script, wanted: solve.Unsat})
			}
		}
	}
	return qs, frame, count, nil
}

// happens asks whether an action can happen within the invariant.
func happens(set *settings, l *tla2smt.Lower, ob *tla2smt.Obligation, z3 solve.Solver) (question, error) {
	q := question{obligation: ob, solver: z3, wanted: solve.Sat}
	if slices.Contains(set.Never, ob.Action) { // for any number of everything
		general := *ob
		general.Declarations = l.Small(0, "", nil)
		q.script, q.wanted = general.Script(), solve.Unsat
		return q, nil
	}
	scripts, err := set.scripts(l, *ob, 1, "")
	if err != nil {
		return q, err
	}
	q.first, q.script = scripts[:len(scripts)-1], scripts[len(scripts)-1]
	return q, nil
}

// tally prints what is not as wanted, and keeps figures.
type tally struct {
	spent time.Duration
	most  time.Duration
	worst string
}

func (t *tally) add(o options, q *question) {
	t.spent += q.result.Took
	if q.result.Took > t.most {
		t.most = q.result.Took
		t.worst = fmt.Sprintf("%s %s %.1f s", q.obligation.Name(), q.solver.Name, t.most.Seconds())
	}
	if q.result.Answer == q.wanted || q.err != nil {
		return
	}
	fmt.Printf("  %-8s %-5s %s (%.1f s) %s\n", q.result.Answer, q.solver.Name, q.obligation.Name(), q.result.Took.Seconds(), q.result.Text)
	if o.dump == "" {
		return
	}
	path := filepath.Join(o.dump, q.obligation.Name()+".smt2")
	if err := errors.Join(os.MkdirAll(o.dump, 0o755), os.WriteFile(path, []byte(q.script), 0o644)); err != nil {
		fmt.Fprintln(os.Stderr, "prove:", err)
	}
}
