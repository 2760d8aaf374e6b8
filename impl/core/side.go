package core

import "kvfence/spec"

// SideMsg is a message between the leader of a side and one of its ranks, delivered in order by the driver.
type SideMsg interface{ isSide() }

type side struct{}

func (side) isSide() {}

// --- decode side, leader to rank ---

// Take asks a rank to take the pages for positions 0..Tokens and plan the parts owed by the prefill side Prefill. All ranks or
// none: the leader follows with Go or Untake.
type Take struct {
	side
	Transfer spec.TransferID
	Domain   spec.Domain
	Request  spec.RequestDigest
	Tokens   uint32
	Prefill  []PeerID         // this side's number for each prefill rank, in rank order
	MaxGrow  uint32           // positions that the transfer may grow to
	Contents []spec.ContentID // of the prompt's full pages; nil: nothing is shared or published for it
}

// Go sends the grants of a taken lease.
type Go struct {
	side
	Transfer spec.TransferID
}

// AbortLease revokes a transfer's lease: Untake before Go, Abort after it. Its pages come back by proof.
type AbortLease struct {
	side
	Transfer spec.TransferID
	Cause    spec.Cause
}

// ReleaseLease ends a ready lease whose transfer is over (or preempted).
type ReleaseLease struct {
	side
	Transfer spec.TransferID
}

// Grow asks a rank for the page of position Pos.
type Grow struct {
	side
	Transfer spec.TransferID
	Pos      uint32
}

// Fork asks a rank for a further sample of a ready lease's prompt, as a transfer of its own: it shares the full pages, which must be
// published, and copies the tail. Answered like Take, and with LeaseReady at once. It has no auxiliary record: its first token is
// sampled from what the first sample's said. It reads from position Pos = prompt tokens on.
type Fork struct {
	side
	Transfer, From spec.TransferID
}

// --- decode side, rank to leader ---

// PeerUp says that a link to a prefill rank is open, with what admission needs.
type PeerUp struct {
	side
	Peer     PeerID
	Identity spec.Identity
	Layouts  []spec.Layout
	Window   uint32
	Pull     bool
}

// PeerDown says that a link is not open any more, and for people why.
type PeerDown struct {
	side
	Peer PeerID
	Why  string
}

// Taken says that a rank holds the pages of a transfer; NoRoom that it has not enough free ones now, NoPlan that it never can.
type Taken struct {
	side
	Transfer spec.TransferID
	Lease    spec.LeaseID
}

// NoRoom: see Taken.
type NoRoom struct {
	side
	Transfer spec.TransferID
}

// NoPlan: see Taken.
type NoPlan struct {
	side
	Transfer spec.TransferID
	Cause    spec.Cause
	Detail   string
}

// LeaseReady says that all parts of a rank's lease are taken and verified.
type LeaseReady struct {
	side
	Transfer spec.TransferID
}

// LeaseFailed says that a rank's lease cannot become ready, or a ready one went bad. Its pages come back by proof.
type LeaseFailed struct {
	side
	Transfer spec.TransferID
	Cause    spec.Cause
	Detail   string
}

// LeaseFreed says that the last hold of a rank's lease has ended: drained or fenced. Only now may the request be tried again.
type LeaseFreed struct {
	side
	Transfer spec.TransferID
}

// Grown answers Grow; GrowNoRoom says that no page is free.
type Grown struct {
	side
	Transfer spec.TransferID
}

// GrowNoRoom: see Grown.
type GrowNoRoom struct {
	side
	Transfer spec.TransferID
}

// PagesFreed says that pages came back, so that waiting takes may be tried again.
type PagesFreed struct{ side }

// --- prefill side, leader to rank ---

// Assign tells a rank about an admitted transfer, so that grants of it are worked on.
type Assign struct {
	side
	Transfer spec.TransferID
	Request  spec.RequestDigest
	Domain   spec.Domain
	Tokens   uint32
	Links    []spec.Incarnation // decode ranks whose grants will come
	Contents []spec.ContentID   // of the prompt's full pages; nil: nothing is shared or published for it
}

// TakeSource asks a rank to take source pages for a transfer; all its grants are in at every rank. Of a published prefix it shares at
// most so many pages.
type TakeSource struct {
	side
	Transfer  spec.TransferID
	MostShare uint32
}

// ChunkDone tells a rank that tokens [From, To) are computed in its pages.
type ChunkDone struct {
	side
	Transfer spec.TransferID
	From, To uint32
	Last     bool
}

// Break tells a rank to stop a transfer with prefill's own cause.
type Break struct {
	side
	Transfer spec.TransferID
	Cause    spec.Cause
	Detail   string
}

// --- prefill side, rank to leader ---

// PeerLink says that a decode rank's link opened (Up) or closed at this prefill rank.
type PeerLink struct {
	side
	Peer     PeerID
	Identity spec.Identity
	Up       bool
}

// Granted says that this rank has all grants of a transfer that it expects (none: it owes nothing).
type Granted struct {
	side
	Transfer spec.TransferID
}

// SourceTaken gives the source pages that a rank holds for a transfer; SourceNoRoom says that there are not enough now. The first Shared
// KV pages are computed: no kernel stores into them.
type SourceTaken struct {
	side
	Transfer spec.TransferID
	Pages    [spec.ComponentCount][]spec.GrantedPage
	Shared   uint32
}

// SourceNoRoom: see SourceTaken.
type SourceNoRoom struct {
	side
	Transfer spec.TransferID
}

// JobStopped says that a rank stopped working on a transfer before the computation was over (abort, break, fence).
type JobStopped struct {
	side
	Transfer spec.TransferID
	Cause    spec.Cause
}

// JobOver says that a rank holds nothing of a transfer any more.
type JobOver struct {
	side
	Transfer spec.TransferID
}
