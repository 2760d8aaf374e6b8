package core

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/spec"
)

// TestCaseB06: prefill worked on a placeholder; page counts agree, the token count does not.
func TestCaseB06_PlaceholderLength_IsAnErrorNeverComplete(t *testing.T) {
	g := openDRig(t, dRigConfig(1, false, false, 20))
	tr, _ := g.take(3)
	g.side(Go{Transfer: tr})
	l := g.r.byTransfer[tr]
	c := g.complete(l, 1)
	c.Tokens = 1 // one page either way
	acts := append(g.recv(1, c), g.notice(l, 1)...)
	require.Equal(t, spec.CauseProtocol, told[LeaseFailed](acts)[0].Cause)
	require.Contains(t, told[LeaseFailed](acts)[0].Detail, "1 tokens, asked for 3")
	require.Zero(t, did(acts, "Ready"))
}

// TestCaseB08: in each variant the pages stay until every link's receipt is taken or its fence is back.
func TestCaseB08_AbortWithWritesInFlight_NothingIsFreedBeforeItsProof(t *testing.T) {
	ack := func(g *dRig, l *dlease, p PeerID) []Action {
		return g.recv(p, spec.AbortAck{Transfer: l.transfer, Lease: l.id, GrantEpoch: g.link(p).epoch, Channels: []spec.Channel{{ID: 0, Notice: 1}}})
	}
	t.Run("one ack of two", func(t *testing.T) {
		g := openDRig(t, dRigConfig(2, false, false, 20))
		l, _ := g.fill()
		acts := g.side(AbortLease{Transfer: l.transfer, Cause: spec.CauseClientGone})
		require.Len(t, said[spec.Abort](acts), 2)
		require.Len(t, only[Revoke](acts), 2)
		g.notice(l, 1)
		require.Equal(t, 1, did(ack(g, l, 1), "Take"))
		require.Equal(t, uint32(17), g.free())
		require.Zero(t, did(ack(g, l, 2), "Take"), "its last write is not in")
		require.Equal(t, uint32(17), g.free())
		require.Len(t, told[LeaseFreed](g.notice(l, 2)), 1)
		require.Equal(t, uint32(20), g.free())
	})
	t.Run("lost ack, then a fence", func(t *testing.T) {
		g := openDRig(t, dRigConfig(2, false, false, 20))
		l, _ := g.fill()
		g.side(AbortLease{Transfer: l.transfer, Cause: spec.CauseClientGone})
		g.notice(l, 1)
		ack(g, l, 1)
		aborts, fences := 0, 0
		for range 300 {
			acts := g.wait(1)
			aborts += len(said[spec.Abort](acts))
			fences += len(only[Fence](acts))
			if g.link(1).state == dlinkOpen {
				g.recv(1, spec.Ping{Number: 1})
			}
			if g.link(2).state == dlinkOpen {
				g.recv(2, spec.Ping{Number: 1})
			}
			require.Equal(t, uint32(17), g.free(), "time is no proof")
		}
		require.Greater(t, aborts, 3)
		require.Equal(t, 1, fences)
		g.step(FenceDone{Peer: 2, Old: 1, OK: true})
		require.Equal(t, uint32(20), g.free())
	})
	t.Run("failure that decode did not start", func(t *testing.T) {
		g := openDRig(t, dRigConfig(1, false, false, 20))
		l, _ := g.fill()
		acts := g.recv(1, spec.Failing{Transfer: l.transfer, Lease: l.id, Cause: spec.CauseCompute})
		require.Equal(t, spec.CauseCompute, told[LeaseFailed](acts)[0].Cause)
		require.Equal(t, uint32(17), g.free(), "a report ends no hold")
		g.recv(1, spec.Failed{Transfer: l.transfer, Lease: l.id, GrantEpoch: 1, Cause: spec.CauseCompute, Channels: []spec.Channel{{ID: 0, Notice: 1}}})
		require.Equal(t, uint32(17), g.free())
		g.notice(l, 1)
		require.Equal(t, uint32(20), g.free())
	})
}

// TestCaseB15: completion is seen before the bytes. The receipt counts as not come.
func TestCaseB15_NoticeOfOneChannelOvertakes_DecodeDoesNotStart(t *testing.T) {
	g := openDRig(t, dRigConfig(1, false, false, 20))
	l, _ := g.fill()
	c := g.complete(l, 1)
	c.Channels = append(c.Channels, spec.Channel{ID: 1, Notice: 1})
	require.Empty(t, only[Verify](g.notice(l, 1)))
	require.Empty(t, only[Verify](g.recv(1, c)))
	require.Equal(t, dleaseFilling, l.state)
	require.Len(t, only[Verify](g.step(NoticeIn{Peer: 1, Epoch: 1, Channel: 1, Lease: l.id, Number: 1})), 1)
}

// TestCaseB31: receipts in all orders, twice, and after the end: freed once, the rest is counted.
func TestCaseB31_ReceiptsTwiceAndLate_FreedOnceAndCounted(t *testing.T) {
	g := openDRig(t, dRigConfig(2, false, false, 20))
	l, _ := g.fill()
	g.side(AbortLease{Transfer: l.transfer, Cause: spec.CauseDeadline})
	receipts := []spec.Message{
		spec.AbortAck{Transfer: l.transfer, Lease: l.id, GrantEpoch: 1},
		spec.Failed{Transfer: l.transfer, Lease: l.id, GrantEpoch: 1, Cause: spec.CauseCompute},
		spec.Gone{Transfer: l.transfer, Lease: l.id, GrantEpoch: 1},
	}
	for i, m := range receipts {
		acts := g.recv(1, m)
		require.Equal(t, i == 0, did(acts, "Take") == 1)
		require.Equal(t, i != 0, len(only[Count](acts)) == 1)
		require.Equal(t, uint32(17), g.free())
	}
	g.recv(2, receipts[2])
	require.Equal(t, uint32(20), g.free())
	for _, m := range receipts {
		require.Equal(t, spec.RefuseBelowMark, one[Count](g, g.recv(2, m)).Refusal)
	}
	require.Equal(t, spec.RefuseUnknownLease, one[Count](g, g.step(Verified{Lease: l.id})).Refusal)
	require.Equal(t, spec.RefuseUnknownLease, one[Count](g, g.step(ReadEnd{Lease: l.id})).Refusal)
}

// TestCaseB34: prefill restarts at the same address. Only its own receipts count, and they free nothing of the old life.
func TestCaseB34_RestartedPeer_CannotAnswerForTheDeadOne(t *testing.T) {
	g := openDRig(t, dRigConfig(1, false, false, 20))
	l, _ := g.fill()
	g.inc[0] = worldInc('p', 0, 1)
	acts := g.recv(1, spec.Gone{Transfer: l.transfer, Lease: l.id, GrantEpoch: 1})
	require.Equal(t, spec.RefuseWrongIncarnation, only[Count](acts)[0].Refusal)
	require.Len(t, only[Fence](acts), 1, "another life speaks: the old link is fenced at once")
	require.Equal(t, uint32(17), g.free())
	g.dial(1)
	g.recv(1, g.accept(1))
	acts = g.recv(1, spec.Gone{Transfer: l.transfer, Lease: l.id, GrantEpoch: 1})
	require.Equal(t, spec.RefuseWrongIncarnation, only[Count](acts)[0].Refusal)
	require.Equal(t, uint32(17), g.free())
	g.step(FenceDone{Peer: 1, Old: 1, OK: true})
	require.Equal(t, uint32(20), g.free())
	g.step(FenceDone{Peer: 1, Old: 2, OK: true})
	g.step(DataUp{Peer: 1, Epoch: 3})
	g.readied()
}

// A receipt of the granted incarnation counts also when its link has moved on to another epoch.
func TestDecodeRank_ReceiptOfAnOlderEpoch_EndsItsOwnHoldOnly(t *testing.T) {
	g := openDRig(t, dRigConfig(1, false, false, 20))
	l, _ := g.fill()
	old := g.msg(1, spec.AbortAck{Transfer: l.transfer, Lease: l.id, GrantEpoch: 1})
	g.step(DataLost{Peer: 1, Epoch: 1})
	require.Equal(t, uint32(17), g.free())
	acts := g.step(old)
	require.Len(t, told[LeaseFreed](acts), 1, "nothing of it was posted: it lists no channel")
	wrong := old
	wrong.Env.Body = spec.AbortAck{Transfer: l.transfer, Lease: l.id, GrantEpoch: 2}
	require.NotEmpty(t, only[Count](g.step(wrong)))
}

// TestCaseB38: an unknown kind is answered with an error, the loop lives.
func TestCaseB38_MessageThatIsNotForDecode_IsAnswered(t *testing.T) {
	g := openDRig(t, dRigConfig(1, false, false, 20))
	for _, m := range []spec.Message{spec.Grant{}, spec.Ask{}, spec.Abort{}, spec.Read{}, spec.Drop{}, spec.Connect{}} {
		acts := g.recv(1, m)
		require.Equal(t, m.Kind(), said[spec.Refused](acts)[0].About)
	}
	require.Equal(t, dlinkOpen, g.link(1).state)
}

// TestCaseB38: decode expects a record, prefill has no pool for it: a difference before any page is held.
func TestCaseB38_PrefillWithoutARecordPool_HasNoPlan(t *testing.T) {
	g := newDRig(t, dRigConfig(1, false, false, 20))
	g.dial(1)
	g.step(FenceDone{Peer: 1, Old: 0, OK: true})
	a := g.accept(1)
	a.Layouts = a.Layouts[:1]
	g.recv(1, a)
	g.step(DataUp{Peer: 1, Epoch: 1})
	_, acts := g.take(4)
	require.Equal(t, spec.CauseIncompatible, told[NoPlan](acts)[0].Cause)
	require.Equal(t, uint32(20), g.free())
}

// TestCaseB39: what does not fit now reserves, advertises and posts nothing.
func TestCaseB39_NoRoom_LeavesNothing(t *testing.T) {
	g := openDRig(t, dRigConfig(1, false, false, 10))
	a, _ := g.take(23)
	g.side(Go{Transfer: a})
	_, acts := g.take(23)
	require.Len(t, told[NoRoom](acts), 1)
	require.Empty(t, only[VoidTags](acts))
	require.Len(t, g.r.leases, 1)
	require.Equal(t, uint32(4), g.free())
	g.side(AbortLease{Transfer: a, Cause: spec.CauseClientGone})
	acts = g.recv(1, spec.Gone{Transfer: a, Lease: 1, GrantEpoch: 1})
	require.Len(t, told[PagesFreed](acts), 1, "who waits is told")
}

// TestCaseB42: the peer dies under an abort; its link is fenced, the pages return, four times over.
func TestCaseB42_PeerDiesUnderAnAbort_PagesReturnByFence(t *testing.T) {
	g := openDRig(t, dRigConfig(1, false, false, 32))
	for range 4 {
		l, _ := g.fill()
		g.side(AbortLease{Transfer: l.transfer, Cause: spec.CauseClientGone})
		epoch := g.link(1).epoch
		acts := g.step(ConnLost{Peer: 1, Conn: g.link(1).conn})
		require.Len(t, only[Fence](acts), 1)
		require.Equal(t, uint32(29), g.free())
		g.step(FenceDone{Peer: 1, Old: epoch, OK: true})
		require.Equal(t, uint32(32), g.free())
		g.inc[0][2]++
		g.open(1)
	}
}

// TestCaseB44: abort in every state; free counts of every pool return to the start.
func TestCaseB44_AbortInEachState_LeavesNothing(t *testing.T) {
	states := map[string]func(g *dRig) spec.TransferID{
		"taken":   func(g *dRig) spec.TransferID { tr, _ := g.take(9); return tr },
		"filling": func(g *dRig) spec.TransferID { l, _ := g.fill(); return l.transfer },
		"half":    func(g *dRig) spec.TransferID { l, _ := g.fill(); g.recv(1, g.complete(l, 1)); return l.transfer },
		"verifying": func(g *dRig) spec.TransferID {
			l, _ := g.fill()
			g.recv(1, g.complete(l, 1))
			g.notice(l, 1)
			return l.transfer
		},
		"ready": func(g *dRig) spec.TransferID { return g.readied().transfer },
		"reading": func(g *dRig) spec.TransferID {
			l := g.readied()
			g.step(ReadBegin{Lease: l.id, Pos: 10})
			return l.transfer
		},
		"grown": func(g *dRig) spec.TransferID {
			l := g.readied()
			g.side(Grow{Transfer: l.transfer, Pos: 12})
			return l.transfer
		},
	}
	for name, make := range states {
		t.Run(name, func(t *testing.T) {
			g := openDRig(t, dRigConfig(1, false, false, 20))
			tr := make(g)
			l := g.r.byTransfer[tr]
			g.side(AbortLease{Transfer: tr, Cause: spec.CauseClientGone})
			g.recv(1, spec.AbortAck{Transfer: tr, Lease: l.id, GrantEpoch: 1})
			g.notice(l, 1)
			g.step(Verified{Lease: l.id})
			g.step(ReadEnd{Lease: l.id})
			require.Empty(t, g.r.leases)
			for _, c := range []spec.Component{spec.KV, spec.Aux} {
				require.Equal(t, uint32(20), g.r.pools[c].Counts().Free, c)
			}
			require.Len(t, told[LeaseFreed](g.side(AbortLease{Transfer: tr})), 1, "asked again, answered again")
		})
	}
}

// TestCaseB45: an id that this side does not know is answered, not logged and dropped.
func TestCaseB45_UnknownLease_IsAnsweredWithAnError(t *testing.T) {
	g := openDRig(t, dRigConfig(1, false, false, 20))
	l, _ := g.fill()
	for _, m := range []spec.Message{
		spec.Complete{Transfer: l.transfer, Lease: 55, GrantEpoch: 1}, spec.AbortAck{Transfer: l.transfer, Lease: 55, GrantEpoch: 1},
		spec.Failed{Transfer: spec.TransferID{Leader: g.r.own, Counter: 99}, Lease: l.id, GrantEpoch: 1}, spec.Offer{Transfer: l.transfer, Lease: 55},
	} {
		acts := g.recv(1, m)
		require.Equal(t, spec.RefuseUnknownLease, said[spec.Refused](acts)[0].Refusal, "%T", m)
	}
	require.Equal(t, dleaseFilling, l.state)
}

// TestCaseB46: prefill's own failure reaches decode at once, with its reason.
func TestCaseB46_PrefillFails_DecodeFailsWithItsReasonAtAllLinks(t *testing.T) {
	g := openDRig(t, dRigConfig(2, false, false, 20))
	l, _ := g.fill()
	acts := g.recv(2, spec.Failing{Transfer: l.transfer, Lease: l.id, Cause: spec.CauseCompute, Detail: "kernel"})
	f := told[LeaseFailed](acts)[0]
	require.Equal(t, LeaseFailed{Transfer: l.transfer, Cause: spec.CauseCompute, Detail: "kernel"}, f)
	require.Len(t, said[spec.Abort](acts), 2)
	require.Empty(t, told[LeaseFailed](g.recv(1, spec.Failing{Transfer: l.transfer, Lease: l.id, Cause: spec.CauseOperator})), "told once")
}

// TestCaseB48: prompts around a page's size; each completes and releases.
func TestCaseB48_PromptsAroundAPage_CompleteAndRelease(t *testing.T) {
	for tokens := uint32(1); tokens <= 9; tokens++ {
		g := openDRig(t, dRigConfig(1, false, true, 20))
		tr, _ := g.take(tokens)
		g.side(Go{Transfer: tr})
		l := g.r.byTransfer[tr]
		require.Len(t, l.pages[spec.KV], int(tokens/worldPage)+1)
		g.recv(1, g.complete(l, 1))
		g.notice(l, 1)
		g.step(Verified{Lease: l.id})
		require.Len(t, only[ReadPages](g.step(ReadBegin{Lease: l.id, Pos: tokens})), 1)
		g.step(ReadEnd{Lease: l.id})
		require.Len(t, told[LeaseFreed](g.side(ReleaseLease{Transfer: tr})), 1)
		require.Equal(t, uint32(20), g.free())
	}
}

// TestCaseB51: success and abort cross. Whatever comes second changes nothing.
func TestCaseB51_CompleteAfterAbort_FreesAndNeverReadies(t *testing.T) {
	g := openDRig(t, dRigConfig(1, false, false, 20))
	l, _ := g.fill()
	g.side(AbortLease{Transfer: l.transfer, Cause: spec.CauseDeadline})
	acts := append(g.recv(1, g.complete(l, 1)), g.notice(l, 1)...)
	require.Zero(t, did(acts, "Ready"))
	require.Empty(t, only[Verify](acts))
	require.Len(t, told[LeaseFreed](acts), 1)
}

// TestCaseB52: a slot that was reused is void until it is written: pages are told by generation, 10,000 clean transfers alarm nobody.
func TestCaseB52_ReusedSlots_RaiseNoFalseAlarm(t *testing.T) {
	g := openDRig(t, dRigConfig(1, false, false, 20))
	for range 10000 {
		g.now++
		l, acts := g.fill()
		voided := map[spec.PageID]bool{}
		for _, v := range only[VoidTags](acts) {
			for _, p := range v.Pages {
				voided[p] = voided[p] || v.Component == spec.KV
			}
		}
		for _, p := range l.pages[spec.KV] {
			require.True(t, voided[p.Page])
			require.Equal(t, g.r.pools[spec.KV].Gen(p.Page), p.Gen)
		}
		g.recv(1, g.complete(l, 1))
		g.notice(l, 1)
		g.step(Verified{Lease: l.id})
		g.side(ReleaseLease{Transfer: l.transfer})
	}
	require.Zero(t, g.r.Status().Alarms)
	require.Equal(t, uint32(20), g.free())
	require.Less(t, len(g.r.clock.heap), 64, "nothing piles up")
}

// TestCaseB16: a lease that nobody finished is never readable, however long it lies.
func TestCaseB16_UnfinishedLease_IsNotReadable(t *testing.T) {
	g := openDRig(t, dRigConfig(1, false, false, 20))
	l, _ := g.fill()
	require.Len(t, only[ReadRefused](g.step(ReadBegin{Lease: l.id})), 1)
	g.step(DataLost{Peer: 1, Epoch: 1})
	require.Len(t, only[ReadRefused](g.step(ReadBegin{Lease: l.id})), 1)
	g.step(FenceDone{Peer: 1, Old: 1, OK: true})
	require.Len(t, only[ReadRefused](g.step(ReadBegin{Lease: l.id})), 1)
}

// A pull lease: its hold is its own copies.
func TestDecodeRank_Pull_HoldEndsWithOwnCopies(t *testing.T) {
	g := openDRig(t, dRigConfig(1, true, true, 20))
	l, acts := g.fill()
	require.Empty(t, only[Allow](acts))
	c := g.complete(l, 1)
	acts = g.recv(1, spec.Offer{Transfer: l.transfer, Lease: l.id, SourceLease: 77, Done: c.Parts[0]})
	first := one[PullCopy](g, acts)
	require.Len(t, first.Items, 3)
	require.Equal(t, spec.LeaseID(77), first.Items[0].SrcTag.Lease)
	require.Equal(t, l.id, first.Items[0].DstTag.Lease)
	require.Empty(t, only[PullCopy](g.recv(1, spec.Offer{Transfer: l.transfer, Lease: l.id, SourceLease: 77, Done: c.Parts[0]})), "offered twice")
	second := one[PullCopy](g, g.recv(1, c))
	acts = g.step(PullDone{Peer: 1, Epoch: 1, Job: second.Job, Lease: l.id})
	require.Zero(t, did(acts, "SaidRead"))
	acts = g.step(PullDone{Peer: 1, Epoch: 1, Job: first.Job, Lease: l.id})
	require.Equal(t, 1, did(acts, "SaidRead"))
	require.Len(t, said[spec.Read](acts), 1)
	require.Len(t, only[Verify](acts), 1)
	require.Len(t, said[spec.Read](g.recv(1, c)), 1, "prefill repeats Complete until it hears Read")
	g.step(Verified{Lease: l.id})
	g.side(ReleaseLease{Transfer: l.transfer})
	require.Len(t, said[spec.Read](g.recv(1, c)), 1)
}

func TestDecodeRank_Pull_AbortNeedsNobodysAnswer(t *testing.T) {
	g := openDRig(t, dRigConfig(1, true, false, 20))
	l, _ := g.fill()
	c := g.complete(l, 1)
	job := one[PullCopy](g, g.recv(1, spec.Offer{Transfer: l.transfer, Lease: l.id, SourceLease: 77, Done: c.Parts[0]}))
	acts := g.side(AbortLease{Transfer: l.transfer, Cause: spec.CauseClientGone})
	require.Len(t, said[spec.Abort](acts), 1)
	require.Equal(t, uint32(17), g.free())
	require.Empty(t, only[PullCopy](g.recv(1, c)), "no new copy")
	g.recv(1, spec.AbortAck{Transfer: l.transfer, Lease: l.id, GrantEpoch: 1})
	require.Equal(t, uint32(17), g.free(), "its copy still stores")
	acts = g.step(PullDone{Peer: 1, Epoch: 1, Job: job.Job, Lease: l.id, Err: "stopped"})
	require.Len(t, told[LeaseFreed](acts), 1)
	require.Equal(t, uint32(20), g.free())
}

// TestCaseB04: the source changed hands under the reader; the tag after the copy says so, nothing succeeds.
func TestCaseB04_SourceTagDiffersAfterTheCopy_FailsNeverSucceeds(t *testing.T) {
	g := openDRig(t, dRigConfig(1, true, false, 20))
	l, _ := g.fill()
	c := g.complete(l, 1)
	jobs := only[PullCopy](g.recv(1, c))
	acts := g.step(PullDone{Peer: 1, Epoch: 1, Job: jobs[0].Job, Lease: l.id, Bad: []BadPart{{Component: spec.KV, State: spec.TagForeign}}})
	require.Equal(t, spec.CauseMismatch, told[LeaseFailed](acts)[0].Cause)
	require.Len(t, only[Alarm](acts), 1)
	g.step(PullDone{Peer: 1, Epoch: 1, Job: jobs[1].Job, Lease: l.id})
	require.Equal(t, dleaseRevoking, l.state)
	require.Equal(t, uint32(20), g.free())
}

func TestDecodeRank_Pull_ManifestThatDiffersIsAProtocolError(t *testing.T) {
	for name, change := range map[string]func(*spec.Complete){
		"source lease": func(c *spec.Complete) { c.SourceLease++ },
		"source page":  func(c *spec.Complete) { c.Parts[0].Source[0].Gen++ },
		"too few":      func(c *spec.Complete) { c.Parts[1].Source = nil },
		"tokens":       func(c *spec.Complete) { c.Tokens++ },
	} {
		g := openDRig(t, dRigConfig(1, true, false, 20))
		l, _ := g.fill()
		offered := g.complete(l, 1)
		g.recv(1, spec.Offer{Transfer: l.transfer, Lease: l.id, SourceLease: 77, Done: offered.Parts[0]})
		c := g.complete(l, 1)
		change(&c)
		acts := g.recv(1, c)
		require.Equal(t, spec.CauseProtocol, told[LeaseFailed](acts)[0].Cause, name)
	}
}

// A receipt on a pull link does not end the hold of copies that still read: the mark would pass, and prefill would hand out the
// pages under them.
func TestDecodeRank_Pull_ReceiptDoesNotEndTheHoldOfRunningCopies(t *testing.T) {
	g := openDRig(t, dRigConfig(1, true, false, 20))
	l, _ := g.fill()
	job := one[PullCopy](g, g.recv(1, spec.Offer{Transfer: l.transfer, Lease: l.id, SourceLease: 77, Done: g.complete(l, 1).Parts[0]}))
	acts := g.recv(1, spec.Failed{Transfer: l.transfer, Lease: l.id, GrantEpoch: 1, Cause: spec.CauseCompute})
	require.Equal(t, spec.CauseCompute, told[LeaseFailed](acts)[0].Cause)
	require.Empty(t, said[spec.Read](acts))
	require.Equal(t, l.id, g.r.mark(g.link(1)), "the mark does not pass the lease")
	acts = g.step(PullDone{Peer: 1, Epoch: 1, Job: job.Job, Lease: l.id})
	require.Len(t, said[spec.Read](acts), 1)
	require.Len(t, told[LeaseFreed](acts), 1)
	require.Equal(t, spec.LeaseID(2), g.r.mark(g.link(1)))
}
