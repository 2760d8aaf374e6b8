package core

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/spec"
)

func TestPrefillRank_WholeTransfer_CompletesAfterDrainAndFreesItsPages(t *testing.T) {
	g := newPrefillRig(t, nil)
	g.open(1, 1, nil)
	x := xfer(1, 1)
	g.started(1, 1, 1, 10) // 3 KV pages
	require.Equal(t, uint32(5), g.free())
	acts := g.computed(x, 0, 6, false) // page 0 is final, page 1 waits
	require.Len(t, action1[Seal](acts).Items, 1)
	p1 := posts(g.seal(acts))
	require.Len(t, p1, 1)
	require.Equal(t, spec.Tag{Lease: 1, Gen: 1, Index: 0, Domain: rigDomain, Digest: 0, Used: 128, HasDigest: true}, p1[0].Items[0].Tag)
	acts = g.computed(x, 6, 10, true)
	require.Len(t, action1[Seal](acts).Items, 3, "pages 1 and 2 and the record")
	require.Empty(t, g.notices, "no notice before everything is posted")
	p2 := posts(g.seal(acts))
	require.Len(t, p2, 1)
	require.Equal(t, uint32(64), p2[0].Items[1].Tag.Used, "the last page holds two tokens")
	require.Len(t, g.notices, 1, "behind the last post, whether or not it is over")
	require.Nil(t, sent[spec.Complete](g.posted(p1)))
	acts = g.posted(p2)
	require.Nil(t, sent[spec.Complete](acts), "not before its notice is sent, too")
	require.Equal(t, uint32(5), g.free())
	acts = g.noticed(acts)
	c := sent[spec.Complete](acts)
	require.NotNil(t, c)
	require.Equal(t, uint32(10), c.Tokens)
	require.Equal(t, spec.RequestDigest{1}, c.Request)
	require.Equal(t, []uint64{0, 1, 2}, c.Parts[0].Digests)
	require.Equal(t, []uint64{2000}, c.Parts[1].Digests)
	require.Equal(t, []spec.Channel{{ID: 1, Notice: 1}}, c.Channels)
	require.NotNil(t, toLeader[JobOver](acts))
	require.NotNil(t, toLeader[PagesFreed](acts))
	require.Equal(t, uint32(8), g.free())
	require.Equal(t, []string{"Complete", "GiveBack"}, dids(acts))
}

func TestPrefillRank_RepeatedGrant_IsAnsweredWithItsStateAndStartsNothingTwice(t *testing.T) {
	g := newPrefillRig(t, nil)
	g.open(1, 1, nil)
	g.started(1, 1, 1, 4)
	require.Equal(t, spec.RefuseDuplicate, sent[spec.Refused](g.say(1, grantOf(1, 1, 1, 4))).Refusal, "filling")
	acts := g.noticed(g.posted(posts(g.seal(g.computed(xfer(1, 1), 0, 4, true)))))
	require.NotNil(t, sent[spec.Complete](acts))
	for range 2 {
		again := g.say(1, grantOf(1, 1, 1, 4))
		require.NotNil(t, sent[spec.Complete](again))
		require.Nil(t, action1[Post](again))
	}
	require.NotNil(t, sent[spec.Complete](g.say(1, spec.Abort{Transfer: xfer(1, 1), Lease: 1})), "present state")
	g.mark = 2
	require.Equal(t, []string{"RecvMark", "Forget", "Gone"}, dids(g.say(1, grantOf(1, 1, 1, 4))))
	require.NotNil(t, sent[spec.Gone](g.last))
	require.Empty(t, g.r.links[1].order)
}

func TestPrefillRank_AbortBeforeGrant_StopsTheGrant(t *testing.T) {
	g := newPrefillRig(t, nil)
	g.open(1, 1, nil)
	acts := g.say(1, spec.Abort{Transfer: xfer(1, 1), Lease: 3})
	require.Equal(t, &spec.AbortAck{Transfer: xfer(1, 1), Lease: 3, GrantEpoch: 1}, sent[spec.AbortAck](acts))
	acts = g.say(1, grantOf(1, 1, 3, 4))
	require.NotNil(t, sent[spec.AbortAck](acts))
	require.NotContains(t, dids(acts), "Start")
}

func TestPrefillRank_EveryLeaseMessageInEveryLinkState_ChangesOnlyWhatItMay(t *testing.T) {
	bodies := []spec.Message{grantOf(1, 1, 1, 4), spec.Abort{Transfer: xfer(1, 1), Lease: 1}, spec.Read{Transfer: xfer(1, 1), Lease: 1},
		spec.Ping{Number: 9}, spec.Pong{Number: 9}, spec.Ask{Transfer: xfer(1, 2)}, spec.Drop{}, spec.Refused{}, spec.Complete{}, spec.Accept{}, spec.Connect{},
		spec.Failed{}, spec.AbortAck{}, spec.Gone{}, spec.Fenced{}, spec.Failing{}, spec.Offer{}, spec.Asked{}, spec.AskFailed{}, spec.Refuse{}}
	for _, body := range bodies {
		g := newPrefillRig(t, nil)
		e := g.connectEvent(1, 5, nil)
		require.Empty(t, sends(g.step(Recv{Peer: 1, Conn: 1, Env: spec.Envelope{Body: body}})), "no link")
		g.step(e)
		g.inc[1], g.ep[1] = e.Env.From, 5
		wrongTo := spec.Envelope{Header: spec.Header{From: g.inc[1], To: incOf(9), Epoch: 5}, Body: body}
		require.Equal(t, spec.RefuseWrongIncarnation, sent[spec.Refused](g.step(Recv{Peer: 1, Conn: e.Conn, Env: wrongTo})).Refusal)
		wrongFrom := spec.Envelope{Header: spec.Header{From: incOf(9), To: incOf(1), Epoch: 5}, Body: body}
		require.Equal(t, spec.RefuseWrongIncarnation, sent[spec.Refused](g.step(Recv{Peer: 1, Conn: e.Conn, Env: wrongFrom})).Refusal)
		switch body.(type) {
		case spec.Grant, spec.Abort, spec.Ask, spec.Drop:
			g.ep[1] = 4
			require.Equal(t, spec.RefuseStaleEpoch, sent[spec.Refused](g.say(1, body)).Refusal)
			g.ep[1] = 5
		}
		require.Empty(t, g.r.links[1].order, "%T", body)
		g.say(1, body)
		g.step(DataUp{Peer: 1, Epoch: 5})
		g.say(1, body)
		g.step(DataLost{Peer: 1, Epoch: 5})
		g.say(1, body)
		if k := body.Kind(); k == spec.KindGrant || k == spec.KindAbort {
			require.NotNil(t, sent[spec.Fenced](g.last), "a fenced epoch is answered with Fenced")
		}
		g.ep[1] = 6
		g.say(1, body)
		require.False(t, g.r.stopped, "%T", body)
		require.Equal(t, uint32(8), g.free())
	}
}

func sends(acts []Action) (n []spec.Message) {
	for _, a := range acts {
		if s, ok := a.(Send); ok {
			n = append(n, s.Env.Body)
		}
	}
	return n
}

func TestPrefillRank_Connect_IsRefusedWithFieldAndBothValues(t *testing.T) {
	kv := func(change func(*spec.Layout)) func(*spec.Connect) {
		return func(c *spec.Connect) { change(&c.Layouts[0]) }
	}
	cases := []struct {
		field  string
		change func(*spec.Connect)
	}{
		{"version", func(c *spec.Connect) { c.Version++ }},
		{"capabilities", func(c *spec.Connect) { c.Capabilities = c.Capabilities[1:] }},
		{"identity.role", func(c *spec.Connect) { c.Identity.Role = spec.RolePrefill }},
		{"identity.name", func(c *spec.Connect) { c.Identity.Name = "" }},
		{"identity.side", func(c *spec.Connect) { c.Identity.Side = []spec.Incarnation{incOf(55)} }},
		{"identity.side", func(c *spec.Connect) { c.Identity.Rank = 3 }},
		{"kv.dtype", kv(func(l *spec.Layout) { l.Equal.DType = "f16" })},
		{"kv.model_revision", kv(func(l *spec.Layout) { l.Equal.ModelRevision = "r2" })},
		{"kv.tokens_per_page", kv(func(l *spec.Layout) { l.Equal.TokensPerPage = 2 })},
		{"components", func(c *spec.Connect) {
			c.Layouts = append(c.Layouts, spec.NewDense(spec.State, rigMeaning(spec.State), 0, 1, 0, 1, 4, 1))
		}},
		{"components", func(c *spec.Connect) { c.Layouts = c.Layouts[1:] }},
		{"window", func(c *spec.Connect) { c.Window = 65 }},
		{"digests", func(c *spec.Connect) { c.Digests = false }},
		{"epoch", func(c *spec.Connect) { c.Epoch = 0 }},
	}
	for _, v := range cases {
		g := newPrefillRig(t, nil)
		acts := g.step(g.connectEvent(1, 1, v.change))
		no := sent[spec.Refuse](acts)
		require.NotNil(t, no, v.field)
		require.Equal(t, v.field, no.Field)
		require.NotEqual(t, no.Ours, no.Theirs)
		require.NotNil(t, action1[CloseConn](acts))
		require.Nil(t, action1[ExpectData](acts))
		require.Empty(t, g.r.links)
	}
	g := newPrefillRig(t, func(c *PrefillRankConfig) { c.Pull = false })
	require.Equal(t, "pull", sent[spec.Refuse](g.step(g.connectEvent(1, 1, func(c *spec.Connect) { c.Pull = true }))).Field)
	e := g.connectEvent(1, 1, nil)
	e.Env.From = incOf(77)
	require.Equal(t, "identity.incarnation", sent[spec.Refuse](g.step(e)).Field)
	e = g.connectEvent(1, 1, nil)
	e.Env.To = incOf(77)
	require.Equal(t, spec.RefuseWrongIncarnation, sent[spec.Refuse](g.step(e)).Refusal)
}

func TestPrefillRank_SecondConnect_TwinIsRefusedSilentIsFenced(t *testing.T) {
	g := newPrefillRig(t, nil)
	old := g.open(1, 1, nil)
	e := g.connectEvent(1, 2, nil)
	acts := g.step(e)
	ping := sent[spec.Ping](acts)
	require.NotNil(t, ping, "the standing connection is asked for life")
	require.Nil(t, sent[spec.Accept](acts))
	acts = g.say(1, spec.Pong{Number: ping.Number})
	require.Len(t, conns(acts), 2, "both are refused")
	require.NotNil(t, action1[Fence](acts))
	require.Equal(t, spec.RefuseTwin, sent[spec.Refuse](acts).Refusal)

	g = newPrefillRig(t, nil)
	old = g.open(1, 1, nil)
	e = g.connectEvent(1, 2, nil)
	g.step(e)
	acts = g.wait(5e9)
	require.Contains(t, conns(acts), old)
	require.NotNil(t, sent[spec.Accept](acts), "silent for the liveness time: fenced, the new one taken")
	require.Equal(t, spec.Epoch(1), action1[Fence](acts).Old)

	g = newPrefillRig(t, nil)
	old = g.open(1, 1, nil)
	e = g.connectEvent(1, 2, nil)
	g.step(e)
	require.NotNil(t, sent[spec.Accept](g.step(ConnLost{Peer: 1, Conn: old})), "the old one has ended: nobody is in the way")

	late := g.connectEvent(1, 9, func(c *spec.Connect) { c.Counter = 1 })
	require.Equal(t, "counter", sent[spec.Refuse](g.step(late)).Field)
	stale := g.connectEvent(1, 2, nil)
	require.Equal(t, "epoch", sent[spec.Refuse](g.step(stale)).Field)
}

func conns(acts []Action) (ids []ConnID) {
	for _, a := range acts {
		if c, ok := a.(CloseConn); ok {
			ids = append(ids, c.Conn)
		}
	}
	return ids
}

func TestPrefillRank_SucceededIncarnation_NeverSpeaksAgain(t *testing.T) {
	g := newPrefillRig(t, nil)
	old := g.open(1, 1, nil)
	g.started(1, 1, 1, 4)
	g.step(ConnLost{Peer: 1, Conn: old})
	require.NotNil(t, toLeader[JobStopped](g.last))
	acts := g.step(g.connectEvent(2, 1, func(c *spec.Connect) { c.Identity.Name = "d1" }))
	require.NotNil(t, sent[spec.Accept](acts))
	require.Equal(t, spec.RefuseWrongIncarnation, sent[spec.Refuse](g.step(g.connectEvent(1, 2, nil))).Refusal)
	g.step(FenceDone{Peer: 1, Old: 1, OK: true})
	g.side(ComputeOver{Transfer: xfer(1, 1)})
	require.Equal(t, uint32(8), g.free())
	require.Nil(t, g.r.links[1], "nothing waits for the old link")
}

func TestPrefillRank_FailedPost_FailsAtOnceAndItsPagesWaitForTheFence(t *testing.T) {
	g := newPrefillRig(t, nil)
	g.open(1, 1, nil)
	g.started(1, 1, 1, 4)
	ps := posts(g.seal(g.computed(xfer(1, 1), 0, 4, true)))
	acts := g.step(Posted{Peer: 1, Epoch: 1, Batch: ps[0].Batch, Err: "reset"})
	require.Equal(t, spec.CauseTransport, sent[spec.Failing](acts).Cause)
	require.NotNil(t, sent[spec.Fenced](acts))
	require.NotNil(t, action1[Fence](acts))
	require.Nil(t, sent[spec.Failed](acts))
	require.Equal(t, uint32(7), g.free())
	require.Equal(t, uint32(1), g.r.Status().Pools[spec.KV].Revoking)
	acts = g.say(1, spec.Abort{Transfer: xfer(1, 1), Lease: 1})
	require.Nil(t, sent[spec.AbortAck](acts), "no receipt after the own fence")
	require.NotNil(t, sent[spec.Fenced](acts))
	acts = g.step(FenceDone{Peer: 1, Old: 1, OK: true})
	require.Equal(t, uint32(8), g.free())
	require.NotNil(t, toLeader[JobOver](acts))
	// The same incarnation comes back in a new epoch; what it asks about the old lease is no receipt either.
	g.open(1, 2, nil)
	acts = g.say(1, spec.Abort{Transfer: xfer(1, 1), Lease: 1})
	require.Equal(t, spec.RefuseStaleEpoch, sent[spec.Refused](acts).Refusal)
	g.started(1, 2, 2, 4)
}

func TestPrefillRank_FullMemory_RaisesItsOwnMarkOldestFirst(t *testing.T) {
	g := newPrefillRig(t, func(c *PrefillRankConfig) { c.MaxAnswers = 2 })
	g.open(1, 1, nil)
	for lease := spec.LeaseID(2); lease < 6; lease++ {
		g.say(1, spec.Abort{Transfer: xfer(1, uint64(lease)), Lease: lease})
		require.NotNil(t, sent[spec.AbortAck](g.last))
	}
	require.Equal(t, spec.LeaseID(4), g.r.links[1].ownMark)
	acts := g.say(1, grantOf(1, 9, 1, 4))
	require.NotNil(t, sent[spec.Gone](acts))
	require.NotContains(t, dids(acts), "Start")
	require.NotNil(t, sent[spec.AbortAck](g.say(1, grantOf(1, 5, 5, 4))), "the youngest are still known")
}

func TestPrefillRank_ForgottenPostedLease_IsFencedNotGone(t *testing.T) {
	g := newPrefillRig(t, func(c *PrefillRankConfig) { c.MaxAnswers = 1 })
	g.open(1, 1, nil)
	g.started(1, 1, 1, 4)
	require.NotNil(t, sent[spec.Complete](g.noticed(g.posted(posts(g.seal(g.computed(xfer(1, 1), 0, 4, true)))))))
	g.say(1, spec.Abort{Transfer: xfer(1, 2), Lease: 2})
	require.Equal(t, spec.LeaseID(2), g.r.links[1].ownMark)
	acts := g.say(1, spec.Abort{Transfer: xfer(1, 1), Lease: 1})
	require.Nil(t, sent[spec.Gone](acts), "a Gone would name no notices")
	require.NotNil(t, sent[spec.Fenced](acts))
}

func TestPrefillRank_WrongGrant_IsFailedWithItsReasonAndPostsNothing(t *testing.T) {
	cases := map[string]func(*spec.Grant){
		"tokens":        func(m *spec.Grant) { m.Tokens = 5 },
		"domain":        func(m *spec.Grant) { m.Domain = spec.Domain{8} },
		"no tokens":     func(m *spec.Grant) { m.Tokens = 0 },
		"other rank":    func(m *spec.Grant) { m.Parts[0].Rank = 1 },
		"layers":        func(m *spec.Grant) { m.Parts[0].LayerHi = 3 },
		"slot":          func(m *spec.Grant) { m.Parts[0].Index = 4 },
		"twice":         func(m *spec.Grant) { m.Parts = append(m.Parts, m.Parts[0]) },
		"range":         func(m *spec.Grant) { m.Parts[0].TokenHi = 9 },
		"pages missing": func(m *spec.Grant) { m.Pages[spec.KV] = nil },
		"page outside":  func(m *spec.Grant) { m.Pages[spec.KV][0].Page = 99 },
		"page twice":    func(m *spec.Grant) { m.Pages[spec.KV][1] = m.Pages[spec.KV][0] },
		"no generation": func(m *spec.Grant) { m.Pages[spec.KV][0].Gen = 0 },
		"no such pool":  func(m *spec.Grant) { m.Parts[1].Component = spec.State },
		"bad component": func(m *spec.Grant) { m.Parts[1].Component = 200 },
		"digests":       func(m *spec.Grant) { m.Digests = false },
	}
	for name, change := range cases {
		g := newPrefillRig(t, nil)
		g.open(1, 1, nil)
		g.assign(1, 1, 4)
		m := grantOf(1, 1, 1, 4)
		change(&m)
		acts := g.say(1, m)
		require.Equal(t, spec.CauseProtocol, sent[spec.Failing](acts).Cause, name)
		require.NotEmpty(t, sent[spec.Failed](acts).Detail, name)
		require.NotNil(t, toLeader[JobStopped](acts), name)
		require.Nil(t, toLeader[Granted](acts), name)
		require.NotNil(t, toLeader[JobOver](g.side(ComputeOver{Transfer: xfer(1, 1)})), name)
	}
}

func TestPrefillRank_GrantBeforeAssign_WaitsWithinItsBound(t *testing.T) {
	g := newPrefillRig(t, func(c *PrefillRankConfig) { c.Liveness = 1e12 })
	g.open(1, 1, nil)
	g.say(1, grantOf(1, 1, 1, 4))
	require.Nil(t, toLeader[Granted](g.last))
	g.assign(1, 1, 4)
	require.NotNil(t, toLeader[Granted](g.last))
	g.say(1, grantOf(1, 2, 2, 4))
	acts := g.wait(30e9)
	require.Equal(t, spec.LeaseID(2), sent[spec.Failed](acts).Lease)
	require.Len(t, g.r.jobq, 1)
}

func TestPrefillRank_LostLeader_BreaksItsJobsAndFreesByProof(t *testing.T) {
	g := newPrefillRig(t, nil)
	g.open(1, 1, nil)
	g.started(1, 1, 1, 4)
	ps := posts(g.seal(g.side(ChunkDone{Transfer: xfer(1, 1), From: 0, To: 4, Last: true})))
	acts := g.step(SideLost{})
	require.Equal(t, spec.CauseLeaderLost, sent[spec.Failing](acts).Cause)
	require.Equal(t, uint32(7), g.free(), "its post still reads")
	acts = g.noticed(g.posted(ps))
	require.Equal(t, spec.CauseLeaderLost, sent[spec.Failed](acts).Cause)
	require.Equal(t, uint32(8), g.free())
	require.NotNil(t, sent[spec.Refuse](g.step(g.connectEvent(2, 1, nil))))
}

func TestPrefillRank_FenceThatCannotBeDone_Stops(t *testing.T) {
	g := newPrefillRig(t, nil)
	g.open(1, 1, nil)
	g.step(DataLost{Peer: 1, Epoch: 1})
	acts := g.step(FenceDone{Peer: 1, Old: 1})
	require.NotNil(t, action1[Stop](acts))
	require.True(t, g.r.Status().Stopped)
}

func TestPrefillRank_BrokenContract_IsAnErrorAndChangesNothing(t *testing.T) {
	g := newPrefillRig(t, nil)
	g.open(1, 1, nil)
	g.started(1, 1, 1, 4)
	s := action1[Seal](g.side(ChunkDone{Transfer: xfer(1, 1), From: 0, To: 4, Last: true}))
	for _, ev := range []Event{Sealed{Seal: 99}, Sealed{Seal: s.Seal, Lease: s.Lease}, Posted{Peer: 1, Batch: 7}, Noticed{Number: 3}, NoticeIn{}, ConnectIn{Env: spec.Envelope{Body: spec.Ping{}}}} {
		_, err := g.r.Step(g.now, ev)
		require.ErrorIs(t, err, ErrContract, "%T", ev)
	}
	_, err := g.r.Step(0, Tick{})
	require.ErrorIs(t, err, ErrContract)
	require.Len(t, posts(g.step(Sealed{Seal: s.Seal, Lease: s.Lease, Digests: make([]uint64, 2)})), 1)
}

func TestPrefillRank_FullLinkTable_ForgetsTheIdleOnesFirst(t *testing.T) {
	g := newPrefillRig(t, func(c *PrefillRankConfig) { c.MaxLinks = 2 })
	g.open(1, 1, nil)
	g.open(2, 1, nil)
	require.Equal(t, spec.RefuseFull, sent[spec.Refuse](g.step(g.connectEvent(3, 1, nil))).Refusal)
	g.step(ConnLost{Peer: 1, Conn: g.r.links[1].conn})
	require.Equal(t, spec.RefuseFull, sent[spec.Refuse](g.step(g.connectEvent(3, 1, nil))).Refusal, "its fence is not back")
	g.step(FenceDone{Peer: 1, Old: 1, OK: true})
	g.open(3, 1, nil)
	require.Nil(t, g.r.links[1])
	require.Len(t, g.r.linkq, 2)
}

func TestPrefillRank_Untake_GivesBackQuietlyAndMayTakeAgain(t *testing.T) {
	g := newPrefillRig(t, nil)
	g.open(1, 1, nil)
	g.started(1, 1, 1, 8)
	require.Equal(t, uint32(6), g.free())
	require.Nil(t, toLeader[PagesFreed](g.side(UntakeSource{Transfer: xfer(1, 1)})), "the leader knows")
	require.Equal(t, uint32(8), g.free())
	require.NotNil(t, toLeader[SourceTaken](g.side(TakeSource{Transfer: xfer(1, 1)})))
	require.NotNil(t, sent[spec.Complete](g.noticed(g.posted(posts(g.seal(g.computed(xfer(1, 1), 0, 8, true)))))))
	require.Equal(t, uint32(8), g.free())
}

func TestPrefillRank_Half_ComputesUnofferedAndSendsOnceBound(t *testing.T) {
	g := newPrefillRig(t, nil)
	g.open(1, 1, nil)
	key := spec.TransferID{Leader: incOf(1), Counter: 5}
	g.side(Assign{Transfer: key, Domain: rigDomain, Tokens: 4})
	require.Equal(t, key, toLeader[Granted](g.last).Transfer)
	g.side(TakeSource{Transfer: key})
	acts := g.computed(key, 0, 4, true)
	require.Nil(t, action1[Seal](acts), "nobody holds an address, key or plan for it")
	require.Equal(t, uint32(7), g.free())
	g.say(1, grantOf(1, 1, 1, 4)) // its grant overtakes the leader's word
	require.Nil(t, action1[Seal](g.last))
	acts = g.side(Bind{Source: key, Transfer: xfer(1, 1), Links: []spec.Incarnation{incOf(101)}})
	require.Equal(t, xfer(1, 1), toLeader[Granted](acts).Transfer)
	acts = g.noticed(g.posted(posts(g.seal(acts))))
	require.NotNil(t, sent[spec.Complete](acts))
	require.Equal(t, key, toLeader[JobOver](acts).Transfer)
	require.Equal(t, uint32(8), g.free())

	g.side(Assign{Transfer: spec.TransferID{Leader: incOf(1), Counter: 6}, Domain: rigDomain, Tokens: 4})
	g.side(TakeSource{Transfer: spec.TransferID{Leader: incOf(1), Counter: 6}})
	g.side(Break{Transfer: spec.TransferID{Leader: incOf(1), Counter: 6}, Cause: spec.CauseDeadline})
	require.Equal(t, uint32(7), g.free(), "its kernel's hold ends by proof as ever")
	g.side(ComputeOver{Transfer: spec.TransferID{Leader: incOf(1), Counter: 6}})
	require.Equal(t, uint32(8), g.free())
}

func TestPrefillRank_Deadline_IsNeverInThePastAndPingsKeepTheLink(t *testing.T) {
	g := newPrefillRig(t, nil)
	require.Zero(t, g.r.Deadline())
	g.open(1, 1, nil)
	for range 12 {
		require.Greater(t, g.r.Deadline(), g.now)
		g.now = g.r.Deadline()
		ping := sent[spec.Ping](g.step(Tick{}))
		require.NotNil(t, ping)
		g.say(1, spec.Pong{Number: ping.Number})
	}
	require.Equal(t, "open", g.r.Status().Links[0].State)
	g.wait(5e9)
	require.Equal(t, "closed", g.r.Status().Links[0].State)
	require.NotNil(t, action1[Fence](g.last))
}

func TestPrefillRankConfig_BadValues_AreRefused(t *testing.T) {
	for name, change := range map[string]func(*PrefillRankConfig){
		"role":         func(c *PrefillRankConfig) { c.Identity.Role = spec.RoleDecode },
		"incarnation":  func(c *PrefillRankConfig) { c.Identity.Incarnation = spec.Incarnation{} },
		"side":         func(c *PrefillRankConfig) { c.Identity.Side = []spec.Incarnation{incOf(9)} },
		"layouts":      func(c *PrefillRankConfig) { c.SideLayouts = nil },
		"no kv":        func(c *PrefillRankConfig) { c.SideLayouts = [][]spec.Layout{rigLayouts(8)[1:]} },
		"window":       func(c *PrefillRankConfig) { c.Window = 0 },
		"capabilities": func(c *PrefillRankConfig) { c.Capabilities = nil },
		"bound":        func(c *PrefillRankConfig) { c.MaxPosts = -1 },
	} {
		cfg := rigConfig()
		change(&cfg)
		_, err := NewPrefillRank(cfg)
		require.ErrorIs(t, err, ErrConfig, name)
	}
	for name, change := range map[string]func(*PrefillLeaderConfig){
		"rank":       func(c *PrefillLeaderConfig) { c.Identity.Rank = 1 },
		"vocabulary": func(c *PrefillLeaderConfig) { c.Vocabulary = 0 },
		"capacity":   func(c *PrefillLeaderConfig) { c.ReserveKV = 8 },
		"bound":      func(c *PrefillLeaderConfig) { c.MaxOver = -1 },
	} {
		cfg := leaderConfig(1)
		change(&cfg)
		_, err := NewPrefillLeader(cfg)
		require.ErrorIs(t, err, ErrConfig, name)
	}
}

// brokenAtPrefill are ways to break an invariant of a prefill rank, by number.
var brokenAtPrefill = map[int]func(g *prefillRig, l *prefillLease){
	6:  func(g *prefillRig, l *prefillLease) { l.job.pages[spec.KV][0].Page = 7 },
	9:  func(g *prefillRig, l *prefillLease) { l.notice = 1 },
	14: func(g *prefillRig, l *prefillLease) { l.epoch++ },
	17: func(g *prefillRig, l *prefillLease) { l.job.owner += 100 },
}

func TestPrefillRank_BrokenInvariant_StopsFencesAndServesNothing(t *testing.T) {
	for n, plant := range brokenAtPrefill {
		g := newPrefillRig(t, nil)
		g.open(1, 1, nil)
		g.started(1, 1, 1, 4)
		s := action1[Seal](g.side(ChunkDone{Transfer: xfer(1, 1), From: 0, To: 4, Last: true}))
		plant(g, g.r.links[1].leases[1])
		acts, err := g.r.Step(g.now, Sealed{Seal: s.Seal, Lease: s.Lease, Digests: make([]uint64, 2)})
		require.NoError(t, err)
		require.Equal(t, n, action1[Stop](acts).Invariant)
		require.NotNil(t, action1[Fence](acts))
		require.Empty(t, posts(acts))
		acts, err = g.r.Step(g.now, g.connectEvent(2, 1, nil))
		require.NoError(t, err)
		require.NotNil(t, sent[spec.Refuse](acts))
		acts, err = g.r.Step(g.now, Recv{Peer: 1, Conn: 1, Env: spec.Envelope{Body: spec.Grant{}}})
		require.NoError(t, err)
		require.Empty(t, sends(acts))
	}
}

func TestPrefillRank_NoticeIsOverBeforeThePost_CompletesWithTheLastPost(t *testing.T) {
	g := newPrefillRig(t, nil)
	g.open(1, 1, nil)
	g.started(1, 1, 1, 4)
	ps := posts(g.seal(g.computed(xfer(1, 1), 0, 4, true)))
	require.Nil(t, sent[spec.Complete](g.noticed(nil)), "the fabric still reads the source")
	require.Equal(t, uint32(7), g.free())
	require.NotNil(t, sent[spec.Complete](g.posted(ps)))
	require.Equal(t, uint32(8), g.free())
}
