package core

import "kvfence/spec"

// What the prefill machines say to each other and to their driver beside side.go and action.go. On the prefill side a transfer is
// known to the ranks by its job key: the transfer's own name or, for a prefill-first half, its source name written as a
// TransferID (leader: the prefill leader's incarnation). Bind tells the ranks the transfer that took the half.

// --- prefill side, leader to rank ---

// UntakeSource takes back a TakeSource: another rank had no room. Nothing was computed into the pages.
type UntakeSource struct {
	side
	Transfer spec.TransferID
}

// ComputeOver says that no kernel of a transfer runs or will run: the hold of its kernels on the source pages ends. It comes
// once for each Assign, after the last ChunkDone or, for a transfer that stopped early, when the running chunk has ended.
type ComputeOver struct {
	side
	Transfer spec.TransferID
}

// Bind names the transfer that took a prefill-first half; grants of it belong to the job Source from now on.
type Bind struct {
	side
	Source   spec.TransferID // job key of the half
	Transfer spec.TransferID
	Links    []spec.Incarnation
}

// --- prefill side, rank to leader: PagesFreed (side.go), when source pages came back ---

// --- PrefillLeader to its driver ---

// Named answers a Submit at the prefill leader (prefill first): the half's name, to be quoted by decode's Ask.
type Named struct {
	action
	Req    RequestID
	Source spec.SourceName
}

// HalfOver ends a prefill-first half: with Cause "" it was bound and its transfer is decode's to answer for; otherwise it was
// refused, dropped, or its time was up, and it holds nothing or gives back what it held by proof.
type HalfOver struct {
	action
	Req    RequestID
	Cause  spec.Cause
	Detail string
	Limits Limits // filled for CauseTooLong
}

// PrefillRankStatus is what a prefill rank shows of itself. Counts, no secrets; a copy.
type PrefillRankStatus struct {
	Stopped  bool // a Stop action was given
	Draining bool // the leader is lost, or the machine has stopped: no new link, no new lease
	Pools    [spec.ComponentCount]PoolStatus
	Jobs     int
	Links    []PrefillLinkStatus // by PeerID
	Refused  uint64              // messages refused since the start
	Fences   uint64              // own fences begun since the start
}

// PrefillLinkStatus is one link of a prefill rank.
type PrefillLinkStatus struct {
	Peer        PeerID
	Name        string
	Incarnation spec.Incarnation
	Epoch       spec.Epoch
	State       string // "opening", "open", "fenced", "closed", "ended"
	Pull        bool
	Working     int  // leases not over
	Answers     int  // answers kept
	Posts       int  // batches posted and not over
	Offered     int  // pull: source pages offered and not given back
	Stopped     bool // pull: what it was offered is not coming back; no new offers
	Heard       Time
}

// PrefillLeaderStatus is what a prefill leader shows of itself.
type PrefillLeaderStatus struct {
	Draining  bool
	Admitted  int // transfers that are not over
	Halves    int // prefill-first halves not bound yet
	Waiting   int // transfers that wait for source pages
	Computing bool
	LostRanks int
}
