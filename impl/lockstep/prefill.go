package lockstep

import (
	"kvfence/impl/core"
	"kvfence/model"
	"kvfence/spec"
)

// stepP gives one prefill rank an event and puts what it says into the boxes. A fence of its own end is back at once: what was
// queued is not read any more.
func (w *World) stepP(k uint8, ev core.Event) []core.Action {
	acts, err := w.p[k].Step(w.now, ev)
	if err != nil {
		w.fail("prefill rank %d, %T: %v", k, ev, err)
	}
	var fences []core.FenceDone
	for _, a := range acts {
		if f, ok := a.(core.Fence); ok {
			for _, x := range w.writes {
				if x.k == k && x.stage == stageQueued && pid(x.dinc) == f.Peer && x.epoch <= f.Old {
					x.stage = stageOver
				}
			}
			w.emptyBox(k, f)
			fences = append(fences, core.FenceDone{Peer: f.Peer, Old: f.Old, OK: true})
		}
		w.actP(k, a)
	}
	for _, f := range fences {
		w.stepP(k, f)
	}
	return acts
}

// emptyBox drops what lies in a rank's box for leases of an epoch that is over.
func (w *World) emptyBox(k uint8, f core.Fence) {
	for l := uint8(1); l < w.next; l++ {
		x := &w.lease[l]
		if s := &x.at[k]; pid(x.dinc) == f.Peer && spec.Epoch(x.gep[k])+1 <= f.Old && (s.aborting || s.breaking) {
			s.aborting, s.breaking, s.killed = false, false, true
		}
	}
}

func (w *World) actP(k uint8, a core.Action) {
	switch a := a.(type) {
	case core.Did:
		if l := w.number(uint8(a.Peer-1), a.Lease); a.Name == "Forget" && l != 0 {
			w.lease[l].at[k].pst, w.lease[l].at[k].killed = model.PstNone, false
		}
	case core.Send:
		w.sendP(k, a)
	case core.VoidTags:
	case core.Seal:
		if s := w.at(k, a.Lease.Peer, a.Lease.Lease); s != nil {
			s.seal = &a
		}
	case core.Post:
		if s := w.at(k, a.Peer, a.Lease); s != nil {
			if s.post != nil || len(a.Items) != 1 {
				w.fail("rank %d posts %d writes of lease %d behind one that is not out", k, len(a.Items), a.Lease)
			}
			s.post = &a
		}
	case core.Notice:
		if s := w.at(k, a.Peer, a.Lease); s != nil {
			s.notice = &a
		}
	case core.ToLeader:
		if w.set.Leaders {
			w.stepPL(core.Side{Rank: spec.Rank(k), Msg: a.Msg})
		}
	case core.Stop:
		w.fail("prefill rank %d stopped: I%d %s", k, a.Invariant, a.Broken)
	}
}

// at is a lease at a prefill rank by the engine's names.
func (w *World) at(k uint8, p core.PeerID, id spec.LeaseID) *source {
	if l := w.number(uint8(p-1), id); l != 0 {
		return &w.lease[l].at[k]
	}
	w.fail("rank %d speaks of lease %d of peer %d", k, id, p)
	return nil
}

func (w *World) sendP(k uint8, a core.Send) {
	d := uint8(a.Peer - 1)
	say := func(c uint8, id spec.LeaseID) {
		if l := w.number(d, id); l != 0 {
			w.answers[answerKey{c, l, k, w.pinc[k]}] = a
		} else {
			w.fail("rank %d answers for lease %d", k, id)
		}
	}
	switch m := a.Env.Body.(type) {
	case spec.Asked:
		w.asked[m.Transfer] = a
	case spec.Accept:
		w.accepts[acceptKey{k, w.pinc[k], d, epochOf(a.Env.Epoch)}] = a
	case spec.Complete:
		l := w.number(d, m.Lease)
		if c := model.KindComplete; l != 0 && m.Request == w.request(&w.lease[l]) {
			say(c, m.Lease)
		} else {
			say(model.KindMisnamed, m.Lease)
		}
	case spec.AbortAck:
		say(model.KindAck, m.Lease)
	case spec.Failed:
		say(model.KindFailed, m.Lease)
	case spec.Gone:
		say(model.KindGone, m.Lease)
	}
}

// accept gives a prefill rank the connect that is out; older connections have ended.
func (w *World) accept(k uint8) {
	l := &w.links[k]
	if l.connect == nil {
		w.fail("no connect to rank %d is out", k)
		return
	}
	for d := range l.peers {
		if p := &l.peers[d]; p.conn != 0 {
			w.stepP(k, core.ConnLost{Peer: pid(uint8(d)), Conn: p.conn})
			p.conn = 0
		}
	}
	l.peers[w.dinc] = peer{conn: l.conn}
	env := l.connect.Env
	env.Mark = 0
	w.stepP(k, core.ConnectIn{Peer: pid(w.dinc), Conn: l.conn, Env: env, DataAddress: "x"})
	if _, ok := w.accepts[acceptKey{k, w.pinc[k], w.dinc, epochOf(env.Epoch)}]; !ok {
		w.fail("rank %d does not accept", k)
	}
}

// deliver gives a prefill rank a message that decode sent on the link of that life of it. Its mark is one that was said before.
func (w *World) deliver(k, d uint8, m *core.Send, mark spec.LeaseID) {
	if m == nil {
		w.fail("rank %d was not sent this", k)
		return
	}
	env := m.Env
	env.Mark = mark
	w.stepP(k, core.Recv{Peer: pid(d), Conn: w.links[k].peers[d].conn, Env: env})
}

// prefillFence is a connection or a data path that ends at prefill.
func (w *World) prefillFence(a *model.Args) {
	p := &w.links[a.K].peers[a.D]
	if p.lost && p.conn != 0 {
		w.stepP(a.K, core.ConnLost{Peer: pid(a.D), Conn: p.conn})
		p.conn = 0
		return
	}
	w.stepP(a.K, core.DataLost{Peer: pid(a.D), Epoch: spec.Epoch(a.E) + 1})
}

// recvMark gives a rank a message with a mark that was said.
func (w *World) recvMark(a *model.Args) {
	l := &w.links[a.K]
	w.now++
	l.ping = nil
	w.stepD(core.Tick{})
	if l.ping == nil {
		w.fail("rank %d is told nothing", a.K)
		return
	}
	l.told[a.M] = true
	w.deliver(a.K, w.dinc, l.ping, l.marks[a.M])
}

func (w *World) prefillCrash(a *model.Args) {
	w.note()
	k := a.K
	for _, x := range w.writes {
		if x.k == k && x.stage == stageQueued {
			x.stage = stageOver
		}
	}
	for l := range w.lease {
		w.lease[l].at[k] = source{view: w.lease[l].at[k].view}
	}
	for d := range w.links[k].peers {
		w.links[k].peers[d] = peer{}
	}
	for f := range w.fenced {
		if f[0] == k {
			delete(w.fenced, f)
		}
	}
	w.pmark[k], w.links[k].told = 0, [model.MaxLeases + 2]bool{}
	w.pinc[k]++
	w.startPrefill(k)
}
