package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// outcome is what came of one pin.
type outcome struct {
	p     *pin
	found compared
	same  bool // a mutant's graph is that of the whole setting
	took  time.Duration
	err   error
}

// each does the pins that are chosen, some beside each other, and takes their outcomes in the order of the list.
func (s *session) each(pins []pin, do func(p *pin) outcome, take func(outcome)) error {
	var results []chan outcome
	slots := make(chan struct{}, max(s.o.jobs, 1))
	var todo []*pin
	for i := range pins {
		if s.chosen(&pins[i]) {
			todo = append(todo, &pins[i])
			results = append(results, make(chan outcome, 1))
		}
	}
	go func() {
		for i, p := range todo {
			slots <- struct{}{}
			go func() {
				began := time.Now()
				got := do(p)
				got.p, got.took = p, time.Since(began)
				results[i] <- got
				<-slots
			}()
		}
	}()
	for i := range results {
		got := <-results[i]
		if got.err != nil {
			return fmt.Errorf("%s: %w", todo[i].Name, got.err)
		}
		take(got)
	}
	return nil
}

// equal compares the graphs of the settings.
func (s *session) equal(ctx context.Context) error {
	return s.each(s.pins.Settings, func(p *pin) (got outcome) {
		set, err := p.setting(s.c.specs.Manifest)
		if err != nil {
			return outcome{err: err}
		}
		got.found, got.err = compare(ctx, s.c, set, s.o.workers, s.o.limit)
		return got
	}, func(got outcome) {
		if s.judge(got) {
			s.total.settings++
			s.total.states += got.found.states
			s.total.edges += got.found.edges
		}
	})
}

// judge says whether the graphs of an outcome are equal and as large as recorded.
func (s *session) judge(got outcome) bool {
	p, found := got.p, got.found
	for a, n := range found.actions {
		for len(s.total.actions) <= a {
			s.total.actions = append(s.total.actions, 0)
		}
		s.total.actions[a] += n
	}
	if found.difference != "" {
		s.fail(p.Name, found.difference)
		return false
	}
	if s.o.write {
		p.States, p.Edges = found.states, found.edges
	}
	recorded := ""
	if p.Long && p.States == 0 && p.Edges == 0 {
		recorded = ", not recorded yet" // a long setting is compared even before somebody has run it with -write
	} else if p.States != found.states || p.Edges != found.edges {
		s.fail(p.Name, fmt.Sprintf("%d states, %d edges on both sides, but %d and %d are recorded; run with -write", found.states, found.edges, p.States, p.Edges))
		return false
	}
	fmt.Fprintf(s.out, "%s: %d states, %d edges equal%s (%.1f s)\n", p.Name, found.states, found.edges, recorded, got.took.Seconds())
	return true
}

// everyAction wants each action of the model somewhere in what was compared: some can happen with a guard off only.
func (s *session) everyAction() {
	names, _ := actionNames()
	var never []string
	for i, n := range names {
		if i >= len(s.total.actions) || s.total.actions[i] == 0 {
			never = append(never, n)
		}
	}
	if len(never) > 0 {
		s.fail("actions", "no setting has a step of "+strings.Join(never, ", "))
	}
}
