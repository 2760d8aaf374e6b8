//go:build linux

package bench

import (
	"kvfence/spec"
)

// Orders go to the second process (prefill, the source of everything), one JSON object a line; each has one answer.
type order struct {
	Op    string     // open, shuffle, begin, release, bare, stream, close
	Rig   int        // index into openOrder.Digests
	Open  *openOrder `json:",omitempty"`
	Begin *begin     `json:",omitempty"`
	Send  *send      `json:",omitempty"`
	Seed  uint64     `json:",omitempty"`
}

// openOrder makes one rig for each entry of Digests, and a listener for bare streams.
type openOrder struct {
	Config  config0
	Page    int
	Pool    int // bytes
	Digests []bool
}

// begin is a request's way to the moment at which its pages are sealed and its grant is in hand.
type begin struct {
	Transfer spec.TransferID
	Request  spec.RequestDigest
	Domain   spec.Domain
	Tokens   uint32
	Decode   spec.Incarnation
}

// send is a request of a bare mover (pages of the source pool) or stream (bytes).
type send struct {
	Pages   []uint32 `json:",omitempty"`
	To      []uint32 `json:",omitempty"` // destination pages
	Bytes   int      `json:",omitempty"`
	Digests bool     `json:",omitempty"`
}

// answer of an order.
type answer struct {
	Err     string   `json:",omitempty"`
	T0      int64    `json:",omitempty"` // by the shared clock: the beginning of what is timed
	SealNs  int64    `json:",omitempty"`
	Pages   []uint32 `json:",omitempty"` // source pages of a request, in order
	Control []string `json:",omitempty"` // of each rig
	Bare    string   `json:",omitempty"` // address of the listener for bare streams
	Pool    string   `json:",omitempty"` // file of the first rig's source pool, if it is shared
}

// config0 is what both processes build their nodes' configuration from.
type config0 struct {
	Suite      string
	Congestion string
	Streams    int
	Dir        string // certificates, sockets
}
