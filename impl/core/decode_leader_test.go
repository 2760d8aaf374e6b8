package core

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/spec"
)

// dlRig is one decode leader; ranks and prefill are what the test says they are.
type dlRig struct {
	*testing.T
	l     *DecodeLeader
	now   Time
	sides int
	pool  uint32 // prefill pages
	req   RequestID
}

func dlConfig(ranks, sides int, pages uint32) DecodeLeaderConfig {
	side := worldSide('d', ranks, 0)
	c := DecodeLeaderConfig{Identity: spec.Identity{Name: "d", Role: spec.RoleDecode, Incarnation: side[0], Size: uint16(ranks), Side: side}, Revision: "m", Window: 1000,
		PeerBound: 500, AskFirst: 4, AskMax: 16, AskBound: 100, CauseGrace: 20, RetryAfter: 7}
	for k := range ranks {
		c.SideLayouts = append(c.SideLayouts, worldLayouts(k, ranks, pages))
	}
	for s := range sides {
		c.Prefill = append(c.Prefill, []PeerID{PeerID(s + 1)})
	}
	return c
}

func newDLRig(t *testing.T, c DecodeLeaderConfig) *dlRig {
	l, err := NewDecodeLeader(c)
	require.NoError(t, err)
	return &dlRig{T: t, l: l, now: 1, sides: len(c.Prefill), pool: 100}
}

func upDLRig(t *testing.T, c DecodeLeaderConfig) *dlRig {
	g := newDLRig(t, c)
	for s := range g.sides {
		g.up(s)
	}
	return g
}

func (g *dlRig) step(ev Event) []Action {
	g.Helper()
	acts, err := g.l.Step(g.now, ev)
	require.NoError(g, err)
	return acts
}

func (g *dlRig) wait(d Time) []Action { g.Helper(); g.now += d; return g.step(Tick{}) }

func (g *dlRig) from(rank int, m SideMsg) []Action {
	g.Helper()
	return g.step(Side{Rank: spec.Rank(rank), Msg: m})
}

// all delivers one message of every rank.
func (g *dlRig) all(m SideMsg) (acts []Action) {
	g.Helper()
	for k := range g.l.lost {
		acts = append(acts, g.from(k, m)...)
	}
	return acts
}

func (g *dlRig) up(s int) []Action {
	inc := worldInc('p', s, 0)
	return g.all(PeerUp{Peer: PeerID(s + 1), Window: 1000, Layouts: worldLayouts(0, 1, g.pool),
		Identity: spec.Identity{Name: fmt.Sprint("p", s), Role: spec.RolePrefill, Incarnation: inc, Size: 1, Side: []spec.Incarnation{inc}}})
}

func (g *dlRig) submit(tokens int, maxNew uint32) []Action {
	g.Helper()
	g.req++
	return g.step(Submit{Req: g.req, Tenant: "t", Prompt: make([]int32, tokens), MaxNew: maxNew, EOS: -1})
}

func asks(acts []Action) (out []spec.Ask) {
	for _, a := range only[SendLeader](acts) {
		if m, ok := a.Body.(spec.Ask); ok {
			out = append(out, m)
		}
	}
	return out
}

func drops(acts []Action) (out []spec.Drop) {
	for _, a := range only[SendLeader](acts) {
		if m, ok := a.Body.(spec.Drop); ok {
			out = append(out, m)
		}
	}
	return out
}

func ordered[M SideMsg](acts []Action) (out []M) {
	for _, a := range only[ToRank](acts) {
		if m, ok := a.Msg.(M); ok {
			out = append(out, m)
		}
	}
	return out
}

func (g *dlRig) transfer(n uint64) spec.TransferID {
	return spec.TransferID{Leader: g.l.own, Counter: n}
}

func (g *dlRig) asked(n uint64, tokens uint32) []Action {
	g.Helper()
	return g.from(0, PeerSaid{Peer: g.l.xfers[n].side.peers[0], Body: spec.Asked{Transfer: g.transfer(n), Tokens: tokens}})
}

// running brings a new request to its first running step; the transfer is the leader's n-th.
func (g *dlRig) running(n uint64, tokens int, maxNew uint32) []Action {
	g.Helper()
	g.submit(tokens, maxNew)
	return g.goOn(n, tokens)
}

func (g *dlRig) goOn(n uint64, tokens int) []Action {
	g.Helper()
	t := g.transfer(n)
	require.Len(g, ordered[Take](g.asked(n, uint32(tokens))), len(g.l.lost))
	require.Len(g, ordered[Go](g.all(Taken{Transfer: t, Lease: spec.LeaseID(n)})), len(g.l.lost))
	require.Len(g, only[ReadFirst](g.all(LeaseReady{Transfer: t})), 1)
	return g.step(FirstRead{Transfer: t, OK: true, Tokens: uint32(tokens), First: Token{ID: 50}})
}

func answer(g *dlRig, acts []Action) Answer {
	g.Helper()
	out := only[Answer](acts)
	require.Len(g, out, 1, "%+v", acts)
	return out[0]
}

// The incident's own shape, in page accounting.
func TestDecodeLeader_Incident_AdmissionNamesWhatLimits(t *testing.T) {
	pool := func(tokens uint32) []spec.Layout {
		m := worldMeaning(spec.KV)
		m.TokensPerPage = 16
		return []spec.Layout{spec.NewDense(spec.KV, m, 0, 4, 0, 4, tokens/16, 1), worldLayouts(0, 1, 8)[1]}
	}
	at := func(prefill, decode uint32) *dlRig {
		c := dlConfig(1, 1, 10)
		c.Window, c.SideLayouts = 1048576, [][]spec.Layout{pool(decode)}
		g := newDLRig(t, c)
		inc := worldInc('p', 0, 0)
		g.from(0, PeerUp{Peer: 1, Layouts: pool(prefill), Identity: spec.Identity{Incarnation: inc, Size: 1, Side: []spec.Incarnation{inc}}})
		return g
	}
	g := at(681280, 2040000)
	a := answer(g, g.submit(681281, 16))
	require.Equal(t, spec.CauseTooLong, a.Cause)
	require.Equal(t, 400, a.Cause.HTTPStatus())
	require.Equal(t, Limits{Prompt: 681281, MaxNew: 16, Window: 1048576, PrefillPool: 681280, DecodePool: 2040000, Limiting: "prefill pool"}, a.Limits)
	require.Contains(t, a.Detail, "681281")
	require.Contains(t, a.Detail, "681280")
	require.Empty(t, g.l.requests)
	require.Empty(t, g.l.order)
	acts := g.submit(681280, 16)
	require.Empty(t, only[Answer](acts))
	require.Len(t, asks(acts), 1)
	g = at(681280, 681280)
	a = answer(g, g.submit(681280, 16))
	require.Equal(t, "decode pool", a.Limits.Limiting)
	a = answer(g, g.submit(681281, 16))
	require.Equal(t, "prefill pool", a.Limits.Limiting)
	g = at(2040000, 2040000)
	a = answer(g, g.submit(1048576, 1))
	require.Equal(t, "window", a.Limits.Limiting)
	a = answer(g, g.submit(1048576, 0))
	require.Equal(t, "window", a.Limits.Limiting, "no maximum given: at least 1")
	require.Empty(t, only[Answer](g.submit(1048575, 0)))
}

func TestDecodeLeader_Refusal_LeavesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		sub  Submit
		want spec.Cause
	}{
		"empty":    {Submit{}, spec.CauseInvalid},
		"token":    {Submit{Prompt: []int32{1, 900}}, spec.CauseInvalid},
		"negative": {Submit{Prompt: []int32{-1}}, spec.CauseInvalid},
		"late":     {Submit{Prompt: []int32{1}, TimeLeft: -1}, spec.CauseDeadline},
		"long":     {Submit{Prompt: make([]int32, 100), MaxNew: 61}, spec.CauseTooLong},
	} {
		cfg := dlConfig(2, 1, 40)
		cfg.Vocabulary = 900
		g := upDLRig(t, cfg)
		c.sub.Req, c.sub.Source = 1, spec.SourceName{Leader: worldInc('p', 0, 0), Counter: 4}
		acts := g.step(c.sub)
		require.Equal(t, c.want, answer(g, acts).Cause, name)
		require.Empty(t, only[ToRank](acts))
		require.Equal(t, []spec.Drop{{Source: c.sub.Source, Cause: c.want}}, drops(acts), "the one message that it may cause")
		require.Empty(t, g.l.requests)
		require.Empty(t, g.l.xfers)
	}
}

func TestDecodeLeader_MaxNewNotGiven_IsWhatWindowAndPoolLeave(t *testing.T) {
	g := upDLRig(t, dlConfig(1, 1, 40)) // 160 positions
	g.submit(100, 0)
	require.Equal(t, uint32(60), g.l.requests[1].maxNew)
	c := dlConfig(1, 1, 400)
	g = upDLRig(t, c)
	g.submit(100, 0)
	require.Equal(t, uint32(900), g.l.requests[1].maxNew)
}

func TestDecodeLeader_WholeLife_EmitsAndSucceeds(t *testing.T) {
	g := upDLRig(t, dlConfig(2, 1, 40))
	acts := g.running(1, 7, 3)
	require.Equal(t, OpenStream{Req: 1, PromptTokens: 7, PrefillTokens: 7}, only[OpenStream](acts)[0])
	require.Equal(t, int32(50), only[Emit](acts)[0].Token.ID)
	s := only[RunStep](acts)[0]
	require.Equal(t, RunStep{Transfer: g.transfer(1), Leases: []spec.LeaseID{1, 1}, Token: 50, Pos: 7, Index: 1}, s)
	acts = g.step(StepDone{Transfer: s.Transfer, OK: true, Next: Token{ID: 51}})
	require.Len(t, ordered[Grow](acts), 2, "position 8 is the first of a third page")
	acts = g.all(Grown{Transfer: s.Transfer})
	require.Equal(t, uint32(8), only[RunStep](acts)[0].Pos)
	acts = g.step(StepDone{Transfer: s.Transfer, OK: true, Next: Token{ID: 52}})
	require.Equal(t, Answer{Req: 1, Finish: "length", PromptTokens: 7, PrefillTokens: 7, NewTokens: 3}, answer(g, acts))
	require.Len(t, ordered[ReleaseLease](acts), 2)
	require.Equal(t, 1, did(acts, "Success"))
	g.all(LeaseFreed{Transfer: s.Transfer})
	require.Empty(t, g.l.xfers)
	require.Empty(t, g.l.tenants)
}

func TestDecodeLeader_EOSAndStopSequences_EndTheAnswer(t *testing.T) {
	g := upDLRig(t, dlConfig(1, 1, 40))
	g.step(Submit{Req: 1, Prompt: make([]int32, 3), EOS: 9, MaxNew: 10, Stop: [][]int32{{50, 51}}})
	g.goOn(1, 3)
	acts := g.step(StepDone{Transfer: g.transfer(1), OK: true, Next: Token{ID: 51}})
	require.Len(t, only[Emit](acts), 1, "the token that completes it is the last, and is sent")
	require.Equal(t, "stop", answer(g, acts).Finish)
	g.step(Submit{Req: 2, Prompt: make([]int32, 3), EOS: 50, MaxNew: 10})
	acts = g.goOn(2, 3)
	require.Empty(t, only[Emit](acts))
	require.Equal(t, "stop", answer(g, acts).Finish)
	require.Zero(t, answer(g, acts).NewTokens)
}

func TestDecodeLeader_Ask_RepeatsAndGivesUp(t *testing.T) {
	c := dlConfig(1, 1, 40)
	c.MaxRetries = -1
	g := upDLRig(t, c)
	g.submit(3, 1)
	n := 0
	var acts []Action
	for range 99 {
		acts = g.wait(1)
		n += len(asks(acts))
		require.Empty(t, only[Answer](acts))
	}
	require.Greater(t, n, 4)
	for range 20 {
		acts = append(acts, g.wait(1)...)
	}
	require.Equal(t, spec.CausePeerLost, answer(g, acts).Cause)
}

func TestDecodeLeader_Take_AllOrNoneOldestFirst(t *testing.T) {
	g := upDLRig(t, dlConfig(2, 1, 40))
	g.submit(20, 1)
	g.submit(4, 1)
	require.Len(t, ordered[Take](g.asked(2, 4)), 2)
	require.Empty(t, ordered[Take](g.asked(1, 20)), "one takes at a time")
	t2, t1 := g.transfer(2), g.transfer(1)
	g.from(0, Taken{Transfer: t2, Lease: 1})
	acts := g.from(1, NoRoom{Transfer: t2})
	require.Equal(t, []AbortLease{{Transfer: t2, Cause: spec.CauseOverCapacity}}, ordered[AbortLease](acts), "at all ranks or at none")
	require.Empty(t, ordered[Take](acts))
	require.Empty(t, ordered[Take](g.from(0, LeaseFreed{Transfer: t2})))
	acts = g.from(1, PagesFreed{})
	require.Equal(t, t1, ordered[Take](acts)[0].Transfer, "the oldest first")
	require.Empty(t, ordered[Go](g.from(1, Taken{Transfer: t1, Lease: 2})))
	acts = g.from(0, Taken{Transfer: t1, Lease: 2})
	require.Len(t, ordered[Go](acts), 2)
	require.Equal(t, t2, ordered[Take](acts)[0].Transfer)
}

func TestDecodeLeader_QueueIsBoundedAndFair(t *testing.T) {
	c := dlConfig(1, 1, 40)
	c.MaxQueue, c.MaxTenantQueue, c.MaxActive, c.MaxTenantActive = 4, 3, 2, 1
	g := upDLRig(t, c)
	sub := func(r RequestID, tenant string) []Action {
		return g.step(Submit{Req: r, Tenant: tenant, Prompt: make([]int32, 3), MaxNew: 1, EOS: -1})
	}
	for r := RequestID(1); r <= 5; r++ {
		require.Empty(t, only[Answer](sub(r, "x")))
	}
	a := answer(g, sub(6, "x"))
	require.Equal(t, spec.CauseOverCapacity, a.Cause)
	require.Equal(t, Duration(7), a.RetryAfter)
	require.Empty(t, only[Answer](sub(7, "y")))
	require.Equal(t, spec.CauseOverCapacity, answer(g, sub(8, "z")).Cause, "the whole queue is full")
	g.step(ClientGone{Req: 1})
	require.Equal(t, RequestID(7), g.l.xfers[3].req.id, "y's turn, though x came first")
}

func TestDecodeLeader_FirstVerdictIsFinal_CauseOnlyFromDerivedToOriginal(t *testing.T) {
	g := upDLRig(t, dlConfig(2, 1, 40))
	g.running(1, 7, 9)
	t1 := g.transfer(1)
	acts := g.from(0, LeaseFailed{Transfer: t1, Cause: spec.CauseFenced})
	require.Empty(t, only[Answer](acts), "a derived cause waits a little for its original one")
	acts = g.from(1, LeaseFailed{Transfer: t1, Cause: spec.CauseCompute, Detail: "kernel"})
	require.Equal(t, spec.CauseCompute, answer(g, acts).Cause)
	require.Equal(t, []string{"Recause", "Answer"}, dids(acts))
	acts = g.step(StepDone{Transfer: t1, OK: true, Next: Token{ID: 5}})
	require.Empty(t, only[Emit](acts))
	require.Empty(t, only[Answer](acts))
	g.from(0, LeaseFailed{Transfer: t1, Cause: spec.CauseOperator})
	g.running(2, 7, 9)
	g.from(0, LeaseFailed{Transfer: g.transfer(2), Cause: spec.CauseFenced})
	require.Equal(t, spec.CauseFenced, answer(g, g.wait(20)).Cause, "nobody knew better")
}

func TestDecodeLeader_Retry_OnlyWhenDrainedOrFencedAndBeforeTheStream(t *testing.T) {
	g := upDLRig(t, dlConfig(2, 1, 40))
	g.submit(7, 2)
	g.asked(1, 7)
	t1 := g.transfer(1)
	g.all(Taken{Transfer: t1, Lease: 1})
	acts := g.from(0, LeaseFailed{Transfer: t1, Cause: spec.CauseFenced})
	require.Empty(t, only[Answer](acts))
	require.Len(t, ordered[AbortLease](acts), 2)
	require.Empty(t, asks(g.from(0, LeaseFreed{Transfer: t1})), "one lease is not freed yet")
	acts = g.from(1, LeaseFreed{Transfer: t1})
	require.Equal(t, g.transfer(2), asks(acts)[0].Transfer, "a new transfer")
	require.Equal(t, []string{"Retry", "Ask"}, dids(acts))
	g.from(0, PeerSaid{Peer: 1, Body: spec.Asked{Transfer: t1, Tokens: 7}})
	g.asked(2, 7)
	g.all(Taken{Transfer: g.transfer(2), Lease: 2})
	acts = g.from(0, LeaseFailed{Transfer: g.transfer(2), Cause: spec.CausePeerLost})
	require.Equal(t, spec.CausePeerLost, answer(g, acts).Cause, "retried once; its first cause was derived")
	g.all(LeaseFreed{Transfer: g.transfer(2)})
	g.running(3, 7, 9)
	g.from(0, LeaseFailed{Transfer: g.transfer(3), Cause: spec.CausePeerLost})
	require.Empty(t, g.l.requests, "its stream had begun")
}

func TestDecodeLeader_PrefillCountsAnotherLength_Fails(t *testing.T) {
	g := upDLRig(t, dlConfig(1, 1, 40))
	g.submit(7, 2)
	require.Equal(t, spec.CauseMismatch, answer(g, g.asked(1, 1)).Cause)
	g.submit(7, 2)
	g.asked(2, 7)
	t2 := g.transfer(2)
	g.all(Taken{Transfer: t2, Lease: 1})
	g.all(LeaseReady{Transfer: t2})
	acts := g.step(FirstRead{Transfer: t2, OK: true, Tokens: 1})
	require.Equal(t, spec.CauseMismatch, answer(g, acts).Cause)
	require.Empty(t, only[OpenStream](acts), "no status line")
}

func TestDecodeLeader_Deadline_InEachState(t *testing.T) {
	for name, to := range map[string]func(g *dlRig){
		"asking":  func(g *dlRig) {},
		"filling": func(g *dlRig) { g.asked(1, 7); g.all(Taken{Transfer: g.transfer(1), Lease: 1}) },
		"running": func(g *dlRig) { g.goOn(1, 7) },
	} {
		g := upDLRig(t, dlConfig(2, 1, 40))
		g.step(Submit{Req: 1, Prompt: make([]int32, 7), MaxNew: 5, EOS: -1, TimeLeft: 30})
		to(g)
		require.Equal(t, spec.CauseDeadline, answer(g, g.wait(30)).Cause, name)
	}
	g := newDLRig(t, dlConfig(1, 1, 40))
	g.step(Submit{Req: 1, Prompt: make([]int32, 7), MaxNew: 5, EOS: -1, TimeLeft: 30})
	require.Equal(t, spec.CauseDeadline, answer(g, g.wait(30)).Cause, "queued")
}

func TestDecodeLeader_NoPrefillSide_WaitsThenFails(t *testing.T) {
	g := newDLRig(t, dlConfig(1, 1, 40))
	require.Empty(t, only[Answer](g.submit(7, 2)))
	g.now = 499
	require.Empty(t, only[Answer](g.wait(0)))
	require.Equal(t, spec.CausePeerLost, answer(g, g.wait(1)).Cause)
	require.Empty(t, only[Answer](g.submit(7, 2)))
	require.Empty(t, only[Answer](g.wait(49)))
	require.Equal(t, spec.CausePeerLost, answer(g, g.wait(1)).Cause, "an outage that lasts is told at once")
	g.submit(7, 2)
	g.wait(10)
	require.Len(t, asks(g.up(0)), 1, "served as soon as one is there")
}

// TestCaseB29: requests sent meanwhile get the handshake's error at once.
func TestCaseB29_PeerDoesNotFit_RequestsFailAtOnceWithTheField(t *testing.T) {
	g := newDLRig(t, dlConfig(1, 1, 40))
	g.submit(7, 2)
	a := answer(g, g.from(0, PeerRefused{Peer: 1, Detail: "layouts differ in kv.dtype: ours bf16, theirs fp8"}))
	require.Equal(t, spec.CauseIncompatible, a.Cause)
	require.Contains(t, a.Detail, "kv.dtype")
	require.Equal(t, spec.CauseIncompatible, answer(g, g.submit(7, 2)).Cause)
	require.Len(t, asks(append(g.up(0), g.submit(7, 2)...)), 1)
}

// TestCaseB33: outside ids are labels. Two requests with one label are two transfers.
func TestCaseB33_SameLabelTwice_TwoTransfers(t *testing.T) {
	g := upDLRig(t, dlConfig(1, 1, 40))
	for r := RequestID(1); r <= 3; r++ {
		acts := g.step(Submit{Req: r, Label: "7", Prompt: make([]int32, 3), MaxNew: 1, EOS: -1})
		require.Equal(t, g.transfer(uint64(r)), asks(acts)[0].Transfer)
		require.Equal(t, "7", asks(acts)[0].Label)
	}
	_, err := g.l.Step(g.now, Submit{Req: 2})
	require.ErrorIs(t, err, ErrContract)
}

// TestCaseB41: the client leaves between prefill's and decode's part, in each state.
func TestCaseB41_ClientGone_InEachState(t *testing.T) {
	for name, to := range map[string]func(g *dlRig){
		"queued":  func(g *dlRig) {},
		"asking":  func(g *dlRig) { g.up(0) },
		"waiting": func(g *dlRig) { g.up(0); g.l.short = true; g.asked(1, 7) },
		"taking":  func(g *dlRig) { g.up(0); g.asked(1, 7) },
		"filling": func(g *dlRig) { g.up(0); g.asked(1, 7); g.all(Taken{Transfer: g.transfer(1), Lease: 1}) },
		"first": func(g *dlRig) {
			g.up(0)
			g.asked(1, 7)
			g.all(Taken{Transfer: g.transfer(1), Lease: 1})
			g.all(LeaseReady{Transfer: g.transfer(1)})
		},
		"running": func(g *dlRig) { g.up(0); g.goOn(1, 7) },
		"growing": func(g *dlRig) {
			g.up(0)
			g.goOn(1, 7)
			g.step(StepDone{Transfer: g.transfer(1), OK: true})
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newDLRig(t, dlConfig(2, 1, 40))
			g.submit(7, 9)
			to(g)
			had := g.l.xfers[1]
			acts := g.step(ClientGone{Req: 1})
			require.Equal(t, spec.CauseClientGone, answer(g, acts).Cause)
			if had == nil {
				return
			}
			switch name {
			case "asking", "waiting", "taking", "filling":
				require.Equal(t, []spec.Drop{{Transfer: g.transfer(1), Cause: spec.CauseClientGone}}, drops(acts), "prefill waits for nothing")
			}
			ended := len(ordered[AbortLease](acts)) + len(ordered[ReleaseLease](acts))
			require.Equal(t, had.holds(), ended, "every rank that may hold something is told")
			g.all(LeaseFreed{Transfer: g.transfer(1)})
			g.step(FirstRead{Transfer: g.transfer(1), OK: true, Tokens: 7})
			acts = g.step(StepDone{Transfer: g.transfer(1), OK: true})
			require.Empty(t, only[Emit](acts))
			require.Empty(t, g.l.xfers)
			require.Zero(t, g.l.sides[0].active)
			require.Empty(t, g.step(ClientGone{Req: 1}))
		})
	}
}

// TestCaseB49: two loads fill the pool and each needs one page more. The younger comes back later; the oldest goes on.
func TestCaseB49_TwoNeedOneMorePage_TheYoungestIsPreempted(t *testing.T) {
	g := upDLRig(t, dlConfig(1, 1, 7))
	g.running(1, 7, 5)
	g.running(2, 7, 5)
	t1, t2 := g.transfer(1), g.transfer(2)
	g.step(StepDone{Transfer: t1, OK: true, Next: Token{ID: 61}})
	g.step(StepDone{Transfer: t2, OK: true, Next: Token{ID: 71}})
	acts := g.from(0, GrowNoRoom{Transfer: t1})
	require.Equal(t, []ReleaseLease{{Transfer: t2}}, ordered[ReleaseLease](acts), "never the oldest")
	require.Empty(t, only[Answer](acts))
	acts = g.from(0, LeaseFreed{Transfer: t2})
	require.Equal(t, t1, ordered[Grow](acts)[0].Transfer)
	require.Equal(t, g.transfer(3), asks(acts)[0].Transfer, "it comes back as a new transfer of its prompt")
	require.Len(t, asks(acts)[0].Prompt, 7)
	require.Empty(t, ordered[Take](g.asked(3, 7)), "who grows goes first")
	acts = g.from(0, Grown{Transfer: t1})
	require.Equal(t, uint32(8), only[RunStep](acts)[0].Pos)
	require.Equal(t, g.transfer(3), ordered[Take](acts)[0].Transfer)
	t3 := g.transfer(3)
	g.from(0, Taken{Transfer: t3, Lease: 3})
	g.from(0, LeaseReady{Transfer: t3})
	acts = g.step(FirstRead{Transfer: t3, OK: true, Tokens: 7, First: Token{ID: 999}})
	require.Empty(t, only[OpenStream](acts))
	require.Empty(t, only[Emit](acts), "not sent twice")
	require.Equal(t, int32(50), only[RunStep](acts)[0].Token, "forced, not sampled")
	acts = g.step(StepDone{Transfer: t3, OK: true, Next: Token{ID: 998}})
	require.Empty(t, only[Emit](acts))
	acts = append(acts, g.from(0, Grown{Transfer: t3})...)
	require.Equal(t, int32(71), only[RunStep](acts)[0].Token)
	acts = g.step(StepDone{Transfer: t3, OK: true, Next: Token{ID: 72}})
	require.Equal(t, int32(72), only[Emit](acts)[0].Token.ID)
}

// TestCaseB51: the first end is the one that the client sees, from any rank.
func TestCaseB51_ReasonOfAnyRank_IsTheClients(t *testing.T) {
	g := upDLRig(t, dlConfig(2, 1, 40))
	g.submit(7, 9)
	acts := g.from(0, PeerSaid{Peer: 1, Body: spec.AskFailed{Transfer: g.transfer(1), Cause: spec.CauseTooLong, Limit: 5, Detail: "5"}})
	a := answer(g, acts)
	require.Equal(t, spec.CauseTooLong, a.Cause)
	require.Equal(t, uint32(5), a.Limits.PrefillPool)
	require.Equal(t, "prefill pool", a.Limits.Limiting)
	require.Empty(t, only[Answer](g.asked2(1, 7)), "a late success")
	g.submit(7, 9)
	g.asked(2, 7)
	g.all(Taken{Transfer: g.transfer(2), Lease: 1})
	a = answer(g, g.from(1, LeaseFailed{Transfer: g.transfer(2), Cause: spec.CauseDeadline}))
	require.Equal(t, spec.CauseDeadline, a.Cause)
	require.Empty(t, only[ReadFirst](g.all(LeaseReady{Transfer: g.transfer(2)})))
}

func (g *dlRig) asked2(n uint64, tokens uint32) []Action {
	return g.from(0, PeerSaid{Peer: 1, Body: spec.Asked{Transfer: g.transfer(n), Tokens: tokens}})
}

func TestDecodeLeader_RankLost_FailsWhatHasAPartThereAndServesNoMore(t *testing.T) {
	g := upDLRig(t, dlConfig(2, 1, 40))
	g.running(1, 7, 9)
	g.submit(7, 9)
	acts := g.step(SideLost{Rank: 1})
	require.Len(t, only[Answer](acts), 2)
	g.from(0, LeaseFreed{Transfer: g.transfer(1)})
	g.step(StepDone{Transfer: g.transfer(1)})
	require.Empty(t, g.l.xfers)
	require.Equal(t, spec.CauseShutdown, answer(g, g.submit(7, 9)).Cause)
	require.Empty(t, g.from(1, LeaseReady{Transfer: g.transfer(1)}), "a last word")
}

func TestDecodeLeader_Drain_FinishesWhatRuns(t *testing.T) {
	c := dlConfig(1, 1, 40)
	c.MaxActive = 1
	g := upDLRig(t, c)
	g.running(1, 7, 2)
	g.submit(7, 2)
	require.Equal(t, spec.CauseShutdown, answer(g, g.step(Drain{})).Cause, "what only waited")
	require.Equal(t, spec.CauseShutdown, answer(g, g.submit(7, 2)).Cause)
	require.Equal(t, "length", answer(g, g.step(StepDone{Transfer: g.transfer(1), OK: true})).Finish)
	require.True(t, g.l.Status().Draining)
}

func TestDecodeLeader_RankEnding_LetsFillingEndAndStopsTheRest(t *testing.T) {
	g := upDLRig(t, dlConfig(1, 1, 40))
	g.running(1, 7, 2)
	g.submit(7, 2)
	acts := g.from(0, RankEnding{Cause: spec.CauseShutdown})
	require.Equal(t, RequestID(2), answer(g, acts).Req)
	require.Equal(t, RequestID(1), answer(g, g.from(0, RankEnding{Cause: spec.CauseInvariant})).Req, "a rank that stopped answers nothing more")
}

// A prefill side that comes back as another life is asked anew for what it had only admitted.
func TestDecodeLeader_PrefillRestarts_AsksAnew(t *testing.T) {
	g := upDLRig(t, dlConfig(1, 1, 40))
	g.submit(7, 2)
	g.submit(7, 2)
	g.asked(1, 7)
	g.from(0, PeerDown{Peer: 1})
	inc := worldInc('p', 0, 5)
	acts := g.from(0, PeerUp{Peer: 1, Layouts: worldLayouts(0, 1, 40), Identity: spec.Identity{Incarnation: inc, Size: 1, Side: []spec.Incarnation{inc}}})
	require.Len(t, asks(acts), 1, "the one that takes its pages now is told by its ranks")
	require.Equal(t, g.transfer(2), asks(acts)[0].Transfer)
	acts = g.from(0, NoPlan{Transfer: g.transfer(1), Cause: spec.CausePeerLost})
	require.Equal(t, g.transfer(3), asks(acts)[0].Transfer, "tried again")
}

func TestDecodeLeaderConfig_Validate(t *testing.T) {
	for name, change := range map[string]func(*DecodeLeaderConfig){
		"role":     func(c *DecodeLeaderConfig) { c.Identity.Role = spec.RolePrefill },
		"rank":     func(c *DecodeLeaderConfig) { c.Identity.Rank = 1 },
		"layouts":  func(c *DecodeLeaderConfig) { c.SideLayouts = c.SideLayouts[1:] },
		"no kv":    func(c *DecodeLeaderConfig) { c.SideLayouts[1] = c.SideLayouts[1][1:] },
		"window":   func(c *DecodeLeaderConfig) { c.Window = 0 },
		"sides":    func(c *DecodeLeaderConfig) { c.Prefill = nil },
		"empty":    func(c *DecodeLeaderConfig) { c.Prefill = [][]PeerID{{}} },
		"twice":    func(c *DecodeLeaderConfig) { c.Prefill = append(c.Prefill, c.Prefill[0]) },
		"bound":    func(c *DecodeLeaderConfig) { c.MaxQueue = -3 },
		"capacity": func(c *DecodeLeaderConfig) { c.Reserve[spec.Aux] = 40 },
	} {
		c := dlConfig(2, 1, 40)
		change(&c)
		_, err := NewDecodeLeader(c)
		require.ErrorIs(t, err, ErrConfig, name)
	}
	c := dlConfig(1, 1, 40)
	c.Reserve[spec.KV] = 3
	require.Equal(t, uint32(148), c.Capacity())
}
