package lockstep

import (
	"slices"

	"kvfence/impl/core"
	"kvfence/model"
	"kvfence/spec"
)

// leaders are the two leaders with what lies between them, their ranks and the client.
type leaders struct {
	dl       *core.DecodeLeader
	pl       *core.PrefillLeader
	toRank   []core.SideMsg                   // from decode's leader to its rank, in order
	toLeader []core.SideMsg                   // from decode's rank to its leader, in order
	toP      [model.MaxRanks][]core.SideMsg   // from prefill's leader to its ranks, in order
	computes []core.Compute                   // kernels that run
	asks     map[spec.TransferID]core.Send    // sent
	asked    map[spec.TransferID]core.Send    // sent
	answered map[core.RequestID]core.Answer   // the leader's answers, on their way to the client
	tr       [model.MaxTransfers + 1]transfer // by the specification's numbers
	hold     bool                             // the leader has not heard yet that its side is there
}

// transfer is what the world knows of one transfer.
type transfer struct {
	id         spec.TransferID // zero: not minted
	request    core.RequestID
	boxed      *core.Submit // lies in the leader's box
	queued     bool         // waits at the leader for a prefill side
	lead       uint8
	cause      uint8
	root, succ uint8
	http       uint8
}

const grace = 1

func (w *World) startLeaders() {
	n := uint32(ranks(w.tw))
	var own, all [][]spec.Layout
	var peers []core.PeerID
	own = append(own, layouts(0, 1, w.set.KV, w.set.Aux))
	for k := range n {
		all = append(all, layouts(k, n, w.set.Source, min(w.set.Aux, 1)))
		peers = append(peers, core.PeerID(k+1))
	}
	retries := -1
	if w.tw.Retrying {
		retries = 1
	}
	id := spec.Identity{Name: "d", Role: spec.RoleDecode, Incarnation: inc('d', 0, 0), Size: 1, Side: []spec.Incarnation{inc('d', 0, 0)}}
	dl, err := core.NewDecodeLeader(core.DecodeLeaderConfig{Identity: id, SideLayouts: own, Revision: "m", Window: 1000, Prefill: [][]core.PeerID{peers}, MaxRetries: retries,
		PeerBound: never, AskFirst: never, AskMax: never, AskBound: never, CauseGrace: grace, RetryAfter: 1})
	if err != nil {
		w.fail("%v", err)
		return
	}
	pl, err := core.NewPrefillLeader(core.PrefillLeaderConfig{Identity: spec.Identity{Name: "p0", Role: spec.RolePrefill, Incarnation: inc('p', 0, 0), Size: uint16(n), Side: w.prefillSide()},
		SideLayouts: all, Revision: "m", Adapters: w.tw.Adapter, Vocabulary: 1000, Window: 1000, LinkBound: never, GrantBound: never, AskedFirst: never, AskedMax: never, HalfBound: never})
	if err != nil {
		w.fail("%v", err)
		return
	}
	w.dl, w.pl, w.hold = dl, pl, w.set.Hold
	w.asks, w.asked, w.answered = map[spec.TransferID]core.Send{}, map[spec.TransferID]core.Send{}, map[core.RequestID]core.Answer{}
	for t := range w.tr {
		w.tr[t].root = uint8(t)
	}
}

// openAll brings every transfer to where it is open, for settings that do not look at how it is asked for.
func (w *World) openAll() {
	for t := uint8(1); t <= w.tw.NT && w.err == nil; t++ {
		a := &model.Args{T: t}
		for _, do := range []executor{(*World).submit, (*World).ask, (*World).recvAsk, (*World).recvAsked} {
			do(w, a)
			w.note()
		}
	}
}

func (w *World) stepDL(ev core.Event) {
	acts, err := w.dl.Step(w.now, ev)
	if err != nil {
		w.fail("decode leader, %T: %v", ev, err)
	}
	for _, a := range acts {
		switch a := a.(type) {
		case core.ToRank:
			w.toRank = append(w.toRank, a.Msg)
		case core.SendLeader:
			w.stepD(core.SayFor{Peer: a.Peer, Body: a.Body})
		case core.Answer:
			w.answered[a.Req] = a
		case core.Stop:
			w.fail("decode leader stopped: I%d %s", a.Invariant, a.Broken)
		}
	}
}

func (w *World) stepPL(ev core.Event) {
	acts, err := w.pl.Step(w.now, ev)
	if err != nil {
		w.fail("prefill leader, %T: %v", ev, err)
	}
	for _, a := range acts {
		switch a := a.(type) {
		case core.ToRank:
			w.toP[a.Rank] = append(w.toP[a.Rank], a.Msg)
		case core.ReplyLeader:
			w.stepP(0, core.SayFor{Peer: a.Peer, Body: a.Body})
		case core.Compute:
			w.computes = append(w.computes, a)
		}
	}
}

// pump lets decode's leader hear what changes no variable of the specification, in order, up to the first word that does.
func (w *World) pump() {
	for len(w.toLeader) > 0 && w.hidden(w.toLeader[0]) {
		w.next1()
	}
}

// hidden1 says that decode's leader may hear something that means nothing to the specification.
func (w *World) hidden1() bool { return len(w.toLeader) > 0 && w.hidden(w.toLeader[0]) }

// next1 gives decode's leader the next word of its rank.
func (w *World) next1() core.SideMsg {
	m := w.toLeader[0]
	w.toLeader = w.toLeader[1:]
	w.stepDL(core.Side{Msg: m})
	return m
}

// hidden reports a word that means nothing to the specification: what it is about has its verdict, or is between leader and rank.
func (w *World) hidden(m core.SideMsg) bool {
	decided := func(t spec.TransferID) bool {
		x := w.named(t)
		return x != nil && (x.lead == model.LeadFailed || x.lead == model.LeadOk)
	}
	switch m := m.(type) {
	case core.PeerUp:
		if w.hold {
			return false
		}
		for t := range w.tr {
			if w.tr[t].queued {
				return false
			}
		}
		return true
	case core.LeaseReady:
		return decided(m.Transfer)
	case core.LeaseFailed:
		return decided(m.Transfer)
	case core.LeaseFreed:
		x := w.named(m.Transfer)
		if x == nil || x.succ != 0 {
			return true
		}
		_, out := w.answered[x.request]
		return decided(m.Transfer) && (out || w.tr[x.root].http != model.HTTPNone)
	}
	return true
}

// named is a transfer by its engine's name; nil if it has none.
func (w *World) named(t spec.TransferID) *transfer {
	for i := range w.tr {
		if t != (spec.TransferID{}) && w.tr[i].id == t {
			return &w.tr[i]
		}
	}
	return nil
}

// until gives decode's leader words of its rank up to and with the first that is.
func (w *World) until(what string, is func(core.SideMsg) bool) {
	w.pump()
	if len(w.toLeader) == 0 || !is(w.toLeader[0]) {
		w.fail("decode's rank does not say %s: %v", what, w.toLeader)
		return
	}
	w.next1()
}

// flush gives decode's rank words of its leader up to and with the first that is.
func (w *World) flush(what string, is func(core.SideMsg) bool) {
	for len(w.toRank) > 0 {
		m := w.toRank[0]
		w.toRank = w.toRank[1:]
		w.stepD(core.Side{Msg: m})
		w.pump()
		if is(m) {
			return
		}
	}
	w.fail("decode's leader does not say %s", what)
}

// flushP gives a prefill rank words of its leader up to and with the first that is; all of them where none is.
func (w *World) flushP(k uint8, is func(core.SideMsg) bool) bool {
	for len(w.toP[k]) > 0 {
		m := w.toP[k][0]
		w.toP[k] = w.toP[k][1:]
		w.stepP(k, core.Side{Msg: m})
		if is(m) {
			return true
		}
	}
	return false
}

// noteLeaders keeps what the leader will have forgotten.
func (w *World) noteLeaders() {
	all, queued := w.dl.Inspect()
	for t := range w.tr {
		x := &w.tr[t]
		for _, v := range all {
			if x.id != (spec.TransferID{}) && v.ID == x.id {
				x.lead, x.cause = leadOf(v)
			}
		}
		m, out := w.answered[x.request]
		last := x.succ == 0 && x.lead != model.LeadNew && x.request != 0
		if out && last && x.boxed == nil && x.lead != model.LeadOk && m.Finish == "" {
			x.lead, x.cause, x.queued = model.LeadFailed, class(m.Cause), false
			if m.Cause == spec.CauseTooLong {
				x.lead = model.LeadRefused
			}
		}
		if out && m.Finish == "" && x.root == uint8(t) && x.succ != 0 {
			x.cause = class(m.Cause) // an error names the request's first cause
		}
		if x.queued && x.id == (spec.TransferID{}) && !slices.Contains(queued, x.request) {
			w.fail("request %d does not wait at the leader", x.request)
		}
	}
}

func leadOf(v core.TransferView) (lead, cause uint8) {
	switch v.Verdict {
	case "failed":
		return model.LeadFailed, class(v.Cause)
	case "ok":
		return model.LeadOk, model.CauseNone
	}
	switch v.State {
	case "asking":
		return model.LeadAsking, model.CauseNone
	case "asked", "taking", "filling":
		return model.LeadOpen, model.CauseNone
	}
	return model.LeadRun, model.CauseNone
}

func class(c spec.Cause) uint8 {
	if c.Derived() {
		return model.CauseDerived
	}
	return model.CauseOriginal
}
