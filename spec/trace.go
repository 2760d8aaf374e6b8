package spec

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// TraceVersion is the version of the trace format; it stands in each start line, and a reader takes no other.
const TraceVersion = 1

// TraceLine is one line of a trace: one Step of one machine, as trace.md describes it. It names no tenant, prompt, token, key or address.
type TraceLine struct {
	At      int64        `json:"at"`   // nanoseconds on the monotonic clock of the process that wrote it
	Node    Incarnation  `json:"node"` // of the rank; a leader's is its rank 0's
	Machine TraceMachine `json:"machine"`
	Event   TraceEvent   `json:"event"`
	Did     []TraceDid   `json:"did,omitempty"` // the actions of the specification that the machine says it took, in order
	Out     []TraceOut   `json:"out,omitempty"` // what it put out, in order
}

// TraceMachine says which machine of a node took the step.
type TraceMachine string

// The machines. World is what is no machine: faults and the fabric of a simulation.
const (
	TraceDecodeLeader  TraceMachine = "decode-leader"
	TraceDecode        TraceMachine = "decode"
	TracePrefillLeader TraceMachine = "prefill-leader"
	TracePrefill       TraceMachine = "prefill"
	TraceWorld         TraceMachine = "world"
)

// TraceStart is the first line of a machine: who it is, and how large its pools are.
type TraceStart struct {
	Version int                    `json:"version"`
	Name    string                 `json:"name"`
	Rank    Rank                   `json:"rank"`
	Side    []Incarnation          `json:"side"`
	Pages   [ComponentCount]uint32 `json:"pages"`            // of each pool; 0: there is none
	Tokens  uint32                 `json:"tokens,omitempty"` // of a KV page
	Peers   []TracePeer            `json:"peers,omitempty"`  // decode: its links, by number
}

// TracePeer is a configured link of a decode rank.
type TracePeer struct {
	Peer uint32 `json:"peer"`
	Pull bool   `json:"pull,omitempty"`
}

// TraceEvent is what the machine was given. Kind is the event's name in impl/core; fields that it does not have are zero and left out.
type TraceEvent struct {
	Kind     string         `json:"kind"`
	Start    *TraceStart    `json:"start,omitempty"`   // kind "Start"
	Message  string         `json:"message,omitempty"` // kind of the message, of a peer or of the side
	Peer     uint32         `json:"peer,omitzero"`     // the machine's number for the other end
	From     Incarnation    `json:"from,omitzero"`     // sender of a peer's message
	Transfer TraceTransfer  `json:"transfer,omitzero"`
	Job      TraceTransfer  `json:"job,omitzero"` // Bind: the half
	Lease    LeaseID        `json:"lease,omitzero"`
	Epoch    Epoch          `json:"epoch,omitzero"` // of a message's header, of a data path; of a fence the last epoch that it ends
	Grant    Epoch          `json:"grant,omitzero"` // epoch of the grant that a receipt answers
	Mark     LeaseID        `json:"mark,omitzero"`  // sender's mark
	Number   uint64         `json:"number,omitzero"`
	ID       uint64         `json:"id,omitzero"` // of a seal, batch or job
	Channels []TraceChannel `json:"channels,omitempty"`
	Bad      []TracePart    `json:"bad,omitempty"` // findings: component, part, index
	Failed   bool           `json:"failed,omitzero"`
	Rank     Rank           `json:"rank,omitzero"`
	Pos      uint32         `json:"pos,omitzero"`
	Req      uint64         `json:"req,omitzero"`
}

// TraceDid is one action of the specification with the values of its parameters, as the machine says.
type TraceDid struct {
	Name     string        `json:"name"`
	Transfer TraceTransfer `json:"transfer,omitzero"`
	Root     TraceTransfer `json:"root,omitzero"`  // first transfer of the request
	After    TraceTransfer `json:"after,omitzero"` // Retry: the transfer that is tried again
	Job      TraceTransfer `json:"job,omitzero"`   // prefill's name for what it computes; a half has one before it has a transfer
	Lease    LeaseID       `json:"lease,omitzero"`
	Filler   LeaseID       `json:"filler,omitzero"` // the lease that a shared page was filled for
	Peer     uint32        `json:"peer,omitzero"`
	Inc      Incarnation   `json:"inc,omitzero"` // of the other end
	Epoch    Epoch         `json:"epoch,omitzero"`
	Mark     LeaseID       `json:"mark,omitzero"`
	Receipt  string        `json:"receipt,omitempty"` // one of Kind in Ids.tla
	Cause    Cause         `json:"cause,omitempty"`
	Domain   TraceDomain   `json:"domain,omitzero"`
	Pages    TracePages    `json:"pages,omitzero"`
	Shared   uint32        `json:"shared,omitzero"` // so many of the first KV pages are other jobs'
	Parts    []TracePart   `json:"parts,omitempty"` // Grant: who owes what
	Channel  *TraceChannel `json:"channel,omitempty"`
	To       uint32        `json:"to,omitzero"` // Compute: tokens that are computed
	Last     bool          `json:"last,omitzero"`
	Req      uint64        `json:"req,omitzero"`   // Submit, Retry, Answer: the leader's number of the request
	Fresh    bool          `json:"fresh,omitzero"` // Accept: nothing of this peer was kept here
}

// TraceOut is one thing that the machine put out. Kind is the action's name in impl/core.
type TraceOut struct {
	Kind     string         `json:"kind"`
	After    int            `json:"after,omitzero"` // so many of Did came before it
	Message  string         `json:"message,omitempty"`
	Peer     uint32         `json:"peer,omitzero"`
	To       Incarnation    `json:"to,omitzero"`
	Rank     Rank           `json:"rank,omitzero"`
	Transfer TraceTransfer  `json:"transfer,omitzero"`
	Lease    LeaseID        `json:"lease,omitzero"`
	Leases   []LeaseID      `json:"leases,omitempty"` // of a step, by rank
	Epoch    Epoch          `json:"epoch,omitzero"`
	Old      Epoch          `json:"old,omitzero"`
	Grant    Epoch          `json:"grant,omitzero"`
	Mark     LeaseID        `json:"mark,omitzero"`
	Number   uint64         `json:"number,omitzero"`
	ID       uint64         `json:"id,omitzero"`
	Channels []TraceChannel `json:"channels,omitempty"`
	Pages    TracePages     `json:"pages,omitzero"` // of ReadPages only when the block table is not the one of the lease's last read
	Items    []TraceItem    `json:"items,omitempty"`
	Checks   int            `json:"checks,omitzero"`
	Copies   []TraceItem    `json:"copies,omitempty"`
	Cause    Cause          `json:"cause,omitempty"` // Answer: "" is success
	Req      uint64         `json:"req,omitzero"`
	Broken   int            `json:"broken,omitzero"`
	Refusal  Refusal        `json:"refusal,omitempty"`
}

// TracePage is a page and its generation.
type TracePage [2]uint64

// TracePages are lists of pages by component.
type TracePages [ComponentCount][]TracePage

// IsZero reports that there are none.
func (p TracePages) IsZero() bool {
	for _, c := range p {
		if len(c) > 0 {
			return false
		}
	}
	return true
}

// TraceItem is one part of one page: component, part, index in the lease, source page and generation, destination page and generation.
type TraceItem [7]uint64

// TracePart is what one link owes: peer, component, part, first index, one behind the last index. As a finding: 0, component, part,
// index, 1 if the digest differs.
type TracePart [5]uint64

// TraceChannel is a channel and the number of a notice on it.
type TraceChannel [2]uint64

// TraceTransfer is a TransferID as "incarnation/counter".
type TraceTransfer TransferID

// IsZero reports that t names none.
func (t TraceTransfer) IsZero() bool { return t == TraceTransfer{} }

// MarshalText is "incarnation/counter".
func (t TraceTransfer) MarshalText() ([]byte, error) {
	b := make([]byte, 0, 48)
	b = hex.AppendEncode(b, t.Leader[:])
	b = append(b, '/')
	return strconv.AppendUint(b, t.Counter, 10), nil
}

// UnmarshalText reads what MarshalText wrote.
func (t *TraceTransfer) UnmarshalText(b []byte) error {
	inc, counter, ok := strings.Cut(string(b), "/")
	n, err := strconv.ParseUint(counter, 10, 64)
	if !ok || err != nil {
		return fmt.Errorf("transfer %q is not incarnation/counter", b)
	}
	t.Counter = n
	return t.Leader.UnmarshalText([]byte(inc))
}

// String is for people.
func (t TraceTransfer) String() string { return TransferID(t).String() }

// TraceDomain is the first half of a Domain: enough to tell domains apart.
type TraceDomain [8]byte

// IsZero reports that there is none.
func (d TraceDomain) IsZero() bool { return d == TraceDomain{} }

// MarshalText is 16 hex digits.
func (d TraceDomain) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, d[:]), nil }

// UnmarshalText reads what MarshalText wrote.
func (d *TraceDomain) UnmarshalText(b []byte) error {
	if len(b) != 2*len(d) {
		return fmt.Errorf("domain of %d characters, not %d", len(b), 2*len(d))
	}
	_, err := hex.Decode(d[:], b)
	return err
}
