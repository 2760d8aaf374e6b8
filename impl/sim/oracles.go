package sim

import (
	"errors"
	"fmt"
)

// Oracle names what a run is judged by. A violation carries one.
type Oracle string

// The oracles. Those with a number are the invariants of that number in docs/protocol.md, seen from outside of the machines.
const (
	I2       Oracle = "I2"       // a page under a write, or under a kernel, is its owner's in that generation
	I3       Oracle = "I3"       // every byte that a step reads, and every token that leaves, is what one process alone would have
	I6       Oracle = "I6"       // a page that is still to be read by a write or a copy is not free, and in its generation
	I11      Oracle = "I11"      // one answer for each request
	I12      Oracle = "I12"      // an answer of success is whole and has its reason
	I16      Oracle = "I16"      // when a fence is back nothing of its epochs is placed
	I17      Oracle = "I17"      // free, held, revoking and quarantined pages are the pool, no page twice
	Answers  Oracle = "answers"  // a stream is opened once and before its tokens; counts and causes are said as they are
	Stopped  Oracle = "stopped"  // a machine found one of its own invariants broken
	Contract Oracle = "contract" // a machine said what its driver cannot do, or refused its driver
	Followed Oracle = "followed" // every step of every machine is one of the specification
	Panic    Oracle = "panic"    // a machine panicked
	Liveness Oracle = "liveness" // healed, the cluster answers every request and gives every page back
)

// OracleInfo is what is said of an oracle.
type OracleInfo struct {
	Oracle Oracle
	About  string
}

// Oracles is every oracle, in the order of docs/simulation.md.
func Oracles() []OracleInfo {
	return []OracleInfo{
		{I2, "a page under a write or a kernel is its owner's, in the generation that was granted"},
		{I3, "every byte that a step reads, and every token that leaves, is what one process alone would have: each KV byte and each token is a function of domain, tokens, position, layer and head"},
		{I6, "a page that a write or a copy is still to read is not free, and in its generation"},
		{I11, "a request has one answer"},
		{I12, "an answer of success is whole and has its reason"},
		{I16, "when a fence is back, nothing of its epochs is being placed"},
		{I17, "free, held, revoking and quarantined pages are the pool, and no page stands twice"},
		{Answers, "a stream is opened once and before its tokens; counts, causes and finishes are said as they are"},
		{Stopped, "no machine finds one of its own invariants broken"},
		{Contract, "a machine says nothing that its driver cannot do, and refuses nothing that its driver may say"},
		{Followed, "every step of every machine is one of the specification (model/follow)"},
		{Panic, "no machine panics"},
		{Liveness, "healed, the cluster answers every request and gives every page back; and no machine goes on without time"},
	}
}

// Violation is what an oracle found. It wraps ErrViolation, or ErrStuck for Liveness.
type Violation struct {
	Oracle Oracle
	Seed   uint64
	Step   int
	At     float64 // simulated seconds
	Text   string
}

func (v *Violation) Error() string {
	return fmt.Sprintf("%v: seed %d, step %d, %.6f s: %s: %s", v.Unwrap(), v.Seed, v.Step, v.At, v.Oracle, v.Text)
}

// Unwrap is ErrStuck for Liveness, ErrViolation otherwise.
func (v *Violation) Unwrap() error {
	if v.Oracle == Liveness {
		return ErrStuck
	}
	return ErrViolation
}

// OracleOf is the oracle behind an error of Run; "" if there is none.
func OracleOf(err error) Oracle {
	var v *Violation
	if errors.As(err, &v) {
		return v.Oracle
	}
	return ""
}

// violate keeps the first finding.
func (w *World) violate(o Oracle, format string, args ...any) {
	if w.err == nil {
		w.err = w.violation(o, fmt.Sprintf(format, args...))
	}
}

func (w *World) violation(o Oracle, text string) error {
	return &Violation{Oracle: o, Seed: w.cfg.Seed, Step: w.steps, At: float64(w.now) / 1e9, Text: text}
}
