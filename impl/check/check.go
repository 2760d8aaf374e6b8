// Package check holds recorded traces to the specification: it reads the files, one for each process, merges them by what each node
// heard of the others, hands the lines to model/follow and counts. It can go on with files that grow, so that a live node is watched.
//
// It judges nothing itself. `kvfence check` calls it. Read next: merge.go; model/follow for the judging, spec/trace.md for the format.
package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"kvfence/impl/trace"
	"kvfence/model/follow"
	"kvfence/spec"
)

// ErrFile is wrapped by everything that keeps a trace from being judged: it cannot be read, is no trace, has a hole or a torn end.
var ErrFile = errors.New("trace cannot be checked")

// Options say how to check.
type Options struct {
	Files []string
	// Follow goes on when a file ends, until the context does: a torn end is then only a line that is being written.
	Follow bool
	Strict bool // no message may come from a node that is not in the files
	Most   int  // violations after which it ends; 0: the first is the last
	// Violation is called with each, as it is found; Count now and then with the counts so far. They may be nil.
	Violation func(*follow.Violation)
	Count     func(Result)
	Every     time.Duration // between two counts; default 10 s
}

// Result is what was found.
type Result struct {
	follow.Stats
	Violations int           `json:"violations"`
	Took       time.Duration `json:"took_ns"`
	PerMinute  float64       `json:"lines_per_minute"`
	Torn       string        `json:"torn,omitempty"` // the last line of a file has no end
}

// Run checks until the files end, or in Follow mode until ctx does. The error wraps ErrFile; violations are a result.
func Run(ctx context.Context, o Options) (Result, error) {
	m := &merger{f: follow.New(o.Strict), o: o, started: time.Now(), counted: time.Now()}
	if m.o.Every == 0 {
		m.o.Every = 10 * time.Second
	}
	for _, name := range o.Files {
		f, err := os.Open(name)
		if err != nil {
			return Result{}, fmt.Errorf("%w: %w", ErrFile, err)
		}
		defer f.Close()
		m.sources = append(m.sources, &source{name: name, r: trace.NewReader(f)})
	}
	err := m.run(ctx)
	return m.result(), err
}

// Lines checks lines that are in memory, in their order.
func Lines(lines []spec.TraceLine, strict bool) (follow.Stats, []*follow.Violation, error) {
	f := follow.New(strict)
	var all []*follow.Violation
	for i := range lines {
		err := f.Step(&lines[i])
		var v *follow.Violation
		if errors.As(err, &v) {
			all = append(all, v)
		} else if err != nil {
			return f.Stats(), all, err
		}
	}
	return f.Stats(), all, nil
}

func (m *merger) result() Result {
	r := Result{Stats: m.f.Stats(), Violations: m.violations, Took: time.Since(m.started)}
	if s := r.Took.Seconds(); s > 0 {
		r.PerMinute = 60 * float64(r.Lines) / s
	}
	for _, s := range m.sources {
		if err := s.r.Torn(); err != nil && s.ended {
			r.Torn = fmt.Sprintf("%s: %v", s.name, err)
		}
	}
	return r
}

// isEnd reports the end of a file.
func isEnd(err error) bool { return errors.Is(err, io.EOF) }
