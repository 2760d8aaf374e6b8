package spec

import "math"

// Connect is decode's opening of a link: a fence of all older epochs (decode to prefill).
type Connect struct {
	Version      uint16
	Capabilities []string
	Nonce        Nonce
	Counter      uint64 // rises with every connect of this incarnation
	Epoch        Epoch  // the new epoch
	Identity     Identity
	Layouts      []Layout
	Window       uint32 // tokens
	Digests      bool   // page digests wanted; both sides must agree
	Pull         bool   // the receiver copies from the source pool
}

// Kind is KindConnect.
func (Connect) Kind() Kind { return KindConnect }

func (m *Connect) walk(c *cursor) {
	u16(c, "version", &m.Version, 0, math.MaxUint16)
	c.capabilities(&m.Capabilities)
	c.raw("nonce", m.Nonce[:])
	u64(c, "counter", &m.Counter, 0, math.MaxUint64)
	u64(c, "epoch", &m.Epoch, 1, math.MaxUint64)
	c.identity(&m.Identity)
	c.layouts(&m.Layouts)
	u32(c, "window", &m.Window, 0, math.MaxUint32)
	c.flag("digests", &m.Digests)
	c.flag("pull", &m.Pull)
}
