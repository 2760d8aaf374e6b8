package sim

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/impl/core"
	"kvfence/impl/transport/mem"
	"kvfence/spec"
)

// scene is a connected cluster for one public case; every step of it is under the oracle.
type scene struct {
	*World
	t    *testing.T
	full []uint32 // free pages when idle
}

func newScene(t *testing.T, cfg Config) *scene {
	if cfg.DecodeLeader == nil {
		cfg.DecodeLeader = func(c *core.DecodeLeaderConfig) { c.MaxRetries = -1 }
	}
	if *trace {
		cfg.Trace = func(line string) { t.Log(line) }
	}
	s := &scene{World: New(cfg), t: t}
	s.until(s.Connected)
	s.full = s.FreePages()
	return s
}

func (s *scene) until(done func() bool) {
	s.t.Helper()
	require.NoError(s.t, s.RunUntil(done, 100_000))
}

// pass lets time go by, whatever else happens.
func (s *scene) pass(d core.Duration) {
	s.t.Helper()
	end := s.Now() + core.Time(d)
	s.until(func() bool { return s.Now() >= end })
}

// over waits for every answer and for every page to be back, as many as at the start.
func (s *scene) over() {
	s.t.Helper()
	s.HoldOp, s.LoseMsg, s.HoldMsg, s.FailCompute = nil, nil, nil, nil
	s.release()
	s.until(func() bool { return s.Answered() && s.Clean() })
	require.Equal(s.t, s.full, s.FreePages())
}

// write finds a write of a lease in a state at least; nil if there is none.
func (s *scene) write(lease spec.LeaseID, st mem.State) *mem.Op {
	for _, op := range s.fabric.Pending() {
		if op.Kind == mem.Write && op.Lease == lease && op.State >= st {
			return &op
		}
	}
	return nil
}

// holdWrites keeps every write of a lease from going beyond a state.
func (s *scene) holdWrites(lease spec.LeaseID, st mem.State) {
	s.HoldOp = func(op mem.Op) bool { return op.Kind == mem.Write && op.Lease == lease && op.State >= st }
}

func (s *scene) decodePools() core.PoolStatus { return s.decode[0].ranks[0].m.Status().Pools[spec.KV] }

func (s *scene) prefillPools() core.PoolStatus {
	return s.prefill[0].ranks[0].m.Status().Pools[spec.KV]
}

func (s *scene) ask(tenant string, tokens, maxNew int) *Request {
	return s.Ask(0, submit(tenant, tokens, maxNew))
}

// works asks once more and wants a whole answer: the cluster is used again.
func (s *scene) works() {
	s.t.Helper()
	q := s.ask("after", 9, 3)
	s.until(func() bool { return q.Done })
	require.True(s.t, q.OK(), "%s: %s", q.Cause, q.Detail)
}

func TestCaseB01_AbortWhileAWriteIsOnItsWay_PagesStayUntilItHasStopped(t *testing.T) {
	for _, st := range []mem.State{mem.Launched, mem.Checked, mem.Half, mem.Copied} {
		s := newScene(t, Config{DecodePages: 12, DecodeRank: func(c *core.DecodeRankConfig) { c.AnswerBound = 3600e9 }})
		s.holdWrites(1, st)
		a := s.ask("x", 20, 4) // 6 of 12 pages
		s.until(func() bool { return s.write(1, st) != nil })
		s.pass(2_500e6)
		s.Leave(a)
		s.pass(10e6)
		require.Equal(t, uint32(6), s.decodePools().Revoking, "state %s", st)
		b := s.ask("y", 30, 2) // 8 pages: only with A's
		c := s.ask("y", 10, 2)
		s.pass(4_000e6)
		require.Equal(t, uint32(6), s.decodePools().Revoking)
		require.False(t, b.Done)
		s.over()
		require.True(t, b.OK() && c.OK(), "%s %s", b.Cause, c.Cause)
	}
}

func TestCaseB08_LostAcknowledgements_NeverFreeByTime(t *testing.T) {
	s := newScene(t, Config{Decode: []int{2}, Chunk: 4})
	lost := 0
	s.LoseMsg = func(toPrefill bool, env spec.Envelope) bool {
		switch env.Body.(type) {
		case spec.AbortAck, spec.Failed, spec.Complete:
			lost++
			return true
		}
		return false
	}
	a := s.ask("x", 16, 2)
	s.until(func() bool { return s.write(1, mem.Launched) != nil })
	s.holdWrites(1, mem.Half)
	s.until(func() bool { return s.write(1, mem.Half) != nil })
	s.Leave(a)
	s.pass(40e9) // the hold timer, the liveness time and every repeat
	held := uint32(0)
	for _, r := range s.decode[0].ranks {
		held += r.m.Status().Pools[spec.KV].Revoking
	}
	require.Positive(t, held, "a placer stands in the page: no time frees it")
	require.Greater(t, lost, 2, "each was asked for again")
	s.over()
	s.works()
}

func TestCaseB09_ForcedCloseWhileAWriteIsHalfWay_IsNotQuiet(t *testing.T) {
	s := newScene(t, Config{DecodePages: 8})
	s.holdWrites(1, mem.Half)
	a := s.ask("x", 16, 2)
	s.until(func() bool { return s.write(1, mem.Half) != nil })
	s.CutData(0, 0)
	s.pass(20e9)
	require.True(t, a.Done)
	require.False(t, a.OK())
	require.Positive(t, s.decodePools().Revoking, "the close has returned, the write has not")
	s.over()
	s.works()
}

func TestCaseB10_OneComponentFails_TheRequestFailsByName(t *testing.T) {
	s := newScene(t, Config{})
	a := s.ask("x", 10, 2)
	s.HoldOp = func(op mem.Op) bool { return op.Kind == mem.Write && op.Lease == 1 }
	state := func() *mem.Op {
		for _, op := range s.fabric.Pending() {
			if e := s.endsOf(op.Link); op.Kind == mem.Write && e.srcAlive() && e.src.writes[op.ID][op.Index].Component == spec.State {
				return &op
			}
		}
		return nil
	}
	s.until(func() bool { return state() != nil })
	require.NoError(t, s.fabric.Step(state().Ref, mem.Fail))
	s.over()
	require.Equal(t, spec.CauseTransport, a.Cause, "%s", a.Detail)
	require.Empty(t, a.Tokens)
	s.works()
}

func TestCaseB12_AuxiliaryRecord_HasOneWriterAndASlowOneHitsNobody(t *testing.T) {
	s := newScene(t, Config{Prefill: []int{2}, AuxPages: 1})
	writers := map[spec.Rank]bool{}
	aux := func() *mem.Op {
		for _, op := range s.fabric.Pending() {
			if e := s.endsOf(op.Link); op.Kind == mem.Write && e.srcAlive() && e.src.writes[op.ID][op.Index].Component == spec.Aux {
				writers[e.srcRank.rank] = true
				return &op
			}
		}
		return nil
	}
	s.HoldOp = func(op mem.Op) bool {
		x := aux()
		return x != nil && op.Ref == x.Ref && op.Lease == 1 && op.State >= mem.Launched
	}
	a := s.ask("x", 10, 2)
	s.until(func() bool { x := aux(); return x != nil && x.State == mem.Launched })
	s.pass(100e6)
	s.Leave(a)
	b := s.ask("y", 10, 2)
	s.pass(1e9)
	require.False(t, b.Done, "the one slot is the first request's until its record has landed or died")
	s.over()
	require.True(t, b.OK(), "%s", b.Cause)
	require.Equal(t, map[spec.Rank]bool{0: true}, writers)
}

func TestCaseB15_NoticeBeforeTheBytes_NeverStarts(t *testing.T) {
	s := newScene(t, Config{Channels: 1})
	s.HoldOp = func(op mem.Op) bool {
		return op.Kind == mem.Write && op.Lease == 1 && op.State >= mem.Launched && op.Index == 0
	}
	a := s.ask("x", 10, 2)
	notice := func() *mem.Op {
		for _, op := range s.fabric.Pending() {
			if op.Kind == mem.Notice && op.State == mem.Launched {
				return &op
			}
		}
		return nil
	}
	s.until(func() bool { return notice() != nil })
	s.pass(2e9)
	require.False(t, a.Done, "the sender's completion is not enough")
	require.NoError(t, s.fabric.Step(notice().Ref, mem.Overtake))
	s.HoldOp = nil
	hold := s.write(1, mem.Launched)
	s.HoldOp = func(op mem.Op) bool { return op.Ref == hold.Ref }
	// A fabric that breaks its order: the write is pending although its notice is in. The oracle would name it; decode must not read.
	s.lax = true
	s.until(func() bool { return a.Done })
	require.False(t, a.OK(), "verify sees a void tag")
	require.Equal(t, spec.CauseMismatch, a.Cause)
	require.Empty(t, a.Tokens)
	s.over()
}

func TestCaseB16_WriterDiesHalfWay_ThePageIsNeverReadable(t *testing.T) {
	s := newScene(t, Config{})
	s.holdWrites(1, mem.Half)
	a := s.ask("x", 10, 2)
	s.until(func() bool { return s.write(1, mem.Half) != nil })
	s.KillPrefill(0)
	s.pass(3e9)
	require.False(t, a.OK())
	s.StartPrefill(0)
	s.over()
	require.False(t, a.OK())
	require.Empty(t, a.Tokens)
	s.works()
}

func TestCaseB26_DeadlineIsNotQuiet(t *testing.T) {
	s := newScene(t, Config{DecodePages: 8})
	s.holdWrites(1, mem.Half)
	q := submit("x", 16, 2)
	q.TimeLeft = 1e9
	a := s.Ask(0, q)
	s.until(func() bool { return a.Done })
	require.Equal(t, spec.CauseDeadline, a.Cause)
	require.Positive(t, s.decodePools().Revoking)
	s.pass(60e9)
	require.Positive(t, s.decodePools().Revoking, "still running: resources kept")
	s.over()
	s.works()
}

func TestCaseB31_CompletionsInAnyOrder_FreeOnce(t *testing.T) {
	for seed := uint64(1); seed <= 40; seed++ {
		s := newScene(t, Config{Seed: seed, Decode: []int{2}, Chunk: 4, Net: NetFaults{Duplicate: 40, Reorder: 40}})
		a := s.ask("x", 18, 2)
		s.until(func() bool { return s.write(1, mem.Queued) != nil || a.Done })
		if op := s.write(1, mem.Launched); op != nil {
			require.NoError(t, s.fabric.Step(op.Ref, mem.Duplicate))
		}
		s.Leave(a)
		s.over()
	}
}

func TestCaseB34_RestartAtTheSameAddress_OldFailsOnceNewWorks(t *testing.T) {
	s := newScene(t, Config{})
	s.holdWrites(1, mem.Launched)
	a := s.ask("x", 10, 2)
	s.until(func() bool { return s.write(1, mem.Launched) != nil })
	died := s.Now()
	s.KillPrefill(0)
	s.StartPrefill(0)
	s.until(func() bool { return a.Done })
	require.False(t, a.OK())
	require.Less(t, s.Now()-died, core.Time(1e9), "within a second")
	s.over()
	s.works()

	s.KillDecode(0)
	b := s.ask("x", 10, 2)
	require.True(t, b.Lost)
	s.StartDecode(0)
	s.over()
	s.works()
}
