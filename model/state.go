package model

// Values of the variables that TLA+ writes as strings; the zero value is the one of Init.
const (
	LeadNew uint8 = iota
	LeadSubmitted
	LeadAsking
	LeadOpen
	LeadRun
	LeadOk
	LeadFailed
	LeadRefused
)

// Causes of a failure.
const (
	CauseNone uint8 = iota
	CauseDerived
	CauseOriginal
)

// What the client was told.
const (
	HTTPNone uint8 = iota
	HTTP200
	HTTPError
)

// States of a lease at decode.
const (
	DstNew uint8 = iota
	DstFilling
	DstRevoking
	DstVerified
	DstReady
	DstBad
	DstFailed
	DstDone
	DstDead
)

// States of a lease at a prefill rank.
const (
	PstNone uint8 = iota
	PstWriting
	PstClosing
	PstClosed
)

// What a prefill rank takes the prompt for.
const (
	ViewSame uint8 = iota
	ViewShort
	ViewOther
)

// States of a source page.
const (
	SrcRaw uint8 = iota
	SrcComputed
	SrcSealed
)

// Kinds of receipts.
const (
	KindComplete uint8 = iota
	KindMisnamed
	KindAck
	KindFailed
	KindGone
)

var (
	leadNames  = [...]string{"new", "submitted", "asking", "open", "run", "ok", "failed", "refused"}
	causeNames = [...]string{"none", "derived", "original"}
	httpNames  = [...]string{"none", "200", "error"}
	dstNames   = [...]string{"new", "filling", "revoking", "verified", "ready", "bad", "failed", "done", "dead"}
	pstNames   = [...]string{"none", "writing", "closing", "closed"}
	viewNames  = [...]string{"same", "short", "other"}
	srcNames   = [...]string{"raw", "computed", "sealed"}
	boolNames  = [...]string{"FALSE", "TRUE"}
	kindNames  = [...]string{"complete", "misnamed", "ack", "failed", "gone"}
)

// By transfer, lease or source page: their numbers are the places, place 0 stays zero.
type (
	perTransfer [MaxTransfers + 1]uint8
	perLease    [MaxLeases + 1]uint8
	perRank     [MaxRanks]uint8
	perPage     [MaxPages]uint8
	leaseRank   [MaxLeases + 1][MaxRanks]uint8
	leasePage   [MaxLeases + 1][MaxPages]uint8
	rankSource  [MaxRanks][MaxSPages + 1]uint8
	pageRank    [MaxPages][MaxRanks]uint8
	perWrite    [MaxLeases + 1][MaxRanks][MaxPages][MaxChans]uint8
	flagLR      [MaxLeases + 1][MaxRanks]bool
)

// State is one state: a field for each variable of TLA/Transfer.tla, of the same name but for the capital, and in the words of
// its comments there. States are compared by ==; what the settings have no use for is zero. A State points to nothing.
type State struct {
	Krn                                                                   Large
	Rec, Ans, Acc, Tok, Pubs, Sent, Lost, Queued, Flying, Placing, Unseen Set
	Nin, Nsent, Shr, Pfenced                                              Small

	// Decode leader and prefill leader.
	Lead, Cause, Root, Succ perTransfer
	Http                    perTransfer
	Pask                    [MaxTransfers + 1]bool
	// Decode rank.
	Own, Gen    perPage
	Dst         perLease
	Hold, Got   flagLR
	Qep         leaseRank
	Ep, Linc    perRank
	Up, Fencing [MaxRanks]bool
	Dinc        uint8
	Dmark       perRank
	NextL       uint8
	App         [MaxPages]bool
	// The grant.
	Gpage     leasePage
	Owes      flagLR
	Gep, Ginc leaseRank
	Dof, Tof  perLease
	Ten, Ada  perLease
	Pre       perLease
	// Prefill rank.
	Pinc            perRank
	Pst, Pview      leaseRank
	Pmark           perRank
	Sown, Sdat, Sst rankSource
	Src             perWrite
	// The fabric.
	Pay       perWrite
	Mem, Tagl pageRank
	Spent     bool
}

// first is Init: all that is not zero there.
func first(w *Settings) State {
	s := State{NextL: 1}
	for t := uint8(1); t <= w.NT; t++ {
		s.Root[t] = t
		if !w.Asking {
			s.Lead[t], s.Pask[t] = LeadOpen, true
		}
	}
	for k := range w.ranks() {
		s.Up[k] = true
		s.Acc.add(acceptAt(k, 0, 0, 0))
	}
	for l := uint8(1); l <= w.NL; l++ {
		s.Ten[l], s.Ada[l], s.Pre[l] = w.NoTenant, w.NoAdapter, w.NoPrefix
	}
	return s
}
