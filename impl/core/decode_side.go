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
	Stopped    bool // a Stop action was given
	Ending     bool // takes nothing new
	Pools      [spec.ComponentCount]PoolStatus
	Leases     LeaseCounts
	Links      []DecodeLinkStatus // by PeerID
	Quarantine int                // findings whose fences are not all back
	Next       spec.LeaseID       // the next lease number
	Refused    uint64             // messages refused since the start
	Fences     uint64             // fences begun since the start
	Alarms     uint64             // findings of bad tags or digests since the start
}

// PoolStatus is a pool's pages by state. They add up to Total (I17).
type PoolStatus struct{ Free, Held, Revoking, Quarantined, Total uint32 }

// LeaseCounts are a rank's leases by state.
type LeaseCounts struct{ Taken, Filling, Verifying, Ready, Revoking int }

// DecodeLinkStatus is one link of a decode rank.
type DecodeLinkStatus struct {
	Peer        PeerID
	Name        string
	Incarnation spec.Incarnation
	Epoch       spec.Epoch
	State       string       // "down", "connecting", "opening", "open", "ended"
	Mark        spec.LeaseID // own mark on this link
	PeerMark    spec.LeaseID
	Pull        bool
	Holds       int // leases that this link owes a part
	Fencing     int // fences of it that are not back
	Heard       Time
	Refusal     string // why the last attempt to connect was refused; "" if it was not
}

// DecodeLeaderStatus is what a decode leader shows of itself.
type DecodeLeaderStatus struct {
	Draining, Stopped bool
	Queued            int
	Asking, Waiting   int // asked prefill; wait for pages
	Filling, Running  int
	Ending            int // over, their leases not all freed
	Capacity          uint32
	PrefillUp         int // sides with all their links
	LostRanks         int
	Succeeded, Failed uint64
	Preempted         uint64
	Retried           uint64
}
