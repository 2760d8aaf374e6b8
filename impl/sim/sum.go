package sim

import (
	"fmt"

	"github.com/zeebo/xxh3"

	"kvfence/impl/core"
	"kvfence/spec"
)

// sum is a running hash of everything that happens in a run, in order. It is no check against people, only against chance.
type sum uint64

func (s *sum) add(x uint64) { *s = sum(mix((uint64(*s) + 0x9e3779b97f4a7c15) ^ x)) }

func (s *sum) text(t string) { s.add(xxh3.HashString(t)) }

// What is hashed begins with one of these.
const (
	sumDid = iota + 1
	sumCount
	sumSend
	sumFabric
	sumTime
	sumNote
	sumWork
	sumArrive
	sumDial
)

// note hashes one thing that happened, and traces it. For what happens seldom.
func (w *World) note(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	w.sum.add(sumNote)
	w.sum.add(uint64(w.now))
	w.sum.text(line)
	w.trace(line)
}

func (w *World) trace(line string) {
	if w.cfg.Trace != nil {
		w.cfg.Trace(fmt.Sprintf("%10.6f %s", float64(w.now)/1e9, line))
	}
}

// noteDid hashes what a machine says that it did.
func (w *World) noteDid(h *host, x core.Did) {
	w.sum.add(sumDid)
	w.sum.add(h.id)
	w.sum.text(x.Name)
	w.sum.add(x.Transfer.Counter)
	w.sum.add(uint64(x.Lease)<<16 ^ uint64(x.Peer))
	if x.Detail != "" {
		w.sum.text(x.Detail)
	}
	if w.cfg.Trace != nil {
		w.trace(fmt.Sprintf("%s %s %s lease %d peer %d %s", h.name, x.Name, x.Transfer, x.Lease, x.Peer, x.Detail))
	}
}

// noteCount hashes what a machine refuses.
func (w *World) noteCount(h *host, x core.Count) {
	w.sum.add(sumCount)
	w.sum.add(h.id)
	w.sum.text(string(x.Refusal))
	w.sum.add(uint64(x.About)<<32 ^ uint64(x.Peer))
	if w.cfg.Trace != nil {
		w.trace(fmt.Sprintf("%s refuses %d of peer %d: %s %s", h.name, x.About, x.Peer, x.Refusal, x.Detail))
	}
}

// noteSend hashes a message.
func (w *World) noteSend(h *host, peer core.PeerID, env spec.Envelope) {
	w.sum.add(sumSend)
	w.sum.add(h.id)
	w.sum.add(uint64(env.Body.Kind())<<32 ^ uint64(peer))
	w.sum.add(uint64(env.Epoch)<<32 ^ uint64(env.Mark))
	if w.cfg.Trace != nil {
		w.trace(fmt.Sprintf("%s says %T to %d", h.name, env.Body, peer))
	}
}
