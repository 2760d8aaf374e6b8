package lockstep

import (
	"slices"

	"kvfence/impl/core"
	"kvfence/model"
	"kvfence/spec"
)

// note takes from the machines what they will have forgotten later: the present states of leases at both ends.
func (w *World) note() {
	w.noteDecode()
	for k := range ranks(w.tw) {
		w.notePrefill(k)
	}
	if w.set.Leaders {
		w.noteLeaders()
	}
}

func (w *World) noteDecode() {
	v := w.d.Inspect()
	for _, k := range v.Links {
		if k.Open {
			w.links[k.Peer-1].linc = lifeOf(k.Incarnation)
		}
	}
	for l := uint8(1); l < w.next; l++ {
		x := &w.lease[l]
		if x.dinc != w.dinc || x.parent != 0 {
			continue
		}
		at := slices.IndexFunc(v.Leases, func(y core.LeaseView) bool { return y.ID == x.id })
		found := slices.ContainsFunc(v.Findings, func(f []spec.LeaseID) bool { return slices.Contains(f, x.id) })
		if at >= 0 {
			for _, h := range v.Leases[at].Holds {
				x.got[h.Peer-1] = x.got[h.Peer-1] || h.Got
			}
		}
		x.dst = dstOf(x, v.Leases, at, found)
	}
	for l := uint8(1); l < w.next; l++ {
		if x := &w.lease[l]; x.parent != 0 && x.dinc == w.dinc {
			x.dst = model.DstDone
			if d := w.d.Detail(w.id(x.grown)); uint64(d.Owner) == uint64(w.lease[x.parent].id) && w.gen(x.grown) == x.gpage[x.grown] {
				x.dst = model.DstReady
			}
		}
	}
}

// dstOf is the specification's state of a lease: the machine's, or what it came to when the machine has forgotten it.
func dstOf(x *lease, all []core.LeaseView, at int, found bool) uint8 {
	switch {
	case found:
		return model.DstBad
	case at >= 0:
		switch all[at].State {
		case "filling":
			return model.DstFilling
		case "verifying":
			if x.checked != nil && len(x.checked.Bad) == 0 {
				return model.DstVerified
			}
			return model.DstFilling
		case "ready":
			return model.DstReady
		case "revoking":
			return model.DstRevoking
		}
		return model.DstNew
	case x.dst == model.DstReady:
		return model.DstDone
	case live(x.dst) || x.dst == model.DstNew:
		return model.DstFailed
	}
	return x.dst
}

func (w *World) notePrefill(k uint8) {
	v := w.p[k].Inspect()
	for l := uint8(1); l < w.next; l++ {
		x := &w.lease[l]
		s := &x.at[k]
		at := slices.IndexFunc(v.Leases, func(y core.SourceLeaseView) bool { return y.Peer == pid(x.dinc) && y.ID == x.id })
		switch {
		case x.parent != 0:
		case at >= 0:
			s.pst = map[string]uint8{"writing": model.PstWriting, "closing": model.PstClosing, "closed": model.PstClosed}[v.Leases[at].State]
			s.own = v.Leases[at].Own
		case s.killed || s.pst != model.PstNone && !s.aborting && !s.breaking:
			s.killed, s.pst = true, model.PstClosed
		}
		if s.aborting || s.breaking {
			s.pst = model.PstClosing
		}
	}
	for _, y := range v.Links {
		d := uint8(y.Peer - 1)
		for e := range w.tw.NE + 1 {
			if _, ok := w.accepts[acceptKey{k, w.pinc[k], d, e}]; ok && spec.Epoch(e)+1 <= y.Fenced {
				w.fenced[[3]uint8{k, d, e}] = true
			}
		}
		if y.OwnMark > 0 {
			w.pmark[k] = max(w.pmark[k], w.number(d, y.OwnMark-1)+1)
		}
		for m, said := range w.links[k].marks {
			if d == w.dinc && said != 0 && y.Mark == said && w.links[k].told[m] {
				w.pmark[k] = max(w.pmark[k], uint8(m))
			}
		}
	}
	for l := uint8(1); l < w.next; l++ {
		if s := &w.lease[l].at[k]; s.killed && l < w.pmark[k] {
			s.pst = model.PstNone
		}
	}
}

// Project is the state of the specification that the world is in, from the machines, the ledgers, what was sent, and the memory. It
// knows nothing of the twin's path. Sources says where each variable comes from.
func (w *World) Project() model.State {
	s := model.State{NextL: w.next, Dinc: w.dinc, Spent: w.spent}
	for t := uint8(1); t <= w.tw.NT; t++ {
		s.Root[t] = t
	}
	w.projectLeaders(&s)
	w.projectDecode(&s)
	w.projectLeases(&s)
	w.projectPrefill(&s)
	w.projectSets(&s)
	return s
}

// projectLed is what the leaders say.
func (w *World) projectLed(s *model.State) {
	for t := uint8(1); t <= w.tw.NT; t++ {
		x := &w.tr[t]
		s.Lead[t], s.Cause[t], s.Root[t], s.Succ[t], s.Http[t] = x.lead, x.cause, x.root, x.succ, x.http
		s.Pask[t] = x.id != (spec.TransferID{}) && w.pl.Known(x.id)
	}
}

// projectLeaders: without leaders every transfer is open until its leader's process is over.
func (w *World) projectLeaders(s *model.State) {
	if w.set.Leaders {
		w.projectLed(s)
		return
	}
	for t := uint8(1); t <= w.tw.NT; t++ {
		s.Lead[t], s.Pask[t] = model.LeadOpen, true
		if w.dead[t] {
			s.Lead[t], s.Cause[t] = model.LeadFailed, model.CauseDerived
		}
	}
}

func (w *World) projectDecode(s *model.State) {
	for _, k := range w.d.Inspect().Links {
		r := k.Peer - 1
		s.Ep[r], s.Up[r] = epochOf(k.Epoch), k.Open
		if s.Ep[r] != w.ep(uint8(r)) {
			w.fail("rank %d is in epoch %d, its grant table in %d", r, k.Epoch, w.links[r].table)
		}
		s.Fencing[r] = len(k.Fencing) > 0
		s.Linc[r], s.Dmark[r] = w.links[r].linc, w.links[r].dmark
	}
	for p := range pageCount(w.tw) {
		d := w.d.Detail(w.id(p))
		s.Gen[p], s.App[p] = w.genOf(p, d.Gen), d.Stored
		if l := w.number(w.dinc, spec.LeaseID(d.Owner)); l != 0 {
			s.Own[p] = l
			for x := uint8(1); x < w.next; x++ {
				if g := &w.lease[x]; g.parent == l && g.dinc == w.dinc && g.grown == p && g.gpage[p] == s.Gen[p] {
					s.Own[p] = x
				}
			}
		}
		if pub := d.Published; pub != nil {
			w.put(s, "pubs", p, w.genOf(p, pub.Gen), w.number(w.dinc, spec.LeaseID(pub.Filler)))
		}
	}
	for _, y := range w.d.Inspect().Leases {
		if w.number(w.dinc, y.ID) == 0 {
			continue // taken, not granted
		}
		for _, pub := range y.Shared {
			w.put(s, "shr", w.number(w.dinc, y.ID), w.page(spec.KV, pub.Page), w.number(w.dinc, spec.LeaseID(pub.Filler)))
		}
		for _, h := range y.Holds {
			s.Hold[w.number(w.dinc, y.ID)][h.Peer-1] = h.Standing
		}
	}
}

func (w *World) projectLeases(s *model.State) {
	for l := uint8(1); l < w.next; l++ {
		x := &w.lease[l]
		s.Tof[l], s.Dof[l], s.Ten[l], s.Ada[l], s.Pre[l] = x.t, x.dinc, x.ten, x.ada, x.pre
		s.Dst[l], s.Gpage[l] = x.dst, x.gpage
		s.Got[l], s.Owes[l], s.Gep[l], s.Ginc[l], s.Qep[l] = x.got, x.owes, x.gep, x.ginc, x.qep
		for k := range ranks(w.tw) {
			s.Pst[l][k], s.Pview[l][k] = x.at[k].pst, x.at[k].view
		}
	}
	for l := w.next; l <= w.tw.NL; l++ {
		s.Ten[l], s.Ada[l], s.Pre[l] = w.tw.NoTenant, w.tw.NoAdapter, w.tw.NoPrefix
	}
}

func (w *World) projectPrefill(s *model.State) {
	for k := range ranks(w.tw) {
		s.Pinc[k], s.Pmark[k] = w.pinc[k], w.pmark[k]
		v := w.p[k].Inspect()
		for q := uint8(1); q <= w.tw.NQ; q++ {
			s.Sdat[k][q], s.Sst[k][q] = w.src[k][q].content, w.src[k][q].state
			c, p := spec.KV, spec.PageID(q-1)
			if uint32(q) > w.set.Source {
				c, p = spec.Aux, spec.PageID(uint32(q)-w.set.Source-1)
			}
			owner := w.p[k].Detail(c, p).Owner
			for _, j := range v.Jobs {
				if owner != 0 && j.Owner == owner {
					s.Sown[k][q] = w.leaseOf(j.Transfer)
				}
			}
		}
	}
	for _, x := range w.writes {
		s.Src[x.l][x.k][x.p][x.c] = x.q
	}
	s.Pay = w.pay
	for p := range pageCount(w.tw) {
		for k := range ranks(w.tw) {
			s.Mem[p][k], s.Tagl[p][k] = w.mem[p][k].content, w.mem[p][k].by
		}
	}
}

// leaseOf is the lease of a transfer by its engine's name.
func (w *World) leaseOf(t spec.TransferID) uint8 {
	for l := uint8(1); l < w.next; l++ {
		if x := &w.lease[l]; x.parent == 0 && w.transfer(x.t, x.dinc) == t {
			return l
		}
	}
	return 0
}

func (w *World) projectSets(s *model.State) {
	for _, x := range w.writes {
		at := []uint8{x.l, x.k, x.p, x.c, x.i}
		w.put(s, "sent", at...)
		if x.lost {
			w.put(s, "lost", at...)
		}
		if x.stage < stageOver {
			w.put(s, [...]string{"queued", "flying", "placing", "unseen"}[x.stage], at...)
		}
	}
	for a := range w.accepts {
		w.put(s, "acc", a.k, a.i, a.d, a.e)
	}
	for a := range w.answers {
		w.put(s, "ans", a.c, a.l, a.k, a.i)
	}
	for n := range w.notices {
		w.put(s, "nsent", n.l, n.k, n.c, n.i)
	}
	for n := range w.arrived {
		w.put(s, "nin", n.l, n.k, n.c, n.i)
	}
	for r := range w.rec {
		w.put(s, "rec", r.c, r.l, r.k, r.i)
	}
	for f := range w.fenced {
		w.put(s, "pfenced", f[0], f[1], f[2])
	}
	for k := range w.kernels {
		w.put(s, "krn", k[0], k[1], k[2], k[3])
	}
	for t := range w.tokens {
		w.put(s, "tok", t[0], t[1], t[2])
	}
}
