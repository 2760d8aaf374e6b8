package lockstep

import (
	"kvfence/impl/core"
	"kvfence/model"
	"kvfence/spec"
)

// canLead is what may happen to requests: the client speaks, a leader hears something, an answer arrives.
func (w *World) canLead(emit func(string, model.Args)) {
	for t := uint8(1); t <= w.tw.NT; t++ {
		x := &w.tr[t]
		a := model.Args{T: t}
		big := w.tw.Big>>t&1 != 0
		switch {
		case x.lead == model.LeadNew && w.tw.Asking && x.root == t && (t == 1 || !w.set.OneRequest):
			emit("Submit", a)
		case x.boxed != nil && big:
			emit("Refuse", a)
		case x.boxed != nil && w.sideThere(), x.queued && w.peerUp():
			emit("Ask", a)
		}
		w.canAsk(t, emit)
		w.canEnd(t, emit)
		w.canTake(t, emit)
	}
}

// sideThere says that the link of the two ranks 0 is open at decode.
func (w *World) sideThere() bool { return w.d.Inspect().Links[0].Open }

// peerUp says that decode's leader may hear next that its side is there.
func (w *World) peerUp() bool {
	if len(w.toLeader) == 0 || !w.sideThere() {
		return false
	}
	_, ok := w.toLeader[0].(core.PeerUp)
	return ok
}

func (w *World) canAsk(t uint8, emit func(string, model.Args)) {
	x := &w.tr[t]
	same := func(m core.Send) bool {
		for _, k := range w.p[0].Inspect().Links {
			if k.Peer == pid(w.dinc) && k.Working && k.Epoch == m.Env.Epoch {
				return w.sideThere() && m.Env.Epoch == w.links[0].table
			}
		}
		return false
	}
	if m, ok := w.asks[x.id]; ok && !w.pl.Known(x.id) && same(m) {
		emit("RecvAsk", model.Args{T: t})
	}
	if m, ok := w.asked[x.id]; ok && x.lead == model.LeadAsking && same(m) {
		emit("RecvAsked", model.Args{T: t})
	}
}

// report is the next word of decode's rank to its leader.
func (w *World) report() core.SideMsg {
	if len(w.toLeader) == 0 {
		return nil
	}
	return w.toLeader[0]
}

func (w *World) canEnd(t uint8, emit func(string, model.Args)) {
	x := &w.tr[t]
	a := model.Args{T: t}
	client := w.tw.Causes>>model.CauseOriginal&1 != 0 && w.tw.Running
	open := x.lead == model.LeadAsking || x.lead == model.LeadOpen || x.lead == model.LeadRun
	if client && (open || x.queued && x.boxed == nil && x.lead == model.LeadSubmitted) {
		emit("Failure", model.Args{T: t, C: model.CauseOriginal})
	}
	switch m := w.report().(type) {
	case core.LeaseReady:
		if m.Transfer == x.id && x.lead == model.LeadOpen {
			emit("Run", a)
		}
	case core.LeaseFailed:
		if m.Transfer == x.id && open && m.Cause.Derived() {
			emit("Failure", model.Args{T: t, C: model.CauseDerived})
		}
	case core.LeaseFreed:
		if m.Transfer == x.id && x.lead == model.LeadFailed && w.again(t) {
			emit("Retry", model.Args{T: t, U: t + 1, R: x.root})
		}
	}
	r := &w.tr[x.root]
	_, out := w.answered[x.request]
	over := x.lead == model.LeadFailed || x.lead == model.LeadOk || x.lead == model.LeadRefused
	if !over || x.succ != 0 || r.http != model.HTTPNone {
		return
	}
	if out || !w.again(t) {
		emit("Answer", model.Args{T: t, R: x.root})
	}
	if !out && client && x.cause == model.CauseDerived {
		emit("Recause", model.Args{T: t, R: x.root, C: model.CauseOriginal})
	}
}

// again says that a failed transfer is to be tried again.
func (w *World) again(t uint8) bool {
	x := &w.tr[t]
	return w.tw.Retrying && x.lead == model.LeadFailed && x.cause == model.CauseDerived && x.root == t && x.succ == 0
}

// canTake is a lease to be taken, and a step whose token may leave.
func (w *World) canTake(t uint8, emit func(string, model.Args)) {
	x := &w.tr[t]
	for _, m := range w.toRank {
		if k, ok := m.(core.Take); ok && k.Transfer == x.id && x.lead == model.LeadOpen && w.sideThere() && w.next <= w.tw.NL && w.d.Detail(spec.KV, 0).Owner == 0 {
			emit("Grant", model.Args{T: t, L: w.next})
		}
	}
	if x.lead != model.LeadRun || len(w.kernels) > 0 {
		return
	}
	for n := range w.tokens {
		if l := &w.lease[n[0]]; l.t == t && l.dst == model.DstReady {
			emit("Success", model.Args{T: t})
		}
	}
}
