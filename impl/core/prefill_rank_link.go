package core

import (
	"slices"

	"kvfence/spec"
)

// linkState is what a prefill link can do.
type linkState uint8

const (
	linkOpening linkState = iota // accepted, the data path is not up yet: grants are taken, nothing is posted
	linkOpen
	linkFenced // this end has fenced the epoch; the control connection stands and says so
	linkClosed // no connection; the same incarnation may connect again
	linkEnded  // the decode incarnation was succeeded, or is given up: it never speaks again
)

// String is the state's name in status.
func (s linkState) String() string {
	return [...]string{"opening", "open", "fenced", "closed", "ended"}[min(s, linkEnded)]
}

// prefillLink is this rank's end of the link with one decode incarnation, over all its epochs.
type prefillLink struct {
	peer     PeerID
	identity spec.Identity
	layouts  []spec.Layout
	pull     bool
	owes     bool // this rank owes that decode rank a part of every request

	state   linkState
	conn    ConnID // 0: none
	epoch   spec.Epoch
	counter uint64       // of the last connect taken
	mark    spec.LeaseID // decode's
	ownMark spec.LeaseID
	blind   spec.LeaseID // leases below it, not held and not below decode's mark, may have been posted, answered and forgotten
	dead    spec.LeaseID // leases below it that are not held were perhaps begun in an epoch that is over: no receipt names them
	heard   Time

	leases  map[spec.LeaseID]*prefillLease
	order   []*prefillLease // by lease number
	active  int             // of them, not answered
	answers int             // of them, answered
	sendq   []*prefillLease // leases with something sealed to post, in turn
	posts   int             // batches of the current epoch that are not over
	broke   spec.Epoch      // highest epoch whose fence was begun
	fenced  spec.Epoch      // highest epoch whose fence is done

	offered int // pull: source pages offered and not given back
}

func (r *PrefillRank) header(k *prefillLink) spec.Header {
	return spec.Header{From: r.cfg.Identity.Incarnation, To: k.identity.Incarnation, Epoch: k.epoch, Mark: k.ownMark}
}

// send speaks on the link's connection; without one it says nothing (who waits repeats).
func (r *PrefillRank) send(k *prefillLink, m spec.Message) {
	if k.conn != 0 {
		r.do(Send{Peer: k.peer, Conn: k.conn, Env: spec.Envelope{Header: r.header(k), Body: m}})
	}
}

// take makes a judged connect the link's connection: everything older is over, the new epoch opens.
func (r *PrefillRank) take(e ConnectIn, c spec.Connect) {
	k := r.links[e.Peer]
	fresh := k == nil
	if fresh {
		if old := r.idleLink(); old != nil && len(r.linkq) >= r.cfg.MaxLinks {
			r.dropLink(old)
		}
		k = &prefillLink{peer: e.Peer, leases: map[spec.LeaseID]*prefillLease{}}
		r.links[e.Peer] = k
		at, _ := slices.BinarySearchFunc(r.linkq, e.Peer, func(x *prefillLink, p PeerID) int { return int(int64(x.peer) - int64(p)) })
		r.linkq = slices.Insert(r.linkq, at, k)
	} else {
		r.closeEpoch(k, linkClosed, c.Epoch, spec.CauseFenced)
	}
	k.identity, k.layouts, k.pull, k.owes = c.Identity, c.Layouts, c.Pull, r.owes(c.Layouts)
	k.state, k.conn, k.epoch, k.counter, k.heard = linkOpening, e.Conn, c.Epoch, c.Counter, r.now
	k.posts, k.sendq = 0, nil
	r.at(r.now + Time(r.cfg.Liveness))
	if r.beat <= r.now {
		r.beat = r.now + Time(r.cfg.Heartbeat)
	}
	r.at(r.beat)
	address := e.DataAddress
	if k.pull {
		address = ""
	}
	r.do(ExpectData{Peer: k.peer, Epoch: k.epoch, Info: LinkData{Prefill: r.cfg.Identity.Incarnation, Decode: k.identity.Incarnation,
		Address: address, Key: e.Key, Pull: k.pull, PeerLayouts: k.layouts}})
	r.do(Did{Name: "Accept", Peer: k.peer, Inc: k.identity.Incarnation, Epoch: k.epoch, Fresh: fresh})
	r.send(k, spec.Accept{Version: spec.Version, Capabilities: r.cfg.Capabilities, Nonce: c.Nonce, Identity: r.cfg.Identity,
		Layouts: r.own, Window: r.cfg.Window, DataAddress: address, DataKey: e.Key})
	r.recvMark(k, e.Env.Mark)
	r.succeed(k.peer, k.identity)
}

// dataUp opens the link, or gives up this connection.
func (r *PrefillRank) dataUp(e DataUp) {
	k := r.links[e.Peer]
	if k == nil || k.epoch != e.Epoch || k.state != linkOpening {
		return // of an epoch that is over
	}
	if e.Err != "" {
		r.fenceLink(k, spec.CauseTransport)
		return
	}
	k.state = linkOpen
	r.do(ToLeader{Msg: PeerLink{Peer: k.peer, Identity: k.identity, Up: true}})
	for _, j := range append([]*prefillJob(nil), r.jobq...) {
		r.checkGranted(j)
	}
	r.pump(k)
	r.offerAll(k)
}

// dataLost fences the link: bytes of it may be anywhere.
func (r *PrefillRank) dataLost(e DataLost) {
	if k := r.links[e.Peer]; k != nil && k.epoch == e.Epoch && k.state <= linkOpen {
		r.fenceLink(k, spec.CauseTransport)
	}
}

// connLost ends a connection: without it no receipt gets through, so this end fences the epoch for its own pages.
func (r *PrefillRank) connLost(e ConnLost) {
	for _, k := range append([]*prefillLink(nil), r.linkq...) {
		if k.conn == e.Conn {
			k.conn = 0
			if k.state < linkClosed {
				r.closeEpoch(k, linkClosed, 0, spec.CauseFenced)
			}
		}
	}
	if k := r.links[e.Peer]; k != nil {
		r.reap(k)
	}
	r.challengeLost(e)
}

// fenceLink is prefill's own fence: no receipt for this epoch leaves any more, only Fenced.
func (r *PrefillRank) fenceLink(k *prefillLink, why spec.Cause) {
	if k.state > linkOpen {
		return
	}
	r.closeEpoch(k, linkFenced, 0, why)
	r.send(k, spec.Fenced{Old: k.epoch})
}

// closeEpoch ends the link's current epoch: nothing of it is posted any more, its leases end without a receipt, its data path is
// fenced here so that its source pages come back. next is the epoch that follows, or 0.
func (r *PrefillRank) closeEpoch(k *prefillLink, to linkState, next spec.Epoch, why spec.Cause) {
	was := k.state
	k.state = max(to, linkFenced)
	if was == linkOpen {
		r.do(ToLeader{Msg: PeerLink{Peer: k.peer, Identity: k.identity}})
	}
	for _, l := range append([]*prefillLease(nil), k.order...) {
		k.dead = max(k.dead, l.id+1)
		r.killLease(l, why)
	}
	k.sendq, k.posts, k.dead = nil, 0, max(k.dead, k.blind)
	if k.broke < k.epoch {
		k.broke = k.epoch
		r.fences++
		r.do(Fence{Peer: k.peer, Old: k.epoch, New: max(next, k.epoch+1)})
	}
	if to != linkFenced && k.conn != 0 {
		r.do(CloseConn{Conn: k.conn})
		k.conn = 0
	}
}

// endLink gives a link up for good.
func (r *PrefillRank) endLink(k *prefillLink, why spec.Cause) {
	if k.state == linkEnded {
		return
	}
	r.closeEpoch(k, linkEnded, 0, why)
	inc := k.identity.Incarnation
	if !r.ended[inc] {
		r.ended[inc] = true
		r.endedq = append(r.endedq, inc)
		if len(r.endedq) > r.cfg.MaxLinks {
			delete(r.ended, r.endedq[0])
			r.endedq = r.endedq[1:]
		}
	}
	r.reap(k)
}

// reap forgets an ended link that nothing waits for.
func (r *PrefillRank) reap(k *prefillLink) {
	if k.state != linkEnded || k.fenced < k.broke || len(k.order) > 0 {
		return
	}
	for _, b := range r.batchq {
		if r.batches[b].link == k {
			return
		}
	}
	r.dropLink(k)
}

func (r *PrefillRank) dropLink(k *prefillLink) {
	delete(r.links, k.peer)
	if i := slices.Index(r.linkq, k); i >= 0 {
		r.linkq = slices.Delete(r.linkq, i, i+1)
	}
}

// idleLink is the closed link that was heard least lately and of which nothing is left here, or nil: the table is bounded, and decode
// nodes come and go. If its incarnation comes back it is a new link; what it held was fenced, at decode by that very connect.
func (r *PrefillRank) idleLink() (idle *prefillLink) {
	for _, k := range r.linkq {
		if k.conn != 0 || k.fenced < k.broke || len(k.order) > 0 || k.state < linkClosed || idle != nil && idle.heard <= k.heard {
			continue
		}
		if !slices.ContainsFunc(r.batchq, func(b uint64) bool { return r.batches[b].link == k }) {
			idle = k
		}
	}
	return idle
}

// fenceDone says that no source page is read for any epoch up to Old.
func (r *PrefillRank) fenceDone(e FenceDone) {
	k := r.links[e.Peer]
	if k == nil || e.Old > k.broke {
		return
	}
	if !e.OK {
		r.stop(0, "a fence at prefill could not be done")
		return
	}
	if e.Old > k.fenced {
		k.fenced = e.Old
		r.do(Did{Name: "PrefillFence", Peer: k.peer, Inc: k.identity.Incarnation, Epoch: e.Old}) // nothing of it is read any more
	}
	for _, id := range append([]uint64(nil), r.batchq...) {
		if b := r.batches[id]; b.link == k && b.epoch <= k.fenced {
			r.batchOver(b)
		}
	}
	r.reap(k)
}

// linkTimers pings, and gives up a silent peer.
func (r *PrefillRank) linkTimers(k *prefillLink, beat bool) {
	if k.conn == 0 {
		return
	}
	if r.now >= k.heard+Time(r.cfg.Liveness) {
		r.closeEpoch(k, linkClosed, 0, spec.CausePeerLost)
		return
	}
	r.at(k.heard + Time(r.cfg.Liveness))
	if beat {
		r.numbers.ping++
		r.send(k, spec.Ping{Number: r.numbers.ping})
	}
	r.offerTimers(k)
}
