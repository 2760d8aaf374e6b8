package lockstep

import (
	"slices"

	"kvfence/impl/core"
	"kvfence/model"
	"kvfence/spec"
)

// stepD gives decode's rank one event and puts what it says into the boxes.
func (w *World) stepD(ev core.Event) []core.Action {
	acts, err := w.d.Step(w.now, ev)
	if err != nil {
		w.fail("decode rank, %T: %v", ev, err)
	}
	for _, a := range acts {
		w.actD(a)
	}
	return acts
}

func (w *World) actD(a core.Action) {
	switch a := a.(type) {
	case core.Send:
		w.sendD(a)
	case core.CloseConn:
		for k := range w.p {
			for d := range w.links[k].peers {
				if p := &w.links[k].peers[d]; p.conn == a.Conn {
					p.lost = true
				}
			}
		}
	case core.Fence:
		l := &w.links[a.Peer-1]
		if a.New <= l.table {
			w.fail("fence of epoch %d to %d in epoch %d", a.Old, a.New, l.table)
		}
		l.table, l.connect, l.opening = a.New, nil, 0
		l.fences = append(l.fences, a.Old)
	case core.OpenData:
		w.links[a.Peer-1].opening = a.Epoch
	case core.Allow:
		if w.links[a.Peer-1].table != a.Epoch {
			w.fail("lease %d is allowed in epoch %d, the table is in %d", a.Grant.Lease, a.Epoch, w.links[a.Peer-1].table)
		}
	case core.VoidTags:
		for _, p := range a.Pages {
			for k := range ranks(w.tw) {
				c := &w.mem[w.page(a.Component, p)][k]
				c.tag, c.by = spec.Tag{}, 0
			}
		}
	case core.PutTag:
		if uint8(a.Slot) < ranks(w.tw) {
			c := &w.mem[w.page(a.Component, a.Page)][a.Slot]
			c.tag, c.by = a.Tag, 0
		}
	case core.Verify:
		if l := w.number(w.dinc, a.Lease); l != 0 {
			w.lease[l].verify = &a
		}
	case core.Alarm:
		w.found(a)
	case core.ToLeader:
		w.toLeaderD(a.Msg)
	case core.PullCopy:
		w.fail("a pull on a push link")
	case core.Stop:
		w.fail("decode rank stopped: I%d %s", a.Invariant, a.Broken)
	}
}

// toLeaderD takes what decode's rank tells its leader.
func (w *World) toLeaderD(m core.SideMsg) {
	if w.set.Leaders {
		w.toLeader = append(w.toLeader, m)
		if t, ok := m.(core.PeerSaid); ok {
			w.fromPeer(t)
		}
		return
	}
	if t, ok := m.(core.Taken); ok && w.number(w.dinc, t.Lease) == 0 {
		w.lease[w.next].id, w.lease[w.next].dinc = t.Lease, w.dinc
	}
}

func (w *World) sendD(a core.Send) {
	l := &w.links[a.Peer-1]
	switch m := a.Env.Body.(type) {
	case spec.Connect:
		l.connect, l.conn = &a, a.Conn
	case spec.Grant:
		if n := w.number(w.dinc, m.Lease); n != 0 {
			w.lease[n].grant[a.Peer-1] = &a
		} else {
			w.lease[w.next].grant[a.Peer-1] = &a
		}
	case spec.Abort:
		if n := w.number(w.dinc, m.Lease); n != 0 {
			w.lease[n].abort[a.Peer-1] = &a
		}
	case spec.Ping:
		l.ping = &a
	case spec.Ask:
		w.asks[m.Transfer] = a
	}
}

// found notes when the pages of leases were found bad: the epochs of the links then, for every lease that has the page.
func (w *World) found(a core.Alarm) {
	l := w.number(w.dinc, a.Lease)
	var bad []uint8
	for _, b := range a.Bad {
		at := int(b.Index)
		if b.Component == spec.Aux {
			at = len(w.lease[l].table) - 1
		}
		if at < len(w.lease[l].table) {
			bad = append(bad, w.lease[l].table[at])
		}
	}
	for y := uint8(1); y < w.next; y++ {
		x := &w.lease[y]
		live := x.dst == model.DstFilling || x.dst == model.DstVerified || x.dst == model.DstReady || x.dst == model.DstRevoking || x.dst == model.DstBad
		if y == l || x.dinc == w.dinc && live && slices.ContainsFunc(bad, func(p uint8) bool { return slices.Contains(x.table, p) }) {
			for k := range ranks(w.tw) {
				x.qep[k] = w.ep(k)
			}
		}
	}
}

// dial is a connect of decode: the fence that it starts with, and the Connect that goes out.
func (w *World) dial(k uint8) {
	w.conns++
	w.stepD(core.Dialed{Peer: core.PeerID(k + 1), Conn: w.conns, Nonce: spec.Nonce{byte(w.conns), byte(w.conns >> 8), 1}})
	if w.links[k].connect == nil {
		w.fail("no connect to rank %d goes out", k)
	}
}

// fenceEnd tells decode's rank that every fence of a link is back: nothing older is being placed.
func (w *World) fenceEnd(k uint8) {
	l := &w.links[k]
	for _, x := range w.writes {
		if x.k == k && (x.stage == stagePlacing || x.stage == stageUnseen) && !w.current(x) {
			w.fail("a fence of rank %d is back, and a write of an older epoch is being placed", k)
		}
	}
	fences := l.fences
	l.fences = nil
	for _, old := range fences {
		w.stepD(core.FenceDone{Peer: core.PeerID(k + 1), Old: old, OK: true})
	}
}

// connect takes the answer to a connect and opens the data path at both ends.
func (w *World) connect(k, i, d, e uint8) {
	a, ok := w.accepts[acceptKey{k, i, d, e}]
	l := &w.links[k]
	if !ok || l.connect == nil {
		w.fail("no answer of rank %d to a connect is there", k)
		return
	}
	w.stepD(core.Recv{Peer: core.PeerID(k + 1), Conn: l.conn, Env: a.Env})
	if l.opening != l.table {
		w.fail("the data path to rank %d is not opened", k)
		return
	}
	w.stepD(core.DataUp{Peer: core.PeerID(k + 1), Epoch: l.table})
	if i == w.pinc[k] {
		w.stepP(k, core.DataUp{Peer: pid(d), Epoch: l.table})
	}
}

func lifeOf(i spec.Incarnation) uint8 { return i[2] - 1 }

// prompt is what a request says; its first page is the prefix.
func (w *World) prompt(t, f uint8) []int32 {
	out := make([]int32, w.set.Prompt)
	for i := range out {
		out[i] = int32(f) + 1
		if uint32(i)/tokensPerPage == w.set.Prompt/tokensPerPage {
			out[i] = 100 + int32(t)
		}
	}
	return out
}

// raiseMark lets a Ping go out: the mark in it is said.
func (w *World) raiseMark(a *model.Args) {
	w.now++
	l := &w.links[a.K]
	l.ping = nil
	w.stepD(core.Tick{})
	if l.ping == nil {
		w.fail("rank %d is told nothing", a.K)
		return
	}
	l.dmark, l.marks[a.M] = a.M, l.ping.Env.Mark
	if w.markOf(l.ping.Env.Mark) != a.M {
		w.fail("decode says mark %d to rank %d, which is %d there", l.ping.Env.Mark, a.K, w.markOf(l.ping.Env.Mark))
	}
}

// markOf is the specification's number of a mark of decode's present life.
func (w *World) markOf(m spec.LeaseID) uint8 {
	if l := w.number(w.dinc, m); l != 0 {
		return l
	}
	return w.next
}

// decodeCrash ends the decode process with all that places into its memory, and starts the next.
func (w *World) decodeCrash() {
	w.note()
	for l := uint8(1); l < w.next; l++ {
		x := &w.lease[l]
		x.verify, x.checked = nil, nil
		if live(x.dst) {
			x.dst = model.DstDead
		}
		w.dead[x.t] = true
	}
	for _, x := range w.writes {
		if x.stage == stagePlacing || x.stage == stageUnseen {
			x.stage = stageOver
		}
	}
	clear(w.arrived)
	clear(w.rec)
	clear(w.kernels)
	for k := range ranks(w.tw) {
		w.links[k].peers[w.dinc].lost = true
	}
	w.dinc++
	w.startDecode()
}

func live(dst uint8) bool {
	switch dst {
	case model.DstFilling, model.DstRevoking, model.DstVerified, model.DstReady, model.DstBad:
		return true
	}
	return false
}

// fromPeer: an Asked goes to the leader at once.
func (w *World) fromPeer(m core.PeerSaid) {
	w.toLeader = w.toLeader[:len(w.toLeader)-1]
	w.stepDL(core.Side{Msg: m})
}
