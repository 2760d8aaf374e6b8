package spec

import "math"

// Refused answers a message that was not acted upon, so that a peer that is out of step learns it.
type Refused struct {
	About   Kind
	Lease   LeaseID
	Refusal Refusal
	Detail  string
}

// Kind is KindRefused.
func (Refused) Kind() Kind { return KindRefused }

func (m *Refused) walk(c *cursor) {
	u16(c, "about", &m.About, 0, math.MaxUint16)
	u64(c, "lease", &m.Lease, 0, math.MaxUint64)
	word(c, "refusal", &m.Refusal, Refusal.Known)
	c.clipped("detail", &m.Detail)
}
