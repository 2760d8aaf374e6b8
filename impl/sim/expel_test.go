package sim

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/impl/core"
	"kvfence/impl/transport/mem"
)

// A write that is doubled behind the notice, and passes its check before the first one does, stands before no notice. Its pages come free by the receipt; before they
// are handed out again the driver sees that it has come to its end. Without that the oracle finds it.
func TestExpel_DoubledWriteBetweenCheckAndTag_EndsBeforeItsPageIsHandedOut(t *testing.T) {
	for _, without := range []bool{false, true} {
		s := newScene(t, Config{DecodePages: 6, Channels: 1, Plant: Plant{NoExpel: without}, DecodeLeader: func(c *core.DecodeLeaderConfig) { c.MaxRetries = -1 }})
		s.holdWrites(1, mem.Launched)
		a := s.ask("x", 20, 1)
		s.until(func() bool {
			for _, op := range s.fabric.Pending() {
				if op.Kind == mem.Notice && op.State == mem.Launched {
					return true
				}
			}
			return false
		})
		first := s.write(1, mem.Launched)
		require.NoError(t, s.fabric.Step(first.Ref, mem.Duplicate))
		var again mem.OpRef
		for _, op := range s.fabric.Pending() {
			if op.Again {
				again = op.Ref
			}
		}
		require.NoError(t, s.fabric.Step(again, mem.Advance), "it passes its check first")
		s.HoldOp = func(op mem.Op) bool { return op.Ref == again }
		s.Leave(a)
		s.until(func() bool { return s.decodePools().Free == 6 })
		b := s.ask("y", 20, 1)
		err := s.RunUntil(func() bool { return b.Done }, 100_000)
		if without {
			require.Equal(t, I2, OracleOf(err), "%v", err)
			continue
		}
		require.NoError(t, err)
		s.over()
		s.works()
	}
}
