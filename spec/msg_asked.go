package spec

// Asked says that prefill admitted the transfer and how many prompt tokens it counted (prefill leader to decode leader).
type Asked struct {
	Transfer TransferID
	Tokens   uint32
}

// Kind is KindAsked.
func (Asked) Kind() Kind { return KindAsked }

func (m *Asked) walk(c *cursor) {
	c.transfer(&m.Transfer)
	u32(c, "tokens", &m.Tokens, 0, MaxPrompt)
}
