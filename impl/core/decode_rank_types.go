package core

import (
	"kvfence/impl/pages"
	"kvfence/spec"
)

// dlinkState is how far a link at decode is.
type dlinkState uint8

const (
	dlinkDown       dlinkState = iota
	dlinkConnecting            // Connect sent
	dlinkOpening               // accepted, older epochs fenced, the data path is being opened
	dlinkOpen
)

func (s dlinkState) String() string {
	return [...]string{"down", "connecting", "opening", "open"}[s&3]
}

// dlink is one configured prefill rank. Its epoch rises through all lives of the peer.
type dlink struct {
	cfg      PeerConfig
	index    uint64 // of the rank's links
	due      Time   // of the link's one timer
	state    dlinkState
	conn     ConnID // the standing control connection; 0: none
	epoch    spec.Epoch
	nonce    spec.Nonce
	accepted *spec.Accept
	inc      spec.Incarnation // of the peer behind the last Accept
	ident    spec.Identity
	layouts  []spec.Layout
	opened   uint64 // how often it opened; names one opening
	heard    Time
	pinged   Time
	pings    uint64
	marked   spec.LeaseID // highest mark sent
	peerMark spec.LeaseID
	fencing  []spec.Epoch // Old of each Fence that is not back, rising
	closing  bool         // a fence has begun and none has returned since
	fenced   spec.Epoch   // all up to here are fenced; meaningless while it was never fenced
	wants    Time         // a quarantine waits for a fence, at the latest then; 0: none
	owed     []*dhold     // in the order of grants; the head is dropped when it ended
	holds    int          // standing ones of owed
	refusal  string
}

// dleaseState is how far a lease at decode is.
type dleaseState uint8

const (
	dleaseTaken     dleaseState = iota // pages taken, no grant sent
	dleaseFilling                      // granted
	dleaseVerifying                    // all parts taken
	dleaseReady                        // verified
	dleaseRevoking                     // over for its transfer; holds stand
	dleaseStates
)

// dlease is one transfer's right to pages of this rank.
type dlease struct {
	id       spec.LeaseID
	transfer spec.TransferID
	domain   spec.Domain
	request  spec.RequestDigest
	tokens   uint32
	state    dleaseState
	side     []*dlink // prefill ranks, in rank order
	opened   []uint64 // their openings at Take
	parts    []spec.Part
	pages    [spec.ComponentCount][]spec.GrantedPage
	holds    []*dhold
	digests  map[partKey][]uint64 // from the manifests
	checks   []TagCheck           // of all planned and local slots; grows with the lease
	view     *[spec.ComponentCount][]spec.GrantedPage
	verify   bool // a Verify is running
	read     bool // a read is running
	told     bool // the leader knows that it failed
	granted  bool // its grants were sent
	bad      bool // pages of it went into quarantine
	cause    spec.Cause
	appended uint32 // lowest position that decode wrote, +1; 0: none. Pages from there are out of digest checks

	contents   []spec.ContentID    // of the prompt's full pages; nil: nothing of it is published
	shared     []pages.Publication // the first KV pages: others filled them
	share      pages.Group         // the hold on them; 0 without
	sharedTags int                 // how many tags they have
	fork       bool                // a further sample: prefill owes it nothing
	copies     []PageCopy          // not done yet
	from       []copyHold          // what they read of another lease
	before     []TagCheck          // the tags of that, compared until they are done
	old        []PageCopy          // of own KV pages that stand in the block table no more
}

// owner is the lease in the ledger.
func (l *dlease) owner() pages.Owner { return pages.Owner(l.id) }

// partKey names a part within a lease.
type partKey struct {
	component spec.Component
	index     spec.PartIndex
}

// dhold is the hold of one pair (lease, link that owes it a part).
type dhold struct {
	lease    *dlease
	link     *dlink
	epoch    spec.Epoch
	inc      spec.Incarnation
	parts    []spec.Part
	standing bool
	got      bool           // its parts were taken, as they should be
	proof    string         // how it ended
	notices  []spec.Channel // drain notices that are in
	receipt  *receipt       // came, and waits for its notices
	wait     Duration       // of the next repeat
	due      Time
	since    Time // of the last answer, or of the first asking
	asked    Time // of the first asking: of the Grant, then of the Abort
	answered bool // its receipt is being taken: it is asked nothing more
	pull     *pullHold
}

// Holds of a lease in the ledger.
func linkHold(k *dlink) pages.Hold { return pages.Hold{Kind: pages.LinkKind, ID: uint64(k.cfg.ID)} }
func verifyHold() pages.Hold       { return pages.Hold{Kind: pages.KernelKind, ID: 1} }
func readHold() pages.Hold         { return pages.Hold{Kind: pages.KernelKind, ID: 2} }
func jobHold(id uint64) pages.Hold { return pages.Hold{Kind: pages.OperationKind, ID: id} }

// move changes a lease's state and keeps the counts.
func (r *DecodeRank) move(l *dlease, to dleaseState) {
	r.states[l.state]--
	r.states[to]++
	l.state = to
	r.touch(l)
}

func (r *DecodeRank) touch(l *dlease) { r.touched = append(r.touched, l) }

// hold is the hold of a lease on a link; nil if the link owes it nothing.
func (l *dlease) hold(k *dlink) *dhold {
	for _, h := range l.holds {
		if h.link == k {
			return h
		}
	}
	return nil
}
