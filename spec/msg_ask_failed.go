package spec

import "math"

// AskFailed says that prefill refused or forgot the transfer; no lease of it will be worked on (prefill leader to decode leader).
type AskFailed struct {
	Transfer TransferID
	Cause    Cause
	Detail   string
	Limit    uint32 // for CauseTooLong: the prefill pool's tokens
}

// Kind is KindAskFailed.
func (AskFailed) Kind() Kind { return KindAskFailed }

func (m *AskFailed) walk(c *cursor) {
	c.transfer(&m.Transfer)
	c.cause(&m.Cause)
	c.clipped("detail", &m.Detail)
	u32(c, "limit", &m.Limit, 0, math.MaxUint32)
}
