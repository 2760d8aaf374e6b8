package core

import (
	"fmt"

	"kvfence/spec"
)

// DecodeLeaderConfig is what a decode leader is told once. Durations are nanoseconds; 0 in a bound means its default, but where
// it says otherwise.
type DecodeLeaderConfig struct {
	Identity    spec.Identity               // of rank 0, where the leader lives; Role is spec.RoleDecode
	SideLayouts [][]spec.Layout             // pools of every rank of the side, by rank: what a request must fit into
	Reserve     [spec.ComponentCount]uint32 // pages of each rank's pools that no request may use (null page, draft)
	Revision    string                      // model revision, part of every request's domain
	Vocabulary  uint32                      // token ids are 0..Vocabulary-1; 0: not checked here
	Window      uint32                      // tokens
	Sharing     bool                        // requests of one domain may share the pages of a common prefix; the ranks' MaxPublished bounds it
	Prefill     [][]PeerID                  // configured prefill sides: this node's number for each of their ranks, in rank order

	MaxQueue        int      // requests that wait for their Ask; default 1024
	MaxTenantQueue  int      // of one tenant; default a quarter of MaxQueue, at least 1
	MaxActive       int      // transfers between Ask and their end; default 256
	MaxTenantActive int      // of one tenant while another waits; default half of MaxActive, at least 1
	MaxTenantPages  uint32   // KV pages of each rank that one tenant may have while another waits; default 3/4 of the least pool, rounded up
	MaxRetries      int      // new transfers after one that failed for no fault of the request; default 1, negative: none
	RetryAfter      Duration // said with over_capacity; default 1 s
	PeerBound       Duration // how long a request waits for a prefill side with all its links; default 10 s
	AskFirst        Duration // first wait before an Ask is repeated; default 200 ms, doubled up to AskMax
	AskMax          Duration // default 2 s
	AskBound        Duration // how long an Ask may stay unanswered; default 10 s
	CauseGrace      Duration // how long a failure of derived cause waits for its original one before it is answered; default 250 ms
}

// WithDefaults returns a copy in which every bound that was 0 has its default.
func (c DecodeLeaderConfig) WithDefaults() DecodeLeaderConfig {
	const second = Duration(1e9)
	orInt(&c.MaxQueue, 1024)
	orInt(&c.MaxTenantQueue, max(c.MaxQueue/4, 1))
	orInt(&c.MaxActive, 256)
	orInt(&c.MaxTenantActive, max(c.MaxActive/2, 1))
	orInt(&c.MaxRetries, 1)
	orDur(&c.RetryAfter, second)
	orDur(&c.PeerBound, 10*second)
	orDur(&c.AskFirst, second/5)
	orDur(&c.AskMax, 2*second)
	orDur(&c.AskBound, 10*second)
	orDur(&c.CauseGrace, second/4)
	if c.MaxTenantPages == 0 {
		least := c.leastPages(spec.KV)
		c.MaxTenantPages = least - least/4
	}
	return c
}

// Validate reports the first thing that makes c unusable, wrapped in ErrConfig. It changes nothing.
func (c DecodeLeaderConfig) Validate() error {
	id := c.Identity
	switch {
	case id.Role != spec.RoleDecode:
		return fmt.Errorf("%w: role %q, need %q", ErrConfig, id.Role, spec.RoleDecode)
	case id.Incarnation.IsZero() || id.Rank != 0:
		return fmt.Errorf("%w: a leader is rank 0 and has an incarnation", ErrConfig)
	case id.Size == 0 || int(id.Size) > spec.MaxRanks || len(c.SideLayouts) != int(id.Size) || len(id.Side) != int(id.Size):
		return fmt.Errorf("%w: layouts of %d ranks, incarnations of %d, the side has %d", ErrConfig, len(c.SideLayouts), len(id.Side), id.Size)
	case c.Window == 0:
		return fmt.Errorf("%w: window is 0", ErrConfig)
	case len(c.Prefill) == 0:
		return fmt.Errorf("%w: no prefill side", ErrConfig)
	}
	for k, ls := range c.SideLayouts {
		if err := validatePools("decode", k, ls); err != nil {
			return err
		}
	}
	seen := map[PeerID]bool{}
	for i, side := range c.Prefill {
		if len(side) == 0 || len(side) > spec.MaxRanks {
			return fmt.Errorf("%w: prefill side %d has %d ranks", ErrConfig, i, len(side))
		}
		for _, p := range side {
			if seen[p] {
				return fmt.Errorf("%w: peer %d stands twice", ErrConfig, p)
			}
			seen[p] = true
		}
	}
	if c.Capacity() == 0 {
		return fmt.Errorf("%w: the decode pools hold no request", ErrConfig)
	}
	return positive([]bound{{"max_queue", int64(c.MaxQueue)}, {"max_tenant_queue", int64(c.MaxTenantQueue)}, {"max_active", int64(c.MaxActive)},
		{"max_tenant_active", int64(c.MaxTenantActive)}, {"max_tenant_pages", int64(c.MaxTenantPages)}, {"retry_after", int64(c.RetryAfter)},
		{"peer_bound", int64(c.PeerBound)}, {"ask_first", int64(c.AskFirst)}, {"ask_max", int64(c.AskMax)}, {"ask_bound", int64(c.AskBound)},
		{"cause_grace", int64(c.CauseGrace)}})
}

// leastPages is the fewest usable pages that any rank has of a component that it has at all.
func (c DecodeLeaderConfig) leastPages(comp spec.Component) uint32 {
	least, any := ^uint32(0), false
	for _, ls := range c.SideLayouts {
		if l := layoutOf(ls, comp); l != nil {
			least, any = min(least, l.Shape.Pages-min(c.Reserve[comp], l.Shape.Pages)), true
		}
	}
	if !any {
		return 0
	}
	return least
}

// Capacity is the most positions (prompt and new tokens together) that one request could ever have at every rank, in whole
// pages: 0 when a pool of whole-request records has no page.
func (c DecodeLeaderConfig) Capacity() uint32 {
	least := uint64(1<<32 - 1)
	for _, ls := range c.SideLayouts {
		for _, l := range ls {
			pages := uint64(l.Shape.Pages - min(c.Reserve[l.Component], l.Shape.Pages))
			switch {
			case l.Equal.TokensPerPage != 0:
				least = min(least, pages*uint64(l.Equal.TokensPerPage))
			case pages == 0:
				return 0
			}
		}
	}
	return uint32(least)
}
