package follow

import (
	"slices"

	"kvfence/spec"
)

// Receipts and notices at decode.

func (x *decodeLease) from(peer uint32) *saidReceipt {
	if x.said[peer] == nil {
		x.said[peer] = &saidReceipt{notices: map[uint64]uint64{}, lists: map[uint8][]spec.TraceChannel{}}
	}
	return x.said[peer]
}

func (f *Follower) decodeReceiptDid(r *decodeRank, l *spec.TraceLine, d *spec.TraceDid, x *decodeLease) {
	k := r.links[d.Peer]
	var o *owe
	if k != nil {
		o = f.s.lease(x.id).on(k.k)
	}
	if !f.require(o != nil && o.owes, d.Name, "owes[l, k]", "link %d owes nothing of lease %d", d.Peer, d.Lease) {
		return
	}
	if k.pull {
		f.decodePullDid(r, k, o, l, d, x)
		return
	}
	said := x.from(d.Peer)
	switch d.Name {
	case "RecvComplete", "RecvReceipt":
		kind := kindOf(d.Receipt)
		f.require(Epoch(d.Epoch) == o.gep, d.Name, "the receipt carries its grant's epoch", "granted in epoch %d, answered for %d", o.gep, d.Epoch)
		f.believeReceipt(k, o, d, kind)
		said.lists[kind] = slices.Clone(l.Event.Channels)
		f.do(Act{Name: d.Name, Kind: kind, X: x.id, L: x.id, K: k.k, I: k.life(d.Inc)})
	case "NoticeIn":
		if !f.require(d.Channel != nil, "NoticeIn", "c \\in Chan", "it names no channel") {
			return
		}
		f.require(o.hold, "NoticeIn", "hold[l, k]", "lease %d, link %d", d.Lease, d.Peer)
		f.require(Epoch(d.Epoch) == o.gep, "NoticeIn", "the notice is of the grant's epoch", "granted in epoch %d, noticed in %d", o.gep, d.Epoch)
		p := f.prefillLeaseOf(k, x.id)
		if p != nil {
			f.require(p.notice == d.Channel[1], "NoticeIn", `Arrives(<<l, k, c, i>> \in nsent)`, "notice %d, prefill sent %d", d.Channel[1], p.notice)
		}
		f.require(said.notices[d.Channel[0]] < d.Channel[1], "NoticeIn", `<<l, k, c, i>> \notin nin`, "notice %d on channel %d is in", d.Channel[1], d.Channel[0])
		said.notices[d.Channel[0]] = d.Channel[1]
	case "Take":
		f.decodeTake(r, k, o, d, x)
	default:
		f.say(d.Name, "a link that is pushed", "link %d", d.Peer)
	}
}

// decodeTake takes a receipt: every notice that it lists is in, so that all writes of the lease have landed; or they died with their epoch.
func (f *Follower) decodeTake(r *decodeRank, k *decodeLink, o *owe, d *spec.TraceDid, x *decodeLease) {
	kind, said := kindOf(d.Receipt), x.from(d.Peer)
	word := kind
	if kind == kindMisnamed {
		word = kindComplete
		f.misnamed(o)
	}
	for _, c := range said.lists[word] {
		f.require(said.notices[c[0]] >= c[1], "Take", "DecodeHalf(c, l, k, i)", "lease %d: the receipt lists notice %d on channel %d, in is %d", d.Lease, c[1], c[0], said.notices[c[0]])
	}
	if p := f.prefillLeaseOf(k, x.id); p != nil && p.noticed && word != kindGone {
		f.require(sameChannels(p.channels, said.lists[word]), "Take", "ChannelAll: a receipt lists every channel that carried a write", "lease %d: prefill used %v, the receipt lists %v", d.Lease, p.channels, said.lists[word])
	}
	if len(said.lists[word]) > 0 {
		f.land(x.id, k.k, o)
	}
	f.do(Act{Name: "Take", Kind: kind, L: x.id, K: k.k, I: k.life(d.Inc)})
}

func sameChannels(a, b []spec.TraceChannel) bool {
	if len(a) != len(b) {
		return false
	}
	for _, c := range a {
		if !slices.Contains(b, c) {
			return false
		}
	}
	return true
}

// misnamed: that a Complete was for other parts or another prompt is seen when it is taken.
func (f *Follower) misnamed(o *owe) {
	if o.ans&(1<<kindComplete) != 0 && !o.seen {
		o.pview = viewOther
		o.ans = o.ans&^(1<<kindComplete) | 1<<kindMisnamed
		if o.rec&(1<<kindComplete) != 0 {
			o.rec = o.rec&^(1<<kindComplete) | 1<<kindMisnamed
		}
	}
	o.seen = true
}

// land lets every write of a lease on a link land, as the notices behind them say; in an epoch that is over they die. Then its notice comes in.
func (f *Follower) land(l Lease, k Link, o *owe) {
	for _, w := range o.sent {
		a := Act{L: l, K: k, P: w.p, C: w.c, I: o.ginc, Q: w.src}
		steps := []string{"Check", "Copy", "Visible"}
		if !f.s.current(o) {
			steps = []string{"Drop"}
		}
		if w.queued {
			steps = append([]string{"Launch"}, steps...)
		}
		if !w.queued && !w.flying {
			continue
		}
		for _, name := range steps {
			a.Name = name
			if !f.hide(a) {
				break
			}
		}
	}
	if len(o.nsent) > 0 && len(o.nin) == 0 {
		f.hide(Act{Name: "NoticeIn", L: l, K: k, C: 0, I: o.ginc})
	}
}
