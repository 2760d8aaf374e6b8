package sim

import (
	"fmt"
	"math/rand/v2"

	"kvfence/impl/core"
	"kvfence/impl/transport/mem"
	"kvfence/spec"
)

// Outcome is what a seed came to.
type Outcome struct {
	Seed         uint64
	Hash         uint64
	Steps        int
	OK, Failed   int // requests answered with success, with a failure
	Lost         int // whose node died
	Alarms       int
	Kills, Fails int // processes killed, operations of the fabric failed or lost
	Hits         int // shares taken at decode
	Sources      int // and by prefill ranks that live at the end
	Forked       int // steps of further samples that ended well
	Causes       map[spec.Cause]int
}

// String is one line for people.
func (o Outcome) String() string {
	return fmt.Sprintf("seed %d hash %016x steps %d ok %d failed %d lost %d alarms %d kills %d fails %d hits %d sources %d forked %d", o.Seed, o.Hash, o.Steps, o.OK, o.Failed, o.Lost, o.Alarms, o.Kills, o.Fails, o.Hits, o.Sources, o.Forked)
}

// Shape draws a cluster from a seed: sizes, direction, faults of the network.
func Shape(seed uint64) Config {
	r := rand.New(rand.NewPCG(seed, 0x5368617065))
	c := Config{Seed: seed, Pull: r.IntN(3) == 0, PrefillPages: uint32(6 + r.IntN(12)), DecodePages: uint32(8 + r.IntN(16)), Chunk: uint32(3 + r.IntN(8)), Channels: uint32(1 + r.IntN(3))}
	for range 1 + r.IntN(2) {
		c.Prefill = append(c.Prefill, 1+r.IntN(2))
	}
	for range 1 + r.IntN(2) {
		c.Decode = append(c.Decode, 1+r.IntN(2))
	}
	if r.IntN(2) == 0 {
		c.Net = NetFaults{Drop: r.IntN(8), Duplicate: r.IntN(8), Reorder: r.IntN(30)}
	}
	c.PrefillRank = func(p *core.PrefillRankConfig) {
		p.MaxAnswers, p.MaxPostItems, p.MaxPosts, p.MaxSealItems = 4, 1+int(seed%5), 2, 3
	}
	if r.IntN(2) == 0 {
		c.Sharing = 1 + r.IntN(16)
		if c.NoState = r.IntN(2) == 0; c.NoState { // a state record is computed from the first token on: prefill shares without it only
			c.Sources = 1 + r.IntN(16)
		}
	}
	return c
}

// Run is one seed: a cluster of drawn shape under requests and faults, then healed; every request has its answer and every page is
// back at the end. change, if not nil, alters the drawn cluster. The error wraps ErrViolation or ErrStuck.
func Run(seed uint64, change func(*Config)) (Outcome, error) {
	cfg := Shape(seed)
	if change != nil {
		change(&cfg)
	}
	w := New(cfg)
	out := Outcome{Seed: seed, Causes: map[spec.Cause]int{}}
	m := &mayhem{w: w, out: &out, rng: rand.New(rand.NewPCG(seed, 0x6661756c74))}
	m.budget, m.most = 4+m.rng.IntN(16), 10+m.rng.IntN(12)
	if cfg.Sharing > 0 { // what is shared must live long enough to be shared
		m.budget, m.most = m.rng.IntN(6), 20+m.rng.IntN(20)
	}
	w.idle = func() bool { m.act(); return true }
	err := w.RunUntil(m.done, 400_000)
	w.idle = nil
	if err == nil {
		m.heal()
		err = w.RunUntil(func() bool { return w.Answered() && w.Clean() }, 400_000)
	}
	out.Hash, out.Steps, out.Alarms, out.Forked = w.Hash(), w.steps, w.alarms, int(w.stepsForked)
	out.Hits = w.shared
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
	return out, err
}

// mayhem submits requests and breaks things between the steps of a run.
type mayhem struct {
	w      *World
	out    *Outcome
	rng    *rand.Rand
	asked  int
	most   int // requests of the run
	budget int // faults to come
	halves []*Request
	since  int
}

// done is called between steps: it may do one thing. It ends when everything is asked and answered, or nothing is to be expected soon.
func (m *mayhem) done() bool {
	if m.since++; m.since > 40+m.rng.IntN(200) {
		m.since = 0
		m.act()
	}
	return m.asked >= m.most && m.budget <= 0
}

func (m *mayhem) act() {
	w := m.w
	if w.cfg.Sharing > 0 && len(w.asks) > 0 && m.rng.IntN(3) == 0 {
		if of := w.asks[max(0, len(w.asks)-1-m.rng.IntN(4))]; w.slotOf(of.Leader) >= 0 {
			w.decode[w.slotOf(of.Leader)].Fork(of, 1+m.rng.IntN(6))
		}
	}
	if w.cfg.Sharing > 0 && m.rng.IntN(8) == 0 {
		m.flipTag()
	}
	if m.asked < m.most && m.rng.IntN(3) > 0 {
		m.asked++
		if m.half() {
			return
		}
		if w.cfg.Sharing > 0 {
			w.Ask(m.rng.IntN(len(w.decode)), core.Submit{Tenant: fmt.Sprintf("tenant%d", m.rng.IntN(2)), Adapter: []string{"", "", adapter}[m.rng.IntN(3)],
				Prompt: likePrompt(m.rng), MaxNew: uint32(1 + m.rng.IntN(8)), TimeLeft: m.timeLeft()})
			return
		}
		w.Ask(m.rng.IntN(len(w.decode)), core.Submit{Tenant: fmt.Sprintf("tenant%d", m.rng.IntN(3)), Prompt: promptOf(m.rng), MaxNew: uint32(1 + m.rng.IntN(8)), TimeLeft: m.timeLeft()})
		return
	}
	m.budget--
	p, d := m.rng.IntN(len(w.prefill)), m.rng.IntN(len(w.decode))
	switch m.rng.IntN(16) {
	case 0:
		m.out.Kills++
		w.KillPrefill(p)
	case 1:
		m.out.Kills++
		w.KillDecode(d)
	case 10:
		m.out.Kills++
		w.KillPrefillRank(p, m.rng.IntN(len(w.prefill[p].ranks)))
	case 11:
		m.out.Kills++
		w.KillDecodeRank(d, m.rng.IntN(len(w.decode[d].ranks)))
	case 2:
		w.Cut(p, d)
	case 3:
		w.CutData(p, d)
	case 4:
		w.PausePrefill(p, true)
	case 5:
		w.PauseDecode(d, true)
	case 6, 7, 8:
		m.fabric()
	case 9:
		if len(w.requests) > 0 {
			w.Leave(w.requests[m.rng.IntN(len(w.requests))])
		}
	default:
		m.mend()
	}
}

// flipTag changes one bit of a tag in a decode rank's KV pool, as failing memory would: whoever holds the page fails, and nobody reads on.
func (m *mayhem) flipTag() {
	ranks := m.w.decodeRanks()
	pool := ranks[m.rng.IntN(len(ranks))].mem[spec.KV]
	pool.Slot(spec.PageID(m.rng.Uint32N(pool.Layout.Shape.Pages)), 0)[m.rng.IntN(spec.TagBytes)] ^= 1
}

// half starts a prefill-first half, or hands the name of one to decode, as an outside router does; sometimes twice, sometimes never.
func (m *mayhem) half() bool {
	switch w := m.w; m.rng.IntN(6) {
	case 0:
		m.halves = append(m.halves, w.Half(m.rng.IntN(len(w.prefill)), core.Submit{Tenant: "router", Prompt: promptOf(m.rng), MaxNew: uint32(1 + m.rng.IntN(5))}))
		return true
	case 1:
		if len(m.halves) == 0 {
			return false
		}
		h := m.halves[m.rng.IntN(len(m.halves))]
		s := h.Submit
		s.Source = h.Source()
		w.Ask(m.rng.IntN(len(w.decode)), s)
		return true
	}
	return false
}

func promptOf(r *rand.Rand) (p []int32) {
	shared := r.IntN(3) == 0 // the same prompt of several tenants
	for i := range 1 + r.IntN(22) {
		if shared {
			p = append(p, int32(i))
		} else {
			p = append(p, int32(r.IntN(vocabulary)))
		}
	}
	return p
}

// likePrompt begins as others do, and goes its own way somewhere; or it differs from the others in one token of its first or second page.
func likePrompt(r *rand.Rand) (p []int32) {
	n := 1 + r.IntN(22)
	from, one := r.IntN(2*n), r.IntN(3)*pageTokens
	for i := range n {
		switch {
		case one < 2*pageTokens && i == one:
			p = append(p, int32(500+i))
		case one < 2*pageTokens || i < from:
			p = append(p, int32(i))
		default:
			p = append(p, int32(r.IntN(vocabulary)))
		}
	}
	return p
}

func (m *mayhem) timeLeft() core.Duration {
	if m.rng.IntN(5) == 0 {
		return core.Duration(1 + m.rng.Int64N(2e9))
	}
	return 0
}

// fabric holds, loses, doubles or fails one operation under way.
func (m *mayhem) fabric() {
	ops := m.w.fabric.Pending()
	if len(ops) == 0 {
		return
	}
	op := ops[m.rng.IntN(len(ops))]
	do := mem.Do(m.rng.IntN(4))
	if do == mem.Advance {
		_ = m.w.fabric.Hold(op.Ref, true)
		return
	}
	if do == mem.Lose && op.Kind != mem.Write { // a lost write loses its stream with it; a lost notice alone is a hole no stream has
		return
	}
	if m.w.fabric.Step(op.Ref, do) == nil {
		m.out.Fails++
		if do == mem.Lose {
			m.w.fabric.CutPush(op.Link)
		}
	}
}

// mend ends one kind of fault that stands.
func (m *mayhem) mend() {
	w := m.w
	for i := range w.prefill {
		w.PausePrefill(i, false)
		if m.rng.IntN(2) == 0 {
			w.restartPrefill(i)
		}
	}
	for i := range w.decode {
		w.PauseDecode(i, false)
		if m.rng.IntN(2) == 0 {
			w.restartDecode(i)
		}
	}
	w.cuts = map[[2]int]bool{}
	w.release()
}

// restartPrefill starts a side that is down, and replaces one that is not whole.
func (w *World) restartPrefill(i int) {
	if !w.prefill[i].whole() {
		w.KillPrefill(i)
	}
	w.StartPrefill(i)
}

func (w *World) restartDecode(i int) {
	if !w.decode[i].whole() {
		w.KillDecode(i)
	}
	w.StartDecode(i)
}

// release lets go of everything that was held.
func (w *World) release() {
	for _, op := range w.fabric.Pending() {
		if op.Held {
			_ = w.fabric.Hold(op.Ref, false)
		}
	}
}

// heal ends all faults: from here on delivery is fair.
func (m *mayhem) heal() {
	m.w.cfg.Net = NetFaults{}
	for i := range m.w.prefill {
		m.w.restartPrefill(i)
	}
	for i := range m.w.decode {
		m.w.restartDecode(i)
	}
	for i := range m.w.prefill {
		m.w.PausePrefill(i, false)
	}
	for i := range m.w.decode {
		m.w.PauseDecode(i, false)
	}
	m.w.cuts = map[[2]int]bool{}
	m.w.release()
}
