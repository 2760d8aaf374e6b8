package spec

// Refuse ends an attempt to connect; the cause names the differing field and both values (prefill to decode).
type Refuse struct {
	Nonce   Nonce
	Refusal Refusal
	Field   string
	Ours    string // the refusing side's value
	Theirs  string
}

// Kind is KindRefuse.
func (Refuse) Kind() Kind { return KindRefuse }

func (m *Refuse) walk(c *cursor) {
	c.raw("nonce", m.Nonce[:])
	word(c, "refusal", &m.Refusal, Refusal.Known)
	text(c, "field", &m.Field, MaxName)
	c.clipped("ours", &m.Ours)
	c.clipped("theirs", &m.Theirs)
}
