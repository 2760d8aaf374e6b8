package plants

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"kvfence/impl/core"
	"kvfence/impl/sim"
	"kvfence/impl/transport/mem"
	"kvfence/spec"
)

// storm is a run that does one kind of thing often: requests come close together, operations of the fabric are held at any stage for a
// while, and meanwhile clients leave, or links are cut, or processes end. A seed of impl/sim does all of these, each rarely.
type storm struct {
	leave, cut, kill int // chances of what is done beside asking, in percent
	part             int // likewise: both ways are parted for so long that both ends give the link up
	halves           int // requests of which prefill is asked first, in percent
	held             int // operations that are held, in percent
	most             core.Duration
}

// weather is one storm under way.
type weather struct {
	storm
	w      *sim.World
	rng    *rand.Rand
	cfg    sim.Config
	plans  map[mem.OpRef]plan
	open   []*sim.Request
	asks   int
	steps  int
	heals  []later
	until  int
	copies map[copyKey]*copied
}

// plan is where and until when an operation is held; zero: it is not.
type plan struct {
	state mem.State
	until core.Time
}

type later struct {
	at  core.Time
	run func()
}

// stormSteps bounds a storm, and the calm after it.
const stormSteps = 200_000

// cluster draws the sizes of a cluster: one or two sides of one or two ranks at each end, and small pools.
func cluster(seed uint64) sim.Config {
	r := rand.New(rand.NewPCG(seed, 0x636c7573746572))
	c := sim.Config{Seed: seed, PrefillPages: uint32(6 + r.IntN(12)), DecodePages: uint32(8 + r.IntN(16)), Chunk: uint32(3 + r.IntN(8)), Channels: uint32(1 + r.IntN(3))}
	for range 1 + r.IntN(2) {
		c.Prefill = append(c.Prefill, 1+r.IntN(2))
	}
	for range 1 + r.IntN(2) {
		c.Decode = append(c.Decode, 1+r.IntN(2))
	}
	items := 1 + r.IntN(5)
	c.PrefillRank = func(p *core.PrefillRankConfig) { p.MaxPostItems, p.MaxPosts, p.MaxSealItems = items, 2, 3 }
	return c
}

// run is one seed: the storm over a drawn cluster, then calm, in which every request gets its answer and every page comes back.
func (s storm) run(seed uint64, change func(*sim.Config)) (steps int, err error) {
	cfg := cluster(seed)
	if change != nil {
		change(&cfg)
	}
	h := &weather{storm: s, w: sim.New(cfg), rng: rand.New(rand.NewPCG(seed, 0x73746f726d)), cfg: cfg, plans: map[mem.OpRef]plan{}, copies: map[copyKey]*copied{}}
	if err := h.w.RunUntil(h.count(h.w.Connected), stormSteps); err != nil {
		return h.steps, err
	}
	h.asks = 6 + h.rng.IntN(10)
	h.w.HoldOp, h.w.HoldMsg = h.hold, h.late
	for err = h.w.RunUntil(h.count(h.blow), stormSteps); h.w.Err() == nil && h.asks > 0; err = h.w.RunUntil(h.count(h.blow), stormSteps) {
		h.calm() // nothing could happen any more: what waits for its time comes now
		h.ask(h.rng.IntN(len(cfg.Decode)))
	}
	if h.w.Err() != nil {
		return h.steps, err
	}
	h.w.HoldOp, h.w.HoldMsg = nil, nil
	h.calm()
	if err := h.w.RunUntil(h.count(func() bool { return h.w.Answered() && h.w.Clean() }), 2*stormSteps); err != nil {
		return h.steps, err
	}
	return h.steps, h.told()
}

// count counts the steps of a run by its question whether it is over.
func (h *weather) count(done func() bool) func() bool {
	return func() bool { h.steps++; return done() }
}

// hold decides once for each operation whether it is held, at which stage and how long.
func (h *weather) hold(op mem.Op) bool {
	p, known := h.plans[op.Ref]
	if !known {
		if h.rng.IntN(100) < h.held {
			p = plan{mem.State(h.rng.IntN(5)), h.w.Now() + core.Time(h.rng.Int64N(int64(h.most)>>h.rng.IntN(12)+1))}
		}
		h.plans[op.Ref] = p
	}
	return p.until > h.w.Now() && op.State >= p.state
}

// copyKey tells messages apart as far as their repeats are alike.
type copyKey struct {
	toPrefill bool
	from, to  spec.Incarnation
	epoch     spec.Epoch
	kind      spec.Kind
	lease     spec.LeaseID
}

// copied counts the copies of a message that wait in one step, and in the one before.
type copied struct {
	step, n, before int
	until           core.Time // 0: no second copy was seen
}

// late holds the second copy of a doubled message, so that it comes long after the first.
func (h *weather) late(toPrefill bool, env spec.Envelope) bool {
	lease := leaseOf(env.Body)
	if lease == 0 || h.cfg.Net.Duplicate == 0 {
		return false
	}
	key := copyKey{toPrefill, env.From, env.To, env.Epoch, env.Body.Kind(), lease}
	c := h.copies[key]
	if c == nil {
		c = &copied{}
		h.copies[key] = c
	}
	if c.step != h.steps {
		c.step, c.n, c.before = h.steps, 0, c.n
	}
	c.n++
	if c.n == 2 && c.until == 0 {
		c.until = h.w.Now() + core.Time(h.rng.Int64N(int64(2e9)>>h.rng.IntN(10)))
	}
	return h.w.Now() < c.until && (c.n > 1 || c.before == 1)
}

// leaseOf is the lease that a message is about; 0: none, or that does not matter.
func leaseOf(m spec.Message) spec.LeaseID {
	switch b := m.(type) {
	case spec.Grant:
		return b.Lease
	case spec.Abort:
		return b.Lease
	case spec.Complete:
		return b.Lease
	case spec.Failed:
		return b.Lease
	case spec.AbortAck:
		return b.Lease
	case spec.Read:
		return b.Lease
	}
	return 0
}

// told compares what requests were told with what has happened to them: nobody has heard of damage where there was none, and of a lost peer
// or link only where one was lost.
func (h *weather) told() error {
	can := []spec.Cause{"", spec.CauseTooLong, spec.CauseOverCapacity}
	if h.halves > 0 {
		can = append(can, spec.CauseDuplicateLabel, spec.CauseDeadline) // its pages, and those of decode, may wait for each other
	}
	if h.leave > 0 {
		can = append(can, spec.CauseClientGone, spec.CauseDeadline)
	}
	if h.cut+h.part+h.kill > 0 || h.cfg.Net.Drop > 0 {
		can = append(can, spec.CauseFenced, spec.CausePeerLost, spec.CausePeerFailed, spec.CauseTransport, spec.CauseAbortedByPeer, spec.CauseLeaderLost)
	}
	for _, q := range h.open {
		if !q.Lost && !slices.Contains(can, q.Cause) {
			return fmt.Errorf("%w: request %d ends with %q, %s", ErrFidelity, q.ID, q.Cause, q.Detail)
		}
	}
	return nil
}

// blow is asked between steps; now and then it does something. It ends when everything is asked, and a while has passed.
func (h *weather) blow() bool {
	left := h.heals[:0]
	for _, l := range h.heals {
		if l.at > h.w.Now() {
			left = append(left, l)
			continue
		}
		l.run()
	}
	h.heals = left
	if h.asks == 0 && h.steps > h.until {
		return true
	}
	if h.rng.IntN(24) == 0 {
		h.gust()
	}
	return false
}

func (h *weather) gust() {
	p, d := h.rng.IntN(len(h.cfg.Prefill)), h.rng.IntN(len(h.cfg.Decode))
	switch n := h.rng.IntN(100); {
	case n < h.leave:
		if len(h.open) > 0 {
			h.w.Leave(h.open[h.rng.IntN(len(h.open))])
		}
	case n < h.leave+h.cut:
		h.w.CutData(p, d)
	case n < h.leave+h.cut+h.part:
		h.w.Cut(p, d)
		h.after(core.Duration(1+h.rng.Int64N(20e9)), func() { h.w.Heal(p, d) })
	case n < h.leave+h.cut+h.part+h.kill:
		h.end(p, d)
	default:
		h.ask(d)
	}
}

// end ends one side's process for a while.
func (h *weather) end(p, d int) {
	quick := core.Duration(h.rng.Int64N(int64(1e9) >> h.rng.IntN(12)))
	if h.rng.IntN(3) > 0 {
		h.w.KillPrefill(p)
		h.after(quick, func() { h.w.StartPrefill(p) })
		return
	}
	h.w.KillDecode(d)
	h.after(quick, func() { h.w.StartDecode(d) })
}

// calm ends all that waits for its end.
func (h *weather) calm() {
	for _, l := range h.heals {
		l.run()
	}
	h.heals = nil
}

func (h *weather) after(d core.Duration, run func()) {
	h.heals = append(h.heals, later{h.w.Now() + core.Time(d), run})
}

func (h *weather) ask(d int) {
	if h.asks == 0 {
		return
	}
	if h.asks--; h.asks == 0 {
		h.until = h.steps + 1500
	}
	s := core.Submit{Tenant: fmt.Sprintf("tenant%d", h.rng.IntN(3)), MaxNew: uint32(1 + h.rng.IntN(6))}
	first, n := h.rng.IntN(3), 1+h.rng.IntN(22)
	for i := range n {
		s.Prompt = append(s.Prompt, int32(first*100+i))
	}
	if h.leave > 0 && h.rng.IntN(4) == 0 {
		s.TimeLeft = core.Duration(1 + h.rng.Int64N(30e6))
	}
	if h.rng.IntN(100) >= h.halves {
		h.open = append(h.open, h.w.Ask(d, s))
		return
	}
	half := h.w.Half(h.rng.IntN(len(h.cfg.Prefill)), s)
	h.after(core.Duration(h.rng.Int64N(20e6)), func() {
		if s.Source = half.Source(); s.Source != (spec.SourceName{}) {
			h.open = append(h.open, h.w.Ask(d, s), h.w.Ask(d, s))
		}
	})
}
