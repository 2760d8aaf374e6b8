package spec

import "math"

// Accept answers a Connect whose identity and layouts fit (prefill to decode). An answer to any other nonce configures nothing.
type Accept struct {
	Version      uint16
	Capabilities []string
	Nonce        Nonce
	Identity     Identity
	Layouts      []Layout
	Window       uint32
	DataAddress  string // where data streams of this link are dialed; bound before it is announced; empty for pull
	DataKey      [32]byte
}

// Kind is KindAccept.
func (Accept) Kind() Kind { return KindAccept }

func (m *Accept) walk(c *cursor) {
	u16(c, "version", &m.Version, 0, math.MaxUint16)
	c.capabilities(&m.Capabilities)
	c.raw("nonce", m.Nonce[:])
	c.identity(&m.Identity)
	c.layouts(&m.Layouts)
	u32(c, "window", &m.Window, 0, math.MaxUint32)
	text(c, "data_address", &m.DataAddress, MaxName)
	c.raw("data_key", m.DataKey[:])
}
