package mem

import (
	"errors"
	"fmt"
	"sort"

	"kvfence/impl/transport"
	"kvfence/spec"
)

// OpRef numbers the operations of a fabric, 1 upwards in the order in which they came to be.
type OpRef uint64

// Kind is what an operation is.
type Kind uint8

// The kinds of operations.
const (
	Write       Kind = iota // one write of a batch, or its duplicate
	Batch                   // the end of a batch at its source: Posted
	Notice                  // a drain notice on one channel
	Noticed                 // the end of a notice at its source
	SourceFence             // Fenced at a source
	SourceLost              // Lost at a source
	TargetFence             // Fenced at a target
	TargetLost              // Lost at a target
	Job                     // a copy job of a reader
	ReaderFence             // Fenced at a reader
	ReaderLost              // Lost at a reader
	Opened                  // Opened at an exporter
	ExportLost              // Lost at an exporter
	ReaderEnded             // ReaderEnded at an exporter
	Moved                   // over verbs: a queue pair of a target has come to be in error
	Invalidate              // over verbs: a window of a lease is taken back
)

// String names the kind in scripts and logs.
func (k Kind) String() string {
	return [...]string{
		"write", "batch", "notice", "noticed", "source-fence", "source-lost", "target-fence", "target-lost",
		"job", "reader-fence", "reader-lost", "opened", "export-lost", "reader-ended",
		"moved", "invalidate",
	}[k]
}

// State is how far an operation is.
type State uint8

// The states. A kind that has one step only is Queued.
const (
	Queued   State = iota
	Launched       // the source was read; the bytes are the fabric's
	Checked        // write: the grant table agreed; copy: source tag, digest and epoch agreed
	Half           // the first half of the bytes is in the destination page
	Copied         // all bytes are, the tag is not
)

// String names the state in scripts and logs.
func (s State) String() string {
	return [...]string{"queued", "launched", "checked", "half", "copied"}[s]
}

// Do is what is done to an operation.
type Do uint8

// What can be done; see the package comment.
const (
	Advance Do = iota
	Lose
	Duplicate
	Fail
	Overtake
	Flip
	Tear
)

// String names the deed in scripts and logs.
func (d Do) String() string {
	return [...]string{"advance", "lose", "duplicate", "fail", "overtake", "flip", "tear"}[d]
}

// Errors of Step.
var (
	// ErrNoOp says that no such operation is pending.
	ErrNoOp = errors.New("no such operation is pending")
	// ErrNotNow says that the operation cannot take this step now.
	ErrNotNow = errors.New("operation cannot take this step now")
	// ErrFailed is what an operation reports that was failed by the test.
	ErrFailed = errors.New("failed by the fabric")
	// ErrJob is wrapped when a copy or write names memory outside of the pools.
	ErrJob = errors.New("lies outside of the pools")
)

// Op describes a pending operation.
type Op struct {
	Ref     OpRef
	Kind    Kind
	State   State
	Link    transport.LinkInfo
	Lease   spec.LeaseID // writes, batches, notices, jobs
	Channel uint32       // writes and notices
	ID      uint64       // of the batch or job; the number of a notice
	Index   int          // of the write in its batch, of the copy in its job
	Again   bool         // a duplicate
	Held    bool         // Drain leaves it alone
	Ready   bool         // Advance can be done now
}

// Faults turn guards of the fabric off, for tests that show what falls without them. All false is the faithful fabric.
type Faults struct {
	Unchecked    bool `yaml:"unchecked,omitempty"`     // a write lands although the grant table refused it, unless its target has fenced; segments as at the source
	FenceAtOnce  bool `yaml:"fence-at-once,omitempty"` // a target's or reader's fence waits for nobody
	TrustSource  bool `yaml:"trust-source,omitempty"`  // a reader checks neither source tag nor epoch after the copy
	NoticesFirst bool `yaml:"notices-first,omitempty"` // a notice waits for nothing on its channel
}

// Fabric is all links of a simulation. Make it with New.
type Fabric struct {
	faults Faults
	verbs  Verbs
	links  []*pushLink // over verbs, with decode's end open
	last   OpRef
	ops    []op // pending, by number
	push   map[linkName]*pushLink
	pull   map[linkName]*pullLink
}

type linkName struct {
	prefill, decode spec.Incarnation
	epoch           spec.Epoch
}

func nameOf(i transport.LinkInfo) linkName { return linkName{i.Prefill, i.Decode, i.Epoch} }

// op is an operation. step is called with what the operation allows by can.
type op interface {
	base() *opBase
	can(d Do) bool
	step(d Do)
}

// opBase is what every operation has.
type opBase struct {
	Op
	over bool // done or dead: taken out of the list
}

func (b *opBase) base() *opBase { return b }

// New makes an empty fabric.
func New(f Faults) *Fabric {
	return &Fabric{faults: f, push: map[linkName]*pushLink{}, pull: map[linkName]*pullLink{}}
}

// Pending is every operation that is not over, in the order in which they came to be.
func (f *Fabric) Pending() []Op {
	out := make([]Op, 0, len(f.ops))
	for _, o := range f.ops {
		d := o.base().Op
		d.Ready = o.can(Advance)
		out = append(out, d)
	}
	return out
}

// Len, At and Ready are Pending without a copy: operation i of Len in the order in which they came to be, and whether Advance can be
// done with it now. Ready is not filled in At's. What At returns is the fabric's and is good until its next step.
func (f *Fabric) Len() int         { return len(f.ops) }
func (f *Fabric) At(i int) *Op     { return &f.ops[i].base().Op }
func (f *Fabric) Ready(i int) bool { return f.ops[i].can(Advance) }

// Step does d to operation r; sinks are called from within. ErrNoOp if r is not pending, ErrNotNow if d cannot be done to it now.
func (f *Fabric) Step(r OpRef, d Do) error {
	o := f.find(r)
	if o == nil {
		return fmt.Errorf("%w: %d", ErrNoOp, r)
	}
	if !o.can(d) {
		return fmt.Errorf("%w: %s %s %d (%s)", ErrNotNow, d, o.base().Kind, r, o.base().State)
	}
	o.step(d)
	f.sweep()
	return nil
}

// Hold makes Drain leave operation r alone, or no longer. Step still obeys.
func (f *Fabric) Hold(r OpRef, held bool) error {
	o := f.find(r)
	if o == nil {
		return fmt.Errorf("%w: %d", ErrNoOp, r)
	}
	o.base().Held = held
	return nil
}

// Drain advances everything that is not held, the oldest as far as it goes first, also what comes to be meanwhile, until nothing
// can move. It returns the number of steps.
func (f *Fabric) Drain() (steps int) {
	for moved := true; moved; {
		moved = false
		for i := 0; i < len(f.ops); i++ {
			for o := f.ops[i]; !o.base().over && !o.base().Held && o.can(Advance); steps++ {
				o.step(Advance)
				moved = true
			}
		}
		f.sweep()
	}
	return steps
}

func (f *Fabric) find(r OpRef) op {
	i := sort.Search(len(f.ops), func(i int) bool { return f.ops[i].base().Ref >= r })
	if i < len(f.ops) && f.ops[i].base().Ref == r && !f.ops[i].base().over {
		return f.ops[i]
	}
	return nil
}

// add enters an operation and gives it its number.
func (f *Fabric) add(o op) {
	f.last++
	o.base().Ref = f.last
	f.ops = append(f.ops, o)
}

// sweep takes out what is over.
func (f *Fabric) sweep() {
	kept := f.ops[:0]
	for _, o := range f.ops {
		if !o.base().over {
			kept = append(kept, o)
		}
	}
	clear(f.ops[len(kept):])
	f.ops = kept
}

// report is an operation of one step that calls a sink.
type report struct {
	opBase
	ready func() bool // nil: always
	run   func(err error)
	fails bool // Fail may be done
	lose  bool // Lose may be done
}

func (r *report) can(d Do) bool {
	switch d {
	case Advance:
		return r.ready == nil || r.ready()
	case Fail:
		return r.fails
	case Lose:
		return r.lose
	}
	return false
}

func (r *report) step(d Do) {
	r.over = true
	switch d {
	case Advance:
		r.run(nil)
	case Fail:
		r.run(ErrFailed)
	}
}

// gather is the bytes of segs in page.
func gather(page []byte, segs []spec.Segment) ([]byte, error) {
	var b []byte
	for _, s := range segs {
		if uint64(s.Offset)+uint64(s.Bytes) > uint64(len(page)) {
			return nil, fmt.Errorf("%w: segment %d+%d", ErrJob, s.Offset, s.Bytes)
		}
		b = append(b, page[s.Offset:][:s.Bytes]...)
	}
	return b, nil
}

// place stores bytes [lo, hi) of b where segs says that they belong in page.
func place(page []byte, segs []spec.Segment, b []byte, lo, hi int) {
	at := 0
	for _, s := range segs {
		from, to := max(lo, at), min(hi, at+int(s.Bytes))
		if from < to {
			copy(page[int(s.Offset)+from-at:], b[from:to])
		}
		at += int(s.Bytes)
	}
}
