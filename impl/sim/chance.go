package sim

import "math/rand/v2"

// stream is a kind of choice. Each counts by itself, so that a choice more or less of one kind moves no other.
type stream int

// The streams.
const (
	jitterTime stream = iota // how much time a step takes, by step
	orderOf                  // which of the things that can happen does, by step
	workTime                 // how long a device takes
	packetTime               // how long a message takes
	lossOf                   // whether a message is lost or doubled
	looseOf                  // whether a message may overtake
	dialTime                 // when a connection is dialed anew
	endTime                  // when a side that ends does
	streams
)

// streamNames are what a script calls them.
func streamNames() [streams]string {
	return [streams]string{"jitter", "order", "work", "packets", "loss", "loose", "dial", "ending"}
}

// chance is where a run's choices come from: drawn from a seed, or read back from a script. Choice 0 is always the plainest one: the
// oldest thing first, no delay, no loss.
type chance struct {
	rng   *rand.Rand        // nil: a script
	given [streams][]uint32 // of a script; what it does not give is 0
	n     [streams]int      // choices made
	keep  bool              // log them
	log   [streams][]uint32
}

func newChance(seed uint64) *chance {
	return &chance{rng: rand.New(rand.NewPCG(seed, 0x6b7666656e6365))}
}

// pick is a number in [0, n); n fits 32 bits.
func (c *chance) pick(s stream, n int64) int64 {
	v, at := uint32(0), c.n[s]
	c.n[s]++
	switch {
	case n <= 1:
	case c.rng != nil:
		v = c.rng.Uint32N(uint32(n))
	case at < len(c.given[s]):
		v = c.given[s][at] % uint32(n)
	}
	if c.keep {
		c.log[s] = append(c.log[s], v)
	}
	return int64(v)
}

// percent is true for one in a hundred times p; 0 of a script is false.
func (c *chance) percent(s stream, p int) bool { return c.pick(s, 100) >= int64(100-p) }

// delay is a time in [0, most].
func (c *chance) delay(s stream, most int64) int64 { return c.pick(s, most+1) }
