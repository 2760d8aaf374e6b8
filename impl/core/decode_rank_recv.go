package core

import (
	"fmt"

	"kvfence/spec"
)

// recv judges one message of a peer. The tests come in the protocol's order: addressee's incarnation, sender's incarnation, epoch,
// lease state, marks; the first that fails is the reason that is counted.
func (r *DecodeRank) recv(e Recv) {
	k, env := r.link(e.Peer), e.Env
	if env.Body == nil {
		r.count(spec.RefuseUnknownKind, 0, e.Peer, "no body")
		return
	}
	if env.To != r.own {
		r.count(spec.RefuseWrongIncarnation, env.Body.Kind(), e.Peer, "addressed to "+env.To.String())
		r.answer(k, e.Conn, env, 0, spec.RefuseWrongIncarnation, "addressed to "+env.To.Hex())
		return
	}
	switch m := env.Body.(type) {
	case spec.Accept:
		r.accept(k, e.Conn, env, m)
		return
	case spec.Refuse:
		r.refusedConnect(k, e.Conn, m)
		return
	}
	if e.Conn == k.conn && k.accepted != nil {
		if env.From != k.inc {
			// Another life speaks on this link. That is no proof for the old one's writes: the link is fenced at once.
			r.count(spec.RefuseWrongIncarnation, env.Body.Kind(), k.cfg.ID, "sent by "+env.From.String())
			r.fence(k, "another incarnation answers")
			return
		}
		k.heard = r.now
		k.peerMark = max(k.peerMark, env.Mark)
	}
	if r.recvReceipt(k, e.Conn, env) {
		return
	}
	r.recvLink(k, e.Conn, env)
}

// recvReceipt dispatches what is judged by transfer, lease and the incarnation that was granted. false: not such a message.
func (r *DecodeRank) recvReceipt(k *dlink, conn ConnID, env spec.Envelope) bool {
	switch m := env.Body.(type) {
	case spec.Complete:
		r.onReceipt(k, conn, env, receipt{kind: spec.KindComplete, transfer: m.Transfer, lease: m.Lease, epoch: m.GrantEpoch, channels: m.Channels, complete: &m})
	case spec.Failed:
		r.onReceipt(k, conn, env, receipt{kind: spec.KindFailed, transfer: m.Transfer, lease: m.Lease, epoch: m.GrantEpoch, channels: m.Channels, cause: m.Cause, detail: m.Detail})
	case spec.AbortAck:
		r.onReceipt(k, conn, env, receipt{kind: spec.KindAbortAck, transfer: m.Transfer, lease: m.Lease, epoch: m.GrantEpoch, channels: m.Channels, cause: spec.CauseAbortedByPeer})
	case spec.Gone:
		r.onReceipt(k, conn, env, receipt{kind: spec.KindGone, transfer: m.Transfer, lease: m.Lease, epoch: m.GrantEpoch, cause: spec.CauseAbortedByPeer, detail: "the peer knows nothing of this lease any more"})
	default:
		return false
	}
	return true
}

// recvLink handles messages of the standing link.
func (r *DecodeRank) recvLink(k *dlink, conn ConnID, env spec.Envelope) {
	kind := env.Body.Kind()
	if conn != k.conn || k.accepted == nil {
		r.count(spec.RefuseWrongState, kind, k.cfg.ID, "not the standing connection")
		return
	}
	switch m := env.Body.(type) {
	case spec.Ping:
		r.say(k, spec.Pong{Number: m.Number})
	case spec.Pong:
		if m.Number > k.pings {
			r.count(spec.RefuseOutOfRange, kind, k.cfg.ID, "a ping that was never sent")
		}
	case spec.Asked, spec.AskFailed:
		if k.state != dlinkOpen || env.Epoch != k.epoch {
			r.count(spec.RefuseStaleEpoch, kind, k.cfg.ID, "")
			return
		}
		r.tell(PeerSaid{Peer: k.cfg.ID, Body: env.Body})
	case spec.Failing:
		r.onFailing(k, env, m)
	case spec.Offer:
		r.onOffer(k, conn, env, m)
	case spec.Fenced:
		if m.Old < k.epoch || k.state < dlinkOpening {
			r.count(spec.RefuseDuplicate, kind, k.cfg.ID, "fenced here already")
			return
		}
		r.fence(k, "the peer fenced its end")
	case spec.Refused:
		r.onRefused(k, env, m)
	default:
		r.count(spec.RefuseUnknownKind, kind, k.cfg.ID, fmt.Sprintf("%T is not for a decode rank", env.Body))
		r.answer(k, conn, env, 0, spec.RefuseUnknownKind, fmt.Sprintf("%T is not for a decode rank", env.Body))
	}
}

// answer tells a peer that is out of step why its message was not acted upon. A Refused is never answered.
func (r *DecodeRank) answer(k *dlink, conn ConnID, env spec.Envelope, lease spec.LeaseID, why spec.Refusal, detail string) {
	if env.Body.Kind() == spec.KindRefused {
		return
	}
	mark := r.announced(k)
	r.do(Send{Peer: k.cfg.ID, Conn: conn, Env: spec.Envelope{Header: spec.Header{From: r.own, To: env.From, Epoch: k.epoch, Mark: mark},
		Body: spec.Refused{About: env.Body.Kind(), Lease: lease, Refusal: why, Detail: detail}}})
}

// refusedConnect ends an attempt that the peer refused; the reason is kept for people and told to the leader.
func (r *DecodeRank) refusedConnect(k *dlink, conn ConnID, m spec.Refuse) {
	if conn != k.conn || k.state != dlinkConnecting || m.Nonce != k.nonce {
		r.count(spec.RefuseWrongNonce, spec.KindRefuse, k.cfg.ID, "")
		return
	}
	k.refusal = fmt.Sprintf("refused by the peer: %s", m.Refusal)
	if m.Field != "" {
		k.refusal += fmt.Sprintf(": %s: ours %s, theirs %s", m.Field, m.Theirs, m.Ours)
	}
	r.count(m.Refusal, spec.KindRefuse, k.cfg.ID, k.refusal)
	r.down(k)
	if m.Field != "" {
		r.tell(PeerRefused{Peer: k.cfg.ID, Detail: k.refusal})
	}
}

// onRefused hears that the peer did not act upon a message. It ends no hold. A peer whose own epoch is another one is out of step:
// the link is fenced. (A peer of another incarnation was fenced before this.) Any other answer about a lease is an answer.
func (r *DecodeRank) onRefused(k *dlink, env spec.Envelope, m spec.Refused) {
	r.count(m.Refusal, spec.KindRefused, k.cfg.ID, fmt.Sprintf("about %d, lease %d: %s", m.About, m.Lease, m.Detail))
	if env.Epoch != k.epoch {
		r.fence(k, "the peer is in another epoch: "+string(m.Refusal))
		return
	}
	l := r.leases[m.Lease]
	if l == nil {
		return
	}
	h := l.hold(k)
	if h == nil || !h.standing {
		return
	}
	h.since = r.now
	if m.About == spec.KindGrant && l.state == dleaseFilling {
		switch m.Refusal {
		case spec.RefuseDuplicate, spec.RefuseUnknownTransfer, spec.RefuseFull: // present state, or not now: it is repeated
		default:
			r.fail(l, spec.CauseProtocol, "the peer refuses the grant: "+string(m.Refusal)+" "+m.Detail, true)
		}
	}
}
