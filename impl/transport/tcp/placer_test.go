package tcp

import (
	"math/rand"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/spec"
)

// A placer that has passed its check stands, as one does whose goroutine is not scheduled: Fenced is not called before it has ended.
func TestFence_PlacerStands_FencedWaitsForIt(t *testing.T) {
	h := newHalfWay(t, rand.New(rand.NewSource(4)), Options{})
	defer func() { _ = h.forge.Close() }()
	f, err := parseFrame(h.second)
	require.NoError(t, err)
	var es [maxEntries]entry
	require.NoError(t, parseEntries(f, h.second[frameBytes:], es[:]))
	e := es[0]
	p, why := h.grants.Begin(7, f.lease, e.c, e.part, e.index, e.dst, e.bytes)
	require.Equal(t, spec.Refusal(""), why)
	h.grants.Raise(8)
	h.target.Fence()
	for range 2000 {
		runtime.Gosched()
		select {
		case <-h.sink.done:
			require.Fail(t, "Fenced while a placer stands")
		default:
		}
	}
	h.grants.End(p, false, 0)
	<-h.sink.done
}
