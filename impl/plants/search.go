package plants

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sync"
)

// SearchOptions say what is searched and how long.
type SearchOptions struct {
	Workers int
	Seconds float64        // for each plant
	Only    *regexp.Regexp // names; nil: all
	Muted   bool           // again with the machines' own assertions silent, judged from outside and by the specification
	Tests   bool           // the tests of the packages as well
}

// besides is how long the other judges are asked, in seconds of processor time.
const besides = 6

// muting is the aid that silences assertions.
const muting = "mute"

// SearchAll tries every plant and returns the record that comes of it: entries of plants that are left out stay as they were, and so do the
// tests of one that has not changed where no tests are asked.
func (l *Lab) SearchAll(ctx context.Context, o SearchOptions, before Record, say func(string, ...any)) (Record, error) {
	after := Record{}
	for name, e := range maps.All(before) {
		if n := Find(l.All, name); n >= 0 && !l.All[n].Aid() {
			after[name] = e
		}
	}
	var numbers []int
	for n := range l.All {
		if !l.All[n].Aid() && (o.Only == nil || o.Only.MatchString(l.All[n].Name)) {
			numbers = append(numbers, n)
		}
	}
	if o.Tests || slices.ContainsFunc(numbers, func(n int) bool { return l.All[n].Tests }) {
		if err := l.Suites(ctx, func(string) bool { return true }, say); err != nil {
			return nil, err
		}
		if err := l.Base(ctx); err != nil {
			return nil, err
		}
	}
	var mu sync.Mutex
	err := each(ctx, numbers, o.Workers, func(n int) error {
		e, err := l.try(ctx, n, o)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if was := before[e.Name]; !o.Tests && !l.All[n].Tests && was.Text == e.Text {
			e.Tests = was.Tests
		}
		after[e.Name] = e
		say("%s", line(e))
		return nil
	})
	return after, err
}

// try searches one plant at all gates.
func (l *Lab) try(ctx context.Context, n int, o SearchOptions) (Entry, error) {
	p := &l.All[n]
	e := Entry{Name: p.Name, Text: p.hash(l.All)}
	if o.Tests || p.Tests {
		var err error
		if e.Tests, err = l.Tests(ctx, n); err != nil {
			return e, err
		}
	}
	if p.Tests {
		return e, nil
	}
	c, err := l.Search(ctx, n, o.Seconds, false)
	if err != nil {
		return e, err
	}
	e.Run = seen(c)
	if !o.Muted || c.Seed == 0 {
		return e, nil
	}
	for _, followed := range []bool{false, true} {
		c, err := l.Search(ctx, n, min(o.Seconds, besides), followed, muting)
		switch {
		case err != nil:
			return e, err
		case !followed:
			e.Oracle = seen(c)
		case c.Property == InModel:
			e.Model = seen(c)
		}
	}
	return e, nil
}

func seen(c Catch) *Seen {
	if c.Seed == 0 {
		return nil
	}
	return &Seen{Seed: c.Seed, Seeds: c.Seeds, Steps: c.Steps, Seconds: round(c.Seconds), Property: c.Property, Text: c.Text}
}

// line is an entry for people.
func line(e Entry) string {
	text := fmt.Sprintf("%-28s ", e.Name)
	switch {
	case e.Run != nil:
		text += fmt.Sprintf("%-6s seed %d, %d steps, %.2f s: %s", e.Run.Property, e.Run.Seed, e.Run.Steps, e.Run.Seconds, e.Run.Text)
	case len(e.Tests) == 0:
		text += "NOT CAUGHT"
	}
	if e.Oracle != nil {
		text += fmt.Sprintf("\n%30s silent: %s seed %d, %d steps, %.2f s: %s", "", e.Oracle.Property, e.Oracle.Seed, e.Oracle.Steps, e.Oracle.Seconds, e.Oracle.Text)
	}
	if e.Model != nil {
		text += fmt.Sprintf("\n%30s model: seed %d, %d steps, %.2f s: %s", "", e.Model.Seed, e.Model.Steps, e.Model.Seconds, e.Model.Text)
	}
	for _, t := range e.Tests {
		text += fmt.Sprintf("\n%30s %s.%s %s, %.2f s", "", t.Suite, t.Test, t.How, t.Seconds)
	}
	return text
}
