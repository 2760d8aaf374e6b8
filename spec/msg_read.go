package spec

// Read says that the reader's last copy of a lease has stopped (pull; decode rank to prefill rank). It ends prefill's hold.
type Read struct {
	Transfer TransferID
	Lease    LeaseID
}

// Kind is KindRead.
func (Read) Kind() Kind { return KindRead }

func (m *Read) walk(c *cursor) {
	c.transfer(&m.Transfer)
	c.lease(&m.Lease)
}
