package sim

import (
	"fmt"
	"runtime/debug"

	"kvfence/spec"
)

// Outcome is what a seed, or a script, came to.
type Outcome struct {
	Seed       uint64
	Hash       uint64
	Steps      int
	OK, Failed int // requests answered with success, with a failure
	Lost       int // whose node died
	Alarms     int
	Hits       int // shares taken at decode
	Sources    int // and by prefill ranks that live at the end
	Forked     int // steps of further samples that ended well
	Causes     map[spec.Cause]int
	Kinds      map[Kind]int // what happened
}

// String is one line for people.
func (o Outcome) String() string {
	return fmt.Sprintf("seed %d hash %016x steps %d ok %d failed %d lost %d alarms %d hits %d sources %d forked %d", o.Seed, o.Hash, o.Steps, o.OK, o.Failed, o.Lost, o.Alarms, o.Hits, o.Sources, o.Forked)
}

// runBound is how many steps a run may take before it is healed, and again after: more is ErrStuck. Runs take some thousands.
const runBound = 150_000

// Run is one seed: a cluster of drawn shape under requests and faults, then healed; every request has its answer and every page is
// back at the end. change, if not nil, alters the drawn cluster. The error is a *Violation and wraps ErrViolation or ErrStuck. It depends
// on nothing but its arguments, and ends.
func Run(seed uint64, change func(*Config)) (Outcome, error) {
	cfg := Shape(seed)
	if change != nil {
		change(&cfg)
	}
	r := run{cfg: cfg, chance: newChance(cfg.Seed), d: newMayhem(&cfg)}
	return r.play()
}

// run is a cluster and what is done to it.
type run struct {
	cfg    Config
	chance *chance
	d      director
	w      *World
	bound  int   // of steps, twice; 0: runBound
	last   int   // step of the last act: one at most between two steps
	waits  Act   // had nothing to happen to, and may until
	until  int   // this step
	acts   []Act // that did something
}

// play goes through a run. A machine that panics is a finding.
func (r *run) play() (out Outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			v := &Violation{Oracle: Panic, Seed: r.cfg.Seed, Text: fmt.Sprintf("%v\n%s", p, debug.Stack())}
			if r.w != nil {
				v.Step, v.At = r.w.steps, float64(r.w.now)/1e9
			}
			err = v
		}
	}()
	w := newWorld(r.cfg, r.chance)
	r.w = w
	w.countShape()
	r.last = -1
	if r.bound == 0 {
		r.bound = runBound
	}
	w.idle = func() bool {
		was := w.healed
		if !was && r.last != w.steps {
			r.act(true)
		}
		return !was
	}
	err = w.RunUntil(func() bool {
		if !w.healed && r.last != w.steps {
			r.act(false)
		}
		return w.healed
	}, r.bound)
	if err == nil {
		err = w.RunUntil(func() bool { return w.Answered() && w.Clean() }, r.bound)
	}
	return r.outcome(), err
}

// patience is for how many steps a fault waits for something to happen to: a write under way, a message.
const patience = 250

// act does one act of the director, or the last one that had nothing to happen to.
func (r *run) act(idle bool) {
	a, is := r.waits, r.until > r.w.steps && !idle
	if !is {
		if a, is = r.d.next(r.w, idle); !is {
			return
		}
		r.waits, r.until = a, r.w.steps+patience
	}
	a.At = r.w.steps
	did := r.w.apply(a)
	if did || !a.Do.waits() {
		r.until = 0
		r.last = r.w.steps
	}
	if did {
		r.w.note("%s p%d d%d rank %d nth %d n %d", a.Do, a.P, a.D, a.Rank, a.Nth, a.N)
		r.acts = append(r.acts, a)
	}
}

func (r *run) outcome() Outcome {
	w := r.w
	out := Outcome{Seed: w.cfg.Seed, Hash: w.Hash(), Steps: w.steps, Alarms: w.alarms, Forked: int(w.stepsForked), Hits: w.shared, Causes: map[spec.Cause]int{}, Kinds: w.kinds}
	for _, p := range w.prefill {
		for _, r := range p.ranks {
			out.Sources += int(r.m.Status().Hits)
		}
	}
	for _, q := range w.requests {
		switch {
		case q.Half:
		case q.Lost:
			out.Lost++
		case q.OK():
			out.OK++
		default:
			out.Failed++
			out.Causes[q.Cause]++
		}
	}
	return out
}
