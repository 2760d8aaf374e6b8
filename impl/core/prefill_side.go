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
	Stopped  bool                            `json:"stopped"`  // a Stop action was given
	Draining bool                            `json:"draining"` // the leader is lost, or the machine has stopped: no new link, no new lease
	Pools    [spec.ComponentCount]PoolStatus `json:"pools"`
	Jobs     int                             `json:"jobs"`
	Links    []PrefillLinkStatus             `json:"links"`   // by PeerID
	Refused  uint64                          `json:"refused"` // messages refused since the start
	Fences   uint64                          `json:"fences"`  // own fences begun since the start
	Hits     uint64                          `json:"hits"`    // source KV pages taken as shares since the start
}

// PrefillLinkStatus is one link of a prefill rank.
type PrefillLinkStatus struct {
	Peer        PeerID           `json:"peer"`
	Name        string           `json:"name"`
	Incarnation spec.Incarnation `json:"incarnation"`
	Epoch       spec.Epoch       `json:"epoch"`
	State       string           `json:"state"` // "opening", "open", "fenced", "closed", "ended"
	Pull        bool             `json:"pull"`
	Working     int              `json:"working"` // leases not over
	Answers     int              `json:"answers"` // answers kept
	Posts       int              `json:"posts"`   // batches posted and not over
	Offered     int              `json:"offered"` // pull: source pages offered and not given back
	Stopped     bool             `json:"stopped"` // pull: what it was offered is not coming back; no new offers
	Heard       Time             `json:"heard_ns"`
}

// PrefillLeaderStatus is what a prefill leader shows of itself.
type PrefillLeaderStatus struct {
	Draining  bool `json:"draining"`
	Admitted  int  `json:"admitted"` // transfers that are not over
	Halves    int  `json:"halves"`   // prefill-first halves not bound yet
	Waiting   int  `json:"waiting"`  // transfers that wait for source pages
	Computing bool `json:"computing"`
	LostRanks int  `json:"lost_ranks"`
	// Prompt tokens of all transfers and halves that are not over, and how many of them are computed; the same of the oldest.
	Tokens         uint64          `json:"tokens"`
	Computed       uint64          `json:"computed"`
	Oldest         spec.TransferID `json:"-"` // zero: none
	OldestTokens   uint32          `json:"oldest_tokens"`
	OldestComputed uint32          `json:"oldest_computed"`
}
