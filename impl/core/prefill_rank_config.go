package core

import (
	"fmt"

	"kvfence/spec"
)

// PrefillRankConfig is what a prefill rank is told once. Durations are nanoseconds; 0 in a bound means its default.
type PrefillRankConfig struct {
	Identity     spec.Identity   // own; Role is spec.RolePrefill
	Capabilities []string        // offered; each required capability of the protocol must be among them
	SideLayouts  [][]spec.Layout // pools of every rank of the side, by rank; own ones are SideLayouts[Identity.Rank]
	Window       uint32          // tokens; a decode peer's must be equal
	Digests      bool            // page digests; a decode peer's setting must be equal
	Pull         bool            // this rank's pools can be mapped by peers: links that ask to pull are taken, others are not

	MaxPublished int // source KV pages that may be known at a time as prefixes to share; 0: nothing is shared

	Heartbeat   Duration // between two Pings of an open link; default 1 s
	Liveness    Duration // silence of a peer after which its connection is given up; default 5 s
	AssignBound Duration // how long a grant waits for its leader's Assign before it is failed; default 30 s
	OfferFirst  Duration // pull: first wait before a Complete is repeated; default 200 ms, doubled up to OfferMax
	OfferMax    Duration // pull: default 5 s

	MaxLinks     int // decode incarnations known at once, ended ones with pages still out among them; default 1024
	MaxJobs      int // transfers with anything of theirs here; default 8192
	MaxLeases    int // working leases of one link; default 4096
	MaxAnswers   int // answers kept for one link before its own mark rises; default 4096
	MaxSealItems int // page parts in one Seal; default 256
	MaxPostItems int // page parts in one Post; default 64
	MaxPosts     int // batches posted and not yet over on one link; default 8
	MaxOffered   int // pull: source pages offered to one link and not given back before new offers wait; default half of the KV pool
	MaxOver      int // transfers remembered after they are over, so that a late grant is failed at once; default 4096
}

// WithDefaults returns a copy in which every bound that was 0 has its default.
func (c PrefillRankConfig) WithDefaults() PrefillRankConfig {
	const second = Duration(1e9)
	orDur(&c.Heartbeat, second)
	orDur(&c.Liveness, 5*second)
	orDur(&c.AssignBound, 30*second)
	orDur(&c.OfferFirst, second/5)
	orDur(&c.OfferMax, 5*second)
	orInt(&c.MaxLinks, 1024)
	orInt(&c.MaxJobs, 8192)
	orInt(&c.MaxLeases, 4096)
	orInt(&c.MaxAnswers, 4096)
	orInt(&c.MaxSealItems, 256)
	orInt(&c.MaxPostItems, 64)
	orInt(&c.MaxPosts, 8)
	orInt(&c.MaxOver, 4096)
	if c.MaxOffered == 0 && int(c.Identity.Rank) < len(c.SideLayouts) {
		if kv := layoutOf(c.SideLayouts[c.Identity.Rank], spec.KV); kv != nil {
			c.MaxOffered = int(kv.Shape.Pages+1) / 2
		}
	}
	return c
}

// Validate reports the first thing that makes c unusable, wrapped in ErrConfig. It changes nothing.
func (c PrefillRankConfig) Validate() error {
	id := c.Identity
	if err := validateRank(id, spec.RolePrefill); err != nil {
		return err
	}
	switch {
	case len(c.SideLayouts) != int(id.Size):
		return fmt.Errorf("%w: layouts of %d ranks, the side has %d", ErrConfig, len(c.SideLayouts), id.Size)
	case c.Window == 0:
		return fmt.Errorf("%w: window is 0", ErrConfig)
	}
	if c.MaxPublished < 0 {
		return fmt.Errorf("%w: max_published = %d", ErrConfig, c.MaxPublished)
	}
	if err := validateOffer(c.Capabilities); err != nil {
		return err
	}
	if err := validateSide(c.SideLayouts); err != nil {
		return err
	}
	return positive([]bound{{"heartbeat", int64(c.Heartbeat)}, {"liveness", int64(c.Liveness)}, {"assign_bound", int64(c.AssignBound)},
		{"offer_first", int64(c.OfferFirst)}, {"offer_max", int64(c.OfferMax)}, {"max_links", int64(c.MaxLinks)}, {"max_jobs", int64(c.MaxJobs)},
		{"max_leases", int64(c.MaxLeases)}, {"max_answers", int64(c.MaxAnswers)}, {"max_seal_items", int64(c.MaxSealItems)},
		{"max_post_items", int64(c.MaxPostItems)}, {"max_posts", int64(c.MaxPosts)}, {"max_offered", int64(c.MaxOffered)}, {"max_over", int64(c.MaxOver)}})
}
