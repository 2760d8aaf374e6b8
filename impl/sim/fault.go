package sim

import (
	"kvfence/impl/core"
	"kvfence/spec"
)

// Prefill and decode sides are killed, restarted at the same address with new incarnations, paused and resumed by slot.

// KillPrefill ends a prefill side's processes.
func (w *World) KillPrefill(slot int) {
	if p := w.prefill[slot]; p.up {
		w.note("kill p%d", slot)
		p.crash()
	}
}

// StartPrefill starts it again.
func (w *World) StartPrefill(slot int) {
	if p := w.prefill[slot]; !p.up {
		w.note("start p%d", slot)
		p.start()
	}
}

// KillDecode ends a decode side's processes; its open requests are lost with it.
func (w *World) KillDecode(slot int) {
	if d := w.decode[slot]; d.up {
		w.note("kill d%d", slot)
		d.crash()
	}
}

// StartDecode starts it again.
func (w *World) StartDecode(slot int) {
	if d := w.decode[slot]; !d.up {
		w.note("start d%d", slot)
		d.start()
	}
}

// PausePrefill and PauseDecode stop a side's processes, as SIGSTOP does; what its network card has goes on.
func (w *World) PausePrefill(slot int, paused bool) { w.prefill[slot].paused = paused }
func (w *World) PauseDecode(slot int, paused bool)  { w.decode[slot].paused = paused }

// KillPrefillRank ends one process of a prefill side. The others hear of it (SideLost); the side is restarted whole or not at all.
func (w *World) KillPrefillRank(slot, rank int) {
	p := w.prefill[slot]
	if !p.up || p.ranks[rank].host.dead {
		return
	}
	w.note("kill p%d.%d", slot, rank)
	p.ranks[rank].host.dead = true
	p.ranks[rank].crash()
	hosts := make([]*host, len(p.ranks))
	for i, r := range p.ranks {
		hosts[i] = r.host
	}
	p.tellLost(p.lead, hosts, rank)
}

// KillDecodeRank ends one process of a decode side; with rank 0 its leader and its requests.
func (w *World) KillDecodeRank(slot, rank int) {
	d := w.decode[slot]
	if !d.up || d.ranks[rank].host.dead {
		return
	}
	w.note("kill d%d.%d", slot, rank)
	d.ranks[rank].host.dead = true
	d.ranks[rank].crash()
	hosts := make([]*host, len(d.ranks))
	for i, r := range d.ranks {
		hosts[i] = r.host
	}
	d.tellLost(d.lead, hosts, rank)
	if rank == 0 {
		d.lose()
	}
}

// tellLost reports a dead rank to the leader, or a dead leader to the ranks that are left.
func (s *side) tellLost(lead *host, ranks []*host, rank int) {
	if rank != 0 {
		s.later(lead, core.SideLost{Rank: spec.Rank(rank)})
		return
	}
	lead.dead = true
	for _, h := range ranks[1:] {
		s.later(h, core.SideLost{Rank: 0})
	}
}

// whole reports a side of which no process has died alone.
func (s *side) whole() bool {
	for _, h := range s.hosts {
		if h.dead {
			return false
		}
	}
	return true
}
