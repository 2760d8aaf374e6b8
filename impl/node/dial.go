package node

import (
	"context"
	"crypto/rand"
	"fmt"
	mrand "math/rand/v2"
	"sync/atomic"
	"time"

	"kvfence/impl/core"
	"kvfence/spec"
)

// backoff doubles its wait up to a bound, with jitter so that nodes do not come back in step.
type backoff struct{ first, next, most time.Duration }

func newBackoff(first, most time.Duration) *backoff {
	first = max(first/4, 10*time.Millisecond)
	return &backoff{first, first, max(most, first)}
}

// sleep waits; false when ctx ended.
func (b *backoff) sleep(ctx context.Context) bool {
	t := time.NewTimer(b.next/2 + mrand.N(b.next/2+1))
	defer t.Stop()
	b.next = min(2*b.next, b.most)
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

func (b *backoff) reset() { b.next = b.first }

// outConn is one control connection that a decode rank dialed.
type outConn struct {
	rank *decodeRank
	peer peerAddr
	conn *conn
	id   core.ConnID
	err  error         // why it ended; written before gone is closed
	gone chan struct{} // closed when the connection has ended and the machine knows
	// opened says that a link stood on this connection: the next one need not wait long.
	opened atomic.Bool
}

// keepDialing holds one control connection to p, and dials again with back-off when it ends. It ends with the side's context.
func (r *decodeRank) keepDialing(p peerAddr) {
	d := r.side
	wait := newBackoff(d.cfg.Timeouts.Repeat, d.cfg.Timeouts.Liveness)
	for n := 0; ; n++ { // counts attempts that came to nothing, one after another
		oc, err := r.dial(p)
		if err == nil {
			select {
			case <-oc.gone:
				err = oc.err
			case <-d.ctx.Done():
				return
			}
			if oc.opened.Load() {
				wait.reset()
				n = -1
			}
		}
		if n >= 0 && n%16 == 0 && d.ctx.Err() == nil {
			d.log.Info("prefill rank cannot be reached, or ends the connection", "rank", r.rank, "peer", p.addr, "peer_rank", p.rank, "err", err)
		}
		if !wait.sleep(d.ctx) {
			return
		}
	}
}

// dial opens a connection and tells the rank's machine.
func (r *decodeRank) dial(p peerAddr) (*outConn, error) {
	d := r.side
	c, ranks, err := dialControl(d.ctx, p.addr, p.name, p.rank, d.creds, d.cfg.Timeouts.Liveness, d.cfg.Bounds.WriteQueue)
	if err != nil {
		return nil, err
	}
	oc := &outConn{rank: r, peer: p, conn: c, id: core.ConnID(d.conns.Add(1)), gone: make(chan struct{})}
	if int(ranks) != p.size && p.shared {
		d.log.Warn("the prefill side has another number of ranks than expected", "peer", p.addr, "ranks", ranks, "expected", p.size)
	}
	ev := core.Dialed{Peer: p.id, Conn: oc.id}
	if _, err := rand.Read(ev.Nonce[:]); err != nil {
		c.abort()
		return nil, fmt.Errorf("nonce: %w", err)
	}
	if !d.box.put(func() {
		r.conns[oc.id] = oc
		d.deliver(r.host, ev)
	}) {
		c.abort()
		return nil, context.Canceled
	}
	c.start(oc.recv, oc.refused, oc.lost)
	return oc, nil
}

func (oc *outConn) refused(error) {
	oc.rank.side.metrics.unknownKind("decode")
}

func (oc *outConn) recv(env spec.Envelope, release func()) {
	if !oc.rank.side.box.put(func() { oc.onLoop(env); release() }) {
		release()
	}
}

// onLoop tells the machine; an Accept must come from the node that the certificate vouches for.
func (oc *outConn) onLoop(env spec.Envelope) {
	d := oc.rank.side
	if m, ok := env.Body.(spec.Accept); ok {
		if err := vouches(oc.conn.leaf, m.Identity.Name); err != nil {
			d.metrics.stranger("decode", strangeIdentity)
			d.log.Warn("control connection given up", "peer", oc.peer.addr, "err", err)
			oc.conn.abort()
			return
		}
	}
	if m, ok := env.Body.(spec.Refuse); ok {
		d.log.Warn("the prefill rank refuses the link", "peer", oc.peer.addr, "reason", m.Refusal, "field", m.Field, "theirs", m.Ours, "ours", m.Theirs)
	}
	d.deliver(oc.rank.host, core.Recv{Peer: oc.peer.id, Conn: oc.id, Env: env})
}

func (oc *outConn) lost(err error) {
	d := oc.rank.side
	oc.err = err
	defer close(oc.gone)
	d.box.put(func() {
		d.log.Debug("control connection ended", "rank", oc.rank.rank, "peer", oc.peer.addr, "err", err)
		delete(oc.rank.conns, oc.id)
		d.deliver(oc.rank.host, core.ConnLost{Peer: oc.peer.id, Conn: oc.id})
	})
}
