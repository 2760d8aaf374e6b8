package plants

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Pinned replays the recorded run of every plant: with it the run must be refused for the recorded property, without it it must pass. It
// returns how many were replayed.
func (l *Lab) Pinned(ctx context.Context, r Record, jobs int, say func(string, ...any)) (int, error) {
	var numbers []int
	for n := range l.All {
		if p := &l.All[n]; !p.Aid() && r[p.Name].Run != nil {
			numbers = append(numbers, n)
		}
	}
	began := time.Now()
	err := each(ctx, numbers, jobs, func(n int) error {
		p, seen := &l.All[n], r[l.All[n].Name].Run
		err := l.replay(ctx, n, seen)
		if err == nil {
			say("%-28s seed %-6d %-6s refused", p.Name, seen.Seed, seen.Property)
		}
		return err
	})
	say("%d planted bugs replayed in %.1f s", len(numbers), time.Since(began).Seconds())
	return len(numbers), err
}

// replay runs a pinned seed with its plant and without.
func (l *Lab) replay(ctx context.Context, n int, seen *Seen) error {
	p := &l.All[n]
	on, err := Numbers(l.All, p.Name)
	if err != nil {
		return err
	}
	job := []Job{{Mix: p.Mix, From: seen.Seed, Count: 1, Want: []string{seen.Property}}}
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
