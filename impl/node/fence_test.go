package node

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/impl/config"
	"kvfence/impl/core"
	"kvfence/impl/transport"
	"kvfence/spec"
)

// fenceSpy keeps a machine from hearing of fences of one peer and counts them.
type fenceSpy struct {
	machine
	peer core.PeerID
	done chan spec.Epoch
}

func (s *fenceSpy) Step(now core.Time, ev core.Event) ([]core.Action, error) {
	if f, is := ev.(core.FenceDone); is && f.Peer == s.peer {
		s.done <- f.Old
		return nil, nil
	}
	return s.machine.Step(now, ev)
}

// quietTarget is a data path whose fence takes until the test says that it is over.
type quietTarget struct{}

func (quietTarget) Fence() {}

// Neither side says that a fence is done before every path that it covers has ended, push and pull.
func TestFenceDone_PathsStand_IsSaidWhenTheLastHasEnded(t *testing.T) {
	const stranger = core.PeerID(1 << 20)
	prefill := startNode(t, small(t, config.RolePrefill, nil)).prefill
	r := prefill.ranks[0]
	spy := &fenceSpy{machine: r.host.m, peer: stranger, done: make(chan spec.Epoch, 9)}
	var push *end[sourcePath]
	var pull *end[*exportPath]
	l := &sourceLink{}
	require.True(t, prefill.loop.call(func() {
		r.host.m, r.links[stranger] = spy, l
		l.push.fence, l.pull.fence = func(sourcePath) {}, func(*exportPath) {}
		push, pull = l.push.open(5, func() {}), l.pull.open(4, func() {})
		require.Empty(t, l.push.opened(push, sourcePath{}, nil))
		require.Empty(t, l.pull.opened(pull, nil, nil))
		r.fence(core.Fence{Peer: stranger, Old: 5, New: 6})
	}))
	ends := []func(){func() { l.push.over(push) }, func() { l.pull.over(pull) }}
	for _, over := range ends {
		require.True(t, prefill.loop.call(func() {}))
		require.Empty(t, spy.done)
		require.True(t, prefill.loop.call(over))
	}
	require.True(t, prefill.loop.call(func() {}))
	require.Equal(t, spec.Epoch(5), <-spy.done)
	require.True(t, prefill.loop.call(func() { delete(r.links, stranger) }))

	p := startPair(t, nil)
	d := p.decode.decode
	q := d.ranks[0]
	spy = &fenceSpy{machine: q.host.m, peer: stranger, done: make(chan spec.Epoch, 9)}
	var target *end[transport.Target]
	m := &targetLink{grants: transport.NewGrants(q.mem)}
	require.True(t, d.loop.call(func() {
		q.host.m, q.links[stranger] = spy, m
		m.push.fence, m.pull.fence = func(t transport.Target) { t.Fence() }, func(readerPath) {}
		target = m.push.open(5, func() {})
		require.Empty(t, m.push.opened(target, quietTarget{}, nil))
		q.fence(core.Fence{Peer: stranger, Old: 5, New: 6})
	}))
	require.True(t, d.loop.call(func() {}))
	require.Empty(t, spy.done)
	require.True(t, d.loop.call(func() { m.push.over(target) }))
	require.Equal(t, spec.Epoch(5), <-spy.done)
	require.True(t, d.loop.call(func() { delete(q.links, stranger) }))
}
