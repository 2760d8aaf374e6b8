package spec

import "math"

// Ping asks for life; Pong answers with the same number. Either direction. The decode mark travels in their header.
type Ping struct{ Number uint64 }

// Kind is KindPing.
func (Ping) Kind() Kind { return KindPing }

func (m *Ping) walk(c *cursor) {
	u64(c, "number", &m.Number, 0, math.MaxUint64)
}
