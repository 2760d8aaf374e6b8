package follow

import (
	"errors"
	"fmt"

	"kvfence/spec"
)

// ErrTrace is wrapped when a line cannot be judged at all: no start line, another version, a hole.
var ErrTrace = errors.New("trace cannot be followed")

// Violation is a line that is no step of the specification, or puts out what it did not say.
type Violation struct {
	Line     int    // of all lines that were taken, from 1
	At       int64  // nanoseconds, by the node's clock
	Node     string // name of the node
	Machine  string
	Action   string // the action of the specification, or what was put out
	Conjunct string // what does not hold, in the words of the specification where it is a guard
	Values   string
}

// Error is one line.
func (v *Violation) Error() string {
	return fmt.Sprintf("line %d, %.6f s, %s of %s: %s: does not hold: %s; %s", v.Line, float64(v.At)/1e9, v.Machine, v.Node, v.Action, v.Conjunct, v.Values)
}

// Stats are counts since New.
type Stats struct {
	Lines    int            `json:"lines"`
	Actions  map[string]int `json:"actions"`  // that machines said, by name
	Hidden   int            `json:"hidden"`   // that no line says: the fabric's, mostly
	Leases   int            `json:"leases"`   // granted
	Damaged  int            `json:"damaged"`  // findings of tags or digests
	Believed int            `json:"believed"` // messages of nodes that are not in the trace
	Live     int            `json:"live"`     // records in memory
}

// Follower holds lines to the specification, one after another. Make it with New.
type Follower struct {
	s                *State
	line             int
	now              *spec.TraceLine
	name             string // of the node of now
	found            *Violation
	stats            Stats
	hidden           bool // actions are taken that no machine says
	decodes          map[spec.Incarnation]*decodeRank
	prefill          map[spec.Incarnation]*prefillRank
	leaders          map[spec.Incarnation]*decodeLeader
	leads            map[spec.Incarnation]*prefillLeader
	named            map[string]spec.Incarnation // the present life behind each role and name
	ids              map[spec.TraceTransfer]Transfer
	names            map[Transfer]spec.TraceTransfer
	words            map[Transfer]map[string]bool
	lastT            Transfer
	lastQ            SPage
	overL            []Lease // leases that are over and not forgotten
	sides            map[spec.Incarnation]sideOf
	toRank, toLeader map[sideOf][]sideMessage
	source           int // the file of the present line
	of               map[spec.Incarnation]int
	more             func(source int) bool
	strict           bool // every end of every link is in the trace
}

// New makes a follower of nothing. strict: every node writes the trace, so that no message may come from one that does not.
func New(strict bool) *Follower {
	f := &Follower{s: NewState(), decodes: map[spec.Incarnation]*decodeRank{}, prefill: map[spec.Incarnation]*prefillRank{},
		leaders: map[spec.Incarnation]*decodeLeader{}, leads: map[spec.Incarnation]*prefillLeader{}, named: map[string]spec.Incarnation{}, of: map[spec.Incarnation]int{}, ids: map[spec.TraceTransfer]Transfer{}, names: map[Transfer]spec.TraceTransfer{},
		words: map[Transfer]map[string]bool{}, sides: map[spec.Incarnation]sideOf{}, toRank: map[sideOf][]sideMessage{}, toLeader: map[sideOf][]sideMessage{}, strict: strict}
	f.s.apart, f.s.explain = true, true
	f.stats.Actions = map[string]int{}
	return f
}

// Journal gives each action of the relation that is taken from now on, said or hidden, in order: a behaviour of the specification.
func (f *Follower) Journal(each func(Act)) { f.s.journal = each }

// Stats are the counts so far; the map is the follower's.
func (f *Follower) Stats() Stats {
	st := f.stats
	st.Lines, st.Live = f.line, len(f.s.leases)+len(f.s.transfers)
	return st
}

// Step takes one line. A *Violation says that it is refused: the state then is as if the machine had been right, so that one may go on, but
// what follows may be a consequence. ErrTrace: the line cannot be judged. The line is not kept.
func (f *Follower) Step(l *spec.TraceLine) error {
	f.line++
	f.now, f.found = l, nil
	var err error
	switch l.Machine {
	case spec.TraceDecode:
		err = f.decodeLine(l)
	case spec.TracePrefill:
		err = f.prefillLine(l)
	case spec.TraceDecodeLeader:
		err = f.decodeLeaderLine(l)
	case spec.TracePrefillLeader:
		err = f.prefillLeaderLine(l)
	case spec.TraceWorld:
		if l.Event.Kind == "Lost" {
			err = fmt.Errorf("%w: line %d: %d lines were lost when it was written", ErrTrace, f.line, l.Event.Number)
		}
	default:
		err = fmt.Errorf("%w: line %d: there is no machine %q", ErrTrace, f.line, l.Machine)
	}
	if err == nil {
		f.sidePut(l)
		f.judge()
		f.sweep()
	}
	f.now = nil
	if err != nil {
		return err
	}
	if f.found != nil {
		return f.found
	}
	return nil
}

// started judges a start line.
func (f *Follower) started(l *spec.TraceLine) (*spec.TraceStart, error) {
	s := l.Event.Start
	if s == nil || s.Version != spec.TraceVersion {
		return nil, fmt.Errorf("%w: line %d: the start of a machine in version %d of the format", ErrTrace, f.line, spec.TraceVersion)
	}
	return s, nil
}

func (f *Follower) unknown(l *spec.TraceLine) error {
	return fmt.Errorf("%w: line %d: no start line of the %s of node %s came before it", ErrTrace, f.line, l.Machine, l.Node)
}

// say records the first thing that is wrong with the line.
func (f *Follower) say(action, conjunct, format string, args ...any) {
	if f.found != nil {
		return
	}
	f.found = &Violation{Line: f.line, Node: f.name, Action: action, Conjunct: conjunct, Values: fmt.Sprintf(format, args...)}
	if f.now != nil {
		f.found.At, f.found.Machine = f.now.At, string(f.now.Machine)
	}
}

// require is say unless it holds.
func (f *Follower) require(holds bool, action, conjunct, format string, args ...any) bool {
	if !holds {
		f.say(action, conjunct, format, args...)
	}
	return holds
}

// do takes an action of the relation for a machine that says it took it; refused, it is taken all the same.
func (f *Follower) do(a Act) bool {
	r := f.s.Do(&a)
	if f.hidden {
		f.stats.Hidden++
	}
	if r == nil {
		return true
	}
	f.say(actText(&a), r.Conjunct, "%s", r.Values)
	f.s.force = true
	f.s.Do(&a)
	f.s.force = false
	return false
}

// hide takes an action that no line says: false if it is not enabled.
func (f *Follower) hide(a Act) bool {
	f.stats.Hidden++
	return f.s.Do(&a) == nil
}

// actText names an action and its main parameters.
func actText(a *Act) string {
	text := a.Name
	if a.L != 0 {
		text += fmt.Sprintf(" of lease %d", a.L&numbers>>subBits)
	}
	if a.P != 0 {
		text += fmt.Sprintf(", page %d", pageNumber(a.P))
	}
	switch a.Name {
	case "RaiseMark", "RecvMark", "OwnMark":
		text += fmt.Sprintf(" to %d", a.M&numbers>>subBits)
	case "Take", "RecvReceipt", "RecvComplete":
		text += ", " + kindNames[a.Kind]
	}
	return text
}

// pageKey is a page of a node's pool; never 0.
func pageKey(n Node, c int, page uint64) Page {
	return Page(uint64(n)<<nodeBits | uint64(c)<<40 | (page + 1))
}

func pageNumber(p Page) uint64 { return uint64(p)&(1<<40-1) - 1 }

func leaseKey(n Node, l spec.LeaseID) Lease {
	return Lease(uint64(n)<<nodeBits | uint64(l)<<subBits)
}

// life is the life of a node that a start line begins; the one before it, of the same name, is over.
func (f *Follower) life(role spec.TraceMachine, s *spec.TraceStart, inc spec.Incarnation) (before spec.Incarnation) {
	key := fmt.Sprintf("%s %s %d", role, s.Name, s.Rank)
	before = f.named[key]
	f.named[key], f.of[inc] = inc, f.source
	if f.of[before] != f.source {
		return spec.Incarnation{} // the end of another file may not have been read yet
	}
	return before
}

// From says which file the next lines are of; more reports whether a file has lines that are not taken. Without it all lines are of one.
func (f *Follower) From(source int, more func(source int) bool) { f.source, f.more = source, more }

// unread: the file of a node has lines that are not taken.
func (f *Follower) unread(inc spec.Incarnation) bool {
	return f.more != nil && f.of[inc] != f.source && f.more(f.of[inc])
}

// inOrder takes what a machine said and what it put out in the order in which it came.
func (f *Follower) inOrder(l *spec.TraceLine, did func(*spec.TraceDid), out func(*spec.TraceOut)) {
	n := 0
	say := func(upTo int) {
		for ; n < min(upTo, len(l.Did)); n++ {
			f.stats.Actions[l.Did[n].Name]++
			did(&l.Did[n])
		}
	}
	for i := range l.Out {
		say(l.Out[i].After)
		out(&l.Out[i])
	}
	say(len(l.Did))
}
