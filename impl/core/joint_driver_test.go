package core

import (
	"fmt"
	"slices"

	"github.com/stretchr/testify/require"

	"kvfence/spec"
)

// The drivers of the world: they carry out actions as doc.go demands.

func (w *world) stepDL(ev Event) {
	acts, err := w.dl.Step(w.now, ev)
	w.trace("dl", ev, acts)
	for _, a := range only[Did](acts) {
		w.follow.leader(a)
	}
	require.NoError(w.t, err)
	for _, a := range acts {
		switch a := a.(type) {
		case ToRank:
			w.dthen(fmt.Sprint("dl-d", w.dlife, a.Rank), func() { w.stepD(int(a.Rank), Side{Rank: a.Rank, Msg: a.Msg}) })
		case SendLeader:
			if ask, ok := a.Body.(spec.Ask); ok {
				w.prompts[ask.Transfer], w.whose[ask.Transfer] = ask.Prompt, whoseOf(ask.Tenant, ask.Adapter)
			}
			w.stepD(0, SayFor{Peer: a.Peer, Body: a.Body})
		case OpenStream:
			require.True(w.t, w.open[a.Req])
		case Emit:
			require.True(w.t, w.open[a.Req], "a token after the answer")
			w.emitted[a.Req] = append(w.emitted[a.Req], a.Token.ID)
		case Answer:
			require.True(w.t, w.open[a.Req], "a second answer")
			delete(w.open, a.Req)
			w.answers[a.Req] = a
		case ReadFirst:
			w.dmay(func() { w.read(a.Transfer, a.Leases, 0, 0, true) })
		case RunStep:
			w.dmay(func() { w.read(a.Transfer, a.Leases, a.Pos, a.Index, false) })
		case Stop:
			w.stops = append(w.stops, a)
		}
	}
}

// sample is the world's model: the token depends on the prompt and the index.
func sample(prompt []int32, index uint32) int32 {
	h := uint32(17)
	for _, t := range prompt {
		h = h*31 + uint32(t)
	}
	return int32((h + index*7) % 900)
}

// read checks the tags, reads, checks again: at every rank.
func (w *world) read(t spec.TransferID, leases []spec.LeaseID, pos, index uint32, first bool) {
	tables := make([]*ReadPages, len(w.dr))
	ok := true
	for d := range w.dr {
		for _, a := range w.stepD(d, ReadBegin{Lease: leases[d], Pos: pos}) {
			if p, is := a.(ReadPages); is {
				tables[d] = &p
			}
		}
		ok = ok && tables[d] != nil
	}
	finish := func() {
		good := ok
		for d, tb := range tables {
			if tb == nil {
				continue
			}
			var bad []BadPart
			for _, c := range tb.Checks {
				cell := w.dst[d][cellKey{c.Component, c.Page, c.Slot}]
				if cell.tag != c.Want {
					bad = append(bad, BadPart{Component: c.Component, Part: c.Slot, Index: c.Want.Index, State: spec.TagForeign})
				}
				if ok && c.Want.Part != spec.PartLocal && len(bad) == 0 { // I3: the bytes are the request's own
					require.Equal(w.t, w.content(w.whose[t], w.prompts[t], c.Component, c.Want.Index), cell.content)
				}
			}
			require.Empty(w.t, bad, "nothing in this world corrupts memory")
			w.stepD(d, ReadEnd{Lease: leases[d], Bad: bad})
			good = good && len(bad) == 0
		}
		switch {
		case first:
			w.stepDL(FirstRead{Transfer: t, OK: good, Tokens: uint32(len(w.prompts[t])), First: Token{ID: sample(w.prompts[t], 0)}})
		default:
			w.stepDL(StepDone{Transfer: t, OK: good, Next: Token{ID: sample(w.prompts[t], index)}})
		}
	}
	w.dmay(finish)
}

// content is what the bytes of a part must be: every byte depends on the domain and on all tokens up to its page's end, those of a record
// on the whole prompt.
func (w *world) content(whose string, prompt []int32, c spec.Component, index uint32) string {
	if c == spec.KV {
		prompt = prompt[:min(len(prompt), int(index+1)*worldPage)]
	}
	return fmt.Sprint(whose, prompt, c, index)
}

func (w *world) stepD(d int, ev Event) []Action {
	acts, err := w.dr[d].Step(w.now, ev)
	w.trace(fmt.Sprint("d", d), ev, acts)
	require.NoError(w.t, err)
	require.NoError(w.t, w.dr[d].pools.Check())
	for _, a := range only[Did](acts) {
		w.follow.rank(d, a, acts)
	}
	for _, a := range acts {
		w.actD(d, a)
	}
	return acts
}

func (w *world) link(d int, peer PeerID) *wdata {
	k := dataKey{d, int(peer) - 1}
	if w.data[k] == nil {
		w.data[k] = &wdata{allow: map[spec.LeaseID]bool{}, open: [2]map[spec.Epoch]int{{}, {}}}
	}
	return w.data[k]
}

func (w *world) actD(d int, a Action) {
	switch a := a.(type) {
	case ToLeader:
		w.dthen(fmt.Sprint("d-dl", w.dlife, d), func() { w.stepDL(Side{Rank: spec.Rank(d), Msg: a.Msg}) })
	case Send:
		w.sendD(d, a)
	case CloseConn:
		w.cut(a.Conn)
	case OpenData:
		w.dataEnd(d, a.Peer, a.Epoch, 0)
	case Fence:
		w.fenceD(d, a)
	case Allow:
		l := w.link(d, a.Peer)
		require.Equal(w.t, l.epoch, a.Epoch)
		l.allow[a.Grant.Lease] = true
	case Revoke:
		delete(w.link(d, a.Peer).allow, a.Lease)
	case VoidTags:
		for _, p := range a.Pages {
			for s := range spec.PartIndex(4) {
				w.dst[d][cellKey{a.Component, p, s}] = wcell{}
			}
		}
	case PutTag:
		w.dst[d][cellKey{a.Component, a.Page, a.Slot}] = wcell{tag: a.Tag}
	case Verify:
		w.dmay(func() { w.verify(d, a) })
	case PullCopy:
		w.dmay(func() { w.pull(d, a) })
	case Stop:
		w.stops = append(w.stops, a)
	}
}

func (w *world) verify(d int, a Verify) {
	var bad []BadPart
	for _, c := range a.Checks {
		if w.dst[d][cellKey{c.Component, c.Page, c.Slot}].tag != c.Want {
			bad = append(bad, BadPart{Component: c.Component, Part: c.Slot, Index: c.Want.Index, State: spec.TagForeign})
		}
	}
	for _, c := range a.Void {
		if w.dst[d][cellKey{c.Component, c.Page, c.Slot}].tag != (spec.Tag{}) {
			bad = append(bad, BadPart{Component: c.Component, Part: c.Slot, Index: c.Index, State: spec.TagForeign})
		}
	}
	w.stepD(d, Verified{Lease: a.Lease, Bad: bad})
}

// pull copies item by item; other things happen between them.
func (w *world) pull(d int, a PullCopy) {
	l, life, at := w.link(d, a.Peer), w.life, 0
	var bad []BadPart
	var next func()
	next = func() {
		switch {
		case l.epoch != a.Epoch || life != w.life:
			w.stepD(d, PullDone{Peer: a.Peer, Epoch: a.Epoch, Job: a.Job, Lease: a.Lease, Err: "fenced"})
			return
		case at == len(a.Items):
			w.stepD(d, PullDone{Peer: a.Peer, Epoch: a.Epoch, Job: a.Job, Lease: a.Lease, Bad: bad})
			return
		}
		it := a.Items[at]
		at++
		cell := w.src[a.Peer-1][cellKey{it.Part.Component, it.Src.Page, it.SrcSlot}]
		if cell.tag != it.SrcTag {
			bad = append(bad, BadPart{Component: it.Part.Component, Part: it.Part.Index, Index: it.Index, State: spec.TagForeign})
		} else {
			w.dst[d][cellKey{it.Part.Component, it.Dst.Page, it.Part.Index}] = wcell{it.DstTag, cell.content}
		}
		w.dmay(next)
	}
	next()
}

// fenceD raises the grant table, then waits for placers.
func (w *world) fenceD(d int, a Fence) {
	l := w.link(d, a.Peer)
	require.Less(w.t, l.epoch, a.New)
	l.epoch = a.New
	clear(l.allow)
	var wait func()
	wait = func() {
		for _, x := range l.writes {
			if x.checked && !x.over && x.epoch <= a.Old {
				w.dmay(wait)
				return
			}
		}
		l.writes = slices.DeleteFunc(l.writes, func(x *wwrite) bool { return x.epoch <= a.Old })
		w.stepD(d, FenceDone{Peer: a.Peer, Old: a.Old, OK: true})
		for p := range w.pr {
			w.dial(d, p)
		}
	}
	w.dmay(wait)
}

// dataEnd opens one end of a data path; both know when both have.
func (w *world) dataEnd(d int, peer PeerID, e spec.Epoch, end int) {
	l := w.link(d, peer)
	l.open[end][e] = w.life + 1
	if l.open[0][e] != w.life+1 || l.open[1][e] != w.life+1 {
		return
	}
	life, pid := w.life, w.pid(d)
	p := int(peer) - 1
	w.dmay(func() { w.stepD(d, DataUp{Peer: peer, Epoch: e}) })
	w.may(func() {
		if life == w.life {
			w.stepP(p, DataUp{Peer: pid, Epoch: e})
		}
	})
}

// lossy delivers f over an unreliable but ordered connection: lost or said twice by chance.
func (w *world) lossy(key string, f func()) {
	if w.rng.Float64() < w.opts.lose {
		return
	}
	w.then(key, f)
	if w.rng.Float64() < w.opts.duplicate {
		w.may(f)
	}
}

func (w *world) sendD(d int, a Send) {
	c := w.conns[a.Conn]
	if c == nil || !c.up || c.life != w.life {
		return
	}
	pid := w.pid(d)
	f := func() {
		if !c.up || c.life != w.life {
			return
		}
		if _, ok := a.Env.Body.(spec.Connect); ok {
			w.stepP(c.p, ConnectIn{Peer: pid, Conn: a.Conn, Env: a.Env, DataAddress: "x"})
			return
		}
		w.stepP(c.p, Recv{Peer: pid, Conn: a.Conn, Env: a.Env})
	}
	if _, ok := a.Env.Body.(spec.Connect); ok {
		w.then(fmt.Sprint("c", a.Conn, ">"), f)
		return
	}
	w.lossy(fmt.Sprint("c", a.Conn, ">"), f)
}

// cut ends a connection at both ends.
func (w *world) cut(id ConnID) {
	c := w.conns[id]
	if c == nil || !c.up {
		return
	}
	c.up = false
	if c.dlife == w.dlife {
		w.dmay(func() { w.stepD(c.d, ConnLost{Peer: PeerID(c.p + 1), Conn: id}); w.dial(c.d, c.p) })
	}
	w.may(func() {
		if c.life == w.life {
			w.stepP(c.p, ConnLost{Peer: PeerID(c.d + 1 + 100*c.dlife), Conn: id})
		}
	})
}

func (w *world) stepPL(ev Event) {
	acts, err := w.pl.Step(w.now, ev)
	w.trace("pl", ev, acts)
	require.NoError(w.t, err)
	life := w.life
	for _, a := range acts {
		switch a := a.(type) {
		case ToRank:
			w.then(fmt.Sprint("pl-p", life, a.Rank), func() {
				if life == w.life {
					w.stepP(int(a.Rank), Side{Rank: a.Rank, Msg: a.Msg})
				}
			})
		case ReplyLeader:
			w.stepP(0, SayFor{Peer: a.Peer, Body: a.Body})
		case Named:
			s := w.halves[a.Req]
			delete(w.halves, a.Req)
			s.Source = a.Source
			w.whose[spec.TransferID{Leader: a.Source.Leader, Counter: a.Source.Counter}] = whoseOf(s.Tenant, s.Adapter)
			w.may(func() {
				if w.open[s.Req] {
					w.stepDL(s)
				}
			})
		case HalfOver:
			if s, ok := w.halves[a.Req]; ok { // refused before it had a name: decode never hears of it
				delete(w.open, s.Req)
				w.answers[s.Req] = Answer{Req: s.Req, Cause: a.Cause}
			}
		case Compute:
			w.may(func() { w.compute(life, a) })
		case Stop:
			w.stops = append(w.stops, a)
		}
	}
}

// compute stores into the source pages what a kernel would.
func (w *world) compute(life int, a Compute) {
	if life != w.life {
		return
	}
	for p := range w.pr {
		for c, ps := range a.Pages[p] {
			for i, g := range ps {
				if c == int(spec.KV) && (uint32(i+1)*worldPage <= a.From || uint32(i)*worldPage >= a.To) || c != int(spec.KV) && !a.Last {
					continue
				}
				require.Empty(w.t, w.pr[p].ledgers[c].Sharers(g.Page), "a kernel stores into a shared page")
				for s := range spec.PartIndex(4) {
					k := cellKey{spec.Component(c), g.Page, s}
					cell := w.src[p][k]
					cell.content = w.content(w.whose[a.Transfer], a.Tokens, spec.Component(c), uint32(i))
					w.src[p][k] = cell
				}
			}
		}
	}
	w.work += a.To - a.From
	w.stepPL(ComputeDone{Transfer: a.Transfer, From: a.From, To: a.To})
}

func (w *world) stepP(p int, ev Event) {
	acts, err := w.pr[p].Step(w.now, ev)
	w.trace(fmt.Sprint("p", p), ev, acts)
	require.NoError(w.t, err)
	for _, a := range acts {
		w.actP(p, a)
	}
}

func (w *world) actP(p int, a Action) {
	life := w.life
	soon := func(f func()) {
		w.may(func() {
			if life == w.life {
				f()
			}
		})
	}
	switch a := a.(type) {
	case ToLeader:
		w.then(fmt.Sprint("p-pl", life, p), func() {
			if life == w.life {
				w.stepPL(Side{Rank: spec.Rank(p), Msg: a.Msg})
			}
		})
	case Send:
		w.sendP(p, a)
	case CloseConn:
		w.cut(a.Conn)
	case ExpectData:
		if d, now := w.decode(a.Peer); now {
			w.dataEnd(d, PeerID(p+1), a.Epoch, 1)
		} else {
			soon(func() { w.stepP(p, DataUp{Peer: a.Peer, Epoch: a.Epoch, Err: "nobody dials"}) })
		}
	case Fence:
		soon(func() { w.stepP(p, FenceDone{Peer: a.Peer, Old: a.Old, OK: true}) })
	case VoidTags:
		for _, g := range a.Pages {
			for s := range spec.PartIndex(4) {
				w.src[p][cellKey{a.Component, g, s}] = wcell{}
			}
		}
	case Seal:
		soon(func() { w.seal(p, a) })
	case Post:
		w.post(p, a)
	case Notice:
		w.notice(p, a)
	case Stop:
		w.stops = append(w.stops, a)
	}
}

func (w *world) sendP(p int, a Send) {
	c := w.conns[a.Conn]
	if c == nil || !c.up || c.life != w.life {
		return
	}
	f := func() {
		if c.up && c.dlife == w.dlife {
			w.stepD(c.d, Recv{Peer: PeerID(p + 1), Conn: a.Conn, Env: a.Env})
		}
	}
	if _, ok := a.Env.Body.(spec.Accept); ok {
		w.then(fmt.Sprint("c", a.Conn, "<"), f)
		return
	}
	w.lossy(fmt.Sprint("c", a.Conn, "<"), f)
}

// digest is the world's byte digest.
func (w *world) digest(content string) (h uint64) {
	for _, b := range []byte(content) {
		h = h*131 + uint64(b)
	}
	return h
}

func (w *world) seal(p int, a Seal) {
	out := Sealed{Seal: a.Seal, Lease: a.Lease}
	for _, it := range a.Items {
		slot := it.Part.Index
		cell := w.src[p][cellKey{it.Part.Component, it.Src.Page, slot}]
		tag := it.Tag
		if a.Digests {
			tag.Digest = w.digest(cell.content)
			out.Digests = append(out.Digests, tag.Digest)
		}
		if a.Pull {
			w.src[p][cellKey{it.Part.Component, it.Src.Page, it.Slot}] = wcell{tag, cell.content}
		}
	}
	w.stepP(p, out)
}

// post queues writes on two channels; each lands by two steps, check and copy, in the order of its channel.
func (w *world) post(p int, a Post) {
	life := w.life
	d, now := w.decode(a.Peer)
	l := w.link(d, PeerID(p+1))
	if !now || w.rng.Float64() < w.opts.fail {
		w.may(func() {
			if life == w.life {
				w.stepP(p, Posted{Peer: a.Peer, Epoch: a.Epoch, Batch: a.Batch, Err: "broken stream"})
			}
		})
		if now {
			w.dmay(func() { w.stepD(d, DataLost{Peer: PeerID(p + 1), Epoch: a.Epoch}) })
		}
		return
	}
	for _, it := range a.Items {
		x := &wwrite{epoch: a.Epoch, lease: a.Lease, item: it, channel: uint32(w.rng.IntN(2)),
			content: w.src[p][cellKey{it.Part.Component, it.Src.Page, it.Part.Index}].content}
		l.writes = append(l.writes, x)
		w.dthen(fmt.Sprint("w", life, w.dlife, d, p, x.channel), func() { w.land(d, p, x) })
	}
	w.may(func() {
		if life == w.life {
			w.stepP(p, Posted{Peer: a.Peer, Epoch: a.Epoch, Batch: a.Batch})
		}
	})
}

func (w *world) land(d, p int, x *wwrite) {
	l := w.link(d, PeerID(p+1))
	if x.epoch != l.epoch || !l.allow[x.lease] {
		x.over = true
		return
	}
	x.checked = true
	w.dmay(func() { // the copy, however late
		w.dst[d][cellKey{x.item.Part.Component, x.item.Dst.Page, x.item.Part.Index}] = wcell{x.item.Tag, x.content}
		x.over = true
	})
}

// notice is numbered and goes behind the writes of every channel that carried one; it is in when what is before it has landed.
func (w *world) notice(p int, a Notice) {
	life := w.life
	d, now := w.decode(a.Peer)
	if !now {
		w.may(func() {
			if life == w.life {
				w.stepP(p, Noticed{Peer: a.Peer, Epoch: a.Epoch, Lease: a.Lease, Number: a.Number, Err: "broken stream"})
			}
		})
		return
	}
	l := w.link(d, PeerID(p+1))
	var chans []spec.Channel
	for c := range uint32(2) {
		chans = append(chans, spec.Channel{ID: c, Notice: a.Number})
		before := slices.Clone(l.writes)
		var arrive func()
		arrive = func() {
			if l.epoch != a.Epoch {
				return
			}
			for _, x := range before {
				if x.channel == c && x.checked && !x.over {
					w.dmay(arrive)
					return
				}
			}
			w.stepD(d, NoticeIn{Peer: PeerID(p + 1), Epoch: a.Epoch, Channel: c, Lease: a.Lease, Number: a.Number})
		}
		w.dthen(fmt.Sprint("w", life, w.dlife, d, p, c), arrive)
	}
	w.may(func() {
		if life == w.life {
			w.stepP(p, Noticed{Peer: a.Peer, Epoch: a.Epoch, Lease: a.Lease, Number: a.Number, Channels: chans})
		}
	})
}
