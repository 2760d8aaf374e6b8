package core

import (
	"fmt"

	"kvfence/spec"
)

// DecodeRankConfig is what a decode rank is told once. Durations are nanoseconds; 0 in a bound means its default.
type DecodeRankConfig struct {
	Identity     spec.Identity               // own; Role is spec.RoleDecode
	Capabilities []string                    // offered; each required capability of the protocol must be among them
	Layouts      []spec.Layout               // own pools, at most one a component; the KV pool is required
	Reserve      [spec.ComponentCount]uint32 // pages that no request may use (null page, draft): the leader's Reserve is the same
	Window       uint32                      // tokens; a prefill peer's must be equal
	Digests      bool                        // page digests wanted; a prefill peer's setting must be equal
	NoStepChecks bool                        // the tag check before and after each step is traded away by the operator
	MaxPublished int                         // KV pages that may be known at a time as prefixes to share; 0: nothing is shared
	Peers        []PeerConfig                // the prefill ranks that this node has links with, by rising ID

	Heartbeat      Duration // between two Pings of an open link; default 1 s
	Liveness       Duration // silence of a peer after which its link is fenced; default 5 s
	ConnectBound   Duration // how long a connect may take from Dialed to an open link; default 10 s
	RepeatFirst    Duration // first wait before a Grant or Abort is repeated; default 200 ms, doubled up to RepeatMax
	RepeatMax      Duration // default 5 s
	AnswerBound    Duration // how long repeats of one Grant or Abort may stay without any answer before the link is fenced; default 15 s
	QuarantineWait Duration // how long a quarantine waits for a link that next owes nothing before it fences it all the same; default 2 s

	MaxLeases   int // leases that are not freed; default 65536
	MaxChannels int // data channels that one receipt may list; default 64
}

// PeerConfig is one configured prefill rank. Empty Name and nil Rank expect nothing.
type PeerConfig struct {
	ID   PeerID
	Name string     // expected stable name
	Rank *spec.Rank // expected rank within its side
	Pull bool       // shared memory: this node copies from the source pool
}

// WithDefaults returns a copy in which every bound that was 0 has its default.
func (c DecodeRankConfig) WithDefaults() DecodeRankConfig {
	const second = Duration(1e9)
	if c.Capabilities == nil {
		c.Capabilities = requiredCapabilities()
	}
	orDur(&c.Heartbeat, second)
	orDur(&c.Liveness, 5*second)
	orDur(&c.ConnectBound, 10*second)
	orDur(&c.RepeatFirst, second/5)
	orDur(&c.RepeatMax, 5*second)
	orDur(&c.AnswerBound, 15*second)
	orDur(&c.QuarantineWait, 2*second)
	orInt(&c.MaxLeases, 65536)
	orInt(&c.MaxChannels, 64)
	return c
}

// Validate reports the first thing that makes c unusable, wrapped in ErrConfig. It changes nothing.
func (c DecodeRankConfig) Validate() error {
	id := c.Identity
	if err := validateRank(id, spec.RoleDecode); err != nil {
		return err
	}
	if c.Window == 0 {
		return fmt.Errorf("%w: window is 0", ErrConfig)
	}
	if err := validateOffer(c.Capabilities); err != nil {
		return err
	}
	if err := validatePools("decode", int(id.Rank), c.Layouts); err != nil {
		return err
	}
	for _, l := range c.Layouts {
		if c.Reserve[l.Component] >= l.Shape.Pages {
			return fmt.Errorf("%w: %s: %d pages reserved of %d", ErrConfig, l.Component, c.Reserve[l.Component], l.Shape.Pages)
		}
	}
	if c.MaxPublished < 0 {
		return fmt.Errorf("%w: max_published = %d", ErrConfig, c.MaxPublished)
	}
	for i := 1; i < len(c.Peers); i++ {
		if c.Peers[i].ID <= c.Peers[i-1].ID {
			return fmt.Errorf("%w: peer %d after peer %d", ErrConfig, c.Peers[i].ID, c.Peers[i-1].ID)
		}
	}
	return positive([]bound{{"heartbeat", int64(c.Heartbeat)}, {"liveness", int64(c.Liveness)}, {"connect_bound", int64(c.ConnectBound)},
		{"repeat_first", int64(c.RepeatFirst)}, {"repeat_max", int64(c.RepeatMax)}, {"answer_bound", int64(c.AnswerBound)},
		{"quarantine_wait", int64(c.QuarantineWait)}, {"max_leases", int64(c.MaxLeases)}, {"max_channels", int64(c.MaxChannels)}})
}

// validatePools checks the pools of one rank: bounds, one pool a component, and a KV pool.
func validatePools(side string, rank int, ls []spec.Layout) error {
	if layoutOf(ls, spec.KV) == nil {
		return fmt.Errorf("%w: %s rank %d has no kv pool", ErrConfig, side, rank)
	}
	for i, l := range ls {
		if err := l.Validate(); err != nil {
			return fmt.Errorf("%w: %s rank %d: %w", ErrConfig, side, rank, err)
		}
		if layoutOf(ls[:i], l.Component) != nil {
			return fmt.Errorf("%w: %s rank %d has two %s pools", ErrConfig, side, rank, l.Component)
		}
	}
	return nil
}
