package core

import (
	"fmt"
	"slices"

	"kvfence/spec"
)

// maxFencing bounds the fences of one link that are not back; a link with more takes no new connection.
const maxFencing = 8

// dialed starts a connect: a fence of all older epochs, also between the same two incarnations.
func (r *DecodeRank) dialed(e Dialed) {
	k := r.link(e.Peer)
	if len(k.fencing) >= maxFencing || r.ending {
		r.count(spec.RefuseFull, spec.KindConnect, e.Peer, "too many fences under way, or this rank is ending")
		r.do(CloseConn{Conn: e.Conn})
		return
	}
	r.fence(k, "connect")
	r.lastConn++
	k.state, k.conn, k.nonce, k.accepted = dlinkConnecting, e.Conn, e.Nonce, nil
	r.wake(k, r.now+Time(r.cfg.ConnectBound))
	mark := r.announced(k)
	r.do(Send{Peer: e.Peer, Conn: e.Conn, Env: spec.Envelope{Header: spec.Header{From: r.own, Epoch: k.epoch, Mark: mark}, Body: spec.Connect{
		Version: spec.Version, Capabilities: slices.Clone(r.cfg.Capabilities), Nonce: e.Nonce, Counter: r.lastConn, Epoch: k.epoch,
		Identity: r.cfg.Identity, Layouts: slices.Clone(r.cfg.Layouts), Window: r.cfg.Window, Digests: r.cfg.Digests, Pull: k.cfg.Pull}}})
}

// accept takes the answer to a connect; the data path opens when the older epochs are fenced.
func (r *DecodeRank) accept(k *dlink, conn ConnID, env spec.Envelope, m spec.Accept) {
	switch {
	case conn != k.conn || k.state != dlinkConnecting || k.accepted != nil:
		r.count(spec.RefuseWrongState, spec.KindAccept, k.cfg.ID, k.state.String())
		return
	case m.Nonce != k.nonce:
		r.count(spec.RefuseWrongNonce, spec.KindAccept, k.cfg.ID, "")
		return
	}
	if d := r.compare(k, env, m); d != nil {
		r.refusePeer(k, *d)
		return
	}
	k.accepted = &m
	k.inc, k.ident, k.layouts, k.peerMark = m.Identity.Incarnation, m.Identity, m.Layouts, 0
	k.heard = r.now
	r.openData(k)
}

// refusePeer ends an attempt to connect for a difference that no repeat will heal; requests learn it at once.
func (r *DecodeRank) refusePeer(k *dlink, d spec.FieldDiff) {
	k.refusal = d.Error()
	r.count(spec.RefuseNotGranted, spec.KindAccept, k.cfg.ID, k.refusal)
	r.down(k)
	r.tell(PeerRefused{Peer: k.cfg.ID, Detail: k.refusal})
}

// compare checks everything about a peer before anything is opened, and names the first field that differs.
func (r *DecodeRank) compare(k *dlink, env spec.Envelope, m spec.Accept) *spec.FieldDiff {
	id := m.Identity
	diff := func(f string, ours, theirs any) *spec.FieldDiff {
		return &spec.FieldDiff{Field: f, Ours: fmt.Sprint(ours), Theirs: fmt.Sprint(theirs)}
	}
	switch {
	case env.From != id.Incarnation || id.Incarnation.IsZero():
		return diff("incarnation", env.From, id.Incarnation)
	case m.Version != spec.Version:
		return diff("version", spec.Version, m.Version)
	case id.Role != spec.RolePrefill:
		return diff("role", spec.RolePrefill, id.Role)
	case k.cfg.Name != "" && id.Name != k.cfg.Name:
		return diff("name", k.cfg.Name, id.Name)
	case k.cfg.Rank != nil && id.Rank != *k.cfg.Rank:
		return diff("rank", *k.cfg.Rank, id.Rank)
	case int(id.Size) != len(id.Side) || int(id.Rank) >= len(id.Side):
		return diff("side", fmt.Sprintf("%d ranks", len(id.Side)), fmt.Sprintf("rank %d of %d", id.Rank, id.Size))
	case id.Side[id.Rank] != id.Incarnation:
		return diff("side", id.Side[id.Rank], id.Incarnation)
	case m.Window != r.cfg.Window:
		return diff("window", r.cfg.Window, m.Window)
	case !k.cfg.Pull && m.DataAddress == "":
		return diff("data_address", "an address", "none")
	}
	for _, need := range requiredCapabilities() {
		if !slices.Contains(m.Capabilities, need) {
			return diff("capabilities", need, fmt.Sprint(m.Capabilities))
		}
	}
	return r.compareLayouts(m.Layouts)
}

func (r *DecodeRank) compareLayouts(theirs []spec.Layout) *spec.FieldDiff {
	if layoutOf(theirs, spec.KV) == nil {
		return &spec.FieldDiff{Field: "kv", Ours: "a pool", Theirs: "none"}
	}
	for i, l := range theirs {
		if err := l.Validate(); err != nil {
			return &spec.FieldDiff{Field: l.Component.String(), Ours: "a valid layout", Theirs: err.Error()}
		}
		if layoutOf(theirs[:i], l.Component) != nil {
			return &spec.FieldDiff{Field: l.Component.String(), Ours: "one pool", Theirs: "two"}
		}
		own := r.layouts[l.Component]
		if own == nil {
			continue
		}
		if err := own.Equal.Compare(l.Component, l.Equal); err != nil {
			d, _ := err.(spec.FieldDiff)
			return &d
		}
	}
	return nil
}

// openData opens the data path once the peer is accepted and every older epoch is fenced.
func (r *DecodeRank) openData(k *dlink) {
	if k.state != dlinkConnecting || k.accepted == nil || len(k.fencing) > 0 {
		return
	}
	k.state = dlinkOpening
	m := k.accepted
	r.do(OpenData{Peer: k.cfg.ID, Epoch: k.epoch, Info: LinkData{Prefill: k.inc, Decode: r.own, Address: m.DataAddress, Key: m.DataKey, Pull: k.cfg.Pull, PeerLayouts: m.Layouts}})
}

func (r *DecodeRank) dataUp(e DataUp) {
	k := r.link(e.Peer)
	if e.Epoch != k.epoch || k.state != dlinkOpening {
		r.count(spec.RefuseStaleEpoch, 0, e.Peer, "data path of an older epoch")
		return
	}
	if e.Err != "" {
		k.refusal = e.Err
		r.fence(k, "data path did not open: "+e.Err)
		return
	}
	k.state, k.refusal, k.heard = dlinkOpen, "", r.now
	k.opened++
	k.pinged = r.now
	r.wake(k, r.now+Time(min(r.cfg.Heartbeat, r.cfg.Liveness)))
	r.didWith(nil, k, Did{Name: "Connect", Inc: k.inc, Epoch: k.epoch, Detail: fmt.Sprintf("%s in epoch %d", k.inc, k.epoch)})
	r.tell(PeerUp{Peer: e.Peer, Identity: k.ident, Layouts: k.layouts, Window: r.cfg.Window, Pull: k.cfg.Pull})
	r.freed()
}

func (r *DecodeRank) dataLost(e DataLost) {
	k := r.link(e.Peer)
	if e.Epoch != k.epoch || k.state < dlinkOpening {
		r.count(spec.RefuseStaleEpoch, 0, e.Peer, "data path of an older epoch is lost")
		return
	}
	r.fence(k, "data path lost")
}

func (r *DecodeRank) connLost(e ConnLost) {
	k := r.link(e.Peer)
	switch {
	case e.Conn != k.conn || k.conn == 0:
	case k.state == dlinkConnecting:
		k.conn = 0
		r.down(k)
	default:
		k.conn = 0
		r.fence(k, "control connection lost")
	}
}

// down takes a link that never opened in its epoch back to the start: nothing was granted in it.
func (r *DecodeRank) down(k *dlink) {
	if k.conn != 0 {
		r.do(CloseConn{Conn: k.conn})
	}
	k.state, k.conn, k.accepted = dlinkDown, 0, nil
}

// wake sets the link's one timer; an older one means nothing any more.
func (r *DecodeRank) wake(k *dlink, at Time) {
	k.due = at
	r.clock.set(at, timeLink, k.index, 0)
}

// linkTime is the clock of one link: connects are bounded, open links are pinged, silence fences.
func (r *DecodeRank) linkTime(k *dlink, at Time) {
	if at != k.due {
		return
	}
	switch k.state {
	case dlinkConnecting, dlinkOpening:
		k.refusal = "no answer to the connect in time"
		if k.state == dlinkOpening {
			r.fence(k, k.refusal)
		} else {
			r.down(k)
		}
	case dlinkOpen:
		r.linkLife(k)
	}
}

func (r *DecodeRank) linkLife(k *dlink) {
	if r.now-k.heard >= Time(r.cfg.Liveness) {
		r.fence(k, "silence")
		return
	}
	if r.now-k.pinged >= Time(r.cfg.Heartbeat) {
		k.pinged = r.now
		k.pings++
		r.say(k, spec.Ping{Number: k.pings})
	}
	r.wake(k, min(k.pinged+Time(r.cfg.Heartbeat), k.heard+Time(r.cfg.Liveness)))
}

// say sends a message on a link that is connected, with the header of now.
func (r *DecodeRank) say(k *dlink, m spec.Message) {
	if k.conn == 0 || k.accepted == nil {
		return
	}
	mark := r.announced(k)
	r.do(Send{Peer: k.cfg.ID, Conn: k.conn, Env: spec.Envelope{Header: spec.Header{From: r.own, To: k.inc, Epoch: k.epoch, Mark: mark}, Body: m}})
}

// announced is the mark that a message is about to carry.
func (r *DecodeRank) announced(k *dlink) spec.LeaseID {
	mark := r.mark(k)
	if mark > k.marked {
		k.marked = mark
		r.didWith(nil, k, Did{Name: "RaiseMark", Mark: mark, Detail: fmt.Sprintf("%d", mark)})
	}
	return mark
}

// mark is the lowest lease whose hold on this link stands, else the next to be granted.
func (r *DecodeRank) mark(k *dlink) spec.LeaseID {
	for len(k.owed) > 0 && !k.owed[0].standing {
		k.owed[0] = nil
		k.owed = k.owed[1:]
	}
	m := r.nextGrant()
	if len(k.owed) > 0 {
		m = min(m, k.owed[0].lease.id)
	}
	return m
}

// nextGrant is the lowest number that may still be granted.
func (r *DecodeRank) nextGrant() spec.LeaseID {
	if r.taken != nil {
		return r.taken.id
	}
	return r.next
}

// sayFor sends a leader's message over rank 0's link; a link that is not open swallows it, its sender repeats.
func (r *DecodeRank) sayFor(e SayFor) {
	k := r.link(e.Peer)
	switch e.Body.(type) {
	case spec.Ask, spec.Drop:
	default:
		r.count(spec.RefuseUnknownKind, e.Body.Kind(), e.Peer, "not a leader's message")
		return
	}
	if k.state == dlinkOpen {
		r.say(k, e.Body)
	}
}
