package core

import (
	"fmt"

	"kvfence/spec"
)

// PrefillLeaderConfig is what a prefill leader is told once. Durations are nanoseconds; 0 in a bound means its default.
type PrefillLeaderConfig struct {
	Identity    spec.Identity   // of rank 0, where the leader lives; Role is spec.RolePrefill
	SideLayouts [][]spec.Layout // pools of every rank of the side, by rank: what a prompt must fit into
	Revision    string          // model revision, part of every request's domain
	Adapters    []string        // adapters that exist here; "" always does
	Vocabulary  uint32          // token ids are 0..Vocabulary-1
	Window      uint32          // tokens
	Sharing     bool            // prompts of one domain are computed behind a common prefix; the ranks' MaxPublished bounds it

	ChunkTokens uint32 // tokens computed at a time; default 512
	ReserveKV   uint32 // KV pages of each rank that no prompt may use (null page, draft); default 0

	LinkBound  Duration // how long a transfer goes on without a link to its decode leader; default 10 s
	GrantBound Duration // how long an admitted transfer waits for its grants; default 5 min
	AskedFirst Duration // first wait before Asked is said again while no grant comes; default 2 s, doubled up to AskedMax
	AskedMax   Duration // default 30 s
	HalfBound  Duration // how long a prefill-first half waits for the Ask that binds it; default 30 s

	MaxTransfers int // admitted transfers and halves that are not over; default 4096
	MaxTokens    int // prompt tokens of all of them together; default 64 Mi
	MaxOver      int // answers remembered after the transfer is over; default 8192
}

// WithDefaults returns a copy in which every bound that was 0 has its default.
func (c PrefillLeaderConfig) WithDefaults() PrefillLeaderConfig {
	const second = Duration(1e9)
	if c.ChunkTokens == 0 {
		c.ChunkTokens = 512
	}
	orDur(&c.LinkBound, 10*second)
	orDur(&c.GrantBound, 300*second)
	orDur(&c.AskedFirst, 2*second)
	orDur(&c.AskedMax, 30*second)
	orDur(&c.HalfBound, 30*second)
	orInt(&c.MaxTransfers, 4096)
	orInt(&c.MaxTokens, 64<<20)
	orInt(&c.MaxOver, 8192)
	return c
}

// Validate reports the first thing that makes c unusable, wrapped in ErrConfig. It changes nothing.
func (c PrefillLeaderConfig) Validate() error {
	id := c.Identity
	switch {
	case id.Role != spec.RolePrefill:
		return fmt.Errorf("%w: role %q, need %q", ErrConfig, id.Role, spec.RolePrefill)
	case id.Incarnation.IsZero() || id.Rank != 0:
		return fmt.Errorf("%w: a leader is rank 0 and has an incarnation", ErrConfig)
	case id.Size == 0 || int(id.Size) > spec.MaxRanks || len(c.SideLayouts) != int(id.Size):
		return fmt.Errorf("%w: layouts of %d ranks, the side has %d", ErrConfig, len(c.SideLayouts), id.Size)
	case c.Vocabulary == 0 || c.Vocabulary > 1<<31:
		return fmt.Errorf("%w: vocabulary %d", ErrConfig, c.Vocabulary)
	case c.Window == 0:
		return fmt.Errorf("%w: window is 0", ErrConfig)
	}
	if err := validateSide(c.SideLayouts); err != nil {
		return err
	}
	if c.Capacity() == 0 {
		return fmt.Errorf("%w: the KV pools hold no prompt", ErrConfig)
	}
	return positive([]bound{{"chunk_tokens", int64(c.ChunkTokens)}, {"link_bound", int64(c.LinkBound)}, {"grant_bound", int64(c.GrantBound)},
		{"asked_first", int64(c.AskedFirst)}, {"asked_max", int64(c.AskedMax)}, {"half_bound", int64(c.HalfBound)}, {"max_transfers", int64(c.MaxTransfers)}, {"max_tokens", int64(c.MaxTokens)}, {"max_over", int64(c.MaxOver)}})
}

// Capacity is the longest prompt, in tokens, that every rank's KV pool could ever hold.
func (c PrefillLeaderConfig) Capacity() uint32 {
	least := uint64(1<<32 - 1)
	for _, ls := range c.SideLayouts {
		if kv := layoutOf(ls, spec.KV); kv != nil {
			free := uint64(kv.Shape.Pages) - min(uint64(c.ReserveKV), uint64(kv.Shape.Pages))
			least = min(least, free*uint64(kv.Equal.TokensPerPage))
		}
	}
	return uint32(least)
}
