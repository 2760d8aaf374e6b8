package sim

import (
	"fmt"
	"math/rand/v2"
)

// director says what is done to a cluster between its steps. next is asked before each step, and with idle when nothing can happen any
// more; done is told of each act whether it did anything.
type director interface {
	next(w *World, idle bool) (Act, bool)
}

// mayhem draws requests and faults from a seed.
type mayhem struct {
	rng    *rand.Rand
	asked  int
	most   int // requests of the run
	budget int // faults to come
	at     int // step of the next act
	gap    int // steps between two acts, at most
	kinds  []Kind
	total  int
	weight []int
}

// faultMix is how often each fault is drawn. A cluster has no use for some of them.
func faultMix() []struct {
	Kind
	int
} {
	return []struct {
		Kind
		int
	}{
		{Mend, 36}, {Leave, 6}, {Drain, 1},
		{MessageHeld, 3}, {MessageReplayed, 8}, {Cut, 5}, {DataCut, 5}, {HalfOpen, 3},
		{KillPrefill, 4}, {KillDecode, 3}, {KillPrefillRank, 3}, {KillDecodeRank, 3}, {Resize, 1}, {PausePrefill, 4}, {PauseDecode, 4}, {ClockLeap, 2},
		{OpHeld, 8}, {WriteLost, 4}, {RecordTorn, 4}, {WriteDoubled, 5}, {NoticeDoubled, 3}, {PostFailed, 3}, {BatchFailed, 3}, {NoticeFailed, 2}, {CopyFailed, 3},
		{OpenFailed, 2}, {FenceFailed, 1}, {ComputeFailed, 2}, {StepFailed, 2}, {NoticeEarly, 24},
		{FlipTag, 3}, {FlipSource, 3}, {FlipWrite, 2}, {TearWrite, 2},
	}
}

func newMayhem(cfg *Config) *mayhem {
	m := &mayhem{rng: rand.New(rand.NewPCG(cfg.Seed, 0x6661756c74))}
	m.budget, m.most = 4+m.rng.IntN(16), 10+m.rng.IntN(12)
	if cfg.Sharing > 0 { // what is shared must live long enough to be shared
		m.budget, m.most = m.rng.IntN(6), 20+m.rng.IntN(20)
	}
	m.gap = 100
	swarm := cfg.Mix == nil && m.rng.IntN(2) == 0
	if swarm { // some kinds of faults only, and many of them
		m.budget, m.gap = 5+m.rng.IntN(50), 5+m.rng.IntN(100)
	}
	for _, k := range faultMix() {
		n := k.int
		switch {
		case cfg.Mix != nil:
			n = cfg.Mix[k.Kind]
		case swarm && k.Kind == Mend:
			n = 8
		case swarm && m.rng.IntN(4) > 0:
			n = 0
		case swarm:
			n = 1 + m.rng.IntN(6)
		}
		if !cfg.useless(k.Kind) && n > 0 {
			m.kinds, m.weight, m.total = append(m.kinds, k.Kind), append(m.weight, n), m.total+n
		}
	}
	return m
}

// useless says that a kind of fault cannot happen in such a cluster.
func (c *Config) useless(k Kind) bool {
	switch k {
	case WriteDoubled, NoticeDoubled, NoticeEarly:
		if c.Verbs.On { // a queue pair takes each packet once, and in order
			return true
		}
	}
	switch k {
	case WriteLost, RecordTorn, WriteDoubled, NoticeDoubled, PostFailed, BatchFailed, NoticeFailed, FlipWrite, TearWrite:
		return c.Pull
	case CopyFailed:
		return !c.Pull
	case NoticeEarly:
		return c.Pull || !c.Lax
	}
	return false
}

// next ends with Heal when everything is asked and the faults are spent.
func (m *mayhem) next(w *World, idle bool) (Act, bool) {
	switch {
	case m.asked >= m.most && m.budget <= 0:
		return Act{Do: Heal}, true
	case !idle && w.steps < m.at:
		return Act{}, false
	}
	m.at = w.steps + 10 + m.rng.IntN(m.gap)
	return m.draw(w), true
}

func (m *mayhem) draw(w *World) Act {
	a := Act{P: m.rng.IntN(len(w.prefill)), D: m.rng.IntN(len(w.decode)), Rank: m.rng.IntN(2), Nth: m.rng.IntN(1 << 16)}
	if w.cfg.Sharing > 0 && m.rng.IntN(4) == 0 {
		a.Do, a.N, a.Nth = Fork, 1+m.rng.IntN(6), m.rng.IntN(4)
		return a
	}
	if m.asked < m.most && m.rng.IntN(3) > 0 {
		m.asked++
		m.ask(w, &a)
		return a
	}
	m.budget--
	if m.total == 0 {
		return a
	}
	n, i := m.rng.IntN(m.total), 0
	for n >= m.weight[i] {
		n -= m.weight[i]
		i++
	}
	a.Do = m.kinds[i]
	switch a.Do {
	case MessageHeld:
		a.N = 1 + m.rng.IntN(30)
	case OpHeld:
		a.N = m.rng.IntN(4) * m.rng.IntN(400)
	case ClockLeap:
		a.N = 1 + m.rng.IntN(100)
	case Resize:
		a.N = 4 + m.rng.IntN(20)
	default:
		a.N = m.rng.IntN(1 << 12)
	}
	return a
}

// ask draws a request, a prefill-first half, or what an outside router does with its name.
func (m *mayhem) ask(w *World, a *Act) {
	a.Do, a.Nth = Ask, 0
	switch m.rng.IntN(6) {
	case 0:
		a.Do, a.Req = Half, &Submit{Tenant: "router", Prompt: m.prompt(), New: uint32(1 + m.rng.IntN(5))}
		return
	case 1:
		if len(w.halves) > 0 {
			a.Do, a.Nth = AskHalf, m.rng.IntN(len(w.halves))
			return
		}
	}
	s := &Submit{New: uint32(1 + m.rng.IntN(8))}
	if w.cfg.Sharing > 0 {
		s.Tenant, s.Adapter, s.Prompt = fmt.Sprintf("tenant%d", m.rng.IntN(2)), []string{"", "", adapter}[m.rng.IntN(3)], m.likePrompt()
		s.Salt = []string{"", "", "", "salt"}[m.rng.IntN(4)]
	} else {
		s.Tenant, s.Prompt = fmt.Sprintf("tenant%d", m.rng.IntN(3)), m.prompt()
	}
	switch m.rng.IntN(24) {
	case 0:
		s.Prompt = nil
	case 1:
		s.Prompt = s.Prompt[:1]
	case 2: // whole pages
		for len(s.Prompt)%pageTokens != 0 {
			s.Prompt = append(s.Prompt, int32(m.rng.IntN(vocabulary)))
		}
	case 3:
		for range 20 + m.rng.IntN(60) {
			s.Prompt = append(s.Prompt, int32(m.rng.IntN(vocabulary)))
		}
	case 4:
		s.New = 0
	case 5:
		s.New = 30 + m.rng.Uint32N(60)
	}
	if m.rng.IntN(5) == 0 {
		s.Label = fmt.Sprintf("label%d", m.rng.IntN(2))
	}
	if m.rng.IntN(5) == 0 {
		s.LeftMs = 1 + m.rng.IntN(2000)
	}
	a.Req = s
}

func (m *mayhem) prompt() (p []int32) {
	shared := m.rng.IntN(3) == 0 // the same prompt of several tenants
	for i := range 1 + m.rng.IntN(22) {
		if shared {
			p = append(p, int32(i))
		} else {
			p = append(p, int32(m.rng.IntN(vocabulary)))
		}
	}
	return p
}

// likePrompt begins as others do, and goes its own way somewhere; or it differs from the others in one token of its first or second page.
func (m *mayhem) likePrompt() (p []int32) {
	n := 1 + m.rng.IntN(22)
	from, one := m.rng.IntN(2*n), m.rng.IntN(3)*pageTokens
	for i := range n {
		switch {
		case one < 2*pageTokens && i == one:
			p = append(p, int32(500+i))
		case one < 2*pageTokens || i < from:
			p = append(p, int32(i))
		default:
			p = append(p, int32(m.rng.IntN(vocabulary)))
		}
	}
	return p
}

// reader takes the acts of a script, in order; behind the last one everything is healed.
type reader struct {
	acts []Act
	n    int
}

func (r *reader) next(w *World, _ bool) (Act, bool) {
	if r.n == len(r.acts) {
		return Act{Do: Heal}, true
	}
	if a := r.acts[r.n]; a.At <= w.steps {
		r.n++
		return a, true
	}
	return Act{}, false
}
