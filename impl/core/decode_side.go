package core

import "kvfence/spec"

// What the decode machines say to each other and to their driver beside side.go and action.go.

// RankEnding says that a rank takes no transfer any more (a fence failed, or it is stopping); what is ready it finishes.
type RankEnding struct {
	side
	Cause  spec.Cause
	Detail string
}

// PeerRefused says that a prefill rank and this one do not fit together; Detail names the field and both values. Connecting is
// tried again (the peer may be replaced), but requests that wait for it fail with it.
type PeerRefused struct {
	side
	Peer   PeerID
	Detail string
}

// DecodeRankStatus is what a decode rank shows of itself: counts, no contents; a copy.
type DecodeRankStatus struct {
	Stopped    bool                            `json:"stopped"` // a Stop action was given
	Ending     bool                            `json:"ending"`  // takes nothing new
	Pools      [spec.ComponentCount]PoolStatus `json:"pools"`
	Leases     LeaseCounts                     `json:"leases"`
	Links      []DecodeLinkStatus              `json:"links"`      // by PeerID
	Quarantine int                             `json:"quarantine"` // findings whose fences are not all back
	Next       spec.LeaseID                    `json:"next_lease"` // the next lease number
	Refused    uint64                          `json:"refused"`    // messages refused since the start
	Fences     uint64                          `json:"fences"`     // fences begun since the start
	Alarms     uint64                          `json:"alarms"`     // findings of bad tags or digests since the start
	Published  int                             `json:"published"`  // KV pages known as prefixes to share
	Hits       uint64                          `json:"hits"`       // KV pages taken as shares since the start
}

// PoolStatus is a pool's pages by state. They add up to Total (I17).
type PoolStatus struct {
	Free        uint32 `json:"free"`
	Held        uint32 `json:"held"`
	Revoking    uint32 `json:"revoking"`
	Quarantined uint32 `json:"quarantined"`
	Total       uint32 `json:"total"`
}

// LeaseCounts are a rank's leases by state.
type LeaseCounts struct {
	Taken     int `json:"taken"`
	Filling   int `json:"filling"`
	Verifying int `json:"verifying"`
	Ready     int `json:"ready"`
	Revoking  int `json:"revoking"`
}

// DecodeLinkStatus is one link of a decode rank.
type DecodeLinkStatus struct {
	Peer        PeerID           `json:"peer"`
	Name        string           `json:"name"`
	Incarnation spec.Incarnation `json:"incarnation"`
	Epoch       spec.Epoch       `json:"epoch"`
	State       string           `json:"state"` // "down", "connecting", "opening", "open", "ended"
	Mark        spec.LeaseID     `json:"mark"`  // own mark on this link
	PeerMark    spec.LeaseID     `json:"peer_mark"`
	Pull        bool             `json:"pull"`
	Holds       int              `json:"holds"`   // leases that this link owes a part
	Fencing     int              `json:"fencing"` // fences of it that are not back
	Heard       Time             `json:"heard_ns"`
	Refusal     string           `json:"refusal"` // why the last attempt to connect was refused; "" if it was not
}

// DecodeLeaderStatus is what a decode leader shows of itself.
type DecodeLeaderStatus struct {
	Draining  bool   `json:"draining"`
	Stopped   bool   `json:"stopped"`
	Queued    int    `json:"queued"`
	Asking    int    `json:"asking"`
	Waiting   int    `json:"waiting"` // asked prefill; wait for pages
	Filling   int    `json:"filling"`
	Running   int    `json:"running"`
	Ending    int    `json:"ending"` // over, their leases not all freed
	Capacity  uint32 `json:"capacity"`
	PrefillUp int    `json:"prefill_up"` // sides with all their links
	LostRanks int    `json:"lost_ranks"`
	Succeeded uint64 `json:"succeeded"`
	Failed    uint64 `json:"failed"`
	Preempted uint64 `json:"preempted"`
	Retried   uint64 `json:"retried"`
}
