package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"kvfence/impl/mutants"
	"kvfence/impl/tlc"
)

// session is one run: the record, and the tasks of each layer that was asked for.
type session struct {
	o      options
	record *mutants.Record
	specs  *tlc.Specs
	tasks  map[string][]mutants.Task
	fresh  map[string]map[string]string // hashes of the groups by layer
	lab    *mutants.Lab
	guards []mutants.DesignGuard
	bad    []error
}

func open(ctx context.Context, o options) (*session, error) {
	s := &session{o: o, tasks: map[string][]mutants.Task{}, fresh: map[string]map[string]string{}}
	var err error
	if s.record, err = mutants.ReadRecord(o.record); err != nil {
		return nil, err
	}
	if s.guards, err = mutants.ReadGuards(o.guards); err != nil {
		return nil, err
	}
	if s.specs, err = tlc.Open(o.root + "/TLA"); err != nil {
		return nil, err
	}
	if o.has("core") && !o.list {
		if s.lab, err = mutants.Build(ctx, o.root, o.build, say); err != nil {
			return nil, err
		}
		s.tasks["core"] = mutants.CoreTasks(s.lab)
	}
	if o.has("model") && !o.list {
		lab, err := mutants.OpenModel(o.root+"/TLA", say)
		if err != nil {
			return nil, err
		}
		s.bad = append(s.bad, lab.Broken...)
		s.tasks["model"] = mutants.ModelTasks(lab)
	}
	if o.has("proof") && !o.list {
		lab, err := mutants.OpenProof(ctx, o.settings, o.jar, o.limit)
		if err != nil {
			return nil, err
		}
		if s.tasks["proof"], err = mutants.ProofTasks(lab); err != nil {
			return nil, err
		}
	}
	for layer, tasks := range s.tasks {
		s.fresh[layer] = mutants.Hashes(tasks)
	}
	return s, nil
}

// try tries what the options ask for.
func (s *session) try(ctx context.Context) error {
	for _, layer := range mutants.Layers() {
		tasks := s.tasks[layer]
		if tasks == nil {
			continue
		}
		var tests map[string]string
		if layer == "core" {
			tests = s.lab.TestHashes()
		}
		stale := s.record.Stale(layer, tasks, tests)
		var err error
		switch {
		case s.o.all:
			dropped := s.record.Prune(layer, tasks)
			if s.o.again {
				stale = append(stale, s.survivors(layer, tasks, stale)...)
			}
			if s.o.only.String() != "" {
				stale = slices.DeleteFunc(slices.Clone(tasks), func(t mutants.Task) bool { return !s.o.only.MatchString(t.Name) })
			}
			say("%s: %d mutants, %d to try, %d gone", layer, len(tasks), len(stale), dropped)
			err = s.all(ctx, layer, stale)
		default:
			if len(stale) > 0 {
				s.bad = append(s.bad, fmt.Errorf("%w: %s: the record is old for %d mutants (make mutants ARGS=-all), the first is %s", errFailed, layer, len(stale), stale[0].Name))
			}
			err = s.some(ctx, layer, tasks)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// survivors are the tasks that nothing killed when they were recorded.
func (s *session) survivors(layer string, tasks, but []mutants.Task) (out []mutants.Task) {
	skip := map[string]bool{}
	for _, t := range but {
		skip[t.Name] = true
	}
	for _, t := range tasks {
		if e, ok := s.record.Entries[layer][t.Name]; ok && e.Killed == "" && !skip[t.Name] {
			out = append(out, t)
		}
	}
	return out
}

// all tries tasks and keeps what comes of them; the record is written every now and then, so that a run that is stopped loses little.
func (s *session) all(ctx context.Context, layer string, tasks []mutants.Task) error {
	rand.New(rand.NewPCG(s.o.seed, 1)).Shuffle(len(tasks), func(i, j int) { tasks[i], tasks[j] = tasks[j], tasks[i] })
	began, saved, n, killed := time.Now(), time.Now(), 0, 0
	err := mutants.RunTasks(ctx, tasks, s.o.jobs, func(e mutants.Entry) error {
		s.record.Keep(layer, e)
		n++
		if e.Killed != "" {
			killed++
		}
		if len(tasks) <= 30 {
			say("  %s: %s", e.Name, strings.TrimSpace(cmp.Or(e.Killed, "survives")+" "+e.How))
		}
		if time.Since(saved) < 20*time.Second {
			return nil
		}
		saved = time.Now()
		say("%s: %d of %d tried, %d killed, %.0f s", layer, n, len(tasks), killed, time.Since(began).Seconds())
		return s.record.Write(s.o.record, s.fresh)
	})
	return errors.Join(err, s.record.Write(s.o.record, s.fresh))
}

// some tries the places of the design page's guards and a sample of the others, and compares them with the record.
func (s *session) some(ctx context.Context, layer string, tasks []mutants.Task) error {
	share := map[string]int{"core": s.o.sample * 2 / 3, "model": s.o.sample / 4, "proof": s.o.sample / 12}[layer]
	must := map[string]bool{}
	if layer == "core" {
		for _, g := range s.guards {
			for _, name := range g.Core {
				must[name] = true
			}
		}
	}
	var chosen []mutants.Task
	for _, i := range rand.New(rand.NewPCG(s.o.seed, 2)).Perm(len(tasks)) {
		switch t := tasks[i]; {
		case must[t.Name]:
			chosen = append(chosen, t)
		case share > 0:
			share--
			chosen = append(chosen, t)
		}
	}
	killed := 0
	err := mutants.RunTasks(ctx, chosen, s.o.jobs, func(e mutants.Entry) error {
		was, ok := s.record.Entries[layer][e.Name]
		if e.Killed != "" {
			killed++
		}
		if ok && was.Hash == e.Hash {
			s.compare(layer, was, e)
		}
		return nil
	})
	say("%s: %d of %d mutants tried (seed %d), %d killed", layer, len(chosen), len(tasks), s.o.seed, killed)
	return err
}

// compare books what differs from the record. A question that z3 does not answer within its limit is no answer: it may be one
// on another machine, and the other way round.
func (s *session) compare(layer string, was, e mutants.Entry) {
	const silence = "not proved"
	switch {
	case was.Killed != "" && e.Killed == "" && was.How != silence:
		s.bad = append(s.bad, fmt.Errorf("%w: %s: %s is not killed any more (by %s before)", errFailed, layer, e.Name, was.Killed))
	case was.Killed == "" && e.Killed != "" && e.How != silence:
		s.bad = append(s.bad, fmt.Errorf("%w: %s: %s is recorded as a survivor, and %s kills it", errFailed, layer, e.Name, e.Killed))
	}
}

// finish judges the guards and the reasons, writes the page, and prints the figures.
func (s *session) finish(ctx context.Context) error {
	refuted, err := mutants.RefutedGuards(s.o.settings)
	if err != nil {
		return err
	}
	var rows []mutants.GuardRow
	if !s.o.list && s.o.has("model") {
		quiet := func(string, ...any) {}
		if rows, err = mutants.Rows(ctx, s.guards, s.specs, refuted, s.record.Entries["core"], quiet); err != nil {
			s.bad = append(s.bad, err)
		}
		say("guards of the design page: %d", len(rows))
	}
	reasons, err := mutants.ReadReasons(s.o.reasons)
	if err != nil {
		return err
	}
	explained, err := mutants.Explain(s.record, reasons)
	if err != nil {
		s.bad = append(s.bad, err)
	}
	without := 0
	for _, layer := range []string{"model", "core"} {
		for _, e := range s.record.Survivors(layer) {
			if explained[e.Name] != "" {
				continue
			}
			if without++; s.o.list {
				say("  %s: %s (%s)", layer, e.Name, map[bool]string{true: "seen", false: "nothing comes by"}[e.Seen])
			}
		}
	}
	if without > 0 {
		s.bad = append(s.bad, fmt.Errorf("%w: %d survivors without a reason (-list names them)", errFailed, without))
	}
	if s.o.write {
		if err := os.WriteFile(s.o.page, []byte(mutants.Page(s.record, explained, rows)), 0o644); err != nil {
			return err
		}
	}
	err = errors.Join(s.bad...)
	if err != nil {
		say("%s", strings.TrimSpace(err.Error()))
	}
	say("%s", s.record.Closing(explained))
	if err != nil {
		return errFailed
	}
	return nil
}
