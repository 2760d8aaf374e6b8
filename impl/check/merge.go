package check

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kvfence/impl/trace"
	"kvfence/model/follow"
	"kvfence/spec"
)

// poll is how often files that grow are looked at; patience is how long a line waits for the line of another node that it hears of: files are
// written within a second of each other.
const (
	poll     = 100 * time.Millisecond
	patience = 5 * time.Second
)

// merger takes the lines of several files so that nobody hears what was not said.
type merger struct {
	f          *follow.Follower
	o          Options
	sources    []*source
	violations int
	started    time.Time
	counted    time.Time
}

// source is one file with the line that is its next.
type source struct {
	name  string
	r     *trace.Reader
	head  spec.TraceLine
	full  bool
	ended bool
}

// fill reads the next line, if there is one.
func (s *source) fill() error {
	if s.full {
		return nil
	}
	s.head = spec.TraceLine{}
	err := s.r.Next(&s.head)
	switch {
	case isEnd(err):
		s.ended = true
	case err != nil:
		return fmt.Errorf("%w: %s: %w", ErrFile, s.name, err)
	default:
		s.full, s.ended = true, false
	}
	return nil
}

func (m *merger) run(ctx context.Context) error {
	var stuck time.Time // since when every head waits for another
	for n := 0; ; n++ {
		if n&1023 == 0 && ctx.Err() != nil {
			return nil
		}
		s, waits, err := m.next()
		switch {
		case err != nil:
			return err
		case s == nil && !m.o.Follow:
			return m.torn()
		case s == nil || waits && m.o.Follow && !m.late(&stuck):
			m.count()
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(poll):
			}
			continue
		}
		stuck = time.Time{}
		s.full = false
		if more, err := m.take(s); err != nil || !more {
			return err
		}
		if n&4095 == 0 {
			m.count()
		}
	}
}

// next is the file whose line is to be taken; waits: all that there are hear what was not said, this is the first of them.
func (m *merger) next() (s *source, waits bool, err error) {
	var first *source
	at := 0
	for i, s := range m.sources {
		if err := s.fill(); err != nil {
			return nil, false, err
		}
		if !s.full {
			continue
		}
		if len(m.sources) == 1 {
			return s, false, nil
		}
		m.f.From(i, func(j int) bool { return m.sources[j].full })
		if !m.f.Waits(&s.head) {
			return s, false, nil
		}
		if first == nil {
			first, at = s, i
		}
	}
	if first != nil {
		m.f.From(at, func(j int) bool { return m.sources[j].full })
	}
	return first, first != nil, nil
}

func (m *merger) late(stuck *time.Time) bool {
	if stuck.IsZero() {
		*stuck = time.Now()
	}
	return time.Since(*stuck) > patience
}

// take hands a line to the follower. false: enough was found.
func (m *merger) take(s *source) (bool, error) {
	err := m.f.Step(&s.head)
	var v *follow.Violation
	switch {
	case err == nil:
		return true, nil
	case !errors.As(err, &v):
		return false, fmt.Errorf("%w: %s: %w", ErrFile, s.name, err)
	}
	m.violations++
	if len(m.sources) > 1 {
		v.Node += " (" + s.name + ")"
	}
	v.Line = s.r.Number()
	if m.o.Violation != nil {
		m.o.Violation(v)
	}
	return m.violations < max(m.o.Most, 1), nil
}

// torn is the error of a file whose last line has no end.
func (m *merger) torn() error {
	for _, s := range m.sources {
		if err := s.r.Torn(); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrFile, s.name, err)
		}
	}
	return nil
}

func (m *merger) count() {
	if m.o.Count != nil && time.Since(m.counted) >= m.o.Every {
		m.counted = time.Now()
		m.o.Count(m.result())
	}
}
