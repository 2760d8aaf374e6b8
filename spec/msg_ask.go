package spec

import "math"

// Ask hands a request to the prefill leader (decode leader to prefill leader). Repeated until Asked or AskFailed.
type Ask struct {
	Transfer TransferID
	Source   SourceName // prefill first: the half to bind; zero otherwise
	Label    string
	Tenant   string
	Salt     string
	Adapter  string
	Prompt   []int32
	TimeLeft uint64 // nanoseconds; 0: none
	Sampling Sampling
	Links    []Incarnation // decode ranks that will send grants of this transfer
}

// Kind is KindAsk.
func (Ask) Kind() Kind { return KindAsk }

func (m *Ask) walk(c *cursor) {
	c.transfer(&m.Transfer)
	c.raw("source.leader", m.Source.Leader[:])
	u64(c, "source.counter", &m.Source.Counter, 0, math.MaxUint64)
	c.require("source", m.Source.Leader.IsZero() == (m.Source.Counter == 0), "half a name")
	text(c, "label", &m.Label, MaxLabel)
	text(c, "tenant", &m.Tenant, MaxLabel)
	text(c, "salt", &m.Salt, MaxLabel)
	text(c, "adapter", &m.Adapter, MaxLabel)
	c.tokens("prompt", &m.Prompt)
	u64(c, "time_left", &m.TimeLeft, 0, math.MaxUint64)
	c.sampling(&m.Sampling)
	c.incarnations("links", &m.Links)
}
