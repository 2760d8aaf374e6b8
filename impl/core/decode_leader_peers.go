package core

import (
	"slices"

	"kvfence/spec"
)

// pside is one configured prefill side, as this side's ranks see it.
type pside struct {
	peers    []PeerID
	up       [][]bool          // by decode rank, then prefill rank
	ident    [][]spec.Identity // likewise
	layouts  [][]spec.Layout   // by prefill rank; as last seen
	whole    bool              // every rank has a link with every peer, and they are one side
	leader   spec.Incarnation  // of the side as last seen whole or in part; zero before
	capacity uint32            // tokens of the longest prompt that its pools hold; 0: not known yet
	refused  string            // why the last connect was refused; "" if it was not
	active   int               // transfers
	declines spec.Cause        // why this life of it takes nothing new (it drains, or has lost a rank); "" if it does
}

func newSide(peers []PeerID, ranks int) *pside {
	p := &pside{peers: peers, layouts: make([][]spec.Layout, len(peers))}
	for range ranks {
		p.up = append(p.up, make([]bool, len(peers)))
		p.ident = append(p.ident, make([]spec.Identity, len(peers)))
	}
	return p
}

// sideOf finds the side and rank of a peer.
func (l *DecodeLeader) sideOf(peer PeerID) (*pside, int) {
	for _, p := range l.sides {
		if at := slices.Index(p.peers, peer); at >= 0 {
			return p, at
		}
	}
	return nil, 0
}

func (l *DecodeLeader) peerUp(rank spec.Rank, m PeerUp) {
	p, at := l.sideOf(m.Peer)
	if p == nil {
		l.do(Count{Refusal: spec.RefuseOutOfRange, Peer: m.Peer, Detail: "link with a peer that is in no prefill side"})
		return
	}
	p.up[rank][at], p.ident[rank][at], p.layouts[at], p.refused = true, m.Identity, m.Layouts, ""
	if at == 0 && rank == 0 && p.leader != m.Identity.Incarnation {
		p.leader, p.declines = m.Identity.Incarnation, ""
		l.askAgain(p) // another life: it knows nothing of what the old one was asked
	}
	p.check()
	p.measure()
	l.short = false
	l.sweepPeers()
}

func (l *DecodeLeader) peerDown(rank spec.Rank, m PeerDown) {
	p, at := l.sideOf(m.Peer)
	if p == nil {
		return
	}
	was := p.whole
	p.up[rank][at] = false
	p.check()
	if was && !p.whole {
		l.downAt = l.now
		l.peerWait(l.now + Time(l.cfg.PeerBound))
	}
}

// peerRefused: what waits for this side alone fails at once, with the field that differs.
func (l *DecodeLeader) peerRefused(m PeerRefused) {
	p, _ := l.sideOf(m.Peer)
	if p == nil {
		return
	}
	p.refused = m.Detail
	for _, q := range l.allQueued() {
		l.refuseAtOnce(q)
	}
}

// refuseAtOnce fails a waiting request if every side that could serve it does not fit with this one.
func (l *DecodeLeader) refuseAtOnce(q *drequest) {
	why := ""
	for _, p := range l.sides {
		if p.refused == "" || p.whole {
			return
		}
		why = p.refused
	}
	l.failQueued(q, spec.CauseIncompatible, why)
}

// check finds whether a side is whole: every link is up, and all say the same list of incarnations.
func (p *pside) check() {
	p.whole = true
	for rank := range p.up {
		for at := range p.peers {
			id := p.ident[rank][at]
			if !p.up[rank][at] || len(id.Side) != len(p.peers) || int(id.Rank) != at || !slices.Equal(id.Side, p.ident[0][0].Side) {
				p.whole = false
				return
			}
		}
	}
}

// measure finds the longest prompt that every rank's KV pool could hold.
func (p *pside) measure() {
	least := uint64(1<<32 - 1)
	for _, ls := range p.layouts {
		kv := layoutOf(ls, spec.KV)
		if kv == nil {
			return // a rank that was never seen
		}
		least = min(least, uint64(kv.Shape.Pages)*uint64(kv.Equal.TokensPerPage))
	}
	p.capacity = uint32(least)
}

// prefillCapacity is the longest prompt that any side could hold (with a source name: that side); 0 while none is known.
func (l *DecodeLeader) prefillCapacity(s spec.SourceName) (most uint32) {
	for _, p := range l.sides {
		if !s.Leader.IsZero() && p.leader != s.Leader {
			continue
		}
		if p.capacity == 0 {
			return 0
		}
		most = max(most, p.capacity)
	}
	return most
}

// pick chooses the whole side with the fewest transfers that can hold the prompt; nil if there is none now. What has failed at one
// side goes to another if there is one: whatever happened there may happen again.
func (l *DecodeLeader) pick(q *drequest) (best *pside) {
	for _, p := range l.sides {
		switch {
		case !p.whole, p.declines != "", uint64(p.capacity) < uint64(len(q.sub.Prompt)):
		case !q.sub.Source.Leader.IsZero() && q.sub.Source.Leader != p.leader:
		case best == nil || best == q.failedAt || p != q.failedAt && p.active < best.active:
			best = p
		}
	}
	return best
}

// peerWait plans a sweep; the earliest one stands.
func (l *DecodeLeader) peerWait(at Time) {
	if l.peerAt == 0 || at < l.peerAt {
		l.peerAt = at
		l.clock.set(at, timePeer, 0, 0)
	}
}

// sweepPeers fails what has waited too long for a prefill side, and what no side turned out to be able to hold.
func (l *DecodeLeader) sweepPeers() {
	for _, x := range slices.Clone(l.waiting) {
		if until := max(x.askSince, l.downAt) + Time(l.cfg.PeerBound); !x.side.whole && l.now >= until {
			l.failure(x, spec.CausePeerLost, "its prefill side is not connected")
		} else if !x.side.whole {
			l.peerWait(until)
		}
	}
	for _, q := range l.allQueued() {
		if l.pick(q) != nil {
			continue
		}
		if lim, _ := l.measure(q.sub); lim.Limiting != "" {
			q.limits = lim
			l.failQueued(q, spec.CauseTooLong, tooLong(lim))
			continue
		}
		until := l.patience(q)
		if l.now >= until {
			cause, why := l.noSide()
			l.failQueued(q, cause, why)
		} else {
			l.peerWait(until)
		}
	}
}

// patience is how long a request waits for a prefill side: the whole bound after a side was lost, and a tenth of it where none has
// been there for longer than the bound already: an outage that lasts is told at once.
func (l *DecodeLeader) patience(q *drequest) Time {
	return max(q.since+Time(l.cfg.PeerBound/10), l.downAt+Time(l.cfg.PeerBound))
}

// noSide says why there is no side for what waits.
func (l *DecodeLeader) noSide() (spec.Cause, string) {
	for _, p := range l.sides {
		if p.whole && p.declines != "" {
			return p.declines, "the prefill sides that are connected take nothing new"
		}
	}
	return spec.CausePeerLost, "no prefill side is connected"
}

// declined notes that a side takes nothing new in this life of it. What it declined was never begun there: it comes back, for
// another side, or for the next life of this one. What waits for that side waits no longer than for one that is down.
func (l *DecodeLeader) declined(x *dxfer, c spec.Cause) {
	if c == spec.CauseShutdown {
		x.side.declines, x.declined = c, true
		l.peerWait(l.now + Time(l.cfg.PeerBound/10))
	}
}

// allQueued is a copy of everything that waits for its Ask, in a fixed order.
func (l *DecodeLeader) allQueued() []*drequest {
	all := slices.Clone(l.again)
	for _, t := range l.tenants {
		all = append(all, t.queue...)
	}
	return all
}

// failQueued answers a request that has no transfer.
func (l *DecodeLeader) failQueued(q *drequest, cause spec.Cause, detail string) {
	if !l.unqueue(q) {
		return
	}
	l.dropHalf(q.sub.Source, cause)
	if q.last == (spec.TransferID{}) {
		l.do(Did{Name: "Submit", Req: q.id})
		l.didFor(cause, Did{Name: "Failure", Req: q.id})
	}
	if q.cause == "" || spec.Better(q.cause, cause) == cause {
		q.cause, q.detail = cause, detail
	}
	l.answer(q, "")
}
