package node

import (
	"crypto/rand"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvfence/impl/config"
	"kvfence/spec"
)

// Decode incarnations come and go: those of which nothing is left are forgotten, refused ones and succeeded ones, and the one that is
// served stays.
func TestPeers_IncarnationsComeAndGo_TheTableDoesNotFill(t *testing.T) {
	p := startPair(t, nil)
	side := p.prefill.prefill
	known := func() (n int) {
		require.True(t, side.loop.call(func() {
			side.forgetPeers()
			n = len(side.peers)
		}))
		return n
	}
	for range 3 { // strangers that are refused for their version
		nc, err := net.Dial("tcp", p.prefill.Addresses().Control)
		require.NoError(t, err)
		_, err = greet(nc, 0, patience)
		require.NoError(t, err)
		var inc spec.Incarnation
		_, err = rand.Read(inc[:])
		require.NoError(t, err)
		b, err := spec.AppendEnvelope(nil, spec.Envelope{Header: spec.Header{From: inc}, Body: spec.Connect{Version: spec.Version + 1, Epoch: 1, Counter: 1,
			Identity: spec.Identity{Name: "x", Role: spec.RoleDecode, Incarnation: inc, Size: 1, Side: []spec.Incarnation{inc}}}})
		require.NoError(t, err)
		_, err = nc.Write(b)
		require.NoError(t, err)
		require.NoError(t, nc.SetReadDeadline(time.Now().Add(patience)))
		env, _, err := spec.ReadEnvelope(nc, nil)
		require.NoError(t, err)
		require.IsType(t, spec.Refuse{}, env.Body)
		require.NoError(t, nc.Close())
	}
	require.Equal(t, 4, int(side.named), "each was given a number")
	require.NoError(t, p.decode.Close())
	shape := p.decode.cfg
	p.startDecode(func(c *config.Config) { c.Transport = shape.Transport })
	require.Eventually(t, func() bool { return known() == 1 }, patience, 5*time.Millisecond)
	p.check(testRequest(30, 1, 5))
	require.Equal(t, 1, known())
}
