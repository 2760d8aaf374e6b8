package sim

import (
	"kvfence/impl/core"
	tracing "kvfence/impl/trace"
	"kvfence/model/follow"
	"kvfence/spec"
)

// The steps of the machines as lines of a trace, for whoever listens: a file, or a follower of the specification.

// Following is a change that holds a run to the specification (oracle Followed), after another change; nil: none. It costs some time.
func Following(change func(*Config)) func(*Config) {
	return func(c *Config) {
		if change != nil {
			change(c)
		}
		f := follow.New(true)
		c.Line = func(l *spec.TraceLine) error { return f.Step(l) }
	}
}

// introduce gives a machine's first line.
func (w *World) introduce(h *host, kind spec.TraceMachine, id spec.Identity, layouts []spec.Layout, peers ...core.PeerConfig) {
	if w.cfg.Line == nil {
		return
	}
	h.lines = tracing.NewMachine(id.Incarnation, kind)
	s := tracing.StartOf(id, layouts)
	for _, p := range peers {
		s.Peers = append(s.Peers, spec.TracePeer{Peer: uint32(p.ID), Pull: p.Pull})
	}
	l := h.lines.Start(w.now, s)
	w.listen(&l)
}

// line gives one step.
func (w *World) line(h *host, ev core.Event, acts []core.Action) {
	if h.lines == nil {
		return
	}
	if l, any := h.lines.Step(w.now, ev, acts); any {
		w.listen(&l)
	}
}

func (w *World) listen(l *spec.TraceLine) {
	if err := w.cfg.Line(l); err != nil {
		w.violate(Followed, "%v", err)
	}
}
