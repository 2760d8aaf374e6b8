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
