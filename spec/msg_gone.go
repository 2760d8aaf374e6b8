package spec

// Gone is the receipt for a lease below a mark that prefill does not hold: nothing of it was posted, or all was drained before.
type Gone struct {
	Transfer   TransferID
	Lease      LeaseID
	GrantEpoch Epoch
}

// Kind is KindGone.
func (Gone) Kind() Kind { return KindGone }

func (m *Gone) walk(c *cursor) {
	c.transfer(&m.Transfer)
	c.lease(&m.Lease)
	c.grantEpoch(&m.GrantEpoch)
}
