package lockstep

import (
	"slices"

	"kvfence/impl/core"
	"kvfence/model"
	"kvfence/spec"
)

// The stimuli of leases at prefill: source pages, posts, notices, answers.

func (w *World) start(a *model.Args) {
	x := &w.lease[a.L]
	s := &x.at[a.K]
	if !s.known && w.set.Leaders {
		s.known = true
		w.flushP(a.K, func(m core.SideMsg) bool { y, ok := m.(core.Assign); return ok && y.Transfer == w.tr[x.t].id })
	}
	if !s.known {
		s.known, s.view = true, a.V
		m := core.Assign{Transfer: w.transfer(x.t, x.dinc), Request: w.request(x), Domain: w.domain(x), Tokens: w.set.Prompt, Links: []spec.Incarnation{inc('d', 0, x.dinc)}}
		if a.V != model.ViewSame {
			m.Request = spec.DigestRequest([]int32{9}, spec.Domain{})
		}
		w.stepP(a.K, core.Side{Msg: m})
	}
	w.deliver(a.K, x.dinc, x.grant[a.K], 0)
}

func (w *World) takeSource(a *model.Args) {
	x := &w.lease[a.L]
	s := &x.at[a.K]
	t := w.transfer(x.t, x.dinc)
	if w.set.Leaders {
		w.flushP(a.K, func(m core.SideMsg) bool { y, ok := m.(core.TakeSource); return ok && y.Transfer == t })
	} else {
		w.stepP(a.K, core.Side{Msg: core.TakeSource{Transfer: t}})
	}
	for _, j := range w.p[a.K].Inspect().Jobs {
		if j.Transfer != t {
			continue
		}
		for c, ps := range j.Pages {
			for _, g := range ps {
				q := w.sourcePage(spec.Component(c), g.Page)
				s.taken, s.pages = true, append(s.pages, q)
				w.src[a.K][q].state = model.SrcRaw
			}
		}
	}
	if !s.taken {
		w.fail("rank %d has no source pages for lease %d", a.K, a.L)
	}
}

// kernelOver ends the kernel of a transfer that runs at prefill, if one does.
func (w *World) kernelOver(t spec.TransferID) {
	for i, c := range w.computes {
		if c.Transfer == t {
			w.computes = slices.Delete(slices.Clone(w.computes), i, i+1)
			w.stepPL(core.ComputeDone{Transfer: t, From: c.From, To: c.To})
			return
		}
	}
}

// compute is a kernel: it stores, and the rank hears nothing of it.
func (w *World) compute(a *model.Args) {
	c := &w.src[a.K][a.Q]
	c.state, c.content = model.SrcComputed, 0
	if w.lease[a.L].at[a.K].view == model.ViewSame {
		c.content = a.L
	}
}

// seal is the event of a kernel's stream. With the last one of a prompt the rank hears that it is computed.
func (w *World) seal(a *model.Args) {
	w.src[a.K][a.Q].state = model.SrcSealed
	x := &w.lease[a.L]
	s := &x.at[a.K]
	if s.chunk || slices.ContainsFunc(s.pages, func(q uint8) bool { return w.src[a.K][q].state != model.SrcSealed }) {
		return
	}
	s.chunk = true
	if w.set.Leaders {
		w.kernelOver(w.tr[x.t].id)
		chunk := func(m core.SideMsg) bool { _, ok := m.(core.ChunkDone); return ok }
		if slices.ContainsFunc(w.toP[a.K], chunk) {
			w.flushP(a.K, chunk)
		}
		return
	}
	w.stepP(a.K, core.Side{Msg: core.ChunkDone{Transfer: w.transfer(x.t, x.dinc), To: w.set.Prompt, Last: true}})
}

// sealedEvent ends the seal that runs; the digests are those of the bytes that stand there.
func (w *World) sealedEvent(k uint8, s *source) {
	m := s.seal
	s.seal = nil
	out := core.Sealed{Seal: m.Seal, Lease: m.Lease}
	for _, it := range m.Items {
		out.Digests = append(out.Digests, digest(w.src[k][w.sourcePage(it.Part.Component, it.Src.Page)].content))
	}
	w.stepP(k, out)
}

// post ends the seal of the page that is next: it is posted, and goes to a channel.
func (w *World) post(a *model.Args) {
	s := &w.lease[a.L].at[a.K]
	if s.post == nil && s.seal != nil {
		w.sealedEvent(a.K, s)
	}
	m := s.post
	if m == nil {
		w.fail("rank %d posts nothing of lease %d", a.K, a.L)
		return
	}
	s.post = nil
	it := m.Items[0]
	x := &write{l: a.L, k: a.K, p: w.page(it.Part.Component, it.Dst.Page), c: a.C, i: w.pinc[a.K], q: w.sourcePage(it.Part.Component, it.Src.Page),
		dinc: uint8(m.Peer - 1), epoch: m.Epoch, item: it}
	if x.p != a.P || x.q != a.Q || uint8(it.Part.Index) != a.K && it.Part.Component == spec.KV {
		w.fail("rank %d posts page %d from %d as part %d", a.K, x.p, x.q, it.Part.Index)
	}
	s.posted = true
	s.posts, s.writes = append(s.posts, *m), append(s.writes, x)
	w.writes = append(w.writes, x)
}

func (w *World) sendNotice(a *model.Args) {
	s := &w.lease[a.L].at[a.K]
	if s.notice == nil {
		w.fail("rank %d sends no notice of lease %d", a.K, a.L)
		return
	}
	w.notices[noticeKey{a.L, a.K, a.C, w.pinc[a.K]}] = true
}

// postsOver ends the posts of a lease whose sources were read.
func (w *World) postsOver(k uint8, s *source) {
	posts := s.posts
	s.posts = nil
	for i, m := range posts {
		if s.writes[i].stage == stageQueued {
			w.fail("a post of rank %d ends, and its source is not read", k)
		}
		w.stepP(k, core.Posted{Peer: m.Peer, Epoch: m.Epoch, Batch: m.Batch})
	}
	s.writes = nil
}

// drained gives a rank the ends of a lease's posts and notices: its half of the drain.
func (w *World) drained(l, k uint8) {
	s := &w.lease[l].at[k]
	w.postsOver(k, s)
	if m := s.notice; m != nil && !s.noticed {
		s.noticed = true
		var chans []spec.Channel
		for c := range uint8(len(w.tw.Chan)) {
			if w.notices[noticeKey{l, k, c, w.pinc[k]}] {
				chans = append(chans, spec.Channel{ID: uint32(c), Notice: uint64(l)})
			}
		}
		w.stepP(k, core.Noticed{Peer: m.Peer, Epoch: m.Epoch, Lease: m.Lease, Number: m.Number, Channels: chans})
	}
}

// answer lets a rank answer a lease: what lies in its box for it, and the ends of its work.
func (w *World) answer(a *model.Args, kind uint8) {
	x := &w.lease[a.L]
	s := &x.at[a.K]
	if s.aborting {
		s.aborting = false
		w.deliver(a.K, x.dinc, x.abort[a.K], 0)
	}
	if s.breaking {
		s.breaking = false
		w.breakJob(a.L, a.K)
	}
	w.drained(a.L, a.K)
	if _, ok := w.answers[answerKey{kind, a.L, a.K, w.pinc[a.K]}]; !ok {
		w.fail("rank %d does not answer for lease %d", a.K, a.L)
	}
}

func (w *World) breakJob(l, k uint8) {
	w.stepP(k, core.Side{Msg: core.Break{Transfer: w.transfer(w.lease[l].t, w.lease[l].dinc), Cause: spec.CauseCompute, Detail: "planted"}})
}

// stopLease is an Abort or a Break. A lease of which nothing was posted would be answered in the same step: then it lies in the box.
func (w *World) stopLease(a *model.Args, own bool) {
	x := &w.lease[a.L]
	s := &x.at[a.K]
	switch {
	case !s.posted && own:
		s.breaking = true
	case !s.posted:
		if x.abort[a.K] == nil {
			w.fail("rank %d was sent no Abort of lease %d", a.K, a.L)
		}
		s.aborting = true
	case own:
		w.breakJob(a.L, a.K)
	default:
		w.deliver(a.K, x.dinc, x.abort[a.K], 0)
	}
}

// gone asks a rank again about a lease that it does not hold any more.
func (w *World) gone(a *model.Args) {
	x := &w.lease[a.L]
	w.deliver(a.K, x.dinc, x.grant[a.K], 0)
	if _, ok := w.answers[answerKey{model.KindGone, a.L, a.K, w.pinc[a.K]}]; !ok {
		w.fail("rank %d does not say that lease %d is gone", a.K, a.L)
	}
}

// giveBack ends what still reads the source pages of a lease.
func (w *World) giveBack(a *model.Args) {
	x := &w.lease[a.L]
	s := &x.at[a.K]
	for s.seal != nil {
		w.sealedEvent(a.K, s)
	}
	w.postsOver(a.K, s)
	if !s.over {
		s.over = true
		if w.set.Leaders {
			w.kernelOver(w.tr[x.t].id)
			w.flushP(a.K, func(core.SideMsg) bool { return false })
			return
		}
		w.stepP(a.K, core.Side{Msg: core.ComputeOver{Transfer: w.transfer(x.t, x.dinc)}})
	}
}

// lose reports a write as failed at its source. It may still be read and land.
func (w *World) lose(a *model.Args) {
	x := w.write(a, stageQueued, stageFlying)
	if x == nil {
		return
	}
	x.lost = true
	s := &w.lease[a.L].at[a.K]
	at := slices.Index(s.writes, x)
	if at < 0 {
		w.fail("the post of a lost write is over")
		return
	}
	m := s.posts[at]
	s.posts, s.writes = slices.Delete(s.posts, at, at+1), slices.Delete(s.writes, at, at+1)
	w.stepP(a.K, core.Posted{Peer: m.Peer, Epoch: m.Epoch, Batch: m.Batch, Err: "broken stream"})
}

// complete lets a rank say that a lease is complete, or, where it was asked for another prompt, what it takes for that.
func (w *World) complete(a *model.Args) {
	kind := model.KindComplete
	if w.lease[a.L].at[a.K].view != model.ViewSame {
		kind = model.KindMisnamed
	}
	w.answer(a, kind)
}
