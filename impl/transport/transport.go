// Package transport moves page parts between nodes. It has one interface for each direction and one folder for each fabric:
//
//	mem  both directions, in one process, for simulation: every step of a write is the test's to release
//	tcp  push: prefill writes, decode's placers put the bytes into the page after the grant table has agreed
//	shm  pull: decode copies from a read-only mapping of prefill's pool
//	verbs  push: prefill's adapter writes into decode's pages over RDMA, within what decode's adapter has been told to let in
//
// A transport knows streams, memory and epochs. It knows no transfer, verdict or hold: those are impl/core's. It never decides
// that a page is free. Each folder's package comment says what makes a target quiet there, and names the test that shows it.
// impl/node drives it. Read next: push.go, pull.go, grants.go.
package transport

import (
	"errors"

	"kvfence/spec"
)

// ErrFenced is returned by operations on a link end whose epoch has been fenced.
var ErrFenced = errors.New("epoch is fenced")

// ErrStream is wrapped by the loss of a stream, rail or queue pair. It fences the link; it says nothing about writes left behind.
var ErrStream = errors.New("data stream lost")

// ErrAuth is wrapped when the other end of a data stream does not hold the link's key.
var ErrAuth = errors.New("data stream is not authenticated")

// LinkInfo names one end of a link in one epoch, for authentication and traces.
type LinkInfo struct {
	Prefill, Decode spec.Incarnation
	Epoch           spec.Epoch
	Key             [32]byte // agreed over the control channel; proves that a data stream belongs to this link and epoch
}
