package spec

import "math"

// Pong answers a Ping.
type Pong struct{ Number uint64 }

// Kind is KindPong.
func (Pong) Kind() Kind { return KindPong }

func (m *Pong) walk(c *cursor) {
	u64(c, "number", &m.Number, 0, math.MaxUint64)
}
