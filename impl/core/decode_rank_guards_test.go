package core

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/spec"
)

// Tests of single guards that no scenario needs: what they refuse comes of a peer or of a driver that is wrong.

func TestDecodeRank_MessageForAnotherIncarnation_IsAnsweredAndEndsNoHold(t *testing.T) {
	g := openDRig(t, dRigConfig(1, false, false, 20))
	l, _ := g.fill()
	m := g.msg(1, spec.Gone{Transfer: l.transfer, Lease: l.id, GrantEpoch: 1})
	m.Env.To = worldInc('d', 0, 7)
	acts := g.step(m)
	require.Equal(t, spec.RefuseWrongIncarnation, one[Count](g, acts).Refusal)
	require.Equal(t, spec.RefuseWrongIncarnation, said[spec.Refused](acts)[0].Refusal)
	require.Equal(t, uint32(17), g.free())
	require.Equal(t, dleaseFilling, l.state)
}

// A fence of a pull link does not end the hold of copies that run: their own end does.
func TestDecodeRank_Pull_FenceWaitsForRunningCopies(t *testing.T) {
	g := openDRig(t, dRigConfig(1, true, false, 20))
	l, _ := g.fill()
	c := g.complete(l, 1)
	job := one[PullCopy](g, g.recv(1, spec.Offer{Transfer: l.transfer, Lease: l.id, SourceLease: 77, Done: c.Parts[0]}))
	acts := g.step(DataLost{Peer: 1, Epoch: 1})
	require.Equal(t, spec.CauseFenced, told[LeaseFailed](acts)[0].Cause)
	g.step(FenceDone{Peer: 1, Old: 1, OK: true})
	require.Equal(t, uint32(17), g.free(), "the copy still stores")
	acts = g.step(PullDone{Peer: 1, Epoch: 1, Job: job.Job, Lease: l.id})
	require.Len(t, told[LeaseFreed](acts), 1)
	require.Equal(t, uint32(20), g.free())
}

func TestDecodeRank_Pull_CopyThatFails_FailsTheLeaseWithItsReason(t *testing.T) {
	g := openDRig(t, dRigConfig(1, true, false, 20))
	l, _ := g.fill()
	job := only[PullCopy](g.recv(1, g.complete(l, 1)))[0]
	acts := g.step(PullDone{Peer: 1, Epoch: 1, Job: job.Job, Lease: l.id, Err: "no mapping"})
	failed := told[LeaseFailed](acts)
	require.Len(t, failed, 1)
	require.Equal(t, spec.CauseTransport, failed[0].Cause)
	require.Contains(t, failed[0].Detail, "no mapping")
}

func TestDecodeRank_TooManyChannels_AReceiptFencesANoticeIsRefused(t *testing.T) {
	cfg := dRigConfig(1, false, false, 20)
	cfg.MaxChannels = 1
	g := openDRig(t, cfg)
	l, _ := g.fill()
	g.notice(l, 1)
	acts := g.step(NoticeIn{Peer: 1, Epoch: 1, Channel: 1, Lease: l.id, Number: 1})
	require.Equal(t, spec.RefuseFull, one[Count](g, acts).Refusal)
	require.Zero(t, did(acts, "NoticeIn"))
	c := g.complete(l, 1)
	c.Channels = append(c.Channels, spec.Channel{ID: 1, Notice: 1})
	acts = g.recv(1, c)
	require.Equal(t, spec.RefuseFull, only[Count](acts)[0].Refusal)
	require.Len(t, only[Fence](acts), 1)
	require.Zero(t, did(acts, "Take"))
	require.Equal(t, dleaseRevoking, l.state)
}

// Prefill writes over channels: a Complete that names written parts and no channel proves nothing. One that names no part needs none.
func TestDecodeRank_CompleteWithoutChannels_FailsAsProtocolError(t *testing.T) {
	g := openDRig(t, dRigConfig(1, false, false, 20))
	l, _ := g.fill()
	c := g.complete(l, 1)
	c.Channels = nil
	acts := g.recv(1, c)
	require.Equal(t, spec.CauseProtocol, told[LeaseFailed](acts)[0].Cause)
	require.Len(t, only[Fence](acts), 1)
	require.Equal(t, uint32(17), g.free())
}

func TestDecodeRank_DataPathThatDoesNotOpen_FencesAndSaysWhy(t *testing.T) {
	g := newDRig(t, dRigConfig(1, false, false, 20))
	g.dial(1)
	g.step(FenceDone{Peer: 1, Old: 0, OK: true})
	g.recv(1, g.accept(1))
	acts := g.step(DataUp{Peer: 1, Epoch: 1, Err: "connection refused"})
	require.Len(t, only[Fence](acts), 1)
	require.Empty(t, told[PeerUp](acts))
	require.Equal(t, dlinkDown, g.link(1).state)
	require.Equal(t, "connection refused", g.r.Status().Links[0].Refusal)
}

func TestDecodeRank_LeasesAtTheirBound_ATakeHasNoRoom(t *testing.T) {
	cfg := dRigConfig(1, false, false, 20)
	cfg.MaxLeases = 1
	g := openDRig(t, cfg)
	g.fill()
	_, acts := g.take(dRigTokens)
	require.Empty(t, told[Taken](acts))
	require.Len(t, told[NoRoom](acts), 1)
	require.Equal(t, uint32(17), g.free())
}

// Each rank of a prefill side must say the same list of ranks: two lists are two sides.
func TestDecodeRank_RanksThatNameDifferentSides_AreNoWholeSide(t *testing.T) {
	g := newDRig(t, dRigConfig(2, false, false, 20))
	g.open(1)
	g.dial(2)
	g.step(FenceDone{Peer: 2, Old: 0, OK: true})
	a := g.accept(2)
	a.Identity.Side = []spec.Incarnation{worldInc('p', 9, 9), g.inc[1]}
	g.recv(2, a)
	g.step(DataUp{Peer: 2, Epoch: 1})
	require.Equal(t, dlinkOpen, g.link(2).state)
	_, acts := g.take(dRigTokens)
	require.Empty(t, told[Taken](acts))
	require.Equal(t, spec.CausePeerLost, told[NoPlan](acts)[0].Cause)
	require.Equal(t, uint32(20), g.free())
}

// With step checks off by configuration a read has none; the lease is read all the same.
func TestDecodeRank_NoStepChecks_ReadsWithoutThem(t *testing.T) {
	for _, off := range []bool{false, true} {
		cfg := dRigConfig(1, false, false, 20)
		cfg.NoStepChecks = off
		g := openDRig(t, cfg)
		l := g.readied()
		read := one[ReadPages](g, g.step(ReadBegin{Lease: l.id}))
		require.Equal(t, off, len(read.Checks) == 0)
	}
}

// An Offer is judged as a receipt is: of the granted incarnation, of the grant's epoch, while the lease fills.
func TestDecodeRank_Pull_OfferOfAnotherEpochOrHold_StartsNoCopy(t *testing.T) {
	g := openDRig(t, dRigConfig(1, true, false, 20))
	l, _ := g.fill()
	c := g.complete(l, 1)
	offer := g.msg(1, spec.Offer{Transfer: l.transfer, Lease: l.id, SourceLease: 77, Done: c.Parts[0]})
	wrong := offer
	wrong.Env.Epoch = 9
	acts := g.step(wrong)
	require.Empty(t, only[PullCopy](acts))
	require.NotEmpty(t, only[Count](acts))
	bad := offer
	part := c.Parts[0]
	part.Index += 40
	bad.Env.Body = spec.Offer{Transfer: l.transfer, Lease: l.id, SourceLease: 77, Done: part}
	acts = g.step(bad)
	require.Empty(t, only[PullCopy](acts))
	require.Equal(t, spec.CauseProtocol, told[LeaseFailed](acts)[0].Cause)
	require.Empty(t, only[PullCopy](g.step(offer)), "the lease is over")
}

// What an Accept says of its own side must be whole: each part of the test by itself.
func TestDecodeRank_Accept_OfAnImpossibleSide_IsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*spec.Accept)
		field  string
	}{
		"no incarnation":         {func(a *spec.Accept) { a.Identity.Incarnation = spec.Incarnation{} }, "incarnation"},
		"size is not the list's": {func(a *spec.Accept) { a.Identity.Size = 2 }, "side"},
		"rank beyond the list":   {func(a *spec.Accept) { a.Identity.Rank = 1 }, "side"},
		"a pool twice":           {func(a *spec.Accept) { a.Layouts = append(a.Layouts, a.Layouts[0]) }, "kv"},
		"a pool without layers":  {func(a *spec.Accept) { a.Layouts[0].Shape.LayerHi = 0 }, "kv"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newDRig(t, dRigConfig(1, false, false, 20))
			g.dial(1)
			g.step(FenceDone{Peer: 1, Old: 0, OK: true})
			a := g.accept(1)
			c.change(&a)
			m := g.msg(1, a)
			m.Env.From = a.Identity.Incarnation
			acts := g.step(m)
			require.Empty(t, only[OpenData](acts))
			refused := told[PeerRefused](acts)
			require.Len(t, refused, 1)
			require.Contains(t, refused[0].Detail, c.field+":")
		})
	}
}

// The peer's own refusal of a connect counts for the attempt that stands only, and its reason is kept.
func TestDecodeRank_Refuse_OfAnotherAttempt_ChangesNothing(t *testing.T) {
	g := newDRig(t, dRigConfig(1, false, false, 20))
	g.dial(1)
	no := spec.Refuse{Nonce: g.link(1).nonce, Refusal: spec.RefuseTwin, Field: "window", Ours: "1", Theirs: "2"}
	other := no
	other.Nonce[3] ^= 1
	require.Equal(t, spec.RefuseWrongNonce, one[Count](g, g.recv(1, other)).Refusal)
	stray := g.msg(1, no)
	stray.Conn = 99
	require.Equal(t, spec.RefuseWrongNonce, one[Count](g, g.step(stray)).Refusal)
	require.Equal(t, dlinkConnecting, g.link(1).state)
	acts := g.recv(1, no)
	require.Len(t, told[PeerRefused](acts), 1)
	require.Equal(t, dlinkDown, g.link(1).state)
	require.Contains(t, g.r.Status().Links[0].Refusal, "window: ours 2, theirs 1")
	require.Equal(t, spec.RefuseWrongNonce, one[Count](g, g.step(Recv{Peer: 1, Conn: 1, Env: stray.Env})).Refusal, "nothing is being connected")
}

// A refusal without a field is for now: the leader is not told to give the peer up.
func TestDecodeRank_Refuse_WithoutAField_IsNotForGood(t *testing.T) {
	g := newDRig(t, dRigConfig(1, false, false, 20))
	g.dial(1)
	acts := g.recv(1, spec.Refuse{Nonce: g.link(1).nonce, Refusal: spec.RefuseFull})
	require.Empty(t, told[PeerRefused](acts))
	require.Equal(t, dlinkDown, g.link(1).state)
}

// A receipt that is no Complete fails a lease that still fills, also where nothing told of it before: its hold ends, and it never counts as
// parts that came. The other links get an Abort, the one that answered does not.
func TestDecodeRank_ReceiptThatIsNoComplete_FailsAFillingLease(t *testing.T) {
	for name, c := range map[string]struct {
		receipt func(*dlease) spec.Message
		cause   spec.Cause
	}{
		"failed": {func(l *dlease) spec.Message {
			return spec.Failed{Transfer: l.transfer, Lease: l.id, GrantEpoch: 1, Cause: spec.CauseCompute, Detail: "no memory"}
		}, spec.CauseCompute},
		"gone": {func(l *dlease) spec.Message { return spec.Gone{Transfer: l.transfer, Lease: l.id, GrantEpoch: 1} }, spec.CauseAbortedByPeer},
		"ack": {func(l *dlease) spec.Message {
			return spec.AbortAck{Transfer: l.transfer, Lease: l.id, GrantEpoch: 1}
		}, spec.CauseAbortedByPeer},
	} {
		t.Run(name, func(t *testing.T) {
			g := openDRig(t, dRigConfig(2, false, false, 40))
			l, _ := g.fill()
			g.recv(2, g.complete(l, 2))
			g.notice(l, 2)
			acts := g.recv(1, c.receipt(l))
			failed := told[LeaseFailed](acts)
			require.Len(t, failed, 1)
			require.Equal(t, c.cause, failed[0].Cause)
			require.Empty(t, only[Verify](acts))
			require.Empty(t, said[spec.Abort](acts), "link 2 was done, link 1 has answered")
			require.Len(t, told[LeaseFreed](acts), 1)
			require.Equal(t, uint32(40), g.free())
		})
	}
	g := openDRig(t, dRigConfig(2, false, false, 40))
	l, _ := g.fill()
	acts := g.recv(1, spec.Gone{Transfer: l.transfer, Lease: l.id, GrantEpoch: 1})
	var to []PeerID
	for _, a := range only[Send](acts) {
		if _, ok := a.Env.Body.(spec.Abort); ok {
			to = append(to, a.Peer)
		}
	}
	require.Equal(t, []PeerID{2}, to)
	require.Empty(t, told[LeaseFreed](acts), "link 2 still owes its part")
}

// The page that an append is copied to is handed out like any other: its old tags are void before anything is stored.
func TestDecodeRank_CopyBeforeAppend_VoidsTheTagsOfItsPage(t *testing.T) {
	g := shareRig(t, 1, false, 20)
	l := g.sharedReady(1)
	g.publishTail(l)
	acts := g.step(ReadBegin{Lease: l.id, Pos: dRigTokens})
	fresh := one[ReadPages](g, acts).Pages[spec.KV][2]
	require.Equal(t, VoidTags{Component: spec.KV, Pages: []spec.PageID{fresh.Page}}, one[VoidTags](g, acts))
	require.Equal(t, fresh.Page, one[PutTag](g, acts).Page)
}

// A quarantine waits for a fence of each link by itself: the fence of one link that began after the finding does not make up for one of
// another link that began before it.
func TestDecodeRank_Quarantine_EachLinkNeedsAFenceOfItsOwn(t *testing.T) {
	g := openDRig(t, dRigConfig(2, false, false, 40))
	l := g.readied()
	g.step(ReadBegin{Lease: l.id})
	older := one[Fence](g, g.step(ConnLost{Peer: 2, Conn: g.link(2).conn}))
	fences := only[Fence](g.step(ReadEnd{Lease: l.id, Bad: []BadPart{{Component: spec.KV, State: spec.TagForeign}}}))
	require.Len(t, fences, 2)
	require.Equal(t, older.Old, fences[0].Old, "epochs are of their link: the numbers may be equal")
	g.side(ReleaseLease{Transfer: l.transfer})
	quarantined := func() uint32 { return g.r.pools[spec.KV].Counts().Quarantined }
	g.step(FenceDone{Peer: 1, Old: fences[0].Old, OK: true})
	g.step(FenceDone{Peer: 2, Old: older.Old, OK: true})
	require.EqualValues(t, 1, quarantined(), "link 2 was fenced before the finding only")
	g.step(FenceDone{Peer: 2, Old: fences[1].Old, OK: true})
	require.Zero(t, quarantined())
	require.EqualValues(t, 40, g.free())
}
