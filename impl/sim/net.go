package sim

import (
	"fmt"

	"kvfence/impl/core"
	"kvfence/spec"
)

// conn is one control connection, dialed by a decode rank. Its ends close apart.
type conn struct {
	id      core.ConnID
	d       *decodeRank
	p       *prefillRank
	dLife   int
	pLife   int
	dPeer   core.PeerID // decode's number for the prefill rank
	pPeer   core.PeerID // prefill's number for the decode incarnation; 0 before its Connect
	toP     []packet
	toD     []packet
	dClosed bool
	pClosed bool
}

// packet is one message under way, or the end of the stream.
type packet struct {
	at  core.Time
	env spec.Envelope
	eof bool
}

func (c *conn) dUp() bool {
	return c.d.side.up && c.d.side.life == c.dLife && !c.d.host.dead && !c.dClosed
}
func (c *conn) pUp() bool {
	return c.p.side.up && c.p.side.life == c.pLife && !c.p.host.dead && !c.pClosed
}

// transmit puts a message on its way. Faults lose, double or delay it; the end of a stream is never lost.
func (w *World) transmit(q *[]packet, toPrefill bool, env spec.Envelope) {
	n := 1
	switch f := w.cfg.Net; {
	case w.LoseMsg != nil && w.LoseMsg(toPrefill, env):
		n = 0
	case w.rng.IntN(100) < f.Drop:
		n = 0
	case w.rng.IntN(100) < f.Duplicate:
		n = 2
	}
	for range n {
		*q = append(*q, packet{at: w.now + core.Time(w.rng.Int64N(200_000)), env: env})
	}
}

// packets adds what can arrive now. Without reordering only the head of a stream can.
func (w *World) packets(run []func(), soon func(core.Time)) []func() {
	kept := w.conns[:0]
	for _, c := range w.conns {
		if !c.dUp() && !c.pUp() {
			continue
		}
		kept = append(kept, c)
		cut := w.cuts[[2]int{c.p.side.slot, c.d.side.slot}]
		run = w.arrivals(run, soon, c, &c.toP, true, c.pUp() && !c.p.side.paused && !cut, c.atPrefill)
		run = w.arrivals(run, soon, c, &c.toD, false, c.dUp() && !c.d.side.paused && !cut, c.atDecode)
	}
	w.conns = kept
	return run
}

func (w *World) arrivals(run []func(), soon func(core.Time), c *conn, q *[]packet, toPrefill, open bool, take func(packet)) []func() {
	if !open || len(*q) == 0 {
		return run
	}
	n, ahead := 1, 0 // ahead: packets that were passed over because a scenario holds them
	if w.cfg.Net.Reorder > 0 {
		n = 3
	}
	for i := 0; i < len(*q) && i < n+ahead; i++ {
		p := (*q)[i]
		switch {
		case !p.eof && w.HoldMsg != nil && w.HoldMsg(toPrefill, p.env):
			ahead++
		case i > ahead && (p.eof || w.rng.IntN(100) >= w.cfg.Net.Reorder):
		case p.at > w.now:
			soon(p.at)
		default:
			run = append(run, func() {
				*q = append((*q)[:i:i], (*q)[i+1:]...)
				take(p)
			})
		}
	}
	return run
}

// atPrefill delivers a packet to the prefill end.
func (c *conn) atPrefill(p packet) {
	r := c.p
	if p.eof {
		c.pClosed = true
		r.side.later(r.host, core.ConnLost{Peer: c.pPeer, Conn: c.id})
		return
	}
	if m, ok := p.env.Body.(spec.Connect); ok && c.pPeer == 0 {
		c.pPeer = r.peerOf(m.Identity.Incarnation)
		var key [32]byte
		for i := range key {
			key[i] = byte(r.side.w.rng.Uint32())
		}
		r.side.later(r.host, core.ConnectIn{Peer: c.pPeer, Conn: c.id, Env: p.env, Key: key, DataAddress: fmt.Sprintf("p%d.%d", r.side.slot, r.rank)})
		return
	}
	if c.pPeer != 0 {
		r.side.later(r.host, core.Recv{Peer: c.pPeer, Conn: c.id, Env: p.env})
	}
}

// atDecode delivers a packet to the decode end.
func (c *conn) atDecode(p packet) {
	if p.eof {
		c.dClosed = true
		c.d.lost(c)
		return
	}
	c.d.side.later(c.d.host, core.Recv{Peer: c.dPeer, Conn: c.id, Env: p.env})
}

// closeAtPrefill ends the prefill end of a connection: what was sent before still arrives.
func (c *conn) closeAtPrefill() {
	if c.pClosed {
		return
	}
	c.pClosed = true
	c.toP = nil
	c.toD = append(c.toD, packet{at: c.p.side.w.now, eof: true})
	c.p.side.later(c.p.host, core.ConnLost{Peer: c.pPeer, Conn: c.id})
}

func (c *conn) closeAtDecode() {
	if c.dClosed {
		return
	}
	c.dClosed = true
	c.toD = nil
	c.toP = append(c.toP, packet{at: c.d.side.w.now, eof: true})
	c.d.lost(c)
}

func (w *World) conn(id core.ConnID) *conn {
	for _, c := range w.conns {
		if c.id == id {
			return c
		}
	}
	return nil
}

// drop ends a connection because one of its processes died: the other end hears of it.
func (c *conn) drop(prefillDied bool) {
	if prefillDied {
		c.pClosed = true
		c.toP, c.toD = nil, append(c.toD, packet{at: c.d.side.w.now, eof: true})
		return
	}
	c.dClosed = true
	c.toD, c.toP = nil, append(c.toP, packet{at: c.d.side.w.now, eof: true})
}

// Cut parts a prefill side from a decode side; Heal joins them again. Connections stand, nothing crosses.
func (w *World) Cut(prefill, decode int)  { w.cuts[[2]int{prefill, decode}] = true }
func (w *World) Heal(prefill, decode int) { delete(w.cuts, [2]int{prefill, decode}) }

// CutData breaks every open data path between two sides: both ends hear of it. What is under way stays under way.
func (w *World) CutData(prefill, decode int) {
	for _, r := range w.decode[decode].ranks {
		for _, l := range r.order {
			for _, t := range l.paths {
				if w.slotOf(t.info.Prefill) != prefill {
					continue
				}
				if w.cfg.Pull {
					w.fabric.CutPull(t.info)
				} else {
					w.fabric.CutPush(t.info)
				}
			}
		}
	}
}
