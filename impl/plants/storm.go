package plants

import (
	"fmt"
	"math/rand/v2"

	"kvfence/impl/core"
	"kvfence/impl/sim"
	"kvfence/impl/transport/mem"
)

// storm is a run that does one kind of thing often: requests come close together, operations of the fabric are held at any stage for a
// while, and meanwhile clients leave, or links are cut, or processes end. A seed of impl/sim does all of these, each rarely.
type storm struct {
	leave, cut, kill int // chances of what is done beside asking, in percent
	part             int // likewise: both ways are parted for so long that both ends give the link up
	held             int // operations that are held, in percent
	most             core.Duration
}

// weather is one storm under way.
type weather struct {
	storm
	w     *sim.World
	rng   *rand.Rand
	cfg   sim.Config
	plans map[mem.OpRef]plan
	open  []*sim.Request
	asks  int
	steps int
	heals []later
	until int
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

// run is one seed: the storm over a drawn cluster, then calm, in which every request gets its answer and every page comes back.
func (s storm) run(seed uint64, change func(*sim.Config)) (steps int, err error) {
	cfg := sim.Shape(seed)
	cfg.Net = sim.NetFaults{}
	if change != nil {
		change(&cfg)
	}
	h := &weather{storm: s, w: sim.New(cfg), rng: rand.New(rand.NewPCG(seed, 0x73746f726d)), cfg: cfg, plans: map[mem.OpRef]plan{}}
	if err := h.w.RunUntil(h.count(h.w.Connected), stormSteps); err != nil {
		return h.steps, err
	}
	h.asks = 6 + h.rng.IntN(10)
	h.w.HoldOp = h.hold
	for err = h.w.RunUntil(h.count(h.blow), stormSteps); h.w.Err() == nil && h.asks > 0; err = h.w.RunUntil(h.count(h.blow), stormSteps) {
		h.calm() // nothing could happen any more: what waits for its time comes now
		h.ask(h.rng.IntN(len(cfg.Decode)))
	}
	if h.w.Err() != nil {
		return h.steps, err
	}
	h.w.HoldOp = nil
	h.calm()
	return h.steps, h.w.RunUntil(h.count(func() bool { return h.w.Answered() && h.w.Clean() }), 2*stormSteps)
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
	h.open = append(h.open, h.w.Ask(d, s))
}
