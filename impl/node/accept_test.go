package node

import (
	"net"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/impl/config"
)

// starved is a listener whose first accepts find no descriptor.
type starved struct {
	net.Listener
	left atomic.Int32
}

func (s *starved) Accept() (net.Conn, error) {
	if s.left.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: syscall.EMFILE}
	}
	return s.Listener.Accept()
}

// A node that is out of descriptors for a moment (connections to any of its ports do that) goes on to take links afterwards.
func TestControl_OutOfDescriptors_TakesLinksAgain(t *testing.T) {
	n := startNode(t, small(t, config.RolePrefill, nil))
	s := &starved{Listener: n.prefill.control}
	s.left.Store(3)
	side := emptyPrefillSide(n.cfg, testLog(t), n.prefill.epoch, nil, n.metrics, nil, nil)
	side.control, side.ranks = s, n.prefill.ranks
	over := make(chan struct{})
	go func() { defer close(over); side.acceptAll() }()
	require.Eventually(t, func() bool { return s.left.Load() < 0 }, patience, acceptWait/4)
	select {
	case <-over:
		require.Fail(t, "nobody takes connections any more")
	default:
	}
	require.NoError(t, s.Close())
	<-over
	side.cancel()
	side.compute.close()
	side.work.close()
}
