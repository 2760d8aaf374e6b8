package spec

// Failed is the receipt after a Failing: stopped and drained.
type Failed struct {
	Transfer   TransferID
	Lease      LeaseID
	GrantEpoch Epoch
	Cause      Cause
	Detail     string
	Channels   []Channel
}

// Kind is KindFailed.
func (Failed) Kind() Kind { return KindFailed }

func (m *Failed) walk(c *cursor) {
	c.transfer(&m.Transfer)
	c.lease(&m.Lease)
	c.grantEpoch(&m.GrantEpoch)
	c.cause(&m.Cause)
	c.clipped("detail", &m.Detail)
	c.channels(&m.Channels)
}
