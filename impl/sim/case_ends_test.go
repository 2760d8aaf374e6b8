package sim

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/impl/core"
	"kvfence/impl/transport/mem"
	"kvfence/spec"
)

func TestCaseB36_GrantForAnOldRegistration_IsNeverUsedOnTheNewOne(t *testing.T) {
	pages := uint32(16)
	s := newScene(t, Config{PrefillRank: func(c *core.PrefillRankConfig) { c.SideLayouts[0][0].Shape.Pages = pages }})
	hold := true
	s.HoldMsg = func(toPrefill bool, env spec.Envelope) bool {
		_, grant := env.Body.(spec.Grant)
		return grant && hold
	}
	a := s.ask("x", 10, 2)
	s.pass(50e6)
	require.False(t, a.Done)
	pages = 24 // it registers anew, with another pool
	s.KillPrefill(0)
	s.StartPrefill(0)
	hold = false
	s.until(func() bool { return a.Done })
	require.False(t, a.OK())
	s.until(func() bool { return s.Clean() && s.Connected() })
	require.Equal(t, uint32(24), s.prefillPools().Free)
	s.works()
	s.until(s.Clean)
}

func TestCaseB37_FourthOfABatchFailsAtItsPost_EveryPieceEnds(t *testing.T) {
	s := newScene(t, Config{Chunk: 64})
	s.HoldOp = func(op mem.Op) bool { return op.Kind == mem.Write && op.Lease == 1 }
	a := s.ask("x", 20, 2) // five KV pages and two records
	var fourth mem.Op
	s.until(func() bool {
		for _, op := range s.fabric.Pending() {
			if op.Kind == mem.Write && op.Index == 3 {
				fourth = op
				return true
			}
		}
		return false
	})
	require.NoError(t, s.fabric.Step(fourth.Ref, mem.Fail))
	s.over()
	require.Equal(t, spec.CauseTransport, a.Cause)
	for _, op := range s.fabric.Pending() {
		require.NotEqual(t, mem.Write, op.Kind, "a piece is left waiting")
	}
	s.works()
}

func TestCaseB38_DifferentExpectations_AreRefusedAtTheHandshake(t *testing.T) {
	cases := map[string]Config{
		"prefill has no state pool": {PrefillRank: func(c *core.PrefillRankConfig) {
			c.SideLayouts = [][]spec.Layout{{c.SideLayouts[0][0], c.SideLayouts[0][2]}}
		}},
		"windows differ": {DecodeRank: func(c *core.DecodeRankConfig) { c.Window = 32 }, DecodeLeader: func(c *core.DecodeLeaderConfig) { c.Window = 32 }},
		"digests differ": {DecodeRank: func(c *core.DecodeRankConfig) { c.Digests = false }},
	}
	for name, cfg := range cases {
		t.Run(name, func(t *testing.T) {
			w := New(cfg)
			q := w.Ask(0, submit("x", 8, 2))
			require.NoError(t, w.RunUntil(func() bool { return q.Done }, 100_000))
			require.Equal(t, spec.CauseIncompatible, q.Cause)
			require.NotEmpty(t, q.Detail, "it names the field and both values")
			require.Less(t, w.Now(), core.Time(1e9), "at once")
			require.False(t, w.Connected())
		})
	}
}

func TestCaseB38_UnknownMessage_IsAnsweredAndTheLoopLives(t *testing.T) {
	s := newScene(t, Config{})
	c := s.conns[0]
	head := spec.Header{From: s.decode[0].incs[0], To: s.prefill[0].incs[0], Epoch: 1, Mark: 1}
	for _, body := range []spec.Message{spec.Complete{Lease: 3}, spec.Accept{}, spec.Gone{Lease: 9}, spec.Offer{}} {
		c.toP = append(c.toP, packet{at: s.Now(), env: spec.Envelope{Header: head, Body: body}})
	}
	s.pass(10e6)
	require.GreaterOrEqual(t, s.prefill[0].ranks[0].m.Status().Refused, uint64(4))
	s.works()
}

func TestCaseB41_ClientLeavesAtAnyPoint_PrefillComesBack(t *testing.T) {
	for _, pull := range []bool{false, true} {
		s := newScene(t, Config{Pull: pull})
		points := map[string]func(*Request) bool{
			"before the ask arrives": func(*Request) bool { return true },
			"asked, not granted":     func(*Request) bool { return s.prefill[0].l.Status().Admitted > 0 },
			"computing":              func(*Request) bool { return s.prefillPools().Held > 0 },
			"half moved": func(q *Request) bool {
				for _, op := range s.fabric.Pending() {
					if (op.Kind == mem.Write || op.Kind == mem.Job) && op.State >= mem.Half {
						return true
					}
				}
				return q.Done
			},
		}
		for _, name := range []string{"before the ask arrives", "asked, not granted", "computing", "half moved"} {
			for range 4 {
				q := s.ask("x", 18, 2)
				s.until(func() bool { return points[name](q) })
				s.Leave(q)
				left := s.Now()
				s.until(func() bool { return s.Answered() && s.prefillPools().Free == s.full[0] })
				require.Less(t, s.Now()-left, core.Time(100e6), "%s: within the abort's round trip", name)
			}
		}
		s.over()
	}
}

func TestCaseB42_HeldAfterAbortAndThePeerIsGone_ComeBackByAFence(t *testing.T) {
	s := newScene(t, Config{DecodePages: 8})
	for range 4 {
		lease := s.decode[0].ranks[0].m.Status().Next
		s.holdWrites(lease, mem.Launched)
		a := s.ask("x", 20, 2)
		s.until(func() bool { return s.write(lease, mem.Launched) != nil })
		s.Leave(a)
		s.pass(5e6)
		require.Positive(t, s.decodePools().Revoking)
		s.KillPrefill(0)
		s.until(func() bool { return s.decodePools().Free == 8 })
		s.StartPrefill(0)
		s.over()
		s.until(s.Connected)
	}
	s.works()
}

func TestCaseB42_AcknowledgementLost_ComesBackByRepeat(t *testing.T) {
	s := newScene(t, Config{DecodePages: 8})
	n := 0
	s.LoseMsg = func(toPrefill bool, env spec.Envelope) bool {
		switch env.Body.(type) {
		case spec.AbortAck, spec.Failed, spec.Complete:
			n++
			return n <= 2
		}
		return false
	}
	a := s.ask("x", 20, 2)
	s.until(func() bool { return s.write(1, mem.Queued) != nil })
	s.Leave(a)
	s.until(func() bool { return s.decodePools().Free == 8 })
	require.Greater(t, n, 2)
	require.Zero(t, s.decode[0].ranks[0].m.Status().Fences-1, "no fence was needed")
	s.over()
}

func TestCaseB44_AbortInEveryState_LeavesEveryPoolAsItWas(t *testing.T) {
	for _, pull := range []bool{false, true} {
		s := newScene(t, Config{Pull: pull, Prefill: []int{2}, Decode: []int{2}})
		for steps := 1; steps < 500; steps += 23 {
			q := s.ask("x", 14, 6)
			for i := 0; i < steps && !q.Done; i++ {
				s.Step()
			}
			s.Leave(q)
			s.over()
		}
	}
}

func TestCaseB46_PrefillFails_EveryDecodeRankLearnsItWithTheReason(t *testing.T) {
	s := newScene(t, Config{Decode: []int{2}})
	s.FailCompute = func(a core.Compute) string {
		if a.Last {
			return "the source of the last chunk is gone"
		}
		return ""
	}
	asked := s.Now()
	a := s.ask("x", 10, 2)
	s.until(func() bool { return a.Done })
	require.Equal(t, spec.CauseCompute, a.Cause)
	require.Contains(t, a.Detail, "the source of the last chunk is gone")
	require.Less(t, s.Now()-asked, core.Time(100e6))
	s.over()

	b := s.ask("x", 10, 2)
	var op *mem.Op
	s.until(func() bool {
		lease := s.decode[0].ranks[1].m.Status().Next - 1
		op = s.write(lease, mem.Queued)
		return op != nil && op.State == mem.Queued
	})
	require.NoError(t, s.fabric.Step(op.Ref, mem.Fail))
	failed := s.Now()
	s.until(func() bool { return b.Done })
	require.Equal(t, spec.CauseTransport, b.Cause, "%s", b.Detail)
	require.Less(t, s.Now()-failed, core.Time(1e9))
	s.over()
	s.works()
}

func TestCaseB48_NothingOrLittleToMove_Ends(t *testing.T) {
	for _, pull := range []bool{false, true} {
		s := newScene(t, Config{Pull: pull})
		for _, n := range []int{1, pageTokens - 1, pageTokens, pageTokens + 1, 2 * pageTokens} {
			q := s.ask("x", n, 1)
			s.until(func() bool { return q.Done })
			require.True(t, q.OK(), "%d tokens: %s %s", n, q.Cause, q.Detail)
			s.over()
		}
		q := s.ask("x", 0, 1)
		s.until(func() bool { return q.Done })
		require.Equal(t, spec.CauseInvalid, q.Cause)
		s.over()
	}
}

func TestCaseB49_TwoRequestsThatNeedOneMorePageEach_BothEnd(t *testing.T) {
	s := newScene(t, Config{DecodePages: 7, DecodeLeader: nil})
	a := s.ask("x", 15, 6) // 4 pages, then a fifth and sixth
	b := s.ask("y", 11, 6) // 3, then a fourth and fifth
	s.over()
	require.True(t, a.OK(), "%s %s", a.Cause, a.Detail)
	require.True(t, b.OK(), "%s %s", b.Cause, b.Detail)
}

func TestCaseB51_FirstCauseIsTheClients_FromAnyRank(t *testing.T) {
	s := newScene(t, Config{Decode: []int{2}})
	// Rank 1's link fails for its own reason; rank 0 only sees that the transfer is over.
	a := s.ask("x", 10, 2)
	var op *mem.Op
	s.until(func() bool {
		for _, o := range s.fabric.Pending() {
			if o.Kind == mem.Write && o.State == mem.Queued && o.Link.Decode == s.decode[0].incs[1] {
				op = &o
				return true
			}
		}
		return false
	})
	require.NoError(t, s.fabric.Step(op.Ref, mem.Fail))
	s.over()
	require.Equal(t, spec.CauseTransport, a.Cause, "not fenced, not aborted by peer: %s", a.Detail)

	// The deadline passes while the last chunk is on its way; its late success changes nothing.
	q := submit("x", 10, 2)
	q.TimeLeft = 500e6
	b := s.Ask(0, q)
	s.HoldOp = func(op mem.Op) bool { return op.Kind == mem.Write && op.State >= mem.Launched }
	s.until(func() bool { return b.Done })
	s.over()
	require.Equal(t, spec.CauseDeadline, b.Cause)
	require.Empty(t, b.Tokens)
}

func TestCaseB52_ReusedSlots_RaiseNoFalseAlarm(t *testing.T) {
	for _, pull := range []bool{false, true} {
		s := newScene(t, Config{Pull: pull, AuxPages: 2, DecodePages: 12, PrefillPages: 12})
		for i := range 500 {
			q := s.Ask(0, core.Submit{Tenant: "x", Prompt: prompt(1+i%9, i), MaxNew: 1})
			if i%3 == 0 {
				s.until(func() bool { return q.Done })
				require.True(t, q.OK(), "%s %s", q.Cause, q.Detail)
			}
		}
		s.over()
		require.Zero(t, s.alarms)
		for _, q := range s.requests {
			require.True(t, q.OK(), "%s", q.Cause)
		}
	}
}

func TestCaseB54_AnotherEngineAnswersAtTheAddress_IsSeenBeforeAnyKeyIsUsed(t *testing.T) {
	w := New(Config{DecodeRank: func(c *core.DecodeRankConfig) {
		for i := range c.Peers {
			c.Peers[i].Name = "another"
		}
	}})
	q := w.Ask(0, submit("x", 8, 2))
	require.NoError(t, w.RunUntil(func() bool { return q.Done }, 100_000))
	require.Equal(t, spec.CauseIncompatible, q.Cause)
	require.Contains(t, q.Detail, "name")
	for _, l := range w.decode[0].ranks[0].order {
		require.Empty(t, l.paths, "no data path was opened")
	}
}
