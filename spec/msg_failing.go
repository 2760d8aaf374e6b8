package spec

// Failing reports at once that prefill gave up on a lease; no hold ends.
type Failing struct {
	Transfer TransferID
	Lease    LeaseID
	Cause    Cause
	Detail   string
}

// Kind is KindFailing.
func (Failing) Kind() Kind { return KindFailing }

func (m *Failing) walk(c *cursor) {
	c.transfer(&m.Transfer)
	c.lease(&m.Lease)
	c.cause(&m.Cause)
	c.clipped("detail", &m.Detail)
}
