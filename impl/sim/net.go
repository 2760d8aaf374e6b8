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
	at    core.Time
	env   spec.Envelope
	eof   bool
	loose bool // may overtake
}

func (c *conn) dUp() bool {
	return c.d.side.up && c.d.side.life == c.dLife && !c.d.host.dead && !c.dClosed
}
func (c *conn) pUp() bool {
	return c.p.side.up && c.p.side.life == c.pLife && !c.p.host.dead && !c.pClosed
}

// transmit puts a message on its way. Faults lose, double or delay it; the end of a stream is never lost.
func (w *World) transmit(c *conn, toPrefill bool, env spec.Envelope) {
	q := &c.toD
	if toPrefill {
		q = &c.toP
	}
	w.remember(c, toPrefill, env)
	n, f := 1, w.cfg.Net
	switch v := int64(0); {
	case w.LoseMsg != nil && w.LoseMsg(toPrefill, env):
		n = 0
	case f.Drop+f.Duplicate == 0:
	default:
		if v = w.chance.pick(lossOf, 100); v >= int64(100-f.Drop) {
			n = 0
			w.count(MessageLost)
		} else if v >= int64(100-f.Drop-f.Duplicate) {
			n = 2
			w.count(MessageDoubled)
		}
	}
	for range n {
		*q = append(*q, packet{at: w.now + core.Time(w.chance.delay(packetTime, 200_000)), env: env, loose: w.chance.percent(looseOf, f.Reorder)})
	}
}

// packets adds what can arrive now: the head of a stream, and what may overtake it.
func (w *World) packets() {
	kept := w.conns[:0]
	for _, c := range w.conns {
		d, p := c.dUp(), c.pUp()
		if !d && !p {
			continue
		}
		kept = append(kept, c)
		if len(c.toP)+len(c.toD) == 0 || len(w.cuts) > 0 && w.cuts[[2]int{c.p.side.slot, c.d.side.slot}] {
			continue
		}
		if p && !c.p.side.paused {
			w.arrivals(c, c.toP, true)
		}
		if d && !c.d.side.paused {
			w.arrivals(c, c.toD, false)
		}
	}
	clear(w.conns[len(kept):])
	w.conns = kept
}

func (w *World) arrivals(c *conn, q []packet, toPrefill bool) {
	n, ahead := 3, 0 // ahead: packets that were passed over because a scenario holds them
	for i := 0; i < len(q) && i < n+ahead; i++ {
		p := &q[i]
		switch {
		case !p.eof && w.HoldMsg != nil && w.HoldMsg(toPrefill, p.env):
			ahead++
		case i > ahead && (p.eof || !p.loose):
		case p.at <= w.now:
			w.run = append(w.run, choice{conn: c, toPrefill: toPrefill, at: i})
		}
	}
}

// soonest tells when a packet that could arrive but for the time can.
func (c *conn) soonest(soon func(core.Time)) {
	w := c.d.side.w
	if len(w.cuts) > 0 && w.cuts[[2]int{c.p.side.slot, c.d.side.slot}] {
		return
	}
	each := func(q []packet, toPrefill bool) {
		for i := range q {
			if q[i].eof || w.HoldMsg == nil || !w.HoldMsg(toPrefill, q[i].env) {
				soon(q[i].at)
			}
		}
	}
	if c.pUp() && !c.p.side.paused {
		each(c.toP, true)
	}
	if c.dUp() && !c.d.side.paused {
		each(c.toD, false)
	}
}

// arrive delivers the packet in a place of a queue.
func (c *conn) arrive(toPrefill bool, at int) {
	q, take := &c.toD, c.atDecode
	if toPrefill {
		q, take = &c.toP, c.atPrefill
	}
	if at > 0 {
		c.d.side.w.count(MessageReordered)
	}
	p := (*q)[at]
	*q = append((*q)[:at], (*q)[at+1:]...)
	take(p)
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
			key[i] = byte(r.side.w.noise.Uint32())
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

// CutData breaks every open data path between two sides, false if there is none: both ends hear of it. What is under way stays under way.
func (w *World) CutData(prefill, decode int) (any bool) {
	for _, r := range w.decode[decode].ranks {
		for _, l := range r.order {
			for _, t := range l.paths {
				if t.fenced || w.slotOf(t.info.Prefill) != prefill {
					continue
				}
				any = true
				if w.cfg.Pull {
					w.fabric.CutPull(t.info)
				} else {
					w.fabric.CutPush(t.info)
				}
			}
		}
	}
	return any
}

// said is a message that was sent, between whom: it may come again.
type said struct {
	d, dRank, p, pRank int
	toPrefill          bool
	env                spec.Envelope
}

// remembered is how many messages a run can repeat; every fifth is kept.
const remembered = 64

func (w *World) remember(c *conn, toPrefill bool, env spec.Envelope) {
	if w.pastNext++; w.pastNext%5 != 0 {
		return
	}
	s := said{c.d.side.slot, int(c.d.rank), c.p.side.slot, int(c.p.rank), toPrefill, env}
	if len(w.past) < remembered {
		w.past = append(w.past, s)
		return
	}
	w.past[w.pastNext/5%remembered] = s
}

// applyNet does what happens to messages, connections and paths.
func (w *World) applyNet(a Act) bool {
	switch a.Do {
	case Cut:
		if w.cuts[[2]int{a.P, a.D}] {
			return false
		}
		w.Cut(a.P, a.D)
	case DataCut:
		return w.CutData(a.P, a.D)
	case MessageReplayed:
		return len(w.past) > 0 && w.replay(w.past[round(a.Nth, len(w.past))])
	case MessageHeld:
		if len(w.conns) == 0 {
			return false
		}
		c := w.conns[round(a.Nth, len(w.conns))]
		q := c.toD
		if a.Rank%2 == 0 {
			q = c.toP
		}
		if len(q) == 0 || q[0].eof {
			return false
		}
		q[0].at = w.now + core.Time(a.N)*1_000_000_000
	case HalfOpen:
		if len(w.conns) == 0 {
			return false
		}
		return w.conns[round(a.Nth, len(w.conns))].halfOpen(a.Rank%2 == 0)
	}
	return true
}

// replay puts an old message on the connection that there is now between the same places.
func (w *World) replay(s said) bool {
	for _, c := range w.conns {
		if c.d.side.slot != s.d || int(c.d.rank) != s.dRank || c.p.side.slot != s.p || int(c.p.rank) != s.pRank {
			continue
		}
		if q := &c.toP; s.toPrefill && c.pUp() {
			*q = append(*q, packet{at: w.now, env: s.env, loose: true})
			return true
		}
		if q := &c.toD; !s.toPrefill && c.dUp() {
			*q = append(*q, packet{at: w.now, env: s.env, loose: true})
			return true
		}
	}
	return false
}

// halfOpen ends one end of a connection; the other does not hear of it, and what it says is heard by nobody.
func (c *conn) halfOpen(atPrefill bool) bool {
	switch {
	case atPrefill && c.pUp():
		c.pClosed, c.toP = true, nil
		c.p.side.later(c.p.host, core.ConnLost{Peer: c.pPeer, Conn: c.id})
	case !atPrefill && c.dUp():
		c.dClosed, c.toD = true, nil
		c.d.lost(c)
	default:
		return false
	}
	return true
}
