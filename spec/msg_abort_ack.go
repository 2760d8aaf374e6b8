package spec

// AbortAck is the receipt for an Abort: stopped and drained.
type AbortAck struct {
	Transfer   TransferID
	Lease      LeaseID
	GrantEpoch Epoch
	Channels   []Channel
}

// Kind is KindAbortAck.
func (AbortAck) Kind() Kind { return KindAbortAck }

func (m *AbortAck) walk(c *cursor) {
	c.transfer(&m.Transfer)
	c.lease(&m.Lease)
	c.grantEpoch(&m.GrantEpoch)
	c.channels(&m.Channels)
}
