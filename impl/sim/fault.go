package sim

import (
	"kvfence/impl/core"
	"kvfence/spec"
)

// Prefill and decode sides are killed, restarted at the same address with new incarnations, paused and resumed by slot.

// KillPrefill ends a prefill side's processes; false if there are none.
func (w *World) KillPrefill(slot int) bool {
	p := w.prefill[slot]
	if p.up {
		w.note("kill p%d", slot)
		p.crash()
		return true
	}
	return false
}

// StartPrefill starts it again.
func (w *World) StartPrefill(slot int) {
	if p := w.prefill[slot]; !p.up {
		w.note("start p%d", slot)
		w.count(Restart)
		p.start()
	}
}

// KillDecode ends a decode side's processes; its open requests are lost with it.
func (w *World) KillDecode(slot int) bool {
	d := w.decode[slot]
	if d.up {
		w.note("kill d%d", slot)
		d.crash()
		return true
	}
	return false
}

// StartDecode starts it again.
func (w *World) StartDecode(slot int) {
	if d := w.decode[slot]; !d.up {
		w.note("start d%d", slot)
		w.count(Restart)
		d.start()
	}
}

// PausePrefill and PauseDecode stop a side's processes, as SIGSTOP does; what its network card has goes on.
func (w *World) PausePrefill(slot int, paused bool) bool {
	w.prefill[slot].paused = paused
	return true
}

// PauseDecode is the same for a decode side.
func (w *World) PauseDecode(slot int, paused bool) bool {
	w.decode[slot].paused = paused
	return true
}

// KillPrefillRank ends one process of a prefill side. The others hear of it (SideLost); the side is restarted whole or not at all.
func (w *World) KillPrefillRank(slot, rank int) bool {
	p := w.prefill[slot]
	if !p.up || p.ranks[rank].host.dead {
		return false
	}
	w.note("kill p%d.%d", slot, rank)
	p.ranks[rank].host.dead = true
	p.ranks[rank].crash()
	hosts := make([]*host, len(p.ranks))
	for i, r := range p.ranks {
		hosts[i] = r.host
	}
	p.tellLost(p.lead, hosts, rank)
	return true
}

// KillDecodeRank ends one process of a decode side; with rank 0 its leader and its requests.
func (w *World) KillDecodeRank(slot, rank int) bool {
	d := w.decode[slot]
	if !d.up || d.ranks[rank].host.dead {
		return false
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
	return true
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

// drain asks a side's leader to finish what it has; some time later the side ends and is started anew.
func (s *side) drain(lead *host) bool {
	if !s.up || lead.dead {
		return false
	}
	s.later(lead, core.Drain{})
	s.endSoon(lead, 20_000_000_000)
	return true
}

// endSoon ends a side within most, if it lives, and starts it anew, as whoever supervises it does.
func (s *side) endSoon(h *host, most core.Duration) {
	w, life := s.w, s.life
	w.works = append(w.works, &work{at: w.now + core.Time(w.chance.delay(endTime, int64(most)/1000)*1000), always: true, host: h, life: life, run: func() {
		switch {
		case s.life != life:
		case s.role == spec.RolePrefill:
			w.KillPrefill(s.slot)
			w.StartPrefill(s.slot)
		default:
			w.KillDecode(s.slot)
			w.StartDecode(s.slot)
		}
	}})
}

// mend ends the faults that stand; of the sides that are down those start whose bit is set, prefill first.
func (w *World) mend(bits int) {
	for i := range w.prefill {
		w.PausePrefill(i, false)
		if bits>>i&1 == 1 {
			w.restartPrefill(i)
		}
	}
	for i := range w.decode {
		w.PauseDecode(i, false)
		if bits>>(i+len(w.prefill))&1 == 1 {
			w.restartDecode(i)
		}
	}
	clear(w.cuts)
	w.release()
}

// heal ends all faults: from here on delivery is fair.
func (w *World) heal() {
	w.cfg.Net = NetFaults{}
	w.mend(-1)
	for _, c := range w.conns {
		for i := range c.toP {
			c.toP[i].at = min(c.toP[i].at, w.now+1_000_000_000)
		}
		for i := range c.toD {
			c.toD[i].at = min(c.toD[i].at, w.now+1_000_000_000)
		}
	}
	for _, p := range w.prefill {
		p.failing = false
		for _, r := range p.ranks {
			r.badFence = false
		}
	}
	for _, d := range w.decode {
		d.failing = false
		for _, r := range d.ranks {
			r.badFence, r.badOpen = false, false
		}
	}
	w.healed = true
}

// restartPrefill starts a side that is down, and replaces one that is not whole.
func (w *World) restartPrefill(i int) {
	if !w.prefill[i].whole() {
		w.KillPrefill(i)
	}
	w.StartPrefill(i)
}

func (w *World) restartDecode(i int) {
	if !w.decode[i].whole() {
		w.KillDecode(i)
	}
	w.StartDecode(i)
}

// release lets go of everything that was held.
func (w *World) release() {
	for i := range w.fabric.Len() {
		if op := w.fabric.At(i); op.Held {
			_ = w.fabric.Hold(op.Ref, false)
		}
	}
}
