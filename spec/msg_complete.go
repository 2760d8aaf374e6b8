package spec

import "math"

// Complete says that all parts of a lease on this link are written and drained at the source (push: a receipt), or sealed and
// readable (pull: no receipt). Its epoch is the grant's.
type Complete struct {
	Transfer    TransferID
	Lease       LeaseID
	GrantEpoch  Epoch
	Tokens      uint32
	Request     RequestDigest
	Parts       []PartDone
	Channels    []Channel // push only
	SourceLease uint64    // pull only: the lease number in the source tags
}

// Kind is KindComplete.
func (Complete) Kind() Kind { return KindComplete }

func (m *Complete) walk(c *cursor) {
	c.transfer(&m.Transfer)
	c.lease(&m.Lease)
	c.grantEpoch(&m.GrantEpoch)
	u32(c, "tokens", &m.Tokens, 0, MaxPrompt)
	c.raw("request", m.Request[:])
	list(c, "parts", &m.Parts, MaxParts, 11, done)
	ascending(c, "parts", m.Parts, func(a, b PartDone) bool { return partLess(a.Component, b.Component, a.Index, b.Index) })
	c.channels(&m.Channels)
	u64(c, "source_lease", &m.SourceLease, 0, math.MaxUint64)
}
