package core

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/spec"
)

// leaderRig drives one PrefillLeader by hand; the test plays its ranks, its computation and its decode leaders.
type leaderRig struct {
	t    *testing.T
	l    *PrefillLeader
	now  Time
	last []Action
}

func leaderConfig(ranks int) PrefillLeaderConfig {
	id := rigSide
	id.Size, id.Side = uint16(ranks), []spec.Incarnation{incOf(1), incOf(2), incOf(3)}[:ranks]
	c := PrefillLeaderConfig{Identity: id, Revision: "r1", Vocabulary: 256, Window: 64, ChunkTokens: 4}
	for range ranks {
		c.SideLayouts = append(c.SideLayouts, rigLayouts(8))
	}
	return c
}

func newLeaderRig(t *testing.T, ranks int, change func(*PrefillLeaderConfig)) *leaderRig {
	cfg := leaderConfig(ranks)
	if change != nil {
		change(&cfg)
	}
	l, err := NewPrefillLeader(cfg)
	require.NoError(t, err)
	g := &leaderRig{t: t, l: l, now: 1}
	g.from(0, PeerLink{Peer: 1, Identity: decodeIdentity(1), Up: true})
	return g
}

func (g *leaderRig) step(ev Event) []Action {
	g.t.Helper()
	out, err := g.l.Step(g.now, ev)
	require.NoError(g.t, err)
	g.last = out
	return out
}

func (g *leaderRig) from(r spec.Rank, m SideMsg) []Action {
	g.t.Helper()
	return g.step(Side{Rank: r, Msg: m})
}

func (g *leaderRig) wait(d Duration) []Action { g.now += Time(d); return g.step(Tick{}) }

func askOf(n uint64, tokens int) spec.Ask {
	a := spec.Ask{Transfer: xfer(1, n), Tenant: "x", Links: []spec.Incarnation{incOf(101)}}
	for i := range tokens {
		a.Prompt = append(a.Prompt, int32(i))
	}
	return a
}

func (g *leaderRig) ask(a spec.Ask) []Action {
	g.t.Helper()
	return g.from(0, PeerSaid{Peer: 1, Body: a})
}

// admitted asks, and grants at every rank.
func (g *leaderRig) admitted(n uint64, tokens int) {
	g.t.Helper()
	g.ask(askOf(n, tokens))
	require.NotNil(g.t, reply[spec.Asked](g.last), "%v", g.last)
	for r := range g.l.lost {
		g.from(spec.Rank(r), Granted{Transfer: xfer(1, n)})
	}
}

func (g *leaderRig) taken(n uint64) {
	g.t.Helper()
	for r := range g.l.lost {
		g.from(spec.Rank(r), SourceTaken{Transfer: xfer(1, n)})
	}
}

func reply[M spec.Message](acts []Action) *M {
	for _, a := range acts {
		if s, ok := a.(ReplyLeader); ok {
			if m, ok := s.Body.(M); ok {
				return &m
			}
		}
	}
	return nil
}

func toRank[M SideMsg](acts []Action) (rs []spec.Rank) {
	for _, a := range acts {
		if s, ok := a.(ToRank); ok {
			if _, ok := s.Msg.(M); ok {
				rs = append(rs, s.Rank)
			}
		}
	}
	return rs
}

func TestPrefillLeader_WholeTransfer_ComputesInChunksAndRemembers(t *testing.T) {
	g := newLeaderRig(t, 2, nil)
	acts := g.ask(askOf(1, 6))
	require.Equal(t, []spec.Rank{0, 1}, toRank[Assign](acts))
	require.Equal(t, uint32(6), reply[spec.Asked](acts).Tokens)
	require.Equal(t, []string{"RecvAsk"}, dids(acts))
	g.from(1, Granted{Transfer: xfer(1, 1)})
	require.Empty(t, toRank[TakeSource](g.last))
	require.Equal(t, []spec.Rank{0}, toRank[TakeSource](g.from(0, Granted{Transfer: xfer(1, 1)})))
	require.Equal(t, []spec.Rank{1}, toRank[TakeSource](g.from(0, SourceTaken{Transfer: xfer(1, 1)})))
	c := action1[Compute](g.from(1, SourceTaken{Transfer: xfer(1, 1)}))
	require.Equal(t, [2]uint32{0, 4}, [2]uint32{c.From, c.To})
	require.False(t, c.Last)
	acts = g.step(ComputeDone{Transfer: xfer(1, 1), From: 0, To: 4})
	require.Equal(t, []spec.Rank{0, 1}, toRank[ChunkDone](acts))
	st := g.l.Status()
	require.Equal(t, [4]uint64{6, 4, 6, 4}, [4]uint64{st.Tokens, st.Computed, uint64(st.OldestTokens), uint64(st.OldestComputed)}, "how far it is")
	require.Equal(t, xfer(1, 1), st.Oldest)
	c = action1[Compute](acts)
	require.True(t, c.Last)
	acts = g.step(ComputeDone{Transfer: xfer(1, 1), From: 4, To: 6})
	require.Equal(t, []spec.Rank{0, 1}, toRank[ComputeOver](acts))
	g.from(0, JobOver{Transfer: xfer(1, 1)})
	require.Equal(t, 1, g.l.Status().Admitted)
	g.from(1, JobOver{Transfer: xfer(1, 1)})
	require.Equal(t, 0, g.l.Status().Admitted)
	acts = g.ask(askOf(1, 6))
	require.NotNil(t, reply[spec.Asked](acts), "a late repeat gets the old answer")
	require.Empty(t, toRank[Assign](acts), "and starts nothing")
}

func TestPrefillLeader_AskThatCannotRun_IsRefusedAndLeavesNothing(t *testing.T) {
	cases := []struct {
		cause  spec.Cause
		limit  uint32
		change func(*spec.Ask)
	}{
		{spec.CauseInvalid, 0, func(a *spec.Ask) { a.Prompt = nil }},
		{spec.CauseTooLong, 32, func(a *spec.Ask) { a.Prompt = make([]int32, 33) }},
		{spec.CauseInvalid, 0, func(a *spec.Ask) { a.Prompt[0] = -1 }},
		{spec.CauseInvalid, 0, func(a *spec.Ask) { a.Prompt[0] = 256 }},
		{spec.CauseInvalid, 0, func(a *spec.Ask) { a.Adapter = "none" }},
		{spec.CauseProtocol, 0, func(a *spec.Ask) { a.Links = nil }},
		{spec.CauseProtocol, 0, func(a *spec.Ask) { a.Links = []spec.Incarnation{incOf(9)} }},
		{spec.CausePeerLost, 0, func(a *spec.Ask) { a.Source.Counter = 4 }},
	}
	for _, v := range cases {
		g := newLeaderRig(t, 2, nil)
		a := askOf(1, 4)
		v.change(&a)
		acts := g.ask(a)
		f := reply[spec.AskFailed](acts)
		require.NotNil(t, f)
		require.Equal(t, v.cause, f.Cause)
		require.Equal(t, v.limit, f.Limit)
		require.NotEmpty(t, f.Detail)
		require.Empty(t, toRank[Assign](acts), "I8")
		require.Empty(t, g.l.jobs)
	}
	g := newLeaderRig(t, 1, nil)
	require.NotNil(t, reply[spec.Asked](g.ask(askOf(1, 32))), "one token less than refused")
	a := askOf(2, 4)
	a.Transfer.Leader = incOf(50)
	require.Empty(t, g.ask(a)[1:], "another leader's name is only counted")
	g = newLeaderRig(t, 1, func(c *PrefillLeaderConfig) { c.MaxTransfers = 1 })
	g.ask(askOf(1, 4))
	require.Equal(t, spec.CauseOverCapacity, reply[spec.AskFailed](g.ask(askOf(2, 4))).Cause)
	g.step(Drain{})
	require.Equal(t, spec.CauseShutdown, reply[spec.AskFailed](g.ask(askOf(3, 4))).Cause)
	require.NotNil(t, reply[spec.Asked](g.ask(askOf(1, 4))), "what was admitted stays so")
}

func TestPrefillLeader_NoRoomAtOneRank_GivesBackAndWaitsForThatRank(t *testing.T) {
	g := newLeaderRig(t, 2, nil)
	g.admitted(1, 4)
	g.from(0, SourceTaken{Transfer: xfer(1, 1)})
	acts := g.from(1, SourceNoRoom{Transfer: xfer(1, 1)})
	require.Equal(t, []spec.Rank{0}, toRank[UntakeSource](acts), "never a partial hold")
	require.Empty(t, toRank[TakeSource](acts))
	g.admitted(2, 4)
	require.Empty(t, toRank[TakeSource](g.last), "the oldest goes first")
	require.Empty(t, toRank[TakeSource](g.from(0, PagesFreed{})))
	require.Equal(t, []spec.Rank{0}, toRank[TakeSource](g.from(1, PagesFreed{})))
	g.taken(1)
	require.Equal(t, []spec.Rank{0}, toRank[TakeSource](g.last))
}

func TestPrefillLeader_TwoTransfers_ComputeInTurn(t *testing.T) {
	g := newLeaderRig(t, 1, nil)
	g.admitted(1, 12)
	g.taken(1)
	g.admitted(2, 8)
	g.taken(2)
	var turns []uint64
	c := Compute{Transfer: xfer(1, 1), From: 0, To: 4}
	for {
		turns = append(turns, c.Transfer.Counter)
		next := action1[Compute](g.step(ComputeDone{Transfer: c.Transfer, From: c.From, To: c.To}))
		if next == nil {
			break
		}
		c = *next
	}
	require.Equal(t, []uint64{1, 2, 1, 2, 1}, turns)
}

func TestPrefillLeader_StopWhileComputing_LetsTheChunkEndBeforeThePagesGo(t *testing.T) {
	g := newLeaderRig(t, 2, nil)
	g.admitted(1, 8)
	g.taken(1)
	acts := g.from(1, JobStopped{Transfer: xfer(1, 1), Cause: spec.CauseAbortedByPeer})
	require.Equal(t, []spec.Rank{0, 1}, toRank[Break](acts))
	require.Empty(t, toRank[ComputeOver](acts), "a kernel still writes")
	require.Nil(t, reply[spec.AskFailed](acts), "decode asked for it")
	acts = g.step(ComputeDone{Transfer: xfer(1, 1), From: 0, To: 4})
	require.Equal(t, []spec.Rank{0, 1}, toRank[ComputeOver](acts))
	require.Empty(t, toRank[ChunkDone](acts))
	require.Nil(t, action1[Compute](acts))
}

func TestPrefillLeader_ComputeFailure_FailsTheTransferWithItsCause(t *testing.T) {
	g := newLeaderRig(t, 1, nil)
	g.admitted(1, 8)
	g.taken(1)
	acts := g.step(ComputeDone{Transfer: xfer(1, 1), From: 0, To: 4, Err: "boom"})
	require.Equal(t, spec.CauseCompute, reply[spec.AskFailed](acts).Cause)
	require.Equal(t, []spec.Rank{0}, toRank[Break](acts))
	require.Equal(t, []spec.Rank{0}, toRank[ComputeOver](acts))
	require.Equal(t, spec.CauseCompute, reply[spec.AskFailed](g.ask(askOf(1, 8))).Cause)
	_, err := g.l.Step(g.now, ComputeDone{Transfer: xfer(1, 1)})
	require.ErrorIs(t, err, ErrContract)
}

func TestPrefillLeader_Deadlines_StopWhatNobodyWaitsFor(t *testing.T) {
	g := newLeaderRig(t, 1, nil)
	a := askOf(1, 4)
	a.TimeLeft = 5e9
	g.ask(a)
	require.Equal(t, g.now+2e9, g.l.Deadline(), "first Asked is said again")
	require.Equal(t, spec.CauseDeadline, reply[spec.AskFailed](g.wait(5e9)).Cause)
	g.ask(askOf(2, 4))
	g.from(0, PeerLink{Peer: 1, Identity: decodeIdentity(1)})
	require.Nil(t, reply[spec.AskFailed](g.wait(9e9)))
	require.Equal(t, spec.CausePeerLost, reply[spec.AskFailed](g.wait(1e9)).Cause)
	g.from(0, PeerLink{Peer: 1, Identity: decodeIdentity(1), Up: true})
	g.ask(askOf(3, 4))
	require.Equal(t, spec.CauseDeadline, reply[spec.AskFailed](g.wait(300e9)).Cause, "its grants never came")
}

func TestPrefillLeader_LostRank_EndsTheSide(t *testing.T) {
	g := newLeaderRig(t, 2, nil)
	g.admitted(1, 8)
	g.taken(1)
	acts := g.step(SideLost{Rank: 1})
	require.Equal(t, []spec.Rank{0}, toRank[Break](acts))
	require.Equal(t, spec.CausePeerLost, reply[spec.AskFailed](acts).Cause)
	g.step(ComputeDone{Transfer: xfer(1, 1), From: 0, To: 4})
	g.from(0, JobOver{Transfer: xfer(1, 1)})
	require.Empty(t, g.l.jobs)
	require.Equal(t, spec.CauseShutdown, reply[spec.AskFailed](g.ask(askOf(2, 4))).Cause, "of the side, not of the transfer")
}

func TestPrefillLeader_PrefillFirst_BindsOnceAndUnboundEndsByDeadline(t *testing.T) {
	g := newLeaderRig(t, 1, nil)
	a := askOf(1, 4)
	acts := g.step(Submit{Req: 7, Tenant: "x", Prompt: a.Prompt})
	name := action1[Named](acts).Source
	key := spec.TransferID{Leader: name.Leader, Counter: name.Counter}
	require.Equal(t, []spec.Rank{0}, toRank[Assign](acts))
	g.from(0, Granted{Transfer: key})
	g.from(0, SourceTaken{Transfer: key})
	require.Equal(t, key, action1[Compute](g.last).Transfer, "computed before anybody asks")
	a.Source = name
	wrong := a
	wrong.Transfer.Counter, wrong.Prompt = 9, []int32{1}
	require.Equal(t, spec.CauseProtocol, reply[spec.AskFailed](g.ask(wrong)).Cause, "a name does not open another request")
	acts = g.ask(a)
	require.Equal(t, []spec.Rank{0}, toRank[Bind](acts))
	require.NotNil(t, reply[spec.Asked](acts))
	require.Equal(t, spec.Cause(""), action1[HalfOver](acts).Cause)
	b := a
	b.Transfer.Counter = 2
	require.Equal(t, spec.CauseDuplicateLabel, reply[spec.AskFailed](g.ask(b)).Cause)
	require.NotNil(t, reply[spec.Asked](g.ask(a)))

	second := action1[Named](g.step(Submit{Req: 8, Tenant: "x", Prompt: a.Prompt})).Source
	acts = g.wait(30e9)
	require.Equal(t, spec.CauseDeadline, action1[HalfOver](acts).Cause)
	a.Transfer.Counter, a.Source = 3, second
	require.Equal(t, spec.CausePeerLost, reply[spec.AskFailed](g.ask(a)).Cause)
	third := action1[Named](g.step(Submit{Req: 9, Tenant: "x", Prompt: a.Prompt})).Source
	acts = g.from(0, PeerSaid{Peer: 1, Body: spec.Drop{Source: third, Cause: spec.CauseTooLong}})
	require.Equal(t, spec.CauseTooLong, action1[HalfOver](acts).Cause)
	require.Equal(t, spec.CauseTooLong, action1[HalfOver](g.step(Submit{Req: 10, Prompt: make([]int32, 33)})).Cause)
}

func TestPrefillLeader_ForgottenTransfer_IsNotBegunAgain(t *testing.T) {
	g := newLeaderRig(t, 1, func(c *PrefillLeaderConfig) { c.MaxOver = 1 })
	for n := uint64(1); n <= 2; n++ {
		g.ask(askOf(n, 4))
		g.from(0, JobStopped{Transfer: xfer(1, n), Cause: spec.CauseAbortedByPeer})
		g.from(0, JobOver{Transfer: xfer(1, n)})
	}
	acts := g.ask(askOf(1, 4))
	require.Equal(t, spec.CausePeerLost, reply[spec.AskFailed](acts).Cause)
	require.Empty(t, toRank[Assign](acts))
}

func TestPrefillLeader_GrantsDoNotCome_AskedIsSaidAgainUntilDropped(t *testing.T) {
	g := newLeaderRig(t, 1, nil)
	g.ask(askOf(1, 6))
	require.NotNil(t, reply[spec.Asked](g.wait(g.l.cfg.AskedFirst)), "the Drop was lost: decode is asked whether it still wants this")
	g.from(0, PeerSaid{Peer: 1, Body: spec.Drop{Transfer: xfer(1, 1), Cause: spec.CauseFenced}})
	g.from(0, JobOver{Transfer: xfer(1, 1)})
	require.Equal(t, 0, g.l.Status().Admitted)
}

func TestPrefillLeader_GrantsCame_AskedIsNotSaidAgain(t *testing.T) {
	g := newLeaderRig(t, 1, nil)
	g.admitted(1, 6)
	require.Nil(t, reply[spec.Asked](g.wait(g.l.cfg.AskedFirst)))
}
