package sim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/fnv"
	"math/rand/v2"

	"kvfence/impl/core"
	"kvfence/impl/transport/mem"
	"kvfence/spec"
)

// ErrViolation is wrapped by everything that the oracle found.
var ErrViolation = errors.New("the promise is broken")

// ErrStuck is wrapped when a run has not come to its end within its bound.
var ErrStuck = errors.New("the cluster has not come to rest")

// World is one cluster. Make it with New; not safe for concurrent use.
type World struct {
	cfg    Config
	rng    *rand.Rand
	now    core.Time
	fabric *mem.Fabric
	hash   hash.Hash64
	steps  int
	err    error // the first violation

	prefill []*prefillSide // by slot
	decode  []*decodeSide
	conns   []*conn
	lastID  core.ConnID
	works   []*work
	cuts    map[[2]int]bool // prefill slot, decode slot
	minted  uint64          // incarnations
	alarms  int

	asks                []spec.TransferID // that were asked for, by age
	forked, stepsForked uint64            // further samples, and their steps that ended well
	shared              int               // shares taken

	// For scenarios; nil: nothing is held or dropped, no computation fails.
	HoldOp      func(op mem.Op) bool
	LoseMsg     func(toPrefill bool, env spec.Envelope) bool // asked once, when it is sent
	HoldMsg     func(toPrefill bool, env spec.Envelope) bool // asked as long as it waits; what is behind it goes on
	FailCompute func(a core.Compute) string                  // the engine's error, "" for none

	lax      bool        // the fabric is made to break its own order: the oracle does not judge writes under way
	idle     func() bool // called when nothing can happen any more; true: now something can
	requests []*Request
	xfers    map[spec.TransferID]*xfer
}

// xfer is what the world knows of a transfer from its Ask (or of a half from its Submit): the tokens that its KV stands for.
type xfer struct {
	domain spec.Domain
	prompt int
	tokens []int32 // of the prompt; nil for a half
	toy    *toy
}

// work is something that a node's device does and that ends in an event: not before at, in any order with everything else.
type work struct {
	at   core.Time
	host *host
	life int // of the host's side; the work of a dead process is gone
	run  func()
	name string
}

// machine is one of the four of impl/core.
type machine interface {
	Step(now core.Time, ev core.Event) ([]core.Action, error)
	Deadline() core.Time
}

// host is a machine in its process. A side's machines share one fate here.
type host struct {
	side *side
	name string
	m    machine
	act  func(core.Action)
	dead bool // its process died alone; the side goes on without it until it is restarted whole
}

// side is what prefill and decode sides have in common: a life, and events that wait to be taken in order.
type side struct {
	w      *World
	role   string
	slot   int
	up     bool
	paused bool
	life   int
	incs   []spec.Incarnation
	hosts  []*host // leader first, then ranks
	box    []func()
}

// New makes a cluster with every process up and nothing connected.
func New(cfg Config) *World {
	cfg = cfg.withDefaults()
	w := &World{cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, 0x6b7666656e6365)), now: 1, fabric: mem.New(cfg.Fabric), hash: fnv.New64a(),
		cuts: map[[2]int]bool{}, xfers: map[spec.TransferID]*xfer{}}
	for i, n := range cfg.Prefill {
		w.prefill = append(w.prefill, &prefillSide{side: side{w: w, role: spec.RolePrefill, slot: i}, ranks: make([]*prefillRank, n)})
		w.prefill[i].start()
	}
	for i, n := range cfg.Decode {
		w.decode = append(w.decode, &decodeSide{side: side{w: w, role: spec.RoleDecode, slot: i}, ranks: make([]*decodeRank, n)})
		w.decode[i].start()
	}
	return w
}

// Err is the first violation; nil if there is none.
func (w *World) Err() error { return w.err }

// Hash stands for everything that happened.
func (w *World) Hash() uint64 { return w.hash.Sum64() }

// Now is the simulated time.
func (w *World) Now() core.Time { return w.now }

func (w *World) violate(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf("%w: seed %d, step %d, %.6f s: %s", ErrViolation, w.cfg.Seed, w.steps, float64(w.now)/1e9, fmt.Sprintf(format, args...))
	}
}

func (w *World) mint() (inc spec.Incarnation) {
	w.minted++
	binary.BigEndian.PutUint64(inc[:], w.minted<<32|uint64(w.rng.Uint32()))
	binary.BigEndian.PutUint64(inc[8:], w.rng.Uint64())
	return inc
}

// note hashes one thing that happened.
func (w *World) note(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	fmt.Fprintf(w.hash, "%d %s\n", w.now, line)
	if w.cfg.Trace != nil {
		w.cfg.Trace(fmt.Sprintf("%10.6f %s", float64(w.now)/1e9, line))
	}
}

// step gives a machine one event and carries out what it says.
func (w *World) step(h *host, ev core.Event) {
	if h.dead {
		return
	}
	acts, err := h.m.Step(w.now, ev)
	if err != nil {
		w.violate("%s: %v", h.name, err)
		return
	}
	for _, a := range acts {
		switch x := a.(type) {
		case core.Did:
			if x.Name == "Share" {
				w.shared++
			}
			w.note("%s %s %s lease %d peer %d %s", h.name, x.Name, x.Transfer, x.Lease, x.Peer, x.Detail)
		case core.Count:
			w.note("%s refuses %d of peer %d: %s %s", h.name, x.About, x.Peer, x.Refusal, x.Detail)
		case core.Stop:
			w.violate("%s stops: I%d %s", h.name, x.Invariant, x.Broken)
		default:
			h.act(a)
		}
	}
}

// later queues an event for a machine of this side, behind everything that the side was given before.
func (s *side) later(h *host, ev core.Event) {
	life := s.life
	s.box = append(s.box, func() {
		if s.life == life {
			s.w.step(h, ev)
		}
	})
}

// work queues what a device does; it ends after at most most, in any order with everything else.
func (w *World) work(h *host, name string, most core.Duration, run func()) {
	w.works = append(w.works, &work{at: w.now + core.Time(w.rng.Int64N(int64(most)+1)), host: h, life: h.side.life, run: run, name: name})
}

func (w *World) sides() (all []*side) {
	for _, p := range w.prefill {
		all = append(all, &p.side)
	}
	for _, d := range w.decode {
		all = append(all, &d.side)
	}
	return all
}

// settle empties every box of a side that runs, and ticks whoever is due.
func (w *World) settle() {
	for moved := true; moved && w.err == nil; {
		moved = false
		for _, s := range w.sides() {
			for s.up && !s.paused && len(s.box) > 0 && w.err == nil {
				f := s.box[0]
				s.box = s.box[1:]
				f()
				moved = true
			}
			for _, h := range s.hosts {
				if d := h.m.Deadline(); s.up && !s.paused && !h.dead && d != 0 && d <= w.now {
					w.step(h, core.Tick{})
					moved = true
				}
			}
		}
	}
}

// Step takes one thing that can happen now, chosen by the seed, or lets time pass to the next thing. false: nothing will ever happen.
func (w *World) Step() bool {
	w.settle()
	w.check()
	if w.err != nil {
		return false
	}
	w.steps++
	w.now += core.Time(w.rng.Int64N(50_000))
	run, next := w.choices()
	if len(run) == 0 {
		if next == 0 {
			return false
		}
		w.now = max(w.now, next)
		return true
	}
	run[w.rng.IntN(len(run))]()
	return true
}

// choices is everything that can happen now, and otherwise when something can.
func (w *World) choices() (run []func(), next core.Time) {
	soon := func(t core.Time) {
		if t != 0 && (next == 0 || t < next) {
			next = t
		}
	}
	run = w.packets(run, soon)
	for _, op := range w.fabric.Pending() {
		if op.Ready && !op.Held && !w.opCut(op) && (w.HoldOp == nil || !w.HoldOp(op)) {
			run = append(run, func() { w.fabricStep(op) })
		}
	}
	live := w.works[:0]
	for _, k := range w.works {
		switch s := k.host.side; {
		case s.life != k.life || k.host.dead:
			continue
		case s.paused:
		case k.at <= w.now:
			run = append(run, func() { w.finish(k) })
		default:
			soon(k.at)
		}
		live = append(live, k)
	}
	w.works = live
	for _, s := range w.sides() {
		for _, h := range s.hosts {
			if s.up && !s.paused && !h.dead {
				soon(h.m.Deadline())
			}
		}
	}
	for _, d := range w.decode {
		run = d.dials(run, soon)
	}
	return run, next
}

func (w *World) finish(k *work) {
	for i := range w.works {
		if w.works[i] == k {
			w.works = append(w.works[:i:i], w.works[i+1:]...)
			break
		}
	}
	k.run()
}

// fabricStep moves one operation of the fabric on.
func (w *World) fabricStep(op mem.Op) {
	if err := w.fabric.Step(op.Ref, mem.Advance); err != nil {
		w.violate("fabric: %v", err)
	}
}

// opCut reports an operation that cannot cross a cut network: what has passed its check is at the other side already.
func (w *World) opCut(op mem.Op) bool {
	if op.State >= mem.Checked || op.Kind == mem.Batch || op.Kind == mem.Noticed || op.Kind >= mem.SourceFence && op.Kind != mem.Opened {
		return false
	}
	p, d := w.slotOf(op.Link.Prefill), w.slotOf(op.Link.Decode)
	return w.cuts[[2]int{p, d}]
}

// slotOf is the slot of the side that an incarnation lives in; -1 if it is dead.
func (w *World) slotOf(inc spec.Incarnation) int {
	for _, s := range w.sides() {
		for _, i := range s.incs {
			if i == inc {
				return s.slot
			}
		}
	}
	return -1
}

// RunUntil steps until done says so, nothing happens any more, or the bound of steps is reached (ErrStuck).
func (w *World) RunUntil(done func() bool, bound int) error {
	for range bound {
		w.settle()
		if w.err != nil {
			return w.err
		}
		if done() {
			return nil
		}
		if !w.Step() && w.err == nil && !done() && (w.idle == nil || !w.idle()) {
			return fmt.Errorf("%w: seed %d: nothing can happen any more\n%s", ErrStuck, w.cfg.Seed, w.Dump())
		}
	}
	if w.err != nil {
		return w.err
	}
	return fmt.Errorf("%w: seed %d: %d steps, %.3f s\n%s", ErrStuck, w.cfg.Seed, w.steps, float64(w.now)/1e9, w.Dump())
}
