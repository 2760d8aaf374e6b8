package sim

import "slices"

// shrinker makes a failing run small: it takes away faults, then requests, then parts of the cluster, then choices, as long as the same
// oracle finds something.
type shrinker struct {
	oracle Oracle
	change func(*Config) // closures of a cluster that stand in no script
	runs   int           // left
	steps  int           // left
	bound  int           // steps of one run, twice
	best   *Script
}

// Bounds of a shrinking.
const (
	shrinkRuns  = 4000
	shrinkSteps = 12_000_000
	shrinkBound = 20_000
	shrinkSeeds = 6 // schedules that each candidate is tried with
)

// Shrink makes a script of a failing seed and then a short one of it that the same oracle finds fault with. The error is the seed's own;
// nil, and no script, if the seed breaks nothing.
func Shrink(seed uint64, change func(*Config)) (*Script, error) {
	s, out, err := Record(seed, change)
	if err == nil {
		return nil, nil
	}
	k := &shrinker{oracle: OracleOf(err), runs: shrinkRuns, steps: shrinkSteps, best: s}
	k.bound = min(2*out.Steps+2000, shrinkBound)
	k.changeOf(change)
	k.shrink()
	return k.best, err
}

// changeOf keeps the part of change that a script has no words for.
func (k *shrinker) changeOf(change func(*Config)) {
	if change == nil {
		return
	}
	k.change = func(c *Config) {
		var x Config
		change(&x)
		c.PrefillRank, c.PrefillLeader, c.DecodeRank, c.DecodeLeader = x.PrefillRank, x.PrefillLeader, x.DecodeRank, x.DecodeLeader
		c.Line = x.Line
	}
}

func (k *shrinker) shrink() {
	given, _ := k.best.choices()
	cur := candidate{cfg: k.best.Config, acts: k.best.Acts, chance: func() *chance { return &chance{given: given} }}
	if c, ok := k.try(cur); ok {
		cur = c
	}
	cur = k.fewerActs(cur, func(a Act) bool { return a.Do.class() != Use })
	cur = k.fewerActs(cur, func(Act) bool { return true })
	cur = k.smaller(cur)
	cur = k.fewerActs(cur, func(Act) bool { return true })
	cur = k.plainer(cur)
	k.fewerChoices(cur)
}

func (k Kind) class() Class {
	for _, x := range Kinds() {
		if x.Kind == k {
			return x.Class
		}
	}
	return ""
}

// candidate is a run to be tried.
type candidate struct {
	cfg    Config
	acts   []Act
	chance func() *chance
}

// try plays a candidate, with its own schedule and with some others; what fails in the same way becomes the best script. It returns the
// candidate with the acts that did something before the failure.
func (k *shrinker) try(c candidate) (candidate, bool) {
	for i := range shrinkSeeds + 1 {
		if i > 0 {
			c.chance = func() *chance { return newChance(c.cfg.Seed + uint64(i)<<40) }
		}
		if next, ok := k.play(c); ok {
			return next, true
		}
	}
	return c, false
}

// left reports that there is something left to spend.
func (k *shrinker) left() bool { return k.runs > 0 && k.steps > 0 }

func (k *shrinker) play(c candidate) (candidate, bool) {
	if !k.left() {
		return c, false
	}
	ch := c.chance()
	ch.keep = true
	cfg := c.cfg
	if k.change != nil {
		k.change(&cfg)
	}
	r := run{cfg: cfg, chance: ch, d: &reader{acts: c.acts}, bound: k.bound}
	out, err := r.play()
	k.runs--
	k.steps -= out.Steps
	if OracleOf(err) != k.oracle {
		return c, false
	}
	k.best = r.script(err)
	c.acts = k.best.Acts
	return c, true
}

// fewerActs takes acts away, in halves, quarters and so on down to single ones; what comes later comes sooner by as much, or stays.
func (k *shrinker) fewerActs(c candidate, may func(Act) bool) candidate {
	for size := (len(c.acts) + 1) / 2; size >= 1 && k.left(); size /= 2 {
		for at := 0; at < len(c.acts); {
			next, ok := k.without(c, at, at+size, may, true)
			if !ok {
				next, ok = k.without(c, at, at+size, may, false)
			}
			if ok {
				c = next
			} else {
				at += size
			}
		}
	}
	return c
}

// without tries a candidate without those of its acts in [lo, hi) that may go.
func (k *shrinker) without(c candidate, lo, hi int, may func(Act) bool, sooner bool) (candidate, bool) {
	var rest []Act
	by := 0
	for i, a := range c.acts {
		if i >= lo && i < hi && may(a) {
			if i+1 < len(c.acts) && sooner {
				by += c.acts[i+1].At - a.At
			}
			continue
		}
		a.At -= by
		rest = append(rest, a)
	}
	if len(rest) == len(c.acts) {
		return c, false
	}
	c.acts = rest
	return k.try(c)
}

// smaller takes away parts of the cluster.
func (k *shrinker) smaller(c candidate) candidate {
	for _, less := range []func(*Config){
		func(c *Config) { c.Net = NetFaults{} },
		func(c *Config) { c.Drift = false },
		func(c *Config) { c.Mismatch = 0 },
		func(c *Config) { c.Prefill, c.Decode = []int{1}, []int{1} },
		func(c *Config) { c.Prefill = c.Prefill[:1] },
		func(c *Config) { c.Decode = c.Decode[:1] },
		func(c *Config) { c.Sharing, c.Sources = 0, 0 },
		func(c *Config) { c.NoState = true },
		func(c *Config) { c.Channels = 1 },
		func(c *Config) { c.Answers, c.PostItems, c.Posts, c.SealItems = 0, 0, 0, 0 },
	} {
		small := c
		less(&small.cfg)
		if next, ok := k.try(small); ok {
			c = next
		}
	}
	return c
}

// plainer shortens what the acts say.
func (k *shrinker) plainer(c candidate) candidate {
	for i := range len(c.acts) {
		for _, less := range []func(*Act){
			func(a *Act) { a.At = 0 },
			func(a *Act) { a.Nth = 0 },
			func(a *Act) { a.N = 0 },
			func(a *Act) {
				if a.Req != nil {
					a.Req = &Submit{Tenant: a.Req.Tenant, Prompt: a.Req.Prompt[:len(a.Req.Prompt)/2], New: 1}
				}
			},
		} {
			if i >= len(c.acts) {
				return c
			}
			plain := c
			plain.acts = slices.Clone(c.acts)
			less(&plain.acts[i])
			if next, ok := k.play(plain); ok && len(next.acts) == len(c.acts) {
				c = next
			}
		}
	}
	return c
}

// fewerChoices makes choices the plain one: a whole stream, all behind some point, then in pieces.
func (k *shrinker) fewerChoices(c candidate) {
	given, _ := k.best.choices()
	c.acts = k.best.Acts
	tryWith := func(s stream, values []uint32) bool {
		all := given
		all[s] = values
		c.chance = func() *chance { return &chance{given: all} }
		if _, ok := k.play(c); !ok {
			return false
		}
		given = all
		return true
	}
	for range 2 {
		for s := range streams {
			if len(given[s]) == 0 || tryWith(s, nil) {
				continue
			}
			lo, hi := 0, len(given[s]) // hi of them are enough, lo are not
			for hi-lo > 1 {
				if mid := (lo + hi) / 2; tryWith(s, given[s][:mid]) {
					hi = mid
				} else {
					lo = mid
				}
			}
			for size := max(len(given[s])/2, 1); size >= 1 && k.left(); size /= 2 {
				for at := 0; at < len(given[s]) && k.left(); at += size {
					end := min(at+size, len(given[s]))
					if !slices.ContainsFunc(given[s][at:end], func(v uint32) bool { return v != 0 }) {
						continue
					}
					less := slices.Clone(given[s])
					clear(less[at:end])
					tryWith(s, less)
				}
			}
		}
	}
	k.best.setChoices(given)
}
