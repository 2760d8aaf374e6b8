package core

import "kvfence/spec"

// Time is nanoseconds on the driver's monotonic clock; 0 means "no time".
type Time int64

// Duration is nanoseconds.
type Duration int64

// PeerID is the driver's small number for one remote rank that this node has, or expects, a link with: on the decode side a
// configured prefill address, on the prefill side one for each decode incarnation that connected.
type PeerID uint32

// ConnID is the driver's number for one control connection; never reused within a process.
type ConnID uint64

// RequestID is the driver's number for one client request at the decode leader; never reused within a process.
type RequestID uint64

// Event is an input of a machine. Events of peers, devices and clocks alike are values; slices in them belong to the machine
// from then on.
type Event interface{ isEvent() }

type event struct{}

func (event) isEvent() {}

// Tick tells the time; nothing else happened. All machines.
type Tick struct{ event }

// --- links: DecodeRank and PrefillRank ---

// Dialed says that a control connection to a configured prefill rank stands (decode). Nonce is fresh randomness.
type Dialed struct {
	event
	Peer  PeerID
	Conn  ConnID
	Nonce spec.Nonce
}

// ConnectIn is a Connect that arrived on a new control connection (prefill). Peer is the driver's number for this decode
// incarnation; Key is fresh randomness for the data streams; DataAddress is bound already.
type ConnectIn struct {
	event
	Peer        PeerID
	Conn        ConnID
	Env         spec.Envelope // Body is spec.Connect
	Key         [32]byte
	DataAddress string
}

// Recv is any other message that arrived on a control connection.
type Recv struct {
	event
	Peer PeerID
	Conn ConnID
	Env  spec.Envelope
}

// ConnLost says that a control connection ended, in either role.
type ConnLost struct {
	event
	Peer PeerID
	Conn ConnID
}

// DataUp says that OpenData (decode) or ExpectData (prefill) has come to an end; with Err != "" the data path did not open.
type DataUp struct {
	event
	Peer  PeerID
	Epoch spec.Epoch
	Err   string
}

// DataLost says that a data stream, rail, queue pair or mapping of a link died. It fences the link.
type DataLost struct {
	event
	Peer  PeerID
	Epoch spec.Epoch
}

// FenceDone ends a Fence action: nothing of an epoch up to Old lands (decode) or is read here (prefill) any more.
type FenceDone struct {
	event
	Peer PeerID
	Old  spec.Epoch
	OK   bool // false: this fabric could not fence; the node stops admitting, finishes what is ready and ends
}

// --- DecodeRank ---

// NoticeIn says that a drain notice arrived on one channel: everything before it on that channel has landed and is visible.
type NoticeIn struct {
	event
	Peer    PeerID
	Epoch   spec.Epoch
	Channel uint32
	Lease   spec.LeaseID
	Number  uint64
}

// Verified ends a Verify action.
type Verified struct {
	event
	Lease spec.LeaseID
	Bad   []BadPart
}

// BadPart names a part of a page whose tag or digest was not as expected.
type BadPart struct {
	Component spec.Component
	Part      spec.PartIndex
	Index     uint32
	State     spec.TagState
	Digest    bool // the digest of the bytes differs
}

// PullDone ends a PullCopy action: no copy of it is running any more.
type PullDone struct {
	event
	Peer  PeerID
	Epoch spec.Epoch
	Job   uint64
	Lease spec.LeaseID
	Bad   []BadPart
	Err   string // not run to the end; "" otherwise
}

// ReadBegin asks to read a ready lease for one decode step; Pos is the position that the step appends to (0: it appends
// nothing). The answer is a ReadPages action, or a Refused count and ReadRefused.
type ReadBegin struct {
	event
	Lease spec.LeaseID
	Pos   uint32
}

// ReadEnd ends a read: the kernel has stopped and the tags were checked again. Bad is what either check found. Copied says that the
// copies of its ReadPages were done; where it had some and they were not, the next read has them again.
type ReadEnd struct {
	event
	Lease  spec.LeaseID
	Bad    []BadPart
	Copied bool
}

// Side carries a message between a leader and one of its ranks. At the leader, Rank is the sender; at a rank, it is its own.
type Side struct {
	event
	Rank spec.Rank
	Msg  SideMsg
}

// SideLost says that the leader (at a rank) or a rank (at the leader) is gone for good.
type SideLost struct {
	event
	Rank spec.Rank
}

// --- DecodeLeader ---

// Submit is a client's request, validated for syntax by the driver.
type Submit struct {
	event
	Req      RequestID
	Label    string
	Tenant   string
	Salt     string
	Adapter  string
	Prompt   []int32
	MaxNew   uint32   // 0: not given
	TimeLeft Duration // 0: none
	Sampling spec.Sampling
	Source   spec.SourceName // prefill first; zero otherwise
	EOS      int32           // token that ends the answer; -1: none
	Stop     [][]int32       // sequences of new tokens; the one that completes one is the last ("stop"), and is emitted
}

// ClientGone says that nobody waits for an answer any more. Writes in flight are not cancelled.
type ClientGone struct {
	event
	Req RequestID
}

// FirstRead ends a ReadFirst action: what the verified auxiliary record said.
type FirstRead struct {
	event
	Transfer spec.TransferID
	OK       bool
	Tokens   uint32 // prompt tokens as prefill counted them
	First    Token
}

// StepDone ends a RunStep action.
type StepDone struct {
	event
	Transfer spec.TransferID
	OK       bool // both tag checks passed at every rank and the kernel succeeded
	Next     Token
}

// Token is one sampled token with what the API may show of it.
type Token struct {
	ID      int32
	Logprob float32
	Top     []TopToken
}

// TopToken is an alternative with its log probability.
type TopToken struct {
	ID      int32
	Logprob float32
}

// Drain asks a leader to stop admitting and to finish what runs.
type Drain struct{ event }

// --- PrefillLeader ---

// ComputeDone ends a Compute action: tokens [From, To) are computed at all ranks, or Err says why not.
type ComputeDone struct {
	event
	Transfer spec.TransferID
	From, To uint32
	Err      string
}

// --- PrefillRank ---

// Sealed ends a Seal action: the byte digests, in the order of its items.
type Sealed struct {
	event
	Seal    uint64
	Lease   LeaseKey
	Digests []uint64
}

// Posted ends a Post action: with Err == "" its source pages are not read again; otherwise its writes may still land and may
// still be read until the link is fenced.
type Posted struct {
	event
	Peer  PeerID
	Epoch spec.Epoch
	Batch uint64
	Err   string
}

// Noticed ends a Notice action with the channels that carry it.
type Noticed struct {
	event
	Peer     PeerID
	Epoch    spec.Epoch
	Lease    spec.LeaseID
	Number   uint64
	Channels []spec.Channel
	Err      string
}

// ReaderEnded says that the process behind a pull link has ended: nothing of it reads this pool.
type ReaderEnded struct {
	event
	Peer PeerID
}

// LeaseKey names a lease at prefill: lease numbers of different decode incarnations may be equal.
type LeaseKey struct {
	Peer  PeerID
	Lease spec.LeaseID
}
