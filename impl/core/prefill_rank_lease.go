package core

import (
	"slices"

	"kvfence/spec"
)

// leaseState is what prefill does for one lease on one link.
type leaseState uint8

const (
	leaseWriting leaseState = iota // started: computed parts are sealed and written (pull: offered)
	leaseClosing                   // nothing more is posted; it drains and is answered
	leaseClosed                    // answered; kept until a mark passes it
	leaseDead                      // its epoch is over or its mark passed: no receipt ever; kept for what a reader may still read
)

// prefillLease is one lease on one link.
type prefillLease struct {
	id       spec.LeaseID
	link     *prefillLink
	job      *prefillJob // nil for an entry that only stops a later grant
	transfer spec.TransferID
	grant    spec.Grant
	epoch    spec.Epoch
	serial   uint64 // names its hold in the ledgers
	held     bool   // its hold on the job stands
	state    leaseState
	parts    []prefillPart

	failing  *spec.Failing // why it closes; nil: the peer asked
	sealing  uint64        // the seal that runs, 0: none
	posts    int           // batches that are not over
	posted   bool          // something was posted, ever
	queued   bool          // is in the link's sendq
	notice   uint64        // number of the drain notice that was sent; 0: none
	noticed  bool
	channels []spec.Channel
	answer   spec.Message

	offered  int // pull: source pages offered and not given back
	repeat   Duration
	repeatAt Time // 0: Complete is not repeated
}

// prefillPart is how far one part has got: page indexes [lo, hi), each cursor is the next index that has not got so far.
type prefillPart struct {
	part    spec.Part
	lo, hi  uint32
	toSeal  uint32 // given to a Seal below it
	sealed  uint32
	posted  uint32
	digests []uint64
	offered bool
}

// recv takes a message on a link's connection. The tests have a fixed order; the first that fails answers.
func (r *PrefillRank) recv(e Recv) {
	k := r.links[e.Peer]
	h := e.Env.Header
	if e.Env.Body == nil {
		r.count(spec.RefuseUnknownKind, 0, e.Peer, "no body")
		return
	}
	kind := e.Env.Body.Kind()
	switch {
	case k == nil || k.conn != e.Conn || r.stopped:
		r.count(spec.RefuseWrongState, kind, e.Peer, "no such connection")
		return
	case h.To != r.cfg.Identity.Incarnation:
		r.refused1(k, kind, leaseOf(e.Env.Body), spec.RefuseWrongIncarnation, "addressee")
		return
	case h.From != k.identity.Incarnation:
		r.refused1(k, kind, leaseOf(e.Env.Body), spec.RefuseWrongIncarnation, "sender")
		return
	}
	k.heard = r.now
	r.recvMark(k, h.Mark)
	if h.Epoch > k.epoch && k.state <= linkOpen {
		r.closeEpoch(k, linkFenced, h.Epoch, spec.CauseFenced) // decode has fenced: nothing older is posted
	}
	switch b := e.Env.Body.(type) {
	case spec.Ping:
		r.send(k, spec.Pong{Number: b.Number})
	case spec.Pong:
		r.challengeAnswered(e.Peer, b.Number)
	case spec.Read:
		r.recvRead(k, b)
	case spec.Refused:
		r.count(b.Refusal, kind, e.Peer, "told by the peer")
	case spec.Grant, spec.Abort, spec.Ask, spec.Drop:
		r.recvInEpoch(k, h.Epoch, e.Env.Body)
	default:
		r.refused1(k, kind, leaseOf(e.Env.Body), spec.RefuseUnknownKind, "not for a prefill rank")
	}
}

// recvInEpoch takes what is judged by epoch.
func (r *PrefillRank) recvInEpoch(k *prefillLink, epoch spec.Epoch, m spec.Message) {
	if epoch != k.epoch {
		r.refused1(k, m.Kind(), leaseOf(m), spec.RefuseStaleEpoch, "")
		return
	}
	if k.state > linkOpen {
		r.count(spec.RefuseStaleEpoch, m.Kind(), k.peer, "fenced here")
		r.send(k, spec.Fenced{Old: k.epoch})
		return
	}
	switch b := m.(type) {
	case spec.Grant:
		r.recvGrant(k, b)
	case spec.Abort:
		r.recvAbort(k, b)
	default:
		if r.cfg.Identity.Rank != 0 || k.identity.Rank != 0 || k.state != linkOpen || r.leaderLost {
			r.refused1(k, m.Kind(), 0, spec.RefuseWrongState, "leaders speak over an open link of the two ranks 0")
			return
		}
		r.do(ToLeader{Msg: PeerSaid{Peer: k.peer, Body: m}})
	}
}

// leaseOf is the lease that a message is about; 0 if none.
func leaseOf(m spec.Message) spec.LeaseID {
	switch b := m.(type) {
	case spec.Grant:
		return b.Lease
	case spec.Abort:
		return b.Lease
	case spec.Read:
		return b.Lease
	}
	return 0
}

// refused1 counts one refusal and tells the peer.
func (r *PrefillRank) refused1(k *prefillLink, about spec.Kind, lease spec.LeaseID, why spec.Refusal, detail string) {
	r.count(why, about, k.peer, detail)
	r.send(k, spec.Refused{About: about, Lease: lease, Refusal: why, Detail: detail})
}

// gate answers a grant or abort of a lease that is not to be begun: held, dead, below a mark. true: answered.
func (r *PrefillRank) gate(k *prefillLink, about spec.Kind, t spec.TransferID, id spec.LeaseID) bool {
	l := k.leases[id]
	switch {
	case l != nil && l.transfer != t:
		r.refused1(k, about, id, spec.RefuseUnknownTransfer, "the lease is another transfer's")
	case l != nil:
		return false
	case id == 0:
		r.refused1(k, about, id, spec.RefuseUnknownLease, "no lease is numbered 0")
	case id < k.dead:
		r.refused1(k, about, id, spec.RefuseStaleEpoch, "of an epoch that is over")
	case id >= k.mark && id < k.blind:
		r.count(spec.RefuseBelowMark, about, k.peer, "answered and forgotten: its notices cannot be named any more")
		r.fenceLink(k, spec.CauseTransport)
	case id < max(k.mark, k.ownMark):
		r.count(spec.RefuseBelowMark, about, k.peer, "")
		r.did("Gone", t, id, k.peer)
		r.send(k, spec.Gone{Transfer: t, Lease: id, GrantEpoch: k.epoch})
	default:
		return false
	}
	return true
}

// present answers a repeated request with the lease's state.
func (r *PrefillRank) present(l *prefillLease, about spec.Kind) {
	switch {
	case l.state == leaseClosed:
		r.count(spec.RefuseDuplicate, about, l.link.peer, "answered before")
		r.send(l.link, l.answer)
	case l.state == leaseDead:
		r.refused1(l.link, about, l.id, spec.RefuseStaleEpoch, "of an epoch that is over")
	case l.failing != nil:
		r.count(spec.RefuseDuplicate, about, l.link.peer, "failing")
		r.send(l.link, *l.failing)
	case l.state == leaseClosing:
		r.refused1(l.link, about, l.id, spec.RefuseDuplicate, "draining")
	default:
		r.refused1(l.link, about, l.id, spec.RefuseDuplicate, "filling")
	}
}

// recvGrant starts a lease, once.
func (r *PrefillRank) recvGrant(k *prefillLink, g spec.Grant) {
	if r.gate(k, spec.KindGrant, g.Transfer, g.Lease) {
		return
	}
	if l := k.leases[g.Lease]; l != nil {
		r.present(l, spec.KindGrant)
		return
	}
	if k.working() >= r.cfg.MaxLeases {
		r.refused1(k, spec.KindGrant, g.Lease, spec.RefuseFull, "working leases of one link")
		return
	}
	cause, isOver := r.over[g.Transfer]
	j := r.bound[g.Transfer]
	if j == nil && !isOver {
		if j = r.shell(g.Transfer); j == nil {
			r.refused1(k, spec.KindGrant, g.Lease, spec.RefuseFull, "transfers")
			return
		}
	}
	l := r.enter(k, g.Lease, g.Transfer)
	l.grant = g
	r.did("Start", g.Transfer, g.Lease, k.peer)
	if j == nil {
		r.failLease(l, spec.Better(cause, spec.CauseProtocol), "the transfer is over at prefill")
		return
	}
	r.attach(l, j)
	switch why := r.judgeGrant(l); {
	case why != "":
		r.failLease(l, spec.CauseProtocol, why)
	case j.stopped:
		r.failLease(l, j.cause, j.detail)
	case r.leaderLost:
		r.failLease(l, spec.CauseLeaderLost, "")
	default:
		r.checkGranted(j)
		r.advance(l)
	}
}

// recvAbort stops a lease, also one that was not seen yet: the entry stops its grant.
func (r *PrefillRank) recvAbort(k *prefillLink, a spec.Abort) {
	if r.gate(k, spec.KindAbort, a.Transfer, a.Lease) {
		return
	}
	l := k.leases[a.Lease]
	if l == nil {
		l = r.enter(k, a.Lease, a.Transfer)
		l.state = leaseClosing
		r.did("RecvAbort", a.Transfer, a.Lease, k.peer)
		r.drain(l)
		return
	}
	if l.state != leaseWriting {
		r.present(l, spec.KindAbort)
		return
	}
	r.did("RecvAbort", l.transfer, l.id, k.peer)
	l.state = leaseClosing
	j := l.job
	r.drain(l)
	if j != nil {
		r.jobStopped(j, spec.CauseAbortedByPeer, "aborted by decode")
	}
}

// enter makes the entry of a lease in its place.
func (r *PrefillRank) enter(k *prefillLink, id spec.LeaseID, t spec.TransferID) *prefillLease {
	r.numbers.lease++
	l := &prefillLease{id: id, link: k, transfer: t, epoch: k.epoch, serial: r.numbers.lease}
	k.leases[id] = l
	at := len(k.order)
	for at > 0 && k.order[at-1].id > id {
		at--
	}
	k.order = slices.Insert(k.order, at, l)
	k.active++
	return l
}

// working is how many leases are not answered.
func (k *prefillLink) working() int { return k.active }

// remove takes an entry out of its link.
func (r *PrefillRank) remove(l *prefillLease) {
	k := l.link
	if k.leases[l.id] != l {
		return
	}
	delete(k.leases, l.id)
	if i := slices.Index(k.order, l); i >= 0 {
		k.order = slices.Delete(k.order, i, i+1)
	}
}

// recvMark takes decode's mark: its hold on this link stands for no lease below it. Answers are forgotten, readers have ended, and
// what still works on such a lease stops; its source pages go at their own drain.
func (r *PrefillRank) recvMark(k *prefillLink, m spec.LeaseID) {
	if m <= k.mark {
		return
	}
	k.mark = m
	if m > k.ownMark { // else it says nothing new
		r.do(Did{Name: "RecvMark", Lease: m, Mark: m, Peer: k.peer})
	}
	n, _ := slices.BinarySearchFunc(k.order, m, func(l *prefillLease, m spec.LeaseID) int {
		if l.id < m {
			return -1
		}
		return 1
	})
	for _, l := range append([]*prefillLease(nil), k.order[:n]...) {
		if l.offered > 0 {
			r.giveBack(l)
		}
		switch l.state {
		case leaseWriting, leaseClosing:
			k.dead = max(k.dead, l.id+1)
			r.killLease(l, spec.CauseAbortedByPeer)
		case leaseClosed:
			r.forget(l)
		}
	}
	r.offerAll(k) // what came back makes room for new offers
}

// forget drops an answer that a mark has passed.
func (r *PrefillRank) forget(l *prefillLease) {
	r.did("Forget", l.transfer, l.id, l.link.peer)
	l.link.answers--
	r.remove(l)
}

// boundAnswers raises this end's own mark when its memory of answers is full: oldest first. A late grant below it is Gone. If what
// is forgotten was posted, a Gone would be a receipt without the notices that decode must wait for: who asks again for such a
// lease is told that the link is fenced.
func (r *PrefillRank) boundAnswers(k *prefillLink) {
	for k.answers > r.cfg.MaxAnswers {
		i := slices.IndexFunc(k.order, func(l *prefillLease) bool { return l.state == leaseClosed && l.offered == 0 })
		if i < 0 {
			return // what readers hold is bounded by MaxOffered
		}
		l := k.order[i]
		if k.ownMark <= l.id {
			k.ownMark = l.id + 1
			r.do(Did{Name: "OwnMark", Lease: k.ownMark, Mark: k.ownMark, Peer: k.peer})
		}
		if l.posted {
			k.blind = max(k.blind, l.id+1)
		}
		r.forget(l)
	}
}
