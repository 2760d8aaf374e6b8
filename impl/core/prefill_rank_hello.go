package core

import (
	"fmt"
	"slices"
	"strings"

	"kvfence/spec"
)

// refusal is why a connect is not taken: the field that differs and both values.
type refusal struct {
	why                 spec.Refusal
	field, ours, theirs string
}

// connectIn judges a Connect and takes it, refuses it, or challenges a connection that stands in its way.
func (r *PrefillRank) connectIn(e ConnectIn) error {
	c, ok := e.Env.Body.(spec.Connect)
	if !ok {
		return fmt.Errorf("%w: ConnectIn with a %T", ErrContract, e.Env.Body)
	}
	if no := r.judge(e, c); no != nil {
		r.refuse(e, c, *no)
		return nil
	}
	if w := r.challengeOf(e.Peer); w != nil { // a later connect of the same incarnation takes the place of the one that waits
		r.dropChallenge(w)
		r.refuse(w.event, w.connect(), refusal{spec.RefuseDuplicate, "counter", fmt.Sprint(c.Counter), fmt.Sprint(w.connect().Counter)})
	} else if len(r.challenges) >= r.cfg.MaxLinks {
		r.refuse(e, c, refusal{spec.RefuseFull, "connects that wait", fmt.Sprint(r.cfg.MaxLinks), "one more"})
		return nil
	}
	r.admitConnect(e, c)
	return nil
}

func (r *PrefillRank) refuse(e ConnectIn, c spec.Connect, no refusal) {
	r.count(no.why, spec.KindConnect, e.Peer, no.field)
	h := spec.Header{From: r.cfg.Identity.Incarnation, To: e.Env.From, Epoch: e.Env.Epoch}
	r.do(Send{Peer: e.Peer, Conn: e.Conn, Env: spec.Envelope{Header: h,
		Body: spec.Refuse{Nonce: c.Nonce, Refusal: no.why, Field: no.field, Ours: no.ours, Theirs: no.theirs}}})
	r.do(CloseConn{Conn: e.Conn})
}

// judge tests what a connect says, in a fixed order; nil means that it may be taken.
func (r *PrefillRank) judge(e ConnectIn, c spec.Connect) *refusal {
	me, id := r.cfg.Identity, c.Identity
	switch {
	case r.stopped || r.leaderLost:
		return &refusal{spec.RefuseWrongState, "state", "not serving", ""}
	case !e.Env.To.IsZero() && e.Env.To != me.Incarnation:
		return &refusal{spec.RefuseWrongIncarnation, "incarnation", me.Incarnation.String(), e.Env.To.String()}
	case c.Version != spec.Version:
		return &refusal{spec.RefuseWrongState, "version", fmt.Sprint(spec.Version), fmt.Sprint(c.Version)}
	}
	for _, need := range requiredCapabilities() {
		if !slices.Contains(c.Capabilities, need) {
			return &refusal{spec.RefuseWrongState, "capabilities", need, strings.Join(c.Capabilities, " ")}
		}
	}
	switch {
	case id.Role != spec.RoleDecode:
		return &refusal{spec.RefuseWrongState, "identity.role", spec.RoleDecode, id.Role}
	case id.Incarnation.IsZero() || id.Incarnation != e.Env.From:
		return &refusal{spec.RefuseWrongIncarnation, "identity.incarnation", e.Env.From.String(), id.Incarnation.String()}
	case id.Incarnation == me.Incarnation || slices.Contains(me.Side, id.Incarnation):
		return &refusal{spec.RefuseTwin, "identity.incarnation", "one of this side's own", id.Incarnation.String()}
	case id.Name == "":
		return &refusal{spec.RefuseWrongState, "identity.name", "a name", "none"}
	case id.Size == 0 || int(id.Size) > spec.MaxRanks || len(id.Side) != int(id.Size) || int(id.Rank) >= len(id.Side) || id.Side[id.Rank] != id.Incarnation:
		return &refusal{spec.RefuseWrongState, "identity.side", "a list that names the sender at its rank", fmt.Sprintf("rank %d of %d in a list of %d", id.Rank, id.Size, len(id.Side))}
	case r.ended[id.Incarnation]:
		return &refusal{spec.RefuseWrongIncarnation, "identity.incarnation", "succeeded or given up", id.Incarnation.String()}
	}
	if no := r.judgeSide(e.Peer, id); no != nil {
		return no
	}
	if no := r.judgeLayouts(c); no != nil {
		return no
	}
	return r.judgeOrder(e, c)
}

// judgeSide compares with what the other ranks of the same side have said.
func (r *PrefillRank) judgeSide(p PeerID, id spec.Identity) *refusal {
	for _, k := range r.linkq {
		if k.peer == p {
			if k.identity.Incarnation != id.Incarnation {
				return &refusal{spec.RefuseWrongIncarnation, "identity.incarnation", k.identity.Incarnation.String(), id.Incarnation.String()}
			}
			if k.identity.Name != id.Name || k.identity.Rank != id.Rank || !slices.Equal(k.identity.Side, id.Side) {
				return &refusal{spec.RefuseTwin, "identity", identityText(k.identity), identityText(id)}
			}
			continue
		}
		if k.identity.Incarnation == id.Incarnation {
			return &refusal{spec.RefuseTwin, "identity.incarnation", fmt.Sprintf("peer %d", k.peer), fmt.Sprintf("peer %d", p)}
		}
		if k.state == linkEnded || k.identity.Name == id.Name {
			continue // of one name the newer succeeds, if the older does not answer
		}
		if slices.ContainsFunc(k.identity.Side, func(i spec.Incarnation) bool { return slices.Contains(id.Side, i) }) && !slices.Equal(k.identity.Side, id.Side) {
			return &refusal{spec.RefuseWrongState, "identity.side", identityText(k.identity), identityText(id)}
		}
	}
	return nil
}

func identityText(id spec.Identity) string {
	side := make([]string, len(id.Side))
	for i, inc := range id.Side {
		side[i] = inc.String()
	}
	return fmt.Sprintf("%s rank %d of [%s]", id.Name, id.Rank, strings.Join(side, " "))
}

// judgeLayouts compares pools field by field, then the settings that both ends must share.
func (r *PrefillRank) judgeLayouts(c spec.Connect) *refusal {
	for i, l := range c.Layouts {
		if err := l.Validate(); err != nil {
			return &refusal{spec.RefuseOutOfRange, l.Component.String(), "a layout within its bounds", err.Error()}
		}
		if layoutOf(c.Layouts[:i], l.Component) != nil {
			return &refusal{spec.RefuseOutOfRange, l.Component.String(), "one pool", "two pools"}
		}
		ours := sideLayout(r.cfg.SideLayouts, l.Component)
		if ours == nil {
			return &refusal{spec.RefuseWrongState, "components", "no " + l.Component.String(), l.Component.String()}
		}
		if err := ours.Equal.Compare(l.Component, l.Equal); err != nil {
			d, _ := err.(spec.FieldDiff)
			return &refusal{spec.RefuseWrongState, d.Field, d.Ours, d.Theirs}
		}
	}
	if layoutOf(c.Layouts, spec.KV) == nil {
		return &refusal{spec.RefuseWrongState, "components", "kv", "no kv"}
	}
	if _, err := r.plan(c.Layouts); err != nil {
		return &refusal{spec.RefuseWrongState, "plan", "parts that cover the pool once", err.Error()}
	}
	switch {
	case c.Window != r.cfg.Window:
		return &refusal{spec.RefuseWrongState, "window", fmt.Sprint(r.cfg.Window), fmt.Sprint(c.Window)}
	case c.Digests != r.cfg.Digests:
		return &refusal{spec.RefuseWrongState, "digests", fmt.Sprint(r.cfg.Digests), fmt.Sprint(c.Digests)}
	case c.Pull && !r.cfg.Pull:
		return &refusal{spec.RefuseWrongState, "pull", "false", "true"}
	}
	return nil
}

// judgeOrder tests counter and epoch: a connect is a fence, it only ever raises both.
func (r *PrefillRank) judgeOrder(e ConnectIn, c spec.Connect) *refusal {
	k, w := r.links[e.Peer], r.challengeOf(e.Peer)
	switch {
	case c.Epoch == 0:
		return &refusal{spec.RefuseStaleEpoch, "epoch", "above 0", "0"}
	case w != nil && w.event.Conn != e.Conn && c.Counter <= w.connect().Counter:
		return &refusal{spec.RefuseDuplicate, "counter", fmt.Sprintf("above %d", w.connect().Counter), fmt.Sprint(c.Counter)}
	case k == nil && len(r.linkq) >= r.cfg.MaxLinks && r.idleLink() == nil:
		return &refusal{spec.RefuseFull, "links", fmt.Sprint(r.cfg.MaxLinks), "one more"}
	case k == nil:
		return nil
	case c.Counter <= k.counter:
		return &refusal{spec.RefuseDuplicate, "counter", fmt.Sprintf("above %d", k.counter), fmt.Sprint(c.Counter)}
	case c.Epoch <= k.epoch:
		return &refusal{spec.RefuseStaleEpoch, "epoch", fmt.Sprintf("above %d", k.epoch), fmt.Sprint(c.Epoch)}
	}
	return nil
}

// plan is what each rank of this side owes a decode rank with these pools, whatever the request.
func (r *PrefillRank) plan(theirs []spec.Layout) ([]spec.Part, error) {
	writer, _ := AuxWriter(r.cfg.SideLayouts)
	var all []spec.Part
	for _, dst := range theirs {
		srcs := make([]*spec.Layout, len(r.cfg.SideLayouts))
		for k := range srcs {
			srcs[k] = layoutOf(r.cfg.SideLayouts[k], dst.Component)
		}
		parts, err := spec.PlanParts(dst, srcs, 1, writer)
		if err != nil {
			return nil, err
		}
		all = append(all, parts...)
	}
	return all, nil
}

// owes reports whether this rank owes such a decode rank anything.
func (r *PrefillRank) owes(theirs []spec.Layout) bool {
	parts, err := r.plan(theirs)
	return err == nil && slices.ContainsFunc(parts, func(p spec.Part) bool { return p.Rank == r.cfg.Identity.Rank })
}

// sideLayout is the pool of c at the lowest rank that has one.
func sideLayout(side [][]spec.Layout, c spec.Component) *spec.Layout {
	for _, ls := range side {
		if l := layoutOf(ls, c); l != nil {
			return l
		}
	}
	return nil
}
