package spec

// Version is the protocol version that this package speaks. Peers must agree exactly.
const Version uint16 = 1

// Required capabilities; a peer that lacks one of ours is refused at the handshake, never tolerated silently.
const (
	CapDrainReceipts = "drain-receipts-1"
	CapMarks         = "marks-1"
	CapTags          = "tags-1"
)

// Kind numbers a message on the wire.
type Kind uint16

// The kinds. Connect..Pong belong to the link, Ask..AskFailed to the leaders, the rest to leases.
const (
	KindConnect Kind = iota + 1
	KindAccept
	KindRefuse
	KindPing
	KindPong
	KindAsk
	KindAsked
	KindAskFailed
	KindDrop
	KindGrant
	KindOffer
	KindComplete
	KindFailing
	KindFailed
	KindAbort
	KindAbortAck
	KindGone
	KindRead
	KindFenced
	KindRefused
	KindEnd
)

// Message is one control message. Bodies are values; a decoded message owns its slices.
type Message interface{ Kind() Kind }

// Header precedes every message on a link.
type Header struct {
	From, To Incarnation // To is zero only in Connect to a peer not met yet
	Epoch    Epoch       // of the link; 0 before the first connect
	// Mark is the sender's mark on this link. Decode's: the lowest lease whose hold on this link stands, else the next to be
	// granted. Prefill's: leases below it that it does not hold are answered Gone. A lower one than before lowers nothing.
	Mark LeaseID
}

// Envelope is a message with its header.
type Envelope struct {
	Header
	Body Message
}

// Identity is who a node is, checked on both sides before any key is exchanged.
type Identity struct {
	Name        string // stable name of the node
	Role        string // "prefill" or "decode"
	Incarnation Incarnation
	Rank        Rank
	Size        uint16        // ranks of its side
	Side        []Incarnation // incarnations of all ranks of the side, in rank order; rank 0 leads
}

// Connect is decode's opening of a link: a fence of all older epochs (decode to prefill).
type Connect struct {
	Version      uint16
	Capabilities []string
	Nonce        Nonce
	Counter      uint64 // rises with every connect of this incarnation
	Epoch        Epoch  // the new epoch
	Identity     Identity
	Layouts      []Layout
	Window       uint32 // tokens
	Digests      bool   // page digests wanted; both sides must agree
	Pull         bool   // the receiver copies from the source pool
}

// Accept answers a Connect whose identity and layouts fit (prefill to decode). An answer to any other nonce configures nothing.
type Accept struct {
	Version      uint16
	Capabilities []string
	Nonce        Nonce
	Identity     Identity
	Layouts      []Layout
	Window       uint32
	DataAddress  string // where data streams of this link are dialed; bound before it is announced; empty for pull
	DataKey      [32]byte
}

// Refuse ends an attempt to connect; the cause names the differing field and both values (prefill to decode).
type Refuse struct {
	Nonce   Nonce
	Refusal Refusal
	Field   string
	Ours    string // the refusing side's value
	Theirs  string
}

// Ping asks for life; Pong answers with the same number. Either direction. The decode mark travels in their header.
type Ping struct{ Number uint64 }

// Pong answers a Ping.
type Pong struct{ Number uint64 }

// Ask hands a request to the prefill leader (decode leader to prefill leader). Repeated until Asked or AskFailed.
type Ask struct {
	Transfer TransferID
	Source   SourceName // prefill first: the half to bind; zero otherwise
	Label    string
	Tenant   string
	Salt     string
	Adapter  string
	Prompt   []int32
	TimeLeft uint64 // nanoseconds; 0: none
	Sampling Sampling
	Links    []Incarnation // decode ranks that will send grants of this transfer
}

// Sampling is what prefill needs to choose the first token. Zero Temperature is greedy.
type Sampling struct {
	Temperature float32
	TopP        float32
	Seed        uint64
	Logprobs    uint16
}

// Asked says that prefill admitted the transfer and how many prompt tokens it counted (prefill leader to decode leader).
type Asked struct {
	Transfer TransferID
	Tokens   uint32
}

// AskFailed says that prefill refused or forgot the transfer; no lease of it will be worked on (prefill leader to decode leader).
type AskFailed struct {
	Transfer TransferID
	Cause    Cause
	Detail   string
	Limit    uint32 // for CauseTooLong: the prefill pool's tokens
}

// Drop tells the prefill leader that nobody will ask for a prefill-first half (decode leader to prefill leader).
type Drop struct {
	Source SourceName
	Cause  Cause
}

// Grant hands pages to one prefill rank (decode rank to prefill rank). It carries no addresses and no key. For pull, Pages
// only say how many pages of each component are wanted.
type Grant struct {
	Transfer TransferID
	Lease    LeaseID
	Domain   Domain
	Tokens   uint32
	Pages    [ComponentCount][]GrantedPage
	Parts    []Part // those that this prefill rank owes
	Digests  bool
}

// SourcePage is a page of the source pool in a manifest (pull).
type SourcePage struct {
	Page PageID
	Gen  Generation
}

// PartDone describes one finished part: its digest for each page index, and for pull its source pages.
type PartDone struct {
	Component Component
	Index     PartIndex
	Digests   []uint64     // one for each page of Part.PageRange, in order; empty without digests
	Source    []SourcePage // pull only; parallel to Digests
}

// Channel is one data stream, rail or queue pair of a link in one epoch, and the number of the drain notice sent behind its last write.
type Channel struct {
	ID     uint32
	Notice uint64
}

// Offer says that one part is sealed and may be read (pull; prefill rank to decode rank). It ends no hold.
type Offer struct {
	Transfer    TransferID
	Lease       LeaseID
	SourceLease uint64
	Done        PartDone
}

// Complete says that all parts of a lease on this link are written and drained at the source (push: a receipt), or sealed and
// readable (pull: no receipt). Its epoch is the grant's.
type Complete struct {
	Transfer    TransferID
	Lease       LeaseID
	GrantEpoch  Epoch
	Tokens      uint32
	Request     RequestDigest
	Parts       []PartDone
	Channels    []Channel // push only
	SourceLease uint64    // pull only: the lease number in the source tags
}

// Failing reports at once that prefill gave up on a lease; no hold ends.
type Failing struct {
	Transfer TransferID
	Lease    LeaseID
	Cause    Cause
	Detail   string
}

// Failed is the receipt after a Failing: stopped and drained.
type Failed struct {
	Transfer   TransferID
	Lease      LeaseID
	GrantEpoch Epoch
	Cause      Cause
	Detail     string
	Channels   []Channel
}

// Abort asks prefill to stop a lease (decode rank to prefill rank).
type Abort struct {
	Transfer TransferID
	Lease    LeaseID
	Cause    Cause
}

// AbortAck is the receipt for an Abort: stopped and drained.
type AbortAck struct {
	Transfer   TransferID
	Lease      LeaseID
	GrantEpoch Epoch
	Channels   []Channel
}

// Gone is the receipt for a lease below a mark that prefill does not hold: nothing of it was posted, or all was drained before.
type Gone struct {
	Transfer   TransferID
	Lease      LeaseID
	GrantEpoch Epoch
}

// Read says that the reader's last copy of a lease has stopped (pull; decode rank to prefill rank). It ends prefill's hold.
type Read struct {
	Transfer TransferID
	Lease    LeaseID
}

// Fenced says that prefill has fenced an epoch of the link. It ends no hold: decode fences too.
type Fenced struct{ Old Epoch }

// Refused answers a message that was not acted upon, so that a peer that is out of step learns it.
type Refused struct {
	About   Kind
	Lease   LeaseID
	Refusal Refusal
	Detail  string
}

// Kind returns the wire number of each message.
func (Connect) Kind() Kind   { return KindConnect }
func (Accept) Kind() Kind    { return KindAccept }
func (Refuse) Kind() Kind    { return KindRefuse }
func (Ping) Kind() Kind      { return KindPing }
func (Pong) Kind() Kind      { return KindPong }
func (Ask) Kind() Kind       { return KindAsk }
func (Asked) Kind() Kind     { return KindAsked }
func (AskFailed) Kind() Kind { return KindAskFailed }
func (Drop) Kind() Kind      { return KindDrop }
func (Grant) Kind() Kind     { return KindGrant }
func (Offer) Kind() Kind     { return KindOffer }
func (Complete) Kind() Kind  { return KindComplete }
func (Failing) Kind() Kind   { return KindFailing }
func (Failed) Kind() Kind    { return KindFailed }
func (Abort) Kind() Kind     { return KindAbort }
func (AbortAck) Kind() Kind  { return KindAbortAck }
func (Gone) Kind() Kind      { return KindGone }
func (Read) Kind() Kind      { return KindRead }
func (Fenced) Kind() Kind    { return KindFenced }
func (Refused) Kind() Kind   { return KindRefused }
