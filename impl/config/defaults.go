package config

import (
	"fmt"
	"time"
)

// Addresses that are used where none is given. A process of one role on a host of its own finds them free; Role All binds the
// inner ones to ports that the system chooses.
const (
	DefaultGateway  = "127.0.0.1:8080"
	DefaultControl  = "127.0.0.1:7070"
	DefaultData     = "127.0.0.1:7071"
	DefaultAPI      = "127.0.0.1:7080"
	DefaultOperator = 9090 // port, on loopback; +1 for prefill, +2 for decode, +3 for the gateway alone
	anyPort         = "127.0.0.1:0"
)

// WithDefaults returns a copy in which every field that has a default is filled. c is not changed.
func (c Config) WithDefaults() Config {
	set(&c.Role, RoleAll)
	c.defaultAddresses()
	set(&c.Prefill.Ranks, 1)
	set(&c.Prefill.Split, "heads")
	set(&c.Prefill.Chunk, 512)
	set(&c.Prefill.Sharing, Off)
	set(&c.Decode.Ranks, 1)
	set(&c.Decode.Split, "heads")
	set(&c.Decode.Workers, 4)
	set(&c.Decode.Sharing, Off)
	set(&c.Model.Kind, "transformer")
	set(&c.Sizes.Window, 4096)
	set(&c.Sizes.Pool, 8192)
	set(&c.Sizes.PrefillPool, c.Sizes.Pool)
	set(&c.Sizes.DecodePool, c.Sizes.Pool)
	set(&c.Sizes.Page, 16)
	set(&c.Sizes.AuxSlots, 1024)
	set(&c.Sizes.TagSlots, 4)
	set(&c.Transport.Kind, "tcp")
	set(&c.Transport.Streams, 1)
	c.Transport.Verbs.setDefaults()
	set(&c.Guards.PageDigests, On)
	set(&c.Guards.StepTagCheck, On)
	set(&c.Timeouts.Liveness, 5*time.Second)
	set(&c.Timeouts.Repeat, 500*time.Millisecond)
	set(&c.Timeouts.Progress, 30*time.Second)
	set(&c.Timeouts.Request, 10*time.Minute)
	set(&c.Timeouts.Drain, 30*time.Second)
	set(&c.Bounds.Queue, 1024)
	set(&c.Bounds.Running, 256)
	set(&c.Bounds.WriteQueue, 4096)
	set(&c.Bounds.Connections, 1024)
	set(&c.Bounds.TopLogprobs, 20)
	set(&c.Log.Level, "info")
	set(&c.Log.Format, "text")
	return c
}

func (v *Verbs) setDefaults() {
	set(&v.MaxRails, 4)
	set(&v.GIDIndex, "auto")
	set(&v.MTU, "auto")
	set(&v.Leases, "auto")
	set(&v.RetryCount, 6)
	set(&v.TimeoutExponent, 14)
	set(&v.RNRRetry, 7)
	set(&v.SendDepth, 512)
	set(&v.NoticeDepth, 128)
	set(&v.BusyPoll, Off)
}

func (c *Config) defaultAddresses() {
	inner := func(alone string) string {
		if c.Role == RoleAll {
			return anyPort
		}
		return alone
	}
	set(&c.Prefill.Name, "prefill")
	set(&c.Decode.Name, "decode")
	set(&c.Prefill.Control, inner(DefaultControl))
	set(&c.Prefill.Data, inner(DefaultData))
	if c.Role != RoleAll {
		set(&c.Decode.API, DefaultAPI)
	}
	set(&c.Gateway.Listen, DefaultGateway)
	set(&c.Gateway.Upstream, "http://"+DefaultAPI)
	port := map[Role]int{RolePrefill: 1, RoleDecode: 2, RoleGateway: 3}[c.Role] + DefaultOperator
	set(&c.Operator.Listen, fmt.Sprintf("127.0.0.1:%d", port))
	if len(c.Decode.Peers) == 0 && c.Role != RoleAll {
		c.Decode.Peers = []Peer{{Addresses: []string{DefaultControl}}}
	}
}

// set fills a field that is zero.
func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
