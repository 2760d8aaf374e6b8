package node

import (
	"kvfence/impl/core"
	"kvfence/impl/trace"
	"kvfence/spec"
)

// introduce writes the first line of a machine; what it does from then on is traced by the loop's step. Before the loop runs.
func (l *loop) introduce(h *host, kind spec.TraceMachine, id spec.Identity, layouts []spec.Layout, peers ...core.PeerConfig) {
	if l.trace == nil {
		return
	}
	h.trace = trace.NewMachine(id.Incarnation, kind)
	s := trace.StartOf(id, layouts)
	for _, p := range peers {
		s.Peers = append(s.Peers, spec.TracePeer{Peer: uint32(p.ID), Pull: p.Pull})
	}
	l.trace.Write(h.trace.Start(l.now(), s))
}

// tracePoint writes one step of a machine; before its actions are carried out, so that no answer to them stands before it.
func (l *loop) tracePoint(h *host, now core.Time, ev core.Event, actions []core.Action) {
	if h.trace == nil {
		return
	}
	if line, any := h.trace.Step(now, ev, actions); any {
		l.trace.Write(line)
	}
}
