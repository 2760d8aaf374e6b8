package core

import "kvfence/spec"

// Action is an output of a machine, to be carried out in order.
type Action interface{ isAction() }

type action struct{}

func (action) isAction() {}

// Did says that one action of the specification happened; it is the trace. Name is the name in TLA/Transfer.tla.
type Did struct {
	action
	Name     string
	Transfer spec.TransferID
	Lease    spec.LeaseID
	Peer     PeerID
	Detail   string

	// The values of the action's other parameters, where it has them; slices are the action's own.
	Root    spec.TransferID                         // Answer, Retry: the request's first transfer
	After   spec.TransferID                         // Retry: the transfer that is tried again
	Job     spec.TransferID                         // TakeSource, Compute, GiveBack of a job: its key at prefill
	Filler  spec.LeaseID                            // Publish, Unpublish, Share: who the page was filled for
	Inc     spec.Incarnation                        // of the other end
	Epoch   spec.Epoch                              // of a link, or of a lease's grant
	Mark    spec.LeaseID                            // RaiseMark, RecvMark, OwnMark
	Receipt string                                  // RecvComplete, RecvReceipt, Take: one of Kind in Ids.tla
	Cause   spec.Cause                              // Refuse, Failure, Recause, Answer
	Domain  spec.Domain                             // Grant, TakeSource
	Pages   [spec.ComponentCount][]spec.GrantedPage // that the action is about; of a finding those taken out of use
	Shared  uint32                                  // TakeSource: so many of the first KV pages are other jobs'
	Parts   []OwedPart                              // Grant: who owes what
	Channel spec.Channel                            // NoticeIn
	To      uint32                                  // Compute: tokens that are computed
	Last    bool                                    // Compute: all are
	Fresh   bool                                    // Accept: nothing was kept of this peer
	Req     RequestID                               // Submit, Retry, Refuse, Answer
}

// OwedPart is one part of a grant: page indexes [Lo, Hi) of a component of the lease, in the slot of that part.
type OwedPart struct {
	Peer      PeerID
	Component spec.Component
	Part      spec.PartIndex
	Lo, Hi    uint32
}

// onePage is the list that has one page.
func onePage(c spec.Component, p spec.GrantedPage) (l [spec.ComponentCount][]spec.GrantedPage) {
	l[c] = []spec.GrantedPage{p}
	return l
}

// Count says that something from outside was refused or is worth counting.
type Count struct {
	action
	Refusal spec.Refusal
	About   spec.Kind // 0 for writes
	Peer    PeerID
	Detail  string
}

// Send puts a message on a control connection. A connection that is gone swallows it.
type Send struct {
	action
	Peer PeerID
	Conn ConnID
	Env  spec.Envelope
}

// CloseConn ends a control connection after what was sent before on it; ConnLost follows.
type CloseConn struct {
	action
	Conn ConnID
}

// OpenData opens the data path of a link at decode (push: dial the streams; pull: map the source pool). Ends in DataUp.
type OpenData struct {
	action
	Peer  PeerID
	Epoch spec.Epoch
	Info  LinkData
}

// ExpectData makes prefill's data listener take the streams of a link. Ends in DataUp.
type ExpectData struct {
	action
	Peer  PeerID
	Epoch spec.Epoch
	Info  LinkData
}

// LinkData is what both ends of a data path need.
type LinkData struct {
	Prefill, Decode spec.Incarnation
	Address         string
	Key             [32]byte
	Pull            bool
	PeerLayouts     []spec.Layout
}

// Fence stops everything of a link up to epoch Old, at this end. Decode: raise the grant table to New first, then close the
// data path and wait for every placer. Prefill: end the sending streams. Ends in FenceDone; also when nothing was open.
type Fence struct {
	action
	Peer     PeerID
	Old, New spec.Epoch
}

// Allow enters a lease into the link's grant table (decode, push). Before the Send of its Grant.
type Allow struct {
	action
	Peer  PeerID
	Epoch spec.Epoch
	Grant spec.Grant
}

// Revoke takes a lease out of the link's grant table (decode, push). Before its pages are free.
type Revoke struct {
	action
	Peer  PeerID
	Lease spec.LeaseID
}

// VoidTags voids every slot of pages at hand-out, at either end, before anything else touches them.
type VoidTags struct {
	action
	Component spec.Component
	Pages     []spec.PageID
}

// PutTag writes decode's own tag of a page that it fills itself (slot 0), or voids the slots that the plan does not use.
type PutTag struct {
	action
	Component spec.Component
	Page      spec.PageID
	Slot      spec.PartIndex
	Tag       spec.Tag
}

// TagCheck is one slot to compare with what the ledger says.
type TagCheck struct {
	Component spec.Component
	Page      spec.PageID
	Slot      spec.PartIndex
	Want      spec.Tag
}

// Verify compares the tags, and the digests of the bytes that landed, of a whole lease with the ledger. Ends in Verified.
// The digest of a part whose record is not in the grant table any more (its link was fenced after its part was taken, while
// another link still owed one) is taken from the page: nothing writes there now.
type Verify struct {
	action
	Lease   spec.LeaseID
	Checks  []TagCheck
	Void    []VoidCheck
	Links   []LinkParts // where what landed is on record (push)
	Digests bool
}

// VoidCheck is one slot that no part of the plan uses: anything but void in it is a finding, reported with this Part and Index.
type VoidCheck struct {
	Component spec.Component
	Page      spec.PageID
	Slot      spec.PartIndex
	Index     uint32
}

// LinkParts names the parts of a lease that one link owed.
type LinkParts struct {
	Peer  PeerID
	Parts []spec.Part
}

// PullCopy copies parts from a peer's pool. Ends in PullDone.
type PullCopy struct {
	action
	Peer    PeerID
	Epoch   spec.Epoch
	Job     uint64
	Lease   spec.LeaseID
	Digests bool
	Items   []PullItem
}

// PullItem is one part of one page. The driver derives both ends' segments from the layouts.
type PullItem struct {
	Part    spec.Part
	Index   uint32
	Src     spec.SourcePage
	SrcSlot spec.PartIndex
	SrcTag  spec.Tag
	Dst     spec.GrantedPage
	DstTag  spec.Tag
}

// ReadPages answers ReadBegin: the block table and what its tags must be, before the kernel and again after it. The slices are
// the machine's and stay unchanged until ReadEnd.
type ReadPages struct {
	action
	Lease  spec.LeaseID
	Pages  *[spec.ComponentCount][]spec.GrantedPage
	Checks []TagCheck
	Copies []PageCopy // to be done between the first check and the kernel, in this order (copy before append)
}

// PageCopy copies the first Tokens tokens of a page (0: all of it) to another page of the same pool, which stands in the block table
// already. Both pages are held until ReadEnd. Tags are not copied.
type PageCopy struct {
	Component spec.Component
	Index     uint32
	From, To  spec.GrantedPage
	Tokens    uint32
}

// ReadRefused answers ReadBegin for a lease that is not ready.
type ReadRefused struct {
	action
	Lease spec.LeaseID
	Cause spec.Cause
}

// Alarm reports corruption that was found, for people: pages were quarantined.
type Alarm struct {
	action
	Lease spec.LeaseID
	Peer  PeerID
	Bad   []BadPart
}

// ToRank and ToLeader carry side messages.
type ToRank struct {
	action
	Rank spec.Rank
	Msg  SideMsg
}

// ToLeader carries a rank's message to its leader.
type ToLeader struct {
	action
	Msg SideMsg
}

// Stop says that an invariant broke or a fence failed: serve nothing more, carry out the fences that follow, end the process.
type Stop struct {
	action
	Broken    string
	Invariant int // 0: not an invariant, a fence that could not be done
}

// --- DecodeLeader ---

// SendLeader sends Ask or Drop to a prefill side's leader, over its link with this side's rank 0.
type SendLeader struct {
	action
	Peer PeerID
	Body spec.Message
}

// OpenStream says that a request's transfer is ready: a status line may leave (no verdict).
type OpenStream struct {
	action
	Req           RequestID
	PromptTokens  uint32 // counted by decode
	PrefillTokens uint32 // counted by prefill
}

// Emit hands out one token, after its second check.
type Emit struct {
	action
	Req   RequestID
	Token Token
}

// Answer is the one end of a request: success with Finish ("stop" or "length"), or failure with the first cause.
type Answer struct {
	action
	Req           RequestID
	Finish        string
	Cause         spec.Cause // "" on success
	Detail        string
	PromptTokens  uint32
	PrefillTokens uint32
	NewTokens     uint32
	Limits        Limits // filled for CauseTooLong
	RetryAfter    Duration
}

// Limits are the numbers behind a refusal for length; 0 where not concerned.
type Limits struct {
	Prompt, MaxNew, Window, PrefillPool, DecodePool uint32 // tokens
	Limiting                                        string // "window", "prefill pool", "decode pool"
}

// ReadFirst asks the driver to read the auxiliary record of a ready transfer at the ranks. Ends in FirstRead.
type ReadFirst struct {
	action
	Transfer spec.TransferID
	Leases   []spec.LeaseID // by rank
}

// RunStep asks the driver to run one decode step at all ranks: write token Token's KV at Pos, read positions 0..Pos, sample.
// Ends in StepDone.
type RunStep struct {
	action
	Transfer spec.TransferID
	Leases   []spec.LeaseID // by rank
	Token    int32
	Pos      uint32
	Sampling spec.Sampling
	Index    uint32 // index of the token to be sampled, 0 is the first token after the prompt
}

// --- PrefillLeader ---

// ReplyLeader sends Asked or AskFailed to a decode leader over its link with this side's rank 0.
type ReplyLeader struct {
	action
	Peer PeerID
	Body spec.Message
}

// Compute asks the driver to compute tokens [From, To) of a transfer at all ranks, into the pages that the ranks hold, and with
// the last chunk the auxiliary record at the declared writer. Ends in ComputeDone.
type Compute struct {
	action
	Transfer spec.TransferID
	Tokens   []int32 // the whole prompt; must not be changed
	From, To uint32
	Last     bool
	Sampling spec.Sampling
	Adapter  string
	Pages    [][spec.ComponentCount][]spec.GrantedPage // by rank
}

// --- PrefillRank ---

// SealItem is one part of one page to be sealed.
type SealItem struct {
	Part  spec.Part
	Index uint32
	Src   spec.SourcePage
	Slot  spec.PartIndex // source slot of the tag (pull)
	Tag   spec.Tag       // without digest; the driver fills Digest and Used, and stores it in the source slot if Pull
}

// Seal takes the byte digests of finished parts, once. Ends in Sealed.
type Seal struct {
	action
	Seal    uint64
	Lease   LeaseKey
	Digests bool
	Pull    bool
	Items   []SealItem
}

// Post queues writes. Ends in Posted.
type Post struct {
	action
	Peer  PeerID
	Epoch spec.Epoch
	Batch uint64
	Lease spec.LeaseID
	Items []PostItem
}

// PostItem is one write. The driver derives the source segments from the layouts.
type PostItem struct {
	Part  spec.Part
	Index uint32
	Src   spec.SourcePage
	Dst   spec.GrantedPage
	Tag   spec.Tag // with digest and used bytes, as sealed
}

// Notice sends a numbered drain notice behind the last write of a lease on each channel that carried one. Ends in Noticed.
type Notice struct {
	action
	Peer   PeerID
	Epoch  spec.Epoch
	Lease  spec.LeaseID
	Number uint64
}
