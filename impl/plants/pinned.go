package plants

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Pinned replays the recorded run of every plant: with it the run must be refused for the recorded property, without it it must pass. Of a
// plant whose only gate is tests the recorded test is run: it must fail with the plant and pass without. It returns how many were replayed.
func (l *Lab) Pinned(ctx context.Context, r Record, jobs int, say func(string, ...any)) (int, error) {
	var numbers []int
	needs := map[string]bool{}
	for n := range l.All {
		p := &l.All[n]
		e := r[p.Name]
		switch {
		case p.Aid():
		case p.Tests && len(e.Tests) > 0:
			needs[e.Tests[0].Suite] = true
			numbers = append(numbers, n)
		case e.Run != nil:
			numbers = append(numbers, n)
		}
	}
	began := time.Now()
	if err := l.Suites(ctx, func(name string) bool { return needs[name] }, say); err != nil {
		return 0, err
	}
	err := each(ctx, numbers, jobs, func(n int) error {
		p, e := &l.All[n], r[l.All[n].Name]
		if p.Tests {
			return l.retest(ctx, n, e.Tests[0], say)
		}
		err := l.replay(ctx, n, e.Run)
		if err == nil {
			say("%-28s seed %-6d %-8s refused", p.Name, e.Run.Seed, e.Run.Property)
		}
		return err
	})
	say("%d planted bugs replayed in %.1f s", len(numbers), time.Since(began).Seconds())
	return len(numbers), err
}

// retest runs the recorded test of a plant with it and without.
func (l *Lab) retest(ctx context.Context, n int, recorded Test, say func(string, ...any)) error {
	p := &l.All[n]
	at := slices.IndexFunc(suites(), func(s suite) bool { return s.name == recorded.Suite })
	if at < 0 {
		return fmt.Errorf("%w: %s: there is no suite %q", ErrRecord, p.Name, recorded.Suite)
	}
	on, err := Numbers(l.All, p.Name)
	if err != nil {
		return err
	}
	with, err := l.test(ctx, suites()[at], recorded.Test, on)
	if err != nil {
		return err
	}
	without, err := l.test(ctx, suites()[at], recorded.Test, nil)
	switch {
	case err != nil:
		return err
	case with == nil || with.Test != recorded.Test:
		return fmt.Errorf("%w: %s.%s does not fail with %s", ErrRecord, recorded.Suite, recorded.Test, p.Name)
	case without != nil:
		return fmt.Errorf("%w: %s.%s fails without %s", ErrRecord, recorded.Suite, recorded.Test, p.Name)
	}
	say("%-28s %s.%s fails", p.Name, recorded.Suite, recorded.Test)
	return nil
}

// replay runs a pinned seed with its plant and without.
func (l *Lab) replay(ctx context.Context, n int, seen *Seen) error {
	p := &l.All[n]
	on, err := Numbers(l.All, p.Name)
	if err != nil {
		return err
	}
	job := []Job{{Mix: p.Mix, From: seen.Seed, Count: 1, Want: []string{seen.Property}, Follow: p.Model}}
	with, err := l.Do(ctx, on, job)
	if err != nil {
		return err
	}
	aids, err := Numbers(l.All, l.aidsOf(on)...)
	if err != nil {
		return err
	}
	without, err := l.Do(ctx, aids, job)
	if err != nil {
		return err
	}
	var bad []error
	if with[0].Property != seen.Property {
		bad = append(bad, fmt.Errorf("%w: seed %d with %s is refused for %q, %q is recorded: %s", ErrRecord, seen.Seed, p.Name, with[0].Property, seen.Property, with[0].Text))
	}
	if without[0].Seed != 0 {
		bad = append(bad, fmt.Errorf("%w: seed %d is refused without %s: %s", ErrRecord, seen.Seed, p.Name, without[0].Text))
	}
	return errors.Join(bad...)
}
