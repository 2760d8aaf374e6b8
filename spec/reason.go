package spec

// Cause is why a transfer or request failed, or why a message was refused. Causes are stable words in errors, traces and metrics.
type Cause string

// Original causes: something happened at one place. The first of them is what the client sees.
const (
	CauseTooLong        Cause = "context_length_exceeded" // can never fit: HTTP 400
	CauseInvalid        Cause = "invalid_request"         // empty prompt, token out of range: HTTP 400
	CauseOverCapacity   Cause = "over_capacity"           // bounded queue is full: HTTP 429
	CauseDeadline       Cause = "deadline"                // HTTP 504
	CauseClientGone     Cause = "client_gone"             // nobody to answer
	CauseOperator       Cause = "operator"                // HTTP 503
	CauseShutdown       Cause = "shutting_down"           // HTTP 503
	CausePeerLost       Cause = "peer_lost"               // no link, or its peer died: HTTP 502
	CauseMismatch       Cause = "kv_mismatch"             // tag, digest, length or token digest differs: HTTP 502
	CauseProtocol       Cause = "protocol_error"          // a peer said what it may not: HTTP 502
	CauseIncompatible   Cause = "incompatible_peer"       // layouts, revision, capabilities: HTTP 502
	CauseCompute        Cause = "compute_failed"          // the engine's own error: HTTP 500
	CauseTransport      Cause = "transport_failed"        // a post or completion failed: HTTP 502
	CauseInvariant      Cause = "invariant_broken"        // a numbered assertion failed; the node fences and stops: HTTP 500
	CausePreempted      Cause = "preempted"               // not a failure of the request: it comes back as a new transfer
	CauseDuplicateLabel Cause = "label_in_use"            // an outside id names a half that is bound already: HTTP 409
)

// Derived causes follow from an original one elsewhere. An original cause that arrives before the answer is sent replaces
// them, never the reverse.
const (
	CauseFenced        Cause = "fenced"
	CausePeerFailed    Cause = "peer_failed"
	CauseAbortedByPeer Cause = "aborted_by_peer"
	CauseLeaderLost    Cause = "leader_lost"
)

// Derived reports whether an original cause may still replace c.
func (c Cause) Derived() bool {
	switch c {
	case CauseFenced, CausePeerFailed, CauseAbortedByPeer, CauseLeaderLost:
		return true
	}
	return false
}

// Better is the cause to report when old is on record and next arrives before the answer: the first cause wins, but an
// original one replaces a derived one.
func Better(old, next Cause) Cause {
	if old == "" || (old.Derived() && next != "" && !next.Derived()) {
		return next
	}
	return old
}

// Refusal is why a message or write was not acted upon. Refusals are counted and traced; they are outcomes, not errors.
type Refusal string

// The refusals, in the order in which a message is tested (protocol, "Receipts").
const (
	RefuseWrongIncarnation Refusal = "wrong_incarnation" // addressee or sender is another life
	RefuseStaleEpoch       Refusal = "stale_epoch"
	RefuseUnknownLease     Refusal = "unknown_lease"
	RefuseBelowMark        Refusal = "below_mark"
	RefuseDuplicate        Refusal = "duplicate"
	RefuseWrongNonce       Refusal = "wrong_nonce"
	RefuseNotGranted       Refusal = "not_granted" // a write outside its grant: lease, generation, page, part or length
	RefuseRevoked          Refusal = "revoked"
	RefuseOutOfRange       Refusal = "out_of_range"
	RefuseUnknownKind      Refusal = "unknown_kind"
	RefuseWrongState       Refusal = "wrong_state"
	RefuseTwin             Refusal = "twin" // two live nodes claim one identity
	RefuseFull             Refusal = "full" // a bound of this node
	RefuseUnknownTransfer  Refusal = "unknown_transfer"
)
