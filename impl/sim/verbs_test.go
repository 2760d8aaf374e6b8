package sim

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/impl/transport/mem"
	"kvfence/spec"
)

// overVerbs is a scene of one link over verbs, of two rails.
func overVerbs(t *testing.T, v mem.Verbs) *scene {
	v.On = true
	return newScene(t, Config{DecodePages: 6, Channels: 2, Verbs: v})
}

func (s *scene) path() *targetPath { return s.decode[0].ranks[0].order[0].paths[0] }

// first finds an operation; nil if there is none.
func (s *scene) first(fits func(*mem.Op) bool) *mem.Op {
	for _, op := range s.fabric.Pending() {
		if fits(&op) {
			return &op
		}
	}
	return nil
}

// fails runs until done, or an oracle has found something.
func (s *scene) fails(done func() bool) Oracle {
	return OracleOf(s.RunUntil(done, 100_000))
}

// held stops a write of lease 1 on a rail in a state, cuts the link, and keeps its queue pairs from coming to be in error as long as moved.
func (s *scene) held(rail uint32, st mem.State, moved bool) {
	var ref mem.OpRef
	s.HoldOp = func(op mem.Op) bool {
		return op.Kind == mem.Write && op.Channel == rail && op.State == st && (ref == 0 || op.Ref == ref) || moved && op.Kind == mem.Moved
	}
	s.ask("x", 20, 2)
	s.until(func() bool {
		op := s.first(func(op *mem.Op) bool { return op.Kind == mem.Write && op.Channel == rail && op.State == st })
		if op != nil {
			ref = op.Ref
		}
		return op != nil
	})
	s.CutData(0, 0)
}

// A write lands after its source was told that it failed, until the target's fence is back: nothing before that frees its page, and nothing after lands.
func TestVerbs_LocalError_LandsUntilTheFence(t *testing.T) {
	for _, windows := range []bool{false, true} {
		s := overVerbs(t, mem.Verbs{Windows: windows})
		s.held(1, mem.Launched, true)
		s.until(func() bool { // prefill has heard that its queue pair is in error, its batch is over
			return s.first(func(op *mem.Op) bool { return op.Kind == mem.Batch && op.Lease == 1 }) == nil
		})
		w := s.write(1, mem.Launched)
		require.NoError(t, s.fabric.Step(w.Ref, mem.Advance), "it is taken in all the same")
		require.NotNil(t, s.write(1, mem.Checked))
		require.False(t, s.path().fenced)
		s.pass(100e6)
		require.False(t, s.path().fenced, "the queue pair is not seen in error")
		s.HoldOp = nil
		s.until(func() bool { return s.path().fenced })
		s.over()
		s.works()
	}
}

// The fence waits for the query, on each rail for its own marker, and for the flush read; a fence that does not is found.
func TestVerbs_FenceLeavesOutAStep_IsFound(t *testing.T) {
	for name, c := range map[string]struct {
		bug   mem.Verbs
		state mem.State // of the write on the second rail
		moved bool      // the queue pairs are still on their way to error
	}{
		"query":      {mem.Verbs{NoQuery: true}, mem.Launched, true},
		"unseen":     {mem.Verbs{Unseen: true}, mem.Launched, true},
		"socket":     {mem.Verbs{SocketOnly: true}, mem.Launched, false},
		"marker":     {mem.Verbs{OneMarker: true}, mem.Checked, false},
		"flush read": {mem.Verbs{NoFlushRead: true}, mem.Half, false},
		"local":      {mem.Verbs{LocalError: true}, mem.Checked, false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, bug := range []mem.Verbs{c.bug, {}} {
				s := overVerbs(t, bug)
				s.held(1, c.state, c.moved)
				back := func() bool { return s.path().fenced }
				if bug == (mem.Verbs{}) {
					s.pass(200e6)
					require.Equal(t, c.moved || c.state > mem.Launched, !back(), "it waits")
					s.HoldOp = nil
					s.until(back)
					s.over()
					s.works()
					continue
				}
				if c.state == mem.Launched {
					s.until(back)
					moved := s.first(func(op *mem.Op) bool { return op.Kind == mem.Moved })
					require.Equal(t, c.moved, moved != nil)
					s.HoldOp = func(op mem.Op) bool { return op.Kind == mem.Moved }
				}
				require.Equal(t, I16, s.fails(func() bool { return s.Answered() && s.Clean() }))
			}
		})
	}
}

// launched finds a write of a lease on the first rail that is on its way.
func (s *scene) launched(lease spec.LeaseID) *mem.Op {
	return s.first(func(op *mem.Op) bool {
		return op.Kind == mem.Write && op.Lease == lease && op.State == mem.Launched && op.Channel == 0
	})
}

// rogue has a write of the lease of a request doubled, as a writer does that goes on after its receipt, and held before it is taken in.
func (s *scene) rogue(lease spec.LeaseID) (again mem.OpRef) {
	s.HoldOp = func(op mem.Op) bool { return op.Kind == mem.Write && op.Lease == lease && op.State == mem.Launched }
	q := s.ask("x", 20, 1)
	s.until(func() bool { return s.launched(lease) != nil })
	require.NoError(s.t, s.fabric.Step(s.launched(lease).Ref, mem.Duplicate))
	again = s.first(func(op *mem.Op) bool { return op.Again && op.Lease == lease }).Ref
	s.hold(again)
	s.until(func() bool { return q.Done })
	require.True(s.t, q.OK(), "%s", q.Detail)
	return again
}

func (s *scene) hold(refs ...mem.OpRef) {
	s.HoldOp = func(op mem.Op) bool {
		for _, r := range refs {
			if op.Ref == r {
				return true
			}
		}
		return false
	}
}

// A writer that goes on after its receipt is stopped by the window, at the cost of its link. Where windows stay it writes into another's page.
func TestVerbs_WriteAfterTheLease_IsStoppedByTheWindow(t *testing.T) {
	for _, bug := range []bool{false, true} {
		s := overVerbs(t, mem.Verbs{Windows: true, WindowsStay: bug})
		again := s.rogue(1)
		s.until(s.Clean)
		b := s.ask("y", 20, 2) // the same pages
		s.until(func() bool { return s.write(2, mem.Queued) != nil })
		require.NoError(t, s.fabric.Step(again, mem.Advance))
		s.HoldOp, s.stirred = nil, true
		if bug {
			require.Equal(t, I2, s.fails(func() bool { return b.Done }))
			continue
		}
		s.over()
		require.True(t, s.path().fenced, "it has cost the link")
		s.works()
	}
}

// A writer that goes on after its receipt changes nothing that has been verified: the rights of a lease are gone before its tags and bytes are looked at. Where they
// go afterwards, what was verified is written over while it is read.
func TestVerbs_WriteBehindTheVerification_IsStoppedByTheWindow(t *testing.T) {
	for _, bug := range []bool{false, true} {
		s := newScene(t, Config{DecodePages: 6, Channels: 2, Verbs: mem.Verbs{On: true, Windows: true}, Plant: Plant{VerifyFirst: bug}})
		s.HoldOp = func(op mem.Op) bool { return op.Kind == mem.Write && op.Lease == 1 && op.State == mem.Launched }
		q := s.ask("x", 20, 4)
		s.until(func() bool { return s.launched(1) != nil })
		require.NoError(t, s.fabric.Step(s.launched(1).Ref, mem.Duplicate))
		again := s.first(func(op *mem.Op) bool { return op.Again && op.Lease == 1 }).Ref
		s.HoldOp = func(op mem.Op) bool { return op.Ref == again || op.Kind == mem.Invalidate }
		s.until(func() bool { return q.Opened })
		require.False(t, q.Done)
		require.NoError(t, s.fabric.Step(again, mem.Advance))
		taken := s.first(func(op *mem.Op) bool { return op.Ref == again && op.State >= mem.Checked })
		require.Equal(t, bug, taken != nil, "it is being placed into a page that is read")
		if !bug {
			s.HoldOp, s.stirred = nil, true
			s.over()
			s.works()
		}
	}
}

// A flushed invalidate proves nothing: the queue pair is not in error yet, and what comes late is still let in.
func TestVerbs_FlushedInvalidate_FreesNothing(t *testing.T) {
	for _, bug := range []bool{false, true} {
		s := overVerbs(t, mem.Verbs{Windows: true, FlushedIsDone: bug})
		a := s.rogue(1)
		s.until(s.Clean)
		kept := s.HoldOp
		s.HoldOp = func(op mem.Op) bool {
			return kept(op) || op.Kind == mem.Invalidate || op.Kind == mem.Write && op.Lease == 2 && op.State == mem.Launched
		}
		q := s.ask("y", 20, 1)
		s.until(func() bool { return s.launched(2) != nil })
		require.NoError(t, s.fabric.Step(s.launched(2).Ref, mem.Duplicate))
		b := s.first(func(op *mem.Op) bool { return op.Again && op.Lease == 2 }).Ref
		s.HoldOp = func(op mem.Op) bool { return op.Ref == a || op.Ref == b || op.Kind == mem.Invalidate }
		require.True(t, s.Leave(q), "its lease is given up before it is verified")
		s.until(func() bool { return q.Gone && s.decodePools().Free == 6 })
		s.HoldOp = func(op mem.Op) bool {
			return op.Ref == b || op.Kind == mem.Moved || op.Kind == mem.TargetLost || op.Kind == mem.SourceLost
		}
		require.NoError(t, s.fabric.Step(a, mem.Advance), "lease 1 is over: the queue pair breaks")
		s.until(func() bool { return s.first(func(op *mem.Op) bool { return op.Kind == mem.Invalidate }) == nil })
		c := s.ask("z", 20, 1) // the same pages
		if bug {
			s.until(func() bool { return s.decodePools().Free < 6 })
			require.NoError(t, s.fabric.Step(b, mem.Advance))
			s.stirred = true
			require.Equal(t, I2, s.fails(func() bool { return c.Done }))
			continue
		}
		s.over()
		s.works()
	}
}
