package lockstep

import (
	"slices"

	"kvfence/impl/core"
	"kvfence/model"
	"kvfence/spec"
)

// The stimuli of requests: the client, the two leaders, steps.

func (w *World) submission(t uint8) core.Submit {
	s := core.Submit{Req: core.RequestID(t), Tenant: w.tw.Tenant[0], Adapter: w.tw.Adapter[0], Prompt: w.prompt(t, 0), MaxNew: 1, EOS: -1}
	if w.tw.Big>>t&1 != 0 {
		s.Prompt = make([]int32, 2000)
	}
	return s
}

// submit is a request that comes: it lies in the leader's box, or waits at the leader while its side is not there.
func (w *World) submit(a *model.Args) {
	s := w.submission(a.T)
	x := &w.tr[a.T]
	x.request, x.lead = s.Req, model.LeadSubmitted
	if w.hold && w.tw.Big>>a.T&1 == 0 {
		w.stepDL(s)
		x.queued = true
		return
	}
	x.boxed = &s
}

// unbox lets the leader see a request; a waiting one sees that its side is there.
func (w *World) unbox(t uint8) {
	x := &w.tr[t]
	switch s := x.boxed; {
	case s != nil:
		x.boxed = nil
		w.stepDL(*s)
	case x.queued:
		x.queued = false
		w.pump()
		if w.hold {
			w.hold = false
		}
		w.pump()
	}
}

func (w *World) ask(a *model.Args) {
	x := &w.tr[a.T]
	if x.id == (spec.TransferID{}) {
		w.unbox(a.T)
		w.mint(a.T)
	}
	if _, sent := w.asks[x.id]; !sent {
		w.fail("prefill is not asked for transfer %d", a.T)
	}
}

// mint finds the name that the leader has given to a transfer.
func (w *World) mint(t uint8) {
	all, _ := w.dl.Inspect()
	for _, v := range all {
		if v.Request == w.tr[t].request && w.named(v.ID) == nil {
			w.tr[t].id = v.ID
		}
	}
}

func (w *World) recvAsk(a *model.Args) {
	m, ok := w.asks[w.tr[a.T].id]
	if !ok {
		w.fail("prefill was not asked for transfer %d", a.T)
		return
	}
	w.deliver(0, w.dinc, &m, 0)
}

func (w *World) recvAsked(a *model.Args) {
	m, ok := w.asked[w.tr[a.T].id]
	if !ok {
		w.fail("prefill did not say Asked to transfer %d", a.T)
		return
	}
	w.stepD(core.Recv{Peer: 1, Conn: m.Conn, Env: m.Env})
	w.pump()
}

func (w *World) run(a *model.Args) {
	w.until("ready", func(m core.SideMsg) bool { x, ok := m.(core.LeaseReady); return ok && x.Transfer == w.tr[a.T].id })
	w.pump()
}

// failure is a client that is gone, or what decode's rank says of its lease.
func (w *World) failure(a *model.Args) {
	x := &w.tr[a.T]
	if a.C == model.CauseDerived {
		w.until("failed", func(m core.SideMsg) bool { y, ok := m.(core.LeaseFailed); return ok && y.Transfer == x.id })
		w.note()
		w.pump()
		return
	}
	w.stepDL(core.ClientGone{Req: x.request})
	x.queued = false
	w.pump()
}

func (w *World) recause(a *model.Args) {
	w.stepDL(core.ClientGone{Req: w.tr[a.T].request})
	w.pump()
}

// retry is the end of the last lease of a transfer that is to be tried again.
func (w *World) retry(a *model.Args) {
	x, y := &w.tr[a.T], &w.tr[a.U]
	w.until("freed", func(m core.SideMsg) bool { f, ok := m.(core.LeaseFreed); return ok && f.Transfer == x.id })
	x.succ, y.root, y.request, y.lead, y.queued = a.U, a.R, x.request, model.LeadSubmitted, true
	w.pump()
	if w.mint(a.U); y.id != (spec.TransferID{}) {
		y.queued = false
	}
}

func (w *World) success(a *model.Args) {
	w.stepDL(core.FirstRead{Transfer: w.tr[a.T].id, OK: true, Tokens: w.set.Prompt, First: core.Token{ID: 7}})
	w.pump()
}

// reply is the answer that reaches the client. One of derived cause waits for its grace.
func (w *World) reply(a *model.Args) {
	x := &w.tr[a.R]
	if _, out := w.answered[x.request]; !out {
		w.now += grace
		w.stepDL(core.Tick{})
	}
	m, out := w.answered[x.request]
	if !out {
		w.fail("request %d is not answered", a.R)
		return
	}
	x.http = model.HTTPError
	if m.Finish != "" {
		x.http = model.HTTP200
	}
	w.pump()
}

// refuse lets the leader judge a request that can never fit.
func (w *World) refuse(a *model.Args) {
	w.unbox(a.T)
	if m, out := w.answered[w.tr[a.T].request]; !out || m.Cause != spec.CauseTooLong {
		w.fail("request %d is not refused", a.T)
	}
}

// read is the first check of a step and the start of its kernel.
func (w *World) read(a *model.Args) {
	tp := w.readBegin(a.L, 0)
	if tp == nil {
		return
	}
	if bad := w.compare(tp.Checks, nil, false); len(bad) > 0 {
		w.fail("the check before a step of lease %d finds %v", a.L, bad)
	}
	d := w.d.Inspect()
	at := slices.IndexFunc(d.Leases, func(y core.LeaseView) bool { return y.ID == w.lease[a.L].id })
	if at < 0 || !d.Leases[at].Reading {
		w.fail("lease %d is not read", a.L)
	}
	w.checks = tp.Checks
	w.kernels[[4]uint8{a.L, a.P, w.gen(a.P), a.X}] = true
}

// readEnd stops a kernel and checks again. Its token leaves only if the tags agree; it is made of what stands there now.
func (w *World) readEnd(a *model.Args) {
	bad := w.compare(w.checks, nil, false)
	if len(bad) == 0 {
		for k := range ranks(w.tw) {
			if w.lease[a.X].owes[k] && has(w.tw, k, a.P) {
				w.tokens[[3]uint8{a.L, a.X, w.mem[a.P][k].content}] = true
			}
		}
	}
	delete(w.kernels, [4]uint8{a.L, a.P, a.G, a.X})
	w.stepD(core.ReadEnd{Lease: w.lease[a.L].id, Bad: bad})
}
