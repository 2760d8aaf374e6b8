package follow

import (
	"encoding/binary"
	"slices"

	"kvfence/spec"
)

// decodeRank is what is known of one decode rank in one life, beside the relation's state: what it was handed and what it said.
type decodeRank struct {
	inc      spec.Incarnation
	name     string
	node     Node
	links    map[uint32]*decodeLink
	leases   map[spec.LeaseID]*decodeLease
	phys     map[Page]spec.LeaseID // pages out of the pool; 0: taken, not granted
	voided   map[Page]bool         // tags voided in this line
	takenFor spec.TraceTransfer
	taken    spec.LeaseID    // pages taken, grants not sent
	highest  spec.LeaseID    // number that was ever taken
	ended    []endedPub      // publications that have ended while a lease is taken
	bad      map[Page]bool   // in quarantine
	signed   map[Page]uint64 // generation in decode's own tag
	tokens   uint32          // of a KV page
	expect   string          // action that the event must lead to
	ending   bool            // a fence of it failed: it takes nothing new
	stopped  bool
	over     bool // a later life has begun
}

// endedPub is a publication with its page.
type endedPub struct {
	page Page
	published
}

// decodeLink is one of its links.
type decodeLink struct {
	k    Link
	pull bool
	inc  spec.Incarnation   // of the prefill rank that answered its last connect
	incs []spec.Incarnation // all, by the relation's number
}

// decodeLease is one of its leases.
type decodeLease struct {
	id     Lease
	t      Transfer
	name   spec.TraceTransfer
	table  [spec.ComponentCount][]spec.TracePage // block table
	local  []localPage                           // that decode fills itself, until it is ready
	subs   map[Page]Lease
	nsub   Lease
	filler map[Page]Lease // of what it shares
	said   map[uint32]*saidReceipt
	allow  map[uint32]bool // in the link's grant table
	reads  int             // running
	jobs   map[uint64]uint32
	found  bool // bad pages
	verify bool // asked for
	shown  spec.TracePages
}

type localPage struct {
	c    int
	page spec.TracePage
}

// saidReceipt is what came of one link for a lease.
type saidReceipt struct {
	notices  map[uint64]uint64 // by channel
	lists    map[uint8][]spec.TraceChannel
	answered bool // pull
}

func (f *Follower) decodeLine(l *spec.TraceLine) error {
	if l.Event.Kind == "Start" {
		return f.decodeStart(l)
	}
	r := f.decodes[l.Node]
	if r == nil {
		return f.unknown(l)
	}
	f.name = r.name
	if r.stopped || !f.require(!r.over, "Step", "the machine runs", "a later life of its node has begun") {
		return nil
	}
	clear(r.voided)
	f.sideHeard(l, false)
	f.decodeBefore(r, l)
	f.inOrder(l, func(d *spec.TraceDid) { f.decodeDid(r, l, d) }, func(o *spec.TraceOut) { f.decodeOut(r, l, o) })
	f.decodeAfter(r, l)
	return nil
}

func (f *Follower) decodeStart(l *spec.TraceLine) error {
	s, err := f.started(l)
	if err != nil {
		return err
	}
	if old := f.decodes[f.life(spec.TraceDecode, s, l.Node)]; old != nil {
		f.decodeOver(old)
	}
	f.sideStarted(l, s)
	r := &decodeRank{inc: l.Node, name: s.Name, node: f.s.addNode(0), links: map[uint32]*decodeLink{}, leases: map[spec.LeaseID]*decodeLease{},
		bad: map[Page]bool{}, signed: map[Page]uint64{}, tokens: s.Tokens, phys: map[Page]spec.LeaseID{}, voided: map[Page]bool{}}
	f.s.nodes[r.node].nextL = leaseKey(r.node, 1)
	for _, p := range s.Peers {
		k := f.s.addLink(r.node)
		f.s.links[k].pull = p.Pull
		r.links[p.Peer] = &decodeLink{k: k, pull: p.Pull}
	}
	f.decodes[l.Node] = r
	return nil
}

// decodeBefore takes what an event says that others did.
func (f *Follower) decodeBefore(r *decodeRank, l *spec.TraceLine) {
	e := &l.Event
	f.decodeVoided(r, l)
	r.expect = f.decodeExpects(r, e)
	r.ending = r.ending || e.Kind == "FenceDone" && e.Failed
	if e.Kind == "Recv" && e.Message == "accept" {
		if k := r.links[e.Peer]; k != nil {
			f.bind(r, k, e.From)
		}
	}
}

// bind says which prefill incarnation is at the other end of a link; what it did before that was known is taken now.
func (f *Follower) bind(r *decodeRank, k *decodeLink, inc spec.Incarnation) {
	k.inc = inc
	at := slices.Index(k.incs, inc)
	if at < 0 {
		if len(k.incs) > 0 {
			f.hide(Act{Name: "PrefillCrash", K: k.k})
		}
		k.incs = append(k.incs, inc)
	}
	p := f.prefill[inc]
	if p == nil {
		return
	}
	if x := p.links[r.inc]; x != nil {
		x.to = k
		if x.mark > 0 {
			if m := leaseKey(r.node, x.mark); f.more != nil && m > f.s.links[k.k].dmark {
				f.s.links[k.k].dmark = m // of files that are merged: decode says it in a line to come
			}
			if m := leaseKey(r.node, x.mark); m > f.s.links[k.k].pmark && !f.hide(Act{Name: "RecvMark", K: k.k, M: m}) {
				f.say("RecvMark", "Arrives(m <= dmark[k])", "prefill took mark %d before the link was up", x.mark)
			}
			x.mark = 0
		}
		for _, e := range x.fenced {
			f.hide(Act{Name: "PrefillFence", K: k.k, E: Epoch(e)})
		}
		x.fenced = nil
	}
}

// life is the relation's number of an incarnation on a link.
func (k *decodeLink) life(inc spec.Incarnation) Inc {
	if at := slices.Index(k.incs, inc); at >= 0 {
		return Inc(at)
	}
	return ^Inc(0)
}

func domainOf(d spec.TraceDomain) uint64 { return binary.BigEndian.Uint64(d[:]) }

func kindOf(receipt string) uint8 {
	if i := slices.Index(kindNames[:], receipt); i >= 0 {
		return uint8(i)
	}
	return kindComplete
}

// decodeDid takes one action that a decode rank says.
func (f *Follower) decodeDid(r *decodeRank, l *spec.TraceLine, d *spec.TraceDid) {
	switch d.Name {
	case "Fence", "FenceEnd", "Connect", "RaiseMark":
		f.decodeLinkDid(r, l, d)
		return
	case "Grant":
		f.decodeGrant(r, l, d)
		return
	case "Unpublish":
		f.decodeUnpublish(r, d)
		return
	}
	x := r.leases[d.Lease]
	if !f.require(x != nil, d.Name, "dst[l] # \"new\"", "lease %d was never granted, or is over", d.Lease) {
		return
	}
	switch d.Name {
	case "RecvComplete", "RecvReceipt", "NoticeIn", "Take", "PullBegin", "PullCheck", "SaidRead":
		f.decodeReceiptDid(r, l, d, x)
	case "Share", "Publish", "Append", "Grow":
		f.decodePageDid(r, l, d, x)
	case "Read", "ReadEnd", "BadVerify":
		f.decodeReadDid(r, l, d, x)
	default:
		f.decodeLeaseDid(r, l, d, x)
	}
}

// decodeLinkDid takes what happens to a link.
func (f *Follower) decodeLinkDid(r *decodeRank, l *spec.TraceLine, d *spec.TraceDid) {
	k := r.links[d.Peer]
	if !f.require(k != nil, d.Name, "k \\in Rank", "link %d is not configured", d.Peer) {
		return
	}
	switch d.Name {
	case "Fence":
		f.require(f.s.links[k.k].ep == Epoch(d.Epoch), "Fence", "ep' = ep[k] + 1", "it says epoch %d, the link is in %d", d.Epoch, f.s.links[k.k].ep)
		f.do(Act{Name: "Fence", K: k.k})
	case "FenceEnd":
		var late []*owe
		for _, o := range f.s.links[k.k].owed {
			if o.hold && o.runs() {
				late = append(late, o) // its copies have not all said that they stopped: they end the hold
			}
		}
		f.do(Act{Name: "FenceEnd", K: k.k})
		for _, o := range late {
			o.hold = true
		}
	case "Connect":
		f.believeAccept(r, k, d)
		f.do(Act{Name: "Connect", K: k.k, I: k.life(d.Inc), D: f.s.nodes[r.node].dinc, E: Epoch(d.Epoch)})
	case "RaiseMark":
		m := leaseKey(r.node, d.Mark)
		if n := f.s.nodes[r.node]; m > n.nextL && d.Mark <= r.highest+1 && (r.taken == 0 || d.Mark <= r.taken) {
			n.nextL = m // numbers that were taken and given back before any grant
		}
		if f.more != nil && m <= f.s.links[k.k].dmark {
			return // it was taken already
		}
		f.do(Act{Name: "RaiseMark", K: k.k, M: m})
	}
}

// believeAccept takes prefill's answer to a connect: it was sent, or its sender writes no trace.
func (f *Follower) believeAccept(r *decodeRank, k *decodeLink, d *spec.TraceDid) {
	p := f.prefill[d.Inc]
	if p == nil {
		if !f.require(!f.strict, "Connect", "Arrives(<<k, i, d, e>> \\in acc)", "no prefill rank with incarnation %s is known", d.Inc) {
			return
		}
		f.stats.Believed++
	} else if x := p.links[r.inc]; x == nil || !slices.Contains(x.epochs, d.Epoch) {
		f.say("Connect", "Arrives(<<k, i, d, e>> \\in acc)", "%s never accepted epoch %d", p.name, d.Epoch)
		return
	}
	if slices.Index(k.incs, d.Inc) < 0 {
		f.bind(r, k, d.Inc)
	}
	if k.life(d.Inc) == f.s.links[k.k].pinc {
		f.hide(Act{Name: "Accept", K: k.k})
	}
}

// decodeLeaseDid takes the plain changes of a lease.
func (f *Follower) decodeLeaseDid(r *decodeRank, l *spec.TraceLine, d *spec.TraceDid, x *decodeLease) {
	switch d.Name {
	case "Abort":
		f.do(Act{Name: "Abort", L: x.id})
	case "Verify":
		f.believeWrites(r, x)
		f.do(Act{Name: "Verify", L: x.id})
	case "Ready":
		if f.do(Act{Name: "Ready", L: x.id}) {
			for _, p := range x.local {
				f.growPage(r, x, p.c, p.page)
			}
			x.local = nil
		}
	case "Release":
		f.do(Act{Name: "Release", L: x.id})
		f.leaseOver(r, d.Lease, x)
	case "QuarantineEnd":
		if y := f.s.leases[x.id]; y != nil && y.dst == dstRevoking { // found bad when it had been given up: to the specification it was revoking
			f.do(Act{Name: "Release", L: x.id})
		} else {
			f.do(Act{Name: "QuarantineEnd", L: x.id})
		}
		f.leaseOver(r, d.Lease, x)
	default:
		f.say(d.Name, "an action of the decode rank", "there is none of this name")
	}
}

// leaseOver ends what is known of a lease: its pages are back.
func (f *Follower) leaseOver(r *decodeRank, id spec.LeaseID, x *decodeLease) {
	for _, sub := range x.subs {
		if y := f.s.leases[sub]; y != nil && y.dst == dstReady {
			f.hidden = true
			f.do(Act{Name: "Release", L: sub})
			f.hidden = false
		}
	}
	for p, owner := range r.phys {
		if owner == id {
			delete(r.phys, p)
			delete(r.bad, p)
		}
	}
	f.overL = append(append(f.overL, x.id), subsOf(x)...)
	delete(r.leases, id)
}
