package spec

// Causes are all causes, original ones first, in the order of their declaration.
func Causes() []Cause {
	return []Cause{
		CauseTooLong, CauseInvalid, CauseOverCapacity, CauseDeadline, CauseClientGone, CauseOperator, CauseShutdown, CausePeerLost,
		CauseMismatch, CauseProtocol, CauseIncompatible, CauseCompute, CauseTransport, CauseInvariant, CausePreempted,
		CauseDuplicateLabel, CauseFenced, CausePeerFailed, CauseAbortedByPeer, CauseLeaderLost,
	}
}

// Known reports whether c is one of Causes.
func (c Cause) Known() bool { return c.HTTPStatus() != 0 || c == CausePreempted }

// HTTPStatus is the status of a request that failed with c before its answer began; 0 where the cause fails no request
// (CausePreempted) or is not known. CauseClientGone has nobody to read it: 499 stands in logs only.
func (c Cause) HTTPStatus() int {
	switch c {
	case CauseTooLong, CauseInvalid:
		return 400
	case CauseDuplicateLabel:
		return 409
	case CauseOverCapacity:
		return 429
	case CauseClientGone:
		return 499
	case CauseCompute, CauseInvariant:
		return 500
	case CausePeerLost, CauseMismatch, CauseProtocol, CauseIncompatible, CauseTransport,
		CauseFenced, CausePeerFailed, CauseAbortedByPeer, CauseLeaderLost:
		return 502
	case CauseOperator, CauseShutdown:
		return 503
	case CauseDeadline:
		return 504
	}
	return 0
}

// Refusals are all refusals in the order of their declaration.
func Refusals() []Refusal {
	return []Refusal{
		RefuseWrongIncarnation, RefuseStaleEpoch, RefuseUnknownLease, RefuseBelowMark, RefuseDuplicate, RefuseWrongNonce,
		RefuseNotGranted, RefuseRevoked, RefuseOutOfRange, RefuseUnknownKind, RefuseWrongState, RefuseTwin, RefuseFull,
		RefuseUnknownTransfer,
	}
}

// Known reports whether r is one of Refusals.
func (r Refusal) Known() bool {
	for _, k := range Refusals() {
		if r == k {
			return true
		}
	}
	return false
}
