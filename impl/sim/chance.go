package sim

import "math/rand/v2"

// chance is where a run's choices come from: drawn from a seed, or read back from a script. Choice 0 is always the plainest one: the
// oldest thing first, no delay, no loss.
type chance struct {
	rng   *rand.Rand // nil: a script
	given []uint32   // of a script; what it does not give is 0
	n     int        // choices made
	keep  bool       // log them
	log   []uint32
}

func newChance(seed uint64) *chance {
	return &chance{rng: rand.New(rand.NewPCG(seed, 0x6b7666656e6365))}
}

// pick is a number in [0, n); n is at least 1 and fits 32 bits. Where there is no choice none is made.
func (c *chance) pick(n int64) int64 {
	if n <= 1 {
		return 0
	}
	v := uint32(0)
	switch {
	case c.rng != nil:
		v = c.rng.Uint32N(uint32(n))
	case c.n < len(c.given):
		v = c.given[c.n] % uint32(n)
	}
	c.n++
	if c.keep {
		c.log = append(c.log, v)
	}
	return int64(v)
}

// one in a hundred times percent is true; 0 of a script is false.
func (c *chance) percent(p int) bool { return p > 0 && c.pick(100) >= int64(100-p) }

// delay is a time in [0, most].
func (c *chance) delay(most int64) int64 { return c.pick(most + 1) }
