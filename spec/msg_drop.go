package spec

import "math"

// Drop tells the prefill leader what decode has given up: a prefill-first half that nobody will ask for (Source), or an asked
// transfer that is over before it was ready (Transfer): grants that it waits for will not come. It is said once; if it gets lost,
// the ranks' Aborts and prefill's own bounds do the same (decode leader to prefill leader).
type Drop struct {
	Source   SourceName // zero if Transfer is named
	Transfer TransferID // zero if Source is named
	Cause    Cause
}

// Kind is KindDrop.
func (Drop) Kind() Kind { return KindDrop }

func (m *Drop) walk(c *cursor) {
	c.raw("source.leader", m.Source.Leader[:])
	u64(c, "source.counter", &m.Source.Counter, 0, math.MaxUint64)
	c.require("source", m.Source.Leader.IsZero() == (m.Source.Counter == 0), "half a name")
	c.raw("transfer.leader", m.Transfer.Leader[:])
	u64(c, "transfer.counter", &m.Transfer.Counter, 0, math.MaxUint64)
	c.require("transfer", m.Transfer.Leader.IsZero() == (m.Transfer.Counter == 0), "half a name")
	c.require("source", m.Source.Leader.IsZero() != m.Transfer.Leader.IsZero(), "not exactly one name")
	c.cause(&m.Cause)
}
