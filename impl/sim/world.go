package sim

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"

	"kvfence/impl/core"
	tracing "kvfence/impl/trace"
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
	chance *chance
	noise  *rand.Rand // keys, nonces, incarnations, fresh memory: no choices
	now    core.Time
	fabric *mem.Fabric
	sum    sum
	steps  int
	err    error // the first violation

	prefill []*prefillSide // by slot
	decode  []*decodeSide
	all     []*side // prefill first
	conns   []*conn
	lastID  core.ConnID
	works   []*work
	ends    map[endsKey]*ends
	cuts    map[[2]int]bool // prefill slot, decode slot
	minted  uint64          // incarnations
	alarms  int
	run     []choice // of the last step, reused
	stirred bool     // a machine or the fabric has moved since the last look of the oracle

	asks                []spec.TransferID // that were asked for, by age
	forked, stepsForked uint64            // further samples, and their steps that ended well
	shared              int               // shares taken

	// For scenarios; nil: nothing is held or dropped, no computation fails.
	HoldOp      func(op mem.Op) bool
	LoseMsg     func(toPrefill bool, env spec.Envelope) bool // asked once, when it is sent
	HoldMsg     func(toPrefill bool, env spec.Envelope) bool // asked as long as it waits; what is behind it goes on
	FailCompute func(a core.Compute) string                  // the engine's error, "" for none

	kinds    map[Kind]int
	healed   bool
	halves   []*Request
	past     []said // messages that may be repeated, a ring
	pastNext int
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

	always bool // it is done whatever became of the process
}

// machine is one of the four of impl/core.
type machine interface {
	Step(now core.Time, ev core.Event) ([]core.Action, error)
	Deadline() core.Time
}

// host is a machine in its process. A side's machines share one fate here.
type host struct {
	side    *side
	name    string
	id      uint64 // hash of the name
	m       machine
	act     func(core.Action)
	due     core.Time // the machine's deadline, by its own clock
	clock   clock
	excused bool             // a fence was made to fail here: it may stop
	lines   *tracing.Machine // nil where nobody takes the lines of a trace
	dead    bool             // its process died alone; the side goes on without it until it is restarted whole
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
	box    []boxed
}

// boxed is an event for a machine, or something to do in its turn.
type boxed struct {
	host *host
	ev   core.Event
	do   func()
}

// New makes a cluster with every process up and nothing connected.
func New(cfg Config) *World { return newWorld(cfg, newChance(cfg.Seed)) }

func newWorld(cfg Config, c *chance) *World {
	cfg = cfg.withDefaults()
	w := &World{cfg: cfg, chance: c, noise: rand.New(rand.NewPCG(cfg.Seed, 0x6e6f697365)), now: 1, fabric: mem.NewVerbs(cfg.Fabric, cfg.Verbs),
		ends: map[endsKey]*ends{}, cuts: map[[2]int]bool{}, kinds: map[Kind]int{}, lax: cfg.Lax, xfers: map[spec.TransferID]*xfer{}}
	for i, n := range cfg.Prefill {
		w.prefill = append(w.prefill, &prefillSide{side: side{w: w, role: spec.RolePrefill, slot: i}, ranks: make([]*prefillRank, n)})
		w.all = append(w.all, &w.prefill[i].side)
		w.prefill[i].start()
	}
	for i, n := range cfg.Decode {
		w.decode = append(w.decode, &decodeSide{side: side{w: w, role: spec.RoleDecode, slot: i}, ranks: make([]*decodeRank, n)})
		w.all = append(w.all, &w.decode[i].side)
		w.decode[i].start()
	}
	return w
}

// Err is the first violation; nil if there is none.
func (w *World) Err() error { return w.err }

// Hash stands for everything that happened.
func (w *World) Hash() uint64 { return uint64(w.sum) }

// Now is the simulated time.
func (w *World) Now() core.Time { return w.now }

func (w *World) mint() (inc spec.Incarnation) {
	w.minted++
	binary.BigEndian.PutUint64(inc[:], w.minted<<32|uint64(w.noise.Uint32()))
	binary.BigEndian.PutUint64(inc[8:], w.noise.Uint64())
	return inc
}

// newHost puts a machine into its process.
func (s *side) newHost(name string, m machine, act func(core.Action)) *host {
	h := &host{side: s, name: name, m: m, act: act, clock: s.w.newClock()}
	var id sum
	id.text(name)
	h.id, h.due = uint64(id), m.Deadline()
	s.hosts = append(s.hosts, h)
	return h
}

// step gives a machine one event and carries out what it says.
func (w *World) step(h *host, ev core.Event) {
	if h.dead {
		return
	}
	w.stirred = true
	acts, err := h.m.Step(h.clock.local(w.now), ev)
	h.due = h.m.Deadline()
	w.line(h, ev, acts)
	if err != nil {
		w.violate(Contract, "%s: %v", h.name, err)
		return
	}
	for _, a := range acts {
		switch x := a.(type) {
		case core.Did:
			if x.Name == "Share" {
				w.shared++
			}
			w.noteDid(h, x)
		case core.Count:
			w.noteCount(h, x)
		case core.Stop:
			if x.Invariant != 0 || !h.excused {
				w.violate(Stopped, "%s stops: I%d %s", h.name, x.Invariant, x.Broken)
			}
			w.note("%s stops: %s", h.name, x.Broken)
			h.side.endSoon(h, 1_000_000_000)
		default:
			h.act(a)
		}
	}
}

// later queues an event for a machine of this side, behind everything that the side was given before. A crash forgets it.
func (s *side) later(h *host, ev core.Event) { s.box = append(s.box, boxed{host: h, ev: ev}) }

// laterDo is the same for something that the driver does.
func (s *side) laterDo(do func()) { s.box = append(s.box, boxed{do: do}) }

// work queues what a device does; it ends after at most most, in any order with everything else.
func (w *World) work(h *host, most core.Duration, run func()) {
	w.works = append(w.works, &work{at: w.now + core.Time(w.chance.delay(workTime, int64(most))), host: h, life: h.side.life, run: run})
}

// settleBound is how many events may be taken before time goes on.
const settleBound = 100_000

// settle empties every box of a side that runs, and ticks whoever is due.
func (w *World) settle() {
	n := 0
	for moved := true; moved && w.err == nil; {
		moved = false
		for _, s := range w.all {
			if !s.up || s.paused {
				continue
			}
			if k := w.empty(s); k > 0 {
				n, moved = n+k, true
			}
			for _, h := range s.hosts {
				if !h.dead && h.due != 0 && h.due <= h.clock.local(w.now) && s.up && w.err == nil {
					w.step(h, core.Tick{})
					n, moved = n+1, true
				}
			}
		}
		if n > settleBound && w.err == nil {
			w.violate(Liveness, "machines go on and on without time")
		}
	}
}

// empty takes everything out of a side's box, also what comes in meanwhile.
func (w *World) empty(s *side) (n int) {
	for ; n < len(s.box) && s.up && !s.paused && w.err == nil && n <= settleBound; n++ {
		life, b := s.life, s.box[n]
		if b.do != nil {
			b.do()
		} else {
			w.step(b.host, b.ev)
		}
		if s.life != life { // it died of it, and its box with it
			return n + 1
		}
	}
	k := copy(s.box, s.box[min(n, len(s.box)):])
	clear(s.box[k:])
	s.box = s.box[:k]
	return n
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
			return w.violation(Liveness, "nothing can happen any more\n"+w.Dump())
		}
	}
	if w.err != nil {
		return w.err
	}
	return w.violation(Liveness, "the bound of steps is reached\n"+w.Dump())
}
