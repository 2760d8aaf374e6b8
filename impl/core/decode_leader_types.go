package core

import "kvfence/spec"

// drequest is one client request until its answer.
type drequest struct {
	id       RequestID
	sub      Submit
	tenant   *dtenant
	arrival  uint64
	maxNew   uint32
	digest   spec.RequestDigest
	domain   spec.Domain
	contents []spec.ContentID // of its full pages; nil without sharing
	since    Time             // queued
	deadline Time             // 0: none
	x        *dxfer
	last     spec.TransferID // of its last transfer; zero before the first
	first    spec.TransferID // of its first transfer; zero before it
	vague    bool            // the cause on record of its first transfer, which is over, is derived: it made room, or something else failed
	sent     []int32         // tokens that left, all of them
	opened   bool            // OpenStream was given
	prefill  uint32          // prompt tokens by prefill's count
	failedAt *pside          // where its last transfer failed; nil: none did
	retries  int
	cause    spec.Cause // of its first failed transfer
	detail   string
	limits   Limits
}

// dtenant is one tenant's queue and share.
type dtenant struct {
	name   string
	queue  []*drequest
	active int    // transfers not freed
	pages  uint32 // KV pages of each rank that they have or will take
}

// xstate is how far a transfer is.
type xstate uint8

const (
	xAsking  xstate = iota // Ask sent, not answered
	xAsked                 // waits for pages
	xTaking                // Take sent to all ranks
	xFilling               // granted
	xFirst                 // ready, the auxiliary record is being read
	xRunning               // a step runs
	xGrowing               // waits for the page of its next position
	xEnding                // verdict given; leases come back
)

// verdict is what the record says of a transfer. It changes once.
type verdict uint8

const (
	verdictOpen verdict = iota
	verdictFailed
	verdictOK
)

// dxfer is one transfer until all its leases are freed.
type dxfer struct {
	id      spec.TransferID
	req     *drequest
	side    *pside
	state   xstate
	verdict verdict
	cause   spec.Cause
	detail  string

	leases  []spec.LeaseID // by rank
	held    []bool         // by rank: Take was sent and nothing has said that the rank holds nothing of it
	ready   []bool         // by rank
	answers int            // of the round (Take or Grow) that runs
	short   bool           // a rank said NoRoom in this round
	freed   bool           // pages came back within this round
	room    uint32         // positions that its pages hold
	pages   uint32         // counted for its tenant
	busy    bool           // ReadFirst or RunStep has not come back
	index   uint32         // index of the token that the running step samples

	askWait  Duration
	askDue   Time
	askSince Time
	refused  bool // prefill's leader has ended it
	declined bool // prefill's leader takes nothing new
	asked    bool // it was answered once

	retry    bool // the request is to be tried again when this is freed
	preempt  bool // the request comes back as a new transfer when this is freed
	answered bool // the request's answer was given
}

// holds is how many ranks may hold something of x.
func (x *dxfer) holds() (n int) {
	for _, h := range x.held {
		if h {
			n++
		}
	}
	return n
}

// readyAll reports whether every rank's lease is ready.
func (x *dxfer) readyAll() bool {
	for _, r := range x.ready {
		if !r {
			return false
		}
	}
	return true
}
