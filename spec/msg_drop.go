package spec

import "math"

// Drop tells the prefill leader that nobody will ask for a prefill-first half (decode leader to prefill leader).
type Drop struct {
	Source SourceName
	Cause  Cause
}

// Kind is KindDrop.
func (Drop) Kind() Kind { return KindDrop }

func (m *Drop) walk(c *cursor) {
	c.raw("source.leader", m.Source.Leader[:])
	u64(c, "source.counter", &m.Source.Counter, 1, math.MaxUint64)
	c.require("source.leader", !m.Source.Leader.IsZero(), "no incarnation")
	c.cause(&m.Cause)
}
