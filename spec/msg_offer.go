package spec

import "math"

// Offer says that one part is sealed and may be read (pull; prefill rank to decode rank). It ends no hold.
type Offer struct {
	Transfer    TransferID
	Lease       LeaseID
	SourceLease uint64
	Done        PartDone
}

// Kind is KindOffer.
func (Offer) Kind() Kind { return KindOffer }

func (m *Offer) walk(c *cursor) {
	c.transfer(&m.Transfer)
	c.lease(&m.Lease)
	u64(c, "source_lease", &m.SourceLease, 0, math.MaxUint64)
	group(c, "done", &m.Done, done)
}
