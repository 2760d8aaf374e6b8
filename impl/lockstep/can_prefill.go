package lockstep

import (
	"slices"

	"kvfence/impl/core"
	"kvfence/impl/pages"
	"kvfence/model"
	"kvfence/spec"
)

// canSource is what may happen to one lease at one prefill rank.
func (w *World) canSource(v *view, l, k uint8, emit func(string, model.Args)) {
	x := &w.lease[l]
	s := &x.at[k]
	if x.parent != 0 || !x.owes[k] {
		return
	}
	a := model.Args{L: l, K: k}
	if x.ginc[k] == w.pinc[k] {
		w.canHear(v, l, k, emit)
		w.canClose(l, k, emit)
	}
	for _, q := range s.pages {
		if s.over {
			break
		}
		b := a
		b.Q = q
		switch w.src[k][q].state {
		case model.SrcRaw:
			emit("Compute", b)
		case model.SrcComputed:
			emit("Seal", b)
		}
	}
	if s.taken && !s.over && (s.pst == model.PstClosed || s.pst == model.PstNone) {
		b := a
		b.Q = slices.Min(s.pages)
		emit("GiveBack", b)
	}
	if s.pst == model.PstWriting && !s.taken && w.sourceFree(k) && (!w.set.Leaders || w.says(k, core.TakeSource{}, x.t)) {
		emit("TakeSource", model.Args{L: l, K: k, Q: 1})
	}
	if s.pst == model.PstWriting && s.seal != nil {
		it := s.seal.Items[0]
		q := w.sourcePage(it.Part.Component, it.Src.Page)
		for c := range uint8(len(w.tw.Chan)) {
			emit("Post", model.Args{L: l, K: k, P: w.page(it.Part.Component, w.grantedPage(x, k, it)), C: c, Q: q})
		}
	}
}

// grantedPage is the page of decode that a sealed part goes to, as the grant says.
func (w *World) grantedPage(x *lease, k uint8, it core.SealItem) spec.PageID {
	g, _ := x.grant[k].Env.Body.(spec.Grant)
	return g.Pages[it.Part.Component][it.Index].Page
}

// says reports whether prefill's leader has said such a word about a transfer that its rank has not heard.
func (w *World) says(k uint8, like core.TakeSource, t uint8) bool {
	like.Transfer = w.tr[t].id
	return slices.ContainsFunc(w.toP[k], func(m core.SideMsg) bool { y, ok := m.(core.TakeSource); return ok && y.Transfer == like.Transfer })
}

// sourceFree says that a rank has the source pages of a prompt.
func (w *World) sourceFree(k uint8) bool {
	for q := range w.set.sources() {
		if w.p[k].Detail(spec.KV, spec.PageID(q)).State != pages.Free {
			return false
		}
	}
	return w.set.Aux == 0 || k != w.tw.AuxWriter || w.p[k].Detail(spec.Aux, 0).State == pages.Free
}

// canHear is the grants and aborts that were sent to a rank.
func (w *World) canHear(v *view, l, k uint8, emit func(string, model.Args)) {
	x := &w.lease[l]
	s := &x.at[k]
	e, ok := v.working(k, x.dinc)
	if !ok || epochOf(e) != x.gep[k] || s.killed {
		return
	}
	a := model.Args{L: l, K: k}
	if s.pst == model.PstNone && x.grant[k] != nil {
		b := a
		b.T = x.t
		switch {
		case w.pmark[k] <= l:
			for view := model.ViewSame; view <= model.ViewOther; view++ {
				if b.V = view; w.set.Unfilled>>x.t&1 == 0 && w.tw.Views>>view&1 != 0 && view != model.ViewShort {
					emit("Start", b)
				}
			}
		case !w.blind(k, l) || w.passed(k, l):
			emit("Gone", a)
		}
	}
	if x.abort[k] != nil && (s.pst == model.PstWriting || s.pst == model.PstNone && w.pmark[k] <= l) {
		emit("RecvAbort", a)
	}
}

// blind says that of this lease or a later one, which the rank has forgotten, something was posted.
func (w *World) blind(k, l uint8) bool {
	for ; l < w.next; l++ {
		if s := &w.lease[l].at[k]; s.posted && s.pst == model.PstNone {
			return true
		}
	}
	return false
}

// passed says that a mark of decode that a rank has heard is above a lease.
func (w *World) passed(k, l uint8) bool {
	for m, told := range w.links[k].told {
		if told && uint8(m) > l {
			return true
		}
	}
	return false
}

// canClose is how a lease ends at a rank.
func (w *World) canClose(l, k uint8, emit func(string, model.Args)) {
	x := &w.lease[l]
	s := &x.at[k]
	a := model.Args{L: l, K: k}
	drained, posted := w.canNotice(l, k, emit)
	if s.pst == model.PstWriting && w.tw.Breaking {
		emit("Break", a)
	}
	switch {
	case s.pst == model.PstWriting && s.notice != nil && drained && s.chunk && s.seal == nil:
		emit("Complete", a)
	case s.pst == model.PstClosing && (s.aborting || !s.breaking && !s.own) && (!posted || s.notice != nil) && drained:
		emit("AbortAck", a)
	case s.pst == model.PstClosing && !s.aborting && (!posted || s.notice != nil) && drained:
		emit("Failed", a)
	}
}

// canNotice is the notices that may go out. drained: all that must have gone out have, and no source is still to be read.
func (w *World) canNotice(l, k uint8, emit func(string, model.Args)) (drained, posted bool) {
	s := &w.lease[l].at[k]
	drained = true
	for c := range uint8(len(w.tw.Chan)) {
		carried := false
		for _, y := range w.writes {
			if y.l == l && y.k == k && y.c == c && y.i == w.pinc[k] {
				carried = true
				drained = drained && y.stage != stageQueued
			}
		}
		sent := w.notices[noticeKey{l, k, c, w.pinc[k]}]
		posted = posted || carried
		drained = drained && (!carried || sent)
		if carried && !sent && s.notice != nil && (s.pst == model.PstWriting || s.pst == model.PstClosing) {
			emit("Notice", model.Args{L: l, K: k, C: c})
		}
	}
	return drained, posted
}
