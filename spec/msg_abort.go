package spec

// Abort asks prefill to stop a lease (decode rank to prefill rank).
type Abort struct {
	Transfer TransferID
	Lease    LeaseID
	Cause    Cause
}

// Kind is KindAbort.
func (Abort) Kind() Kind { return KindAbort }

func (m *Abort) walk(c *cursor) {
	c.transfer(&m.Transfer)
	c.lease(&m.Lease)
	c.cause(&m.Cause)
}
