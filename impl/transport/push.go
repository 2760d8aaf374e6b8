package transport

import "kvfence/spec"

// Write is one one-sided operation: one part of one page. The bytes are the part's segments in the source page, in canonical
// order; the tag is sent behind them and stored in the destination's slot after them.
type Write struct {
	Component spec.Component
	Part      spec.PartIndex
	Of        spec.Part   // the part itself; Part is its index. One-sided fabrics find the destination's segments by it
	Index     uint32      // page index within the lease's component
	Src       spec.PageID // source page; it stays held until Posted
	SrcSegs   []spec.Segment
	Dst       spec.GrantedPage
	Tag       spec.Tag
}

// Batch is a set of writes of one lease, posted together. ID is the poster's, unique within the link's epoch.
type Batch struct {
	ID     uint64
	Lease  spec.LeaseID
	Writes []Write
}

// Source is prefill's end of a push link in one epoch. Safe for concurrent use.
type Source interface {
	// Post queues a batch. It never blocks on the peer beyond a bounded queue; it ends in exactly one SourceSink.Posted.
	Post(b Batch)
	// Notice queues a numbered drain notice of a lease on every channel that carried a write of it, behind the last one, and
	// returns what was sent; the notice itself ends in one SourceSink.Noticed when all were handed to the fabric.
	Notice(lease spec.LeaseID, number uint64)
	// Fence stops this end: after Fenced is called on the sink no source page is read any more for this epoch.
	Fence()
}

// SourceSink receives what happened at the source. Calls come from the transport's goroutines, one at a time for each link.
type SourceSink interface {
	// Posted ends a batch. With err == nil its source pages will not be read again. With an error the writes may still land,
	// and the source may still be read until Fenced.
	Posted(batch uint64, err error)
	// Noticed reports the channels that carry a notice of this lease, or an error.
	Noticed(lease spec.LeaseID, channels []spec.Channel, err error)
	// Lost reports that a channel died; the link must be fenced.
	Lost(err error)
	// Fenced reports that Fence is done.
	Fenced()
}

// Target is decode's end of a push link in one epoch. What may land is decided by its Grants. Safe for concurrent use.
type Target interface {
	// Fence raises nothing (the Grants' owner did), closes the streams of this epoch and waits until every placer of it has
	// stopped; then TargetSink.Fenced is called. After that no byte of this epoch lands: "close returned" is not this.
	Fence()
}

// Cutter is a Target whose streams can be ended as if they had been lost: their readers stop at once, and TargetSink.Lost is called. What cannot
// be stopped is said to the link's Grants (Fail).
type Cutter interface{ Cut() }

// Settler is a Target whose adapter holds the right to write for a lease until told otherwise. Settle takes back the rights of these leases, which were revoked
// and whose writers are done, and waits until the adapter has said so, or has lost the link; an adapter that does not answer loses it. What it could not take
// back still counts as being placed (Grants.Strays). Of other leases writes may be under way: theirs stay.
type Settler interface{ Settle(leases []spec.LeaseID) }

// FenceFailer is a TargetSink or SourceSink that can hear that a fence could not be completed. It is called in Fenced's place:
// something of the epoch may still land, or be read, and only the end of this process is proof.
type FenceFailer interface{ FenceFailed(err error) }

// TargetSink receives what happened at the target. Calls come from the transport's goroutines.
type TargetSink interface {
	// NoticeIn reports a drain notice; everything before it on that channel has landed and is visible to this process.
	NoticeIn(channel uint32, lease spec.LeaseID, number uint64)
	// Refused counts a write that the grant table did not allow. Its bytes were not placed.
	Refused(lease spec.LeaseID, why spec.Refusal)
	Lost(err error)
	Fenced()
}
