package core

import (
	"slices"

	"kvfence/spec"
)

// challenge is a connect that waits for the answer of connections that stand in its way: its own incarnation's older one, or
// those of its name. Nobody answers on a connection whose place was taken; if somebody does, two live nodes claim one identity.
type challenge struct {
	event ConnectIn
	asked []PeerID
	ping  uint64
	until Time
}

func (c *challenge) connect() spec.Connect { return c.event.Env.Body.(spec.Connect) }

// challengeOf is the connect of a peer that waits, or nil.
func (r *PrefillRank) challengeOf(p PeerID) *challenge {
	for _, c := range r.challenges {
		if c.event.Peer == p {
			return c
		}
	}
	return nil
}

func (r *PrefillRank) dropChallenge(c *challenge) {
	if i := slices.Index(r.challenges, c); i >= 0 {
		r.challenges = slices.Delete(r.challenges, i, i+1)
	}
}

// inTheWay lists the links whose standing connection a connect would end: its own incarnation's, and those of its name. One that
// this end has fenced is not in the way of its own incarnation: it was told to connect anew.
func (r *PrefillRank) inTheWay(p PeerID, c spec.Connect) (asked []PeerID) {
	for _, k := range r.linkq {
		own := k.peer == p && k.state <= linkOpen
		if k.conn != 0 && (own || k.peer != p && k.identity.Name == c.Identity.Name) {
			asked = append(asked, k.peer)
		}
	}
	return asked
}

// admitConnect takes a judged connect, or lets it wait for those in its way.
func (r *PrefillRank) admitConnect(e ConnectIn, c spec.Connect) {
	asked := r.inTheWay(e.Peer, c)
	if len(asked) == 0 {
		r.take(e, c)
		return
	}
	r.numbers.ping++
	w := &challenge{event: e, asked: asked, ping: r.numbers.ping, until: r.now + Time(r.cfg.Liveness)}
	r.challenges = append(r.challenges, w)
	r.at(w.until)
	for _, p := range asked {
		r.send(r.links[p], spec.Ping{Number: w.ping})
	}
}

// challengeAnswered: a Pong came on a connection that was challenged.
func (r *PrefillRank) challengeAnswered(p PeerID, ping uint64) {
	for _, c := range append([]*challenge(nil), r.challenges...) {
		if c.ping != ping || !slices.Contains(c.asked, p) {
			continue
		}
		r.dropChallenge(c)
		body := c.connect()
		r.refuse(c.event, body, refusal{spec.RefuseTwin, "identity", identityText(r.links[p].identity), identityText(body.Identity)})
		if c.event.Peer == p { // the very same incarnation lives twice: neither can be believed
			r.count(spec.RefuseTwin, spec.KindConnect, p, "both are refused")
			r.send(r.links[p], spec.Refuse{Refusal: spec.RefuseTwin, Field: "identity.incarnation", Ours: "one life", Theirs: "two connections that both answer"})
			r.closeEpoch(r.links[p], linkClosed, 0, spec.CauseFenced)
		}
	}
}

// challengeTimers: where nobody answered for the liveness time the old connections are fenced and the new one is taken.
func (r *PrefillRank) challengeTimers() {
	for _, c := range append([]*challenge(nil), r.challenges...) {
		if r.now < c.until {
			r.at(c.until)
			continue
		}
		for _, p := range c.asked {
			if k := r.links[p]; k != nil && k.conn != 0 {
				r.closeEpoch(k, linkClosed, 0, spec.CausePeerLost)
			}
		}
		r.resolve(c)
	}
}

// challengeLost drops a waiting connect whose connection ended, and goes on with one whose way is free now.
func (r *PrefillRank) challengeLost(e ConnLost) {
	for _, c := range append([]*challenge(nil), r.challenges...) {
		if c.event.Conn == e.Conn {
			r.dropChallenge(c)
			continue
		}
		if !slices.ContainsFunc(c.asked, func(p PeerID) bool { return r.links[p] != nil && r.links[p].conn != 0 }) {
			r.resolve(c)
		}
	}
}

// resolve judges a connect anew after its wait: much may have changed.
func (r *PrefillRank) resolve(c *challenge) {
	r.dropChallenge(c)
	body := c.connect()
	if no := r.judge(c.event, body); no != nil {
		r.refuse(c.event, body, *no)
		return
	}
	r.admitConnect(c.event, body)
}

// succeed ends every older link of the same name: its incarnation is no more, whatever it still says.
func (r *PrefillRank) succeed(p PeerID, id spec.Identity) {
	for _, k := range append([]*prefillLink(nil), r.linkq...) {
		if k.peer != p && k.identity.Name == id.Name {
			r.endLink(k, spec.CauseFenced)
		}
	}
}
