package lockstep

import (
	"kvfence/impl/core"
	"kvfence/model"
	"kvfence/spec"
)

// Can gives to emit everything that may happen in this world now: a message that lies somewhere arrives, a piece of work ends, a client
// or an operator speaks, something breaks. It looks at the world's boxes and at the machines, never at the specification's state. The
// parameters that only the engine decides (the pages of a grant) are left out.
func (w *World) Can(emit func(name string, a model.Args)) {
	v := view{d: w.d.Inspect()}
	for k := range ranks(w.tw) {
		v.p = append(v.p, w.p[k].Inspect())
	}
	w.canFabric(emit)
	for k := range ranks(w.tw) {
		w.canLink(&v, k, emit)
	}
	if w.dinc < w.tw.ND {
		emit("DecodeCrash", model.Args{})
	}
	for l := uint8(1); l < w.next; l++ {
		w.canLease(&v, l, emit)
		for k := range ranks(w.tw) {
			w.canSource(&v, l, k, emit)
		}
	}
	w.canArrive(&v, emit)
	if w.set.Leaders {
		w.canLead(emit)
	} else if w.next <= w.tw.NL {
		w.canGrant(&v, emit)
	}
}

// view is the machines as they are now.
type view struct {
	d core.DecodeView
	p []core.PrefillView
}

// working says that prefill rank k takes grants on its link with a life of decode, and in which epoch.
func (v *view) working(k, d uint8) (spec.Epoch, bool) {
	for _, x := range v.p[k].Links {
		if x.Peer == pid(d) && x.Working && x.Connected {
			return x.Epoch, true
		}
	}
	return 0, false
}

// holds says that a lease's hold on a link stands.
func (v *view) holds(x *lease, k uint8) bool {
	for _, y := range v.d.Leases {
		for _, h := range y.Holds {
			if y.ID == x.id && h.Peer == core.PeerID(k+1) {
				return h.Standing
			}
		}
	}
	return false
}

func (w *World) canFabric(emit func(string, model.Args)) {
	for _, x := range w.writes {
		a := model.Args{L: x.l, K: x.k, P: x.p, C: x.c, I: x.i}
		switch x.stage {
		case stageQueued:
			b := a
			b.Q = x.q
			emit("Launch", b)
		case stageFlying:
			if w.current(x) {
				emit("Check", a)
			} else {
				emit("Drop", a)
			}
			if w.tw.PlantFlip && !w.spent {
				emit("Flip", a)
			}
		case stagePlacing:
			emit("Copy", a)
		case stageUnseen:
			emit("Visible", a)
			if w.tw.PlantTorn && !w.spent {
				emit("Torn", a)
			}
		}
		s := &w.lease[x.l].at[x.k]
		if w.tw.Losing && x.stage <= stageFlying && !x.lost && x.i == w.pinc[x.k] && (s.pst == model.PstWriting || s.pst == model.PstClosing) {
			emit("Lose", a)
		}
	}
	if w.tw.PlantStray && !w.spent {
		for p := range pageCount(w.tw) {
			for k := range ranks(w.tw) {
				for x := range w.tw.NL + 1 {
					if w.number(w.dinc, spec.LeaseID(w.d.Detail(w.id(p)).Owner)) != x {
						emit("Stray", model.Args{P: p, K: k, X: x})
					}
				}
			}
		}
	}
}

func (w *World) canLink(v *view, k uint8, emit func(string, model.Args)) {
	l := &w.links[k]
	open := v.d.Links[k].Open
	if w.ep(k) < w.tw.NE {
		emit("Fence", model.Args{K: k})
	}
	stale := false
	for _, x := range w.writes {
		stale = stale || x.k == k && (x.stage == stagePlacing || x.stage == stageUnseen) && !w.current(x)
	}
	if len(l.fences) > 0 && !stale {
		emit("FenceEnd", model.Args{K: k})
	}
	w.canConnect(v, k, open, emit)
	if w.pinc[k] < w.tw.NI {
		emit("PrefillCrash", model.Args{K: k})
	}
	if w.tw.Marking && open {
		for _, s := range w.d.Status().Links {
			if m := w.markOf(s.Mark); s.Peer == core.PeerID(k+1) && m > l.dmark {
				emit("RaiseMark", model.Args{K: k, M: m})
			}
		}
		if e, ok := v.connected(k, w.dinc); ok && e == l.table && l.linc == w.pinc[k] {
			for m, said := range l.marks {
				if said != 0 && uint8(m) > w.pmark[k] {
					emit("RecvMark", model.Args{K: k, M: uint8(m)})
				}
			}
		}
	}
}

// connected says that prefill's end of a connection stands, and in which epoch.
func (v *view) connected(k, d uint8) (spec.Epoch, bool) {
	for _, x := range v.p[k].Links {
		if x.Peer == pid(d) && x.Connected {
			return x.Epoch, true
		}
	}
	return 0, false
}

func (w *World) canConnect(v *view, k uint8, open bool, emit func(string, model.Args)) {
	l := &w.links[k]
	works := false
	for d := range w.dinc + 1 {
		if e, ok := v.working(k, d); ok {
			works = true
			if w.tw.PFencing {
				emit("PrefillFence", model.Args{K: k, D: d, E: epochOf(e)})
			}
		}
	}
	if l.connect == nil || open {
		return
	}
	answered := false
	for i := range w.tw.NI + 1 {
		if _, ok := w.accepts[acceptKey{k, i, w.dinc, w.ep(k)}]; ok {
			answered = true
			if len(l.fences) == 0 {
				emit("Connect", model.Args{K: k, I: i, D: w.dinc, E: w.ep(k)})
			}
		}
	}
	if !answered && !works {
		emit("Accept", model.Args{K: k})
	}
}

func (w *World) canLease(v *view, l uint8, emit func(string, model.Args)) {
	x := &w.lease[l]
	if x.dinc != w.dinc || x.parent != 0 {
		return
	}
	a := model.Args{L: l}
	switch x.dst {
	case model.DstFilling, model.DstVerified:
		if !w.set.Leaders || w.told(x.t) {
			emit("Abort", a)
		}
	}
	switch {
	case x.dst == model.DstVerified:
		emit("Ready", a)
	case x.dst == model.DstFilling && x.verify != nil && len(w.compare(x.verify.Checks, x.verify.Void, x.verify.Digests)) == 0:
		emit("Verify", a)
	case x.dst == model.DstFilling && x.verify != nil:
		emit("BadVerify", a)
	case x.dst == model.DstRevoking && x.verify != nil && len(w.compare(x.verify.Checks, x.verify.Void, x.verify.Digests)) == 0:
		emit("Release", a)
	case x.dst == model.DstReady && len(w.kernels) == 0:
		if !w.set.Leaders || w.told(x.t) {
			emit("Release", a)
		}
		w.canRead(l, emit)
	}
	for n := range w.kernels {
		if n[0] == l {
			emit("ReadEnd", model.Args{L: l, P: n[1], G: n[2], X: n[3]})
		}
	}
}

// told says that decode's leader has given a transfer's lease back, and its rank has not heard it.
func (w *World) told(t uint8) bool {
	for _, m := range w.toRank {
		if r, ok := m.(core.ReleaseLease); ok && r.Transfer == w.tr[t].id || abortOf(m, w.tr[t].id) {
			return true
		}
	}
	return false
}

func (w *World) canRead(l uint8, emit func(string, model.Args)) {
	x := &w.lease[l]
	good := true
	for p, g := range x.gpage {
		for k := range ranks(w.tw) {
			if g != 0 && x.owes[k] && has(w.tw, k, uint8(p)) && w.mem[p][k].by != l {
				good = false
			}
		}
	}
	for _, p := range x.table {
		if uint32(p) >= w.set.KV {
			continue
		}
		switch {
		case !good:
			emit("BadRead", model.Args{L: l, P: p, X: l})
		case w.set.Leaders && w.tr[x.t].lead == model.LeadRun:
			emit("Read", model.Args{T: x.t, L: l, P: p, X: l})
		}
		if w.tw.Appending && x.gpage[p] != 0 {
			emit("Append", model.Args{L: l, P: p})
		}
	}
	if w.tw.Growing && w.next <= w.tw.NL {
		emit("Grow", model.Args{L: l, X: w.next})
	}
}

func (w *World) canGrant(v *view, emit func(string, model.Args)) {
	for _, k := range v.d.Links {
		if !k.Open {
			return
		}
	}
	for t := uint8(1); t <= w.tw.NT; t++ {
		used := w.dead[t]
		for l := uint8(1); l < w.next; l++ {
			used = used || w.lease[l].t == t
		}
		for n := range w.tw.Tenant {
			for a := range w.tw.Adapter {
				for f := range w.tw.Prefix {
					if !used {
						emit("Grant", model.Args{T: t, N: uint8(n), A: uint8(a), F: uint8(f), L: w.next})
					}
				}
			}
		}
	}
}

// canArrive is the receipts and notices that were sent.
func (w *World) canArrive(v *view, emit func(string, model.Args)) {
	for r := range w.answers {
		x := &w.lease[r.l]
		if x.dinc != w.dinc || !v.holds(x, r.k) || x.ginc[r.k] != r.i {
			continue
		}
		name := "RecvReceipt"
		if r.c == model.KindComplete || r.c == model.KindMisnamed {
			name = "RecvComplete"
		}
		emit(name, model.Args{C: r.c, X: r.l, L: r.l, K: r.k, I: r.i})
		if _, came := w.rec[r]; came && w.allIn(r) && !w.pendingAt(r.l, r.k, stageUnseen) {
			emit("Take", model.Args{C: r.c, L: r.l, K: r.k, I: r.i})
		}
	}
	for n := range w.notices {
		x := &w.lease[n.l]
		if _, in := w.arrived[n]; in || x.dinc != w.dinc || !v.holds(x, n.k) {
			continue
		}
		behind := true
		for _, y := range w.writes {
			behind = behind && !(y.l == n.l && y.k == n.k && y.c == n.c && y.i == n.i && y.stage < stageUnseen)
		}
		if behind {
			emit("NoticeIn", model.Args{L: n.l, K: n.k, C: n.c, I: n.i})
		}
	}
}

// allIn says that every notice that a receipt lists came in.
func (w *World) allIn(r answerKey) bool {
	for n := range w.notices {
		if _, in := w.arrived[n]; n.l == r.l && n.k == r.k && n.i == r.i && !in {
			return false
		}
	}
	return true
}
