// Package explore walks the whole state graph of an executable model, breadth first: how many states, steps and levels there are,
// whether properties hold, and the shortest way to a state. It compares states in full, never by a fingerprint; the speed sits in
// the encoding (layout.go), so that the model itself may stay naive. It knows no model and reads no clock; results do not depend
// on the number of workers. Called by impl/cmd/model and by tests. Read next: layout.go, memory.go, disk.go, graph.go.
package explore

import (
	"errors"
	"fmt"
)

var (
	// ErrState is what is said of a state type that cannot be encoded: one with pointers, strings, maps, interfaces or floats.
	ErrState = errors.New("state type cannot be encoded")
	// ErrTooMany is what is said when a set outgrows what its numbers can count.
	ErrTooMany = errors.New("too many states")
	// ErrRuns is what is said of a run file that does not read back as it was written.
	ErrRuns = errors.New("bad run file")
)

// System is a model: its initial states and its steps. Next must not keep or change s, and what it emits must depend on s only; next
// is read before emit returns. A System is used by one goroutine at a time.
type System[S comparable] interface {
	Init() []S
	Next(s *S, emit func(action int, next *S))
}

// Options say what to look at and what to use. The zero value explores in memory with one worker.
type Options[S comparable] struct {
	Workers int // goroutines; less than 1 is 1

	// Check names the property of states that s breaks, "" if none; Step the property of steps. They may be nil; they are called
	// from several goroutines at once.
	Check func(s *S) string
	Step  func(from *S, action int, to *S) string

	// Dir, if not "", keeps the set in sorted files below this folder and at most about Memory bytes of states in memory. The
	// folder must exist; the files in it are removed at the end.
	Dir    string
	Memory int

	// Limit ends the walk with ErrTooMany beyond so many states; 0 is no limit of its own.
	Limit int
}

// Result is what the walk found.
type Result[S comparable] struct {
	States    int
	Generated int   // successors, with those seen before, and the initial states
	Edges     int   // steps as a set of (from, action, to)
	Depth     int   // levels, the initial states are the first
	Actions   []int // steps by action
	Violation *Violation[S]
	Graph     *Graph[S] // the set itself; nil for a set on disk

	Bytes  int // a state in memory or on disk
	Spills int // sorted files written
	Peak   int // most bytes of states that were in memory at once, of a set on disk
}

// Violation is a property broken, and the shortest way there.
type Violation[S comparable] struct {
	Property string
	Path     []Step[S]
}

// Step is a state of a path and the action that led to it, -1 for an initial one.
type Step[S comparable] struct {
	Action int
	State  S
}

// Run explores the system; newSystem makes one for each worker. A property that is broken is a result, not an error; the walk ends with the
// level where it is found, and of several found there the first with the shortest path is told.
func Run[S comparable](newSystem func() System[S], o Options[S]) (Result[S], error) {
	lay, err := newLayout[S]()
	if err != nil {
		return Result[S]{}, err
	}
	o.Workers = max(o.Workers, 1)
	if o.Dir != "" {
		return runDisk(newSystem, o, lay)
	}
	return runMemory(newSystem, o, lay)
}

// tally is what one piece of work counted; sums of tallies do not depend on their order.
type tally struct {
	generated, edges int
	actions          []int
}

func (t *tally) add(action, generated int) {
	for len(t.actions) <= action {
		t.actions = append(t.actions, 0)
	}
	t.actions[action]++
	t.edges++
	t.generated += generated
}

func (r *Result[S]) count(t *tally) {
	r.Generated += t.generated
	r.Edges += t.edges
	for a, n := range t.actions {
		for len(r.Actions) <= a {
			r.Actions = append(r.Actions, 0)
		}
		r.Actions[a] += n
	}
}

// shorter says whether a property broken by a state of the present level, or by a step of it, is nearer than what was found.
func (r *Result[S]) shorter(b *broken[S]) bool {
	return b != nil && (r.Violation == nil || r.Depth+len(b.step) < len(r.Violation.Path))
}

func tooMany(n, limit int) error {
	if limit > 0 && n > limit {
		return fmt.Errorf("%w: more than %d", ErrTooMany, limit)
	}
	return nil
}
