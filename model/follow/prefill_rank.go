package follow

import (
	"slices"

	"kvfence/spec"
)

// prefillRank is what is known of one prefill rank in one life.
type prefillRank struct {
	inc     spec.Incarnation
	name    string
	tokens  uint64 // of a KV page
	links   map[spec.Incarnation]*prefillLink
	peers   map[uint32]*prefillLink
	jobs    map[spec.TraceTransfer]*sourceJob
	phys    map[uint64]*sourcePage
	batches map[uint64]*sourceBatch
	seals   map[uint64]bool // that run
	stopped bool
	over    bool
}

// prefillLink is this rank's end of the link with one decode incarnation.
type prefillLink struct {
	decode spec.Incarnation
	to     *decodeLink // nil until decode has heard of this life
	epoch  spec.Epoch
	epochs []spec.Epoch // that it accepted
	leases map[spec.LeaseID]*prefillLease
	took   spec.LeaseID // highest mark that was taken
	heard  spec.LeaseID // highest mark that came
	mark   spec.LeaseID // taken before the link was bound
	fenced []spec.Epoch // likewise
	own    spec.LeaseID // its own mark
	ended  spec.Epoch   // highest that it said is fenced
	asked  spec.Epoch   // highest whose fence was put out
}

// prefillLease is one lease on one link.
type prefillLease struct {
	rank      *prefillRank
	id        Lease
	job       spec.TraceTransfer // that feeds it: its transfer
	epoch     spec.Epoch
	sealed    map[[3]uint64]bool // component, part, index
	sources   map[uint64]SPage   // of physical pages
	posts     int                // batches that are not over
	notice    uint64
	noticed   bool
	channels  []spec.TraceChannel
	answer    string // message that answered it
	broke     bool   // Failing was sent
	offered   bool
	completed bool
	given     bool // the reader's hold has ended
}

// sourceJob is one transfer's computation.
type sourceJob struct {
	key      spec.TraceTransfer
	transfer spec.TraceTransfer
	domain   spec.TraceDomain
	pages    []uint64
	shared   map[uint64]bool
	table    spec.TracePages // by index
	computed uint64
	last     bool
	leases   []*prefillLease
}

// sourcePage is a physical page of a source pool.
type sourcePage struct {
	gen    uint64
	owner  *sourceJob // nil: free
	domain spec.TraceDomain
	sharer []*sourceJob
}

// holder: the job owns the page, or shares it.
func (p *sourcePage) holder(job spec.TraceTransfer) bool {
	is := func(j *sourceJob) bool { return j != nil && (j.key == job || j.transfer == job) }
	return is(p.owner) || slices.ContainsFunc(p.sharer, is)
}

type sourceBatch struct {
	link   *prefillLink
	lease  *prefillLease
	pages  []Page
	epoch  spec.Epoch
	failed bool
}

func srcKey(c int, page uint64) uint64 { return uint64(c)<<40 | page }

func (f *Follower) prefillLine(l *spec.TraceLine) error {
	if l.Event.Kind == "Start" {
		return f.prefillStart(l)
	}
	p := f.prefill[l.Node]
	if p == nil {
		return f.unknown(l)
	}
	f.name = p.name
	if p.stopped || !f.require(!p.over, "Step", "the machine runs", "a later life of its node has begun") {
		return nil
	}
	f.sideHeard(l, false)
	f.prefillBefore(p, l)
	posts := 0
	f.inOrder(l, func(d *spec.TraceDid) {
		if d.Name == "Post" {
			f.prefillPost(p, l, d, posts)
			posts++
			return
		}
		f.prefillDid(p, l, d)
	}, func(o *spec.TraceOut) { f.prefillOut(p, l, o) })
	f.prefillAfter(p, l, posts)
	return nil
}

func (f *Follower) prefillDid(p *prefillRank, l *spec.TraceLine, d *spec.TraceDid) {
	switch d.Name {
	case "TakeSource", "Compute":
		f.prefillJobDid(p, l, d)
	case "GiveBack":
		if d.Lease == 0 {
			f.prefillJobDid(p, l, d)
		} else {
			f.prefillLeaseDid(p, l, d)
		}
	case "Accept", "RecvMark", "OwnMark", "PrefillFence":
		f.prefillLinkDid(p, l, d)
	default:
		f.prefillLeaseDid(p, l, d)
	}
}

func (f *Follower) prefillStart(l *spec.TraceLine) error {
	s, err := f.started(l)
	if err != nil {
		return err
	}
	if old := f.prefill[f.life(spec.TracePrefill, s, l.Node)]; old != nil {
		old.over = true
		f.prefillOver(old)
	}
	f.sideStarted(l, s)
	f.prefill[l.Node] = &prefillRank{inc: l.Node, name: s.Name, tokens: uint64(s.Tokens), links: map[spec.Incarnation]*prefillLink{}, peers: map[uint32]*prefillLink{},
		jobs: map[spec.TraceTransfer]*sourceJob{}, phys: map[uint64]*sourcePage{}, batches: map[uint64]*sourceBatch{}, seals: map[uint64]bool{}}
	return nil
}

// prefillBefore takes what an event proves: a batch that ended has read its sources; a half has a transfer.
func (f *Follower) prefillBefore(p *prefillRank, l *spec.TraceLine) {
	e := &l.Event
	defer func() {
		if k := p.peers[e.Peer]; k != nil && e.From == k.decode {
			k.heard = max(k.heard, e.Mark)
		}
	}()
	switch e.Kind {
	case "ConnectIn":
		if p.peers[e.Peer] == nil {
			p.peers[e.Peer] = &prefillLink{decode: e.From, leases: map[spec.LeaseID]*prefillLease{}}
		}
	case "Side":
		if j := p.jobs[e.Job]; e.Message == "Bind" && j != nil {
			j.transfer = e.Transfer
			f.adopt(p, j)
		}
	case "Sealed":
		f.require(p.seals[e.ID], "Sealed", "Seal(l, k, q)", "seal %d was never put out", e.ID)
		delete(p.seals, e.ID)
	case "FenceDone":
		if k := p.peers[e.Peer]; k != nil && !e.Failed && e.Epoch > k.ended && slices.Contains(k.epochs, e.Epoch) {
			f.require(e.Epoch <= k.asked, "FenceDone", "a fence is put out before it is back", "epoch %d", e.Epoch)
			f.require(says(l, "PrefillFence", e.Peer, 0), "PrefillFence", "what was given is acted upon", "epoch %d", e.Epoch)
		}
	case "Posted":
		b := p.batches[e.ID]
		if b == nil {
			return
		}
		if e.Failed {
			b.failed = true
			return
		}
		f.batchOver(p, e.ID, b)
	case "Noticed":
		if k := p.peers[e.Peer]; k != nil && !e.Failed && k.epoch == e.Epoch {
			if x := k.leases[e.Lease]; x != nil && x.notice == e.Number {
				x.noticed, x.channels = true, e.Channels
			}
		}
	case "Recv":
		k := p.peers[e.Peer]
		if k == nil || k.to == nil || e.From != k.decode {
			return
		}
		f.prefillHeard(p, k, e)
	}
}

// prefillHeard: what a peer says was sent.
func (f *Follower) prefillHeard(p *prefillRank, k *prefillLink, e *spec.TraceEvent) {
	link := f.s.links[k.to.k]
	f.require(e.Mark == 0 || leaseKey(link.node, e.Mark) <= link.dmark, "Recv "+e.Message, "Arrives(m <= dmark[k])", "mark %d, decode said %d", e.Mark, link.dmark&numbers>>subBits)
	if e.Message != "grant" && e.Message != "abort" && e.Message != "read" {
		return
	}
	o := f.s.lease(leaseKey(link.node, e.Lease)).on(k.to.k)
	if o == nil {
		return // forgotten, or never granted: an action on it is judged
	}
	switch e.Message {
	case "grant":
		f.require(o.owes, "Recv grant", "Arrives(owes[l, k])", "lease %d", e.Lease)
	case "abort":
		f.require(o.owes && aborted(o.lease), "Recv abort", "Arrives(owes[l, k] /\\ l was revoked)", "lease %d is %s", e.Lease, dstNames[o.lease.dst])
	case "read":
		f.require(o.owes && !o.hold, "Recv read", "Arrives(l \\in said)", "lease %d", e.Lease)
	}
}

func (f *Follower) batchOver(p *prefillRank, id uint64, b *sourceBatch) {
	delete(p.batches, id)
	b.lease.posts--
	if b.link.to == nil {
		return
	}
	o := f.s.lease(b.lease.id).on(b.link.to.k)
	if o == nil {
		return
	}
	for _, key := range b.pages {
		if w := o.sent[at{key, 0}]; w != nil && w.queued {
			f.hide(Act{Name: "Launch", L: b.lease.id, K: b.link.to.k, P: key, C: 0, I: o.ginc, Q: w.src})
		}
	}
}

// prefillLinkDid takes what happens to a link.
func (f *Follower) prefillLinkDid(p *prefillRank, l *spec.TraceLine, d *spec.TraceDid) {
	k := p.peers[d.Peer]
	if !f.require(k != nil, d.Name, "k \\in Rank", "nobody has connected as peer %d", d.Peer) {
		return
	}
	switch d.Name {
	case "Accept":
		f.prefillAccept(p, k, l, d)
	case "RecvMark":
		f.require(d.Mark <= k.heard, "RecvMark", "Arrives(m <= dmark[k])", "mark %d is taken, %d came", d.Mark, k.heard)
		k.took = max(k.took, d.Mark)
		k.passed(d.Mark)
		if k.to == nil {
			k.mark = d.Mark
			return
		}
		f.do(Act{Name: "RecvMark", K: k.to.k, M: leaseKey(f.s.links[k.to.k].node, d.Mark)})
	case "OwnMark":
		k.own = d.Mark
		f.require(says(l, "Forget", d.Peer, d.Mark-1), "Forget", "its own mark rises to forget an answer", "lease %d", d.Mark-1)
		if k.to != nil {
			f.do(Act{Name: "OwnMark", K: k.to.k, M: leaseKey(f.s.links[k.to.k].node, d.Mark)})
		}
	case "PrefillFence":
		f.prefillFenced(p, k, d.Epoch)
	}
}

func (f *Follower) prefillAccept(p *prefillRank, k *prefillLink, l *spec.TraceLine, d *spec.TraceDid) {
	f.require(d.Inc == k.decode, "Accept", "it answers the connect that is out", "of %s, accepted %s", k.decode, d.Inc)
	f.require(puts(l, "Send", "accept", d.Peer, 0), "Accept", "it is put out", "peer %d", d.Peer)
	if r := f.decodes[d.Inc]; r != nil {
		known := r.over
		for _, x := range r.links {
			known = known || Epoch(d.Epoch) <= f.s.links[x.k].ep
		}
		f.require(known, "Accept", "Arrives: a connect in this epoch is out", "epoch %d", d.Epoch)
	} else {
		f.require(!f.strict, "Accept", "Arrives: a connect is out", "no decode rank with incarnation %s is known", d.Inc)
	}
	if d.Fresh && k.to != nil { // it had forgotten this peer, of which nothing was left
		x := f.s.links[k.to.k]
		if x.pinc == k.to.life(p.inc) {
			x.pmark = 0
		}
		clear(k.leases)
		k.own, k.took, k.ended, k.asked = 0, 0, 0, 0
	}
	k.epoch = d.Epoch
	for id, x := range k.leases { // of epochs that are over
		if x.epoch < d.Epoch && (!x.offered || x.given) {
			delete(k.leases, id)
		}
	}
	k.epochs = append(k.epochs, d.Epoch)
	if len(k.epochs) > 64 {
		k.epochs = slices.Delete(k.epochs, 0, 32)
	}
	if old := p.links[k.decode]; old != nil && old != k {
		k.epochs = append(slices.Clone(old.epochs), d.Epoch)
	}
	p.links[k.decode] = k
}

// passed ends what a mark has passed and was not answered: it goes without a word.
func (k *prefillLink) passed(m spec.LeaseID) {
	for id, x := range k.leases {
		if id < m && x.answer == "" && (!x.offered || x.given) {
			delete(k.leases, id)
		}
	}
}

// prefillFenced: nothing of an epoch up to this is read here any more.
func (f *Follower) prefillFenced(p *prefillRank, k *prefillLink, old spec.Epoch) {
	k.ended = max(k.ended, old)
	for _, e := range k.epochs {
		if e > old {
			continue
		}
		if k.to == nil {
			k.fenced = append(k.fenced, e)
		} else if x := f.s.links[k.to.k]; x.pinc == k.to.life(p.inc) && !x.pfenced[fenced{0, Epoch(e)}] {
			f.do(Act{Name: "PrefillFence", K: k.to.k, E: Epoch(e)})
		}
	}
	for _, id := range sortedBatches(p) {
		if b := p.batches[id]; b.link == k && b.epoch <= old {
			delete(p.batches, id)
			b.lease.posts--
		}
	}
}

func sortedBatches(p *prefillRank) []uint64 {
	ids := make([]uint64, 0, len(p.batches))
	for id := range p.batches {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// prefillLeaseOf is prefill's end of a lease, if its rank is in the trace and holds the lease.
func (f *Follower) prefillLeaseOf(k *decodeLink, id Lease) *prefillLease {
	p := f.prefill[k.inc]
	if p == nil {
		return nil
	}
	for _, x := range p.links {
		if x.to == k {
			return x.leases[spec.LeaseID(id&numbers>>subBits)]
		}
	}
	return nil
}
