package lockstep

import (
	"slices"

	"kvfence/impl/core"
	"kvfence/model"
	"kvfence/spec"
)

// The stimuli of leases at decode: grants, receipts, checks, reads, ends.

// take hands out the pages of a lease and sends its grants.
func (w *World) grant(a *model.Args) {
	x := &w.lease[w.next]
	*x = lease{t: a.T, dinc: w.dinc, ten: a.N, ada: a.A, pre: a.F}
	if w.set.Leaders {
		w.grantLed(a, x)
		return
	}
	t := w.transfer(a.T, w.dinc)
	var peers []core.PeerID
	for k := range ranks(w.tw) {
		peers = append(peers, core.PeerID(k+1))
	}
	m := core.Take{Transfer: t, Domain: w.domain(x), Request: w.request(x), Tokens: w.set.Prompt, Prefill: peers, MaxGrow: 100}
	if w.set.Published > 0 {
		m.Contents = spec.ContentIDs(w.prompt(a.T, a.F), m.Domain, tokensPerPage)
	}
	w.stepD(core.Side{Msg: m})
	if x.id == 0 {
		return // no room
	}
	w.stepD(core.Side{Msg: core.Go{Transfer: t}})
	w.next++
	w.granted(w.next - 1)
}

// granted writes down what a grant said, from the machine.
func (w *World) granted(l uint8) {
	x := &w.lease[l]
	v := w.d.Inspect()
	for _, k := range v.Links {
		x.gep[k.Peer-1], x.ginc[k.Peer-1] = epochOf(k.Epoch), w.links[k.Peer-1].linc
	}
	for _, y := range v.Leases {
		if y.ID != x.id {
			continue
		}
		for c, ps := range y.Pages {
			for i, g := range ps {
				p := w.page(spec.Component(c), g.Page)
				x.table = append(x.table, p)
				if spec.Component(c) != spec.KV || i >= len(y.Shared) {
					w.gens[p] = append(w.gens[p], g.Gen)
					x.gpage[p] = w.genOf(p, g.Gen)
				}
			}
		}
		for _, h := range y.Holds {
			k := h.Peer - 1
			x.owes[k], x.gep[k], x.ginc[k] = true, epochOf(h.Epoch), lifeOf(h.Incarnation)
		}
	}
}

func (w *World) domain(x *lease) spec.Domain {
	return spec.DomainOf(w.tw.Tenant[x.ten], "", w.tw.Adapter[x.ada], "m")
}

func (w *World) request(x *lease) spec.RequestDigest {
	t := x.t
	if w.set.Leaders { // tried again, it is the same request
		t = w.tr[t].root
	}
	return spec.DigestRequest(w.prompt(t, x.pre), w.domain(x))
}

// hear gives decode's rank a receipt that came.
func (w *World) hear(r answerKey) {
	m := w.answers[r]
	w.stepD(core.Recv{Peer: core.PeerID(r.k + 1), Conn: m.Conn, Env: m.Env})
}

// recv is the arrival of a receipt. It waits in the rank's box until it may be taken; if it may not be taken now the rank may have it.
func (w *World) recv(a *model.Args) {
	r := answerKey{a.C, a.L, a.K, a.I}
	if _, sent := w.answers[r]; !sent {
		w.fail("no receipt %v was sent", r)
		return
	}
	told := w.rec[r]
	if !w.lazy && !w.ready(r) {
		w.hear(r)
		told = true
	}
	w.rec[r] = told
}

// ready reports whether the rank would take a receipt at once: it was told of every notice that the receipt lists.
func (w *World) ready(r answerKey) bool {
	for n, told := range w.arrived {
		if n.l == r.l && n.k == r.k && !told {
			return false
		}
	}
	for n := range w.notices {
		if _, in := w.arrived[n]; n.l == r.l && n.k == r.k && n.i == r.i && !in {
			return false
		}
	}
	return true
}

// noticeIn is the arrival of a notice at the end of its channel. The rank is told when what came before it is visible.
func (w *World) noticeIn(a *model.Args) {
	n := noticeKey{a.L, a.K, a.C, a.I}
	if !w.notices[n] {
		w.fail("no notice %v was sent", n)
		return
	}
	for _, x := range w.writes {
		if x.l == n.l && x.k == n.k && x.c == n.c && x.i == n.i && x.stage < stageUnseen {
			w.fail("notice %v overtakes a write", n)
		}
	}
	w.arrived[n] = false
	if w.lazy || w.pendingAt(n.l, n.k, stageUnseen) {
		return
	}
	for r, told := range w.rec {
		if told && r.l == n.l && r.k == n.k {
			return // it may be what the receipt waits for
		}
	}
	w.tellNotice(n)
}

func (w *World) tellNotice(n noticeKey) {
	w.arrived[n] = true
	x := &w.lease[n.l]
	w.stepD(core.NoticeIn{Peer: core.PeerID(n.k + 1), Epoch: spec.Epoch(x.gep[n.k]) + 1, Channel: uint32(n.c), Lease: x.id, Number: uint64(n.l)})
}

// takeReceipt gives the rank what it lacks to take a receipt: it takes it now.
func (w *World) takeReceipt(a *model.Args) {
	r := answerKey{a.C, a.L, a.K, a.I}
	told, came := w.rec[r]
	if !came {
		w.fail("receipt %v did not come", r)
		return
	}
	if w.pendingAt(a.L, a.K, stageUnseen) {
		w.fail("the flush of rank %d is not over", a.K)
	}
	if !told {
		for o, told := range w.rec { // of two only the last counts
			if told && o.l == r.l && o.k == r.k {
				w.rec[o] = false
			}
		}
	}
	for c := range uint8(len(w.tw.Chan)) {
		n := noticeKey{a.L, a.K, c, a.I}
		if told, in := w.arrived[n]; in && !told {
			w.tellNotice(n)
		}
	}
	if !told {
		w.hear(r)
	}
	for o := range w.rec {
		if o.l == r.l && o.k == r.k {
			delete(w.rec, o)
		}
	}
}

// verify is the check of a lease's tags and digests; its outcome waits in the rank's box if it is good.
func (w *World) verify(a *model.Args, good bool) {
	x := &w.lease[a.L]
	if x.verify == nil {
		w.fail("lease %d is not verified now", a.L)
		return
	}
	bad := w.compare(x.verify.Checks, x.verify.Void, x.verify.Digests)
	if (len(bad) == 0) != good {
		w.fail("the check of lease %d finds %v", a.L, bad)
	}
	x.checked = &core.Verified{Lease: x.id, Bad: bad}
	if !good {
		w.endVerify(a.L)
	}
}

func (w *World) endVerify(l uint8) {
	x := &w.lease[l]
	if x.verify == nil {
		w.fail("lease %d is not verified now", l)
		return
	}
	v := x.checked
	if v == nil {
		v = &core.Verified{Lease: x.id, Bad: w.compare(x.verify.Checks, x.verify.Void, x.verify.Digests)}
	}
	x.verify, x.checked = nil, nil
	w.stepD(*v)
}

// release gives a lease back: at its leader's word, or because its last local work has ended.
func (w *World) release(a *model.Args) {
	x := &w.lease[a.L]
	if x.verify != nil {
		w.endVerify(a.L)
		return
	}
	t := w.transfer(x.t, x.dinc)
	if w.set.Leaders {
		w.flush("release", func(m core.SideMsg) bool {
			r, ok := m.(core.ReleaseLease)
			return ok && r.Transfer == t || abortOf(m, t)
		})
		return
	}
	w.stepD(core.Side{Msg: core.ReleaseLease{Transfer: t}})
}

// read is one kernel of decode between its two checks; pos is where it appends, 0: nowhere.
func (w *World) readBegin(l uint8, pos uint32) *core.ReadPages {
	for _, a := range w.stepD(core.ReadBegin{Lease: w.lease[l].id, Pos: pos}) {
		if p, ok := a.(core.ReadPages); ok {
			return &p
		}
	}
	w.fail("lease %d may not be read", l)
	return nil
}

func (w *World) appendTo(a *model.Args) {
	x := &w.lease[a.L]
	at := slices.Index(x.table, a.P)
	if tp := w.readBegin(a.L, max(w.set.Prompt, uint32(at)*tokensPerPage)); tp != nil {
		w.stepD(core.ReadEnd{Lease: x.id, Bad: w.compare(tp.Checks, nil, false), Copied: true})
	}
}

func (w *World) badRead(a *model.Args) {
	tp := w.readBegin(a.L, 0)
	if tp == nil {
		return
	}
	bad := w.compare(tp.Checks, nil, false)
	if len(bad) == 0 {
		w.fail("the check of lease %d finds nothing", a.L)
	}
	w.stepD(core.ReadEnd{Lease: w.lease[a.L].id, Bad: bad})
}

func (w *World) grow(a *model.Args) {
	x := &w.lease[a.L]
	kv := 0
	for _, p := range x.table {
		if uint32(p) < w.set.KV {
			kv++
		}
	}
	w.stepD(core.Side{Msg: core.Grow{Transfer: w.transfer(x.t, x.dinc), Pos: uint32(kv) * tokensPerPage}})
	g := &w.lease[w.next]
	*g = lease{t: x.t, dinc: w.dinc, parent: a.L, ten: x.ten, ada: x.ada, pre: x.pre}
	for _, y := range w.d.Inspect().Leases {
		if ps := y.Pages[spec.KV]; y.ID == x.id && len(ps) == kv+1 {
			g.grown = w.page(spec.KV, ps[kv].Page)
			w.gens[g.grown] = append(w.gens[g.grown], ps[kv].Gen)
			g.gpage[g.grown] = w.genOf(g.grown, ps[kv].Gen)
			x.table = append(x.table, g.grown)
			w.next++
			return
		}
	}
}

// abortLease is its leader's word to revoke a lease.
func (w *World) abortLease(a *model.Args) {
	x := &w.lease[a.L]
	if w.set.Leaders {
		w.flush("abort", func(m core.SideMsg) bool { return abortOf(m, w.tr[x.t].id) })
		return
	}
	w.stepD(core.Side{Msg: core.AbortLease{Transfer: w.transfer(x.t, x.dinc), Cause: spec.CauseClientGone}})
}

// grantLed lets decode's rank take the pages that its leader asks for, and send its grants when the leader says go.
func (w *World) grantLed(a *model.Args, x *lease) {
	id := w.tr[a.T].id
	w.flush("take", func(m core.SideMsg) bool { y, ok := m.(core.Take); return ok && y.Transfer == id })
	for _, v := range w.d.Inspect().Leases {
		if v.Transfer == id {
			x.id = v.ID
		}
	}
	if x.id == 0 {
		return // no room
	}
	w.flush("go", func(m core.SideMsg) bool { y, ok := m.(core.Go); return ok && y.Transfer == id })
	w.next++
	w.granted(w.next - 1)
}

func abortOf(m core.SideMsg, t spec.TransferID) bool {
	a, ok := m.(core.AbortLease)
	return ok && a.Transfer == t
}
