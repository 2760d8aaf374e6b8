package sim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"kvfence/impl/core"
	"kvfence/impl/device"
	"kvfence/impl/transport"
	"kvfence/impl/transport/mem"
	"kvfence/spec"
)

// prefillSide is one prefill engine: a leader and its ranks, one life after another at the same address.
type prefillSide struct {
	side
	lead  *host
	l     *core.PrefillLeader
	ranks []*prefillRank

	running *core.Compute // the chunk that is being computed, for the oracle
	failing bool          // the next chunk fails
	pages   uint32        // of its KV pool, where it was resized; 0: as configured
}

// prefillRank is one rank of it with its memory.
type prefillRank struct {
	side    *prefillSide
	rank    spec.Rank
	host    *host
	m       *core.PrefillRank
	mem     device.Memory
	peers   map[spec.Incarnation]core.PeerID
	links   map[pathKey]*sourcePath
	order   []*sourcePath
	fences  []pathKey // under way
	seals   []sealed  // the last ones, a ring
	sealed  int
	sealing map[spec.SourcePage]int // seals of a page that are under way

	badFence bool // the next one fails
}

// sealed is a part of a page whose digest was taken: from now on a changed bit in it is found.
type sealed struct {
	component spec.Component
	page      spec.SourcePage
	segs      []spec.Segment
}

// pathKey names a data path at one end.
type pathKey struct {
	peer  core.PeerID
	epoch spec.Epoch
}

// sourcePath is prefill's end of a data path in one epoch.
type sourcePath struct {
	pathKey
	info   transport.LinkInfo
	src    *mem.Source
	exp    *mem.Export
	fenced bool
	writes map[uint64][]transport.Write // by batch, for the oracle
	number map[spec.LeaseID]uint64      // of the last notice
}

// start begins a life of the side: new incarnations, empty ledgers, memory with whatever lay in it.
func (p *prefillSide) start() {
	w := p.w
	p.life++
	p.up, p.paused, p.box, p.running = true, false, nil, nil
	p.incs, p.hosts = nil, nil
	for range p.ranks {
		p.incs = append(p.incs, w.mint())
	}
	cfg, window, name := w.cfg, w.cfg.Window, fmt.Sprintf("p%d", p.slot)
	if p.pages != 0 {
		cfg.PrefillPages = p.pages
	}
	if w.cfg.Mismatch != 0 && p.slot == len(w.cfg.Prefill)-1 {
		w.count(Mismatch)
		switch w.cfg.Mismatch {
		case 1:
			window /= 2
		case 2:
			cfg.NoState = !cfg.NoState
		default:
			name = "q"
		}
	}
	layouts := cfg.sideLayouts(spec.RolePrefill, len(p.ranks))
	id := func(r int) spec.Identity {
		return spec.Identity{Name: fmt.Sprintf("%s.%d", name, r), Role: spec.RolePrefill, Incarnation: p.incs[r], Rank: spec.Rank(r), Size: uint16(len(p.ranks)), Side: p.incs}
	}
	lc := core.PrefillLeaderConfig{Identity: id(0), SideLayouts: layouts, Revision: revision, Vocabulary: vocabulary, Window: window, ChunkTokens: w.cfg.Chunk, Adapters: []string{adapter}, Sharing: w.cfg.Sources > 0}
	if w.cfg.PrefillLeader != nil {
		w.cfg.PrefillLeader(&lc)
	}
	l, err := core.NewPrefillLeader(lc)
	if err != nil {
		w.violate(Contract, "prefill leader: %v", err)
		return
	}
	p.l = l
	p.lead = p.newHost(fmt.Sprintf("p%d", p.slot), l, p.act)
	w.introduce(p.lead, spec.TracePrefillLeader, id(0), nil)
	for r := range p.ranks {
		rc := core.PrefillRankConfig{Identity: id(r), Capabilities: caps(), SideLayouts: layouts, Window: window, Digests: true, Pull: true, MaxPublished: w.cfg.Sources}
		set := func(at *int, v int) {
			if v != 0 {
				*at = v
			}
		}
		set(&rc.MaxAnswers, w.cfg.Answers)
		set(&rc.MaxPostItems, w.cfg.PostItems)
		set(&rc.MaxPosts, w.cfg.Posts)
		set(&rc.MaxSealItems, w.cfg.SealItems)
		if w.cfg.PrefillRank != nil {
			w.cfg.PrefillRank(&rc)
		}
		m, err := core.NewPrefillRank(rc)
		if err != nil {
			w.violate(Contract, "prefill rank: %v", err)
			return
		}
		k := &prefillRank{side: p, rank: spec.Rank(r), m: m, mem: w.memory(layouts[r]), peers: map[spec.Incarnation]core.PeerID{}, links: map[pathKey]*sourcePath{}, sealing: map[spec.SourcePage]int{}}
		k.host = p.newHost(fmt.Sprintf("p%d.%d", p.slot, r), m, k.act)
		w.introduce(k.host, spec.TracePrefill, id(r), layouts[r])
		p.ranks[r] = k
	}
}

// crash ends the side's life. What was launched may still land; readers go on reading its memory.
func (p *prefillSide) crash() {
	p.up, p.box = false, nil
	p.life++
	p.incs = nil
	for _, r := range p.ranks {
		r.crash()
	}
}

// crash ends one rank's process.
func (r *prefillRank) crash() {
	for _, s := range r.order {
		if s.src != nil {
			s.src.Crash()
		}
		if s.exp != nil {
			s.exp.Crash()
		}
	}
	for _, c := range r.side.w.conns {
		if c.p == r && !c.pClosed {
			c.drop(true)
		}
	}
}

func caps() []string { return []string{spec.CapDrainReceipts, spec.CapMarks, spec.CapTags} }

// memory makes a rank's pools; what lies in fresh memory is noise.
func (w *World) memory(ls []spec.Layout) (m device.Memory) {
	for _, l := range ls {
		pool, err := device.NewPool(l, nil, nil)
		if err != nil {
			w.violate(Contract, "pool: %v", err)
			return m
		}
		for i := 0; i+8 <= min(len(pool.Bytes), 1<<16); i += 8 { // of a great pool the rest is empty
			binary.LittleEndian.PutUint64(pool.Bytes[i:], w.noise.Uint64())
		}
		m[l.Component] = pool
	}
	return m
}

func (r *prefillRank) peerOf(inc spec.Incarnation) core.PeerID {
	if r.peers[inc] == 0 {
		r.peers[inc] = core.PeerID(len(r.peers) + 1)
	}
	return r.peers[inc]
}

// act carries out the leader's actions.
func (p *prefillSide) act(a core.Action) {
	switch a := a.(type) {
	case core.ToRank:
		p.later(p.ranks[a.Rank].host, core.Side{Rank: a.Rank, Msg: a.Msg})
	case core.ReplyLeader:
		p.later(p.ranks[0].host, core.SayFor{Peer: a.Peer, Body: a.Body})
	case core.Compute:
		p.compute(a)
	case core.Named:
		p.w.request(a.Req).source = a.Source
		p.w.xfers[spec.TransferID{Leader: a.Source.Leader, Counter: a.Source.Counter}] = p.w.request(a.Req).stands()
	case core.HalfOver:
		p.w.note("half %d over %s", a.Req, a.Cause)
	}
}

// compute fills the pages of all ranks: noise while it runs, the true bytes at its end.
func (p *prefillSide) compute(a core.Compute) {
	x := p.w.xfers[a.Transfer]
	if x == nil {
		p.w.violate(Contract, "compute of a transfer that nobody asked for: %s", a.Transfer)
		return
	}
	fill := func(noise byte) {
		for k, r := range p.ranks {
			pages := a.Pages[k]
			x.toy.eachCell(r.mem[spec.KV], pages[spec.KV], a.From, a.To, func(got, want []byte) { put(got, want, noise) })
			if a.Last {
				x.toy.eachRecord(r.mem, &pages, x.prompt, func(got, want []byte) { put(got, want, noise) })
			}
		}
	}
	done := core.ComputeDone{Transfer: a.Transfer, From: a.From, To: a.To}
	if p.failing {
		p.failing, done.Err = false, "made to fail"
	} else if p.w.FailCompute != nil {
		done.Err = p.w.FailCompute(a)
	}
	if done.Err != "" {
		p.w.work(p.lead, 3_000_000, func() { p.later(p.lead, done) })
		return
	}
	fill(0x5a)
	p.running = &a
	if p.w.cfg.Plant.SealEarly {
		p.later(p.lead, done)
		p.w.work(p.lead, 3_000_000, func() { fill(0) })
		p.running = nil
		return
	}
	p.w.work(p.lead, 3_000_000, func() {
		fill(0)
		p.running = nil
		p.later(p.lead, done)
	})
}

func put(got, want []byte, noise byte) {
	for i := range got {
		got[i] = want[i] ^ noise
	}
}

// act carries out a rank's actions.
func (r *prefillRank) act(a core.Action) {
	w, s := r.side.w, &r.side.side
	switch a := a.(type) {
	case core.Send:
		if c := w.conn(a.Conn); c != nil && c.pUp() && c.p == r {
			w.noteSend(r.host, a.Peer, a.Env)
			w.transmit(c, false, a.Env)
		}
	case core.CloseConn:
		if c := w.conn(a.Conn); c != nil && c.p == r {
			c.closeAtPrefill()
		}
	case core.ToLeader:
		s.later(r.side.lead, core.Side{Rank: r.rank, Msg: a.Msg})
	case core.VoidTags:
		for _, page := range a.Pages {
			r.mem[a.Component].VoidTags(page)
		}
	case core.ExpectData:
		r.expect(a)
	case core.Fence:
		r.fence(a)
	case core.Seal:
		for _, it := range a.Items {
			r.sealing[it.Src]++
		}
		w.work(r.host, 1_000_000, func() { s.later(r.host, r.seal(a)) })
	case core.Post:
		r.post(a)
	case core.Notice:
		if l := r.links[pathKey{a.Peer, a.Epoch}]; l != nil && l.src != nil {
			l.number[a.Lease] = a.Number
			l.src.Notice(a.Lease, a.Number)
		}
	default:
		w.violate(Contract, "%s: the driver does not know %T", r.host.name, a)
	}
}

// expect opens prefill's end of a data path.
func (r *prefillRank) expect(a core.ExpectData) {
	w := r.side.w
	l := &sourcePath{pathKey: pathKey{a.Peer, a.Epoch}, writes: map[uint64][]transport.Write{}, number: map[spec.LeaseID]uint64{},
		info: transport.LinkInfo{Prefill: a.Info.Prefill, Decode: a.Info.Decode, Epoch: a.Epoch, Key: a.Info.Key}}
	sink := &sourceSink{r, l}
	var err error
	if a.Info.Pull {
		l.exp, err = w.fabric.OpenExport(l.info, r.mem, exportSink{sink})
	} else {
		l.src, err = w.fabric.OpenSource(l.info, r.mem, w.cfg.Channels, sink)
	}
	if err != nil {
		r.side.later(r.host, core.DataUp{Peer: a.Peer, Epoch: a.Epoch, Err: err.Error()})
		return
	}
	r.links[l.pathKey] = l
	r.order = append(r.order, l)
	e := w.endsOf(l.info)
	e.src, e.srcRank, e.srcLife = l, r, r.side.life
}

// fence ends every path of a peer up to an epoch, and says so when the last has ended.
func (r *prefillRank) fence(a core.Fence) {
	if r.badFence {
		r.badFence, r.host.excused = false, true
		r.side.later(r.host, core.FenceDone{Peer: a.Peer, Old: a.Old})
		return
	}
	for _, l := range r.order {
		switch {
		case l.peer != a.Peer || l.epoch > a.Old || l.fenced:
		case l.exp != nil:
			l.exp.Shut()
			l.fenced = true
		default:
			l.src.Fence()
		}
	}
	r.fences = append(r.fences, pathKey{a.Peer, a.Old})
	r.fenced()
}

// fenced says which fences have no path left that reads.
func (r *prefillRank) fenced() {
	kept := r.fences[:0]
	for _, f := range r.fences {
		if slices.ContainsFunc(r.order, func(l *sourcePath) bool { return l.peer == f.peer && l.epoch <= f.epoch && !l.fenced }) {
			kept = append(kept, f)
		} else {
			r.side.later(r.host, core.FenceDone{Peer: f.peer, Old: f.epoch, OK: true})
		}
	}
	r.fences = kept
}

// seal takes the digests of finished parts, and for pull writes the source tags.
func (r *prefillRank) seal(a core.Seal) core.Sealed {
	out := core.Sealed{Seal: a.Seal, Lease: a.Lease}
	for _, it := range a.Items {
		if r.sealing[it.Src]--; r.sealing[it.Src] == 0 {
			delete(r.sealing, it.Src)
		}
		pool := r.mem[it.Part.Component]
		segs, err := it.Part.Segments(pool.Layout, it.Index, nil)
		if err != nil {
			r.side.w.violate(Contract, "seal: %v", err)
			return out
		}
		used := spec.UsedBytes(segs)
		if used != it.Tag.Used {
			r.side.w.violate(Contract, "seal of %d bytes, the tag says %d", used, it.Tag.Used)
		}
		tag := it.Tag
		tag.Digest = device.DigestSegments(pool.Page(it.Src.Page), segs, device.HeaderOf(it.Part, pool.Layout, it.Index, used))
		out.Digests = append(out.Digests, tag.Digest)
		if s := (sealed{it.Part.Component, it.Src, segs}); len(r.seals) < 16 {
			r.seals = append(r.seals, s)
		} else {
			r.seals[r.sealed%16] = s
		}
		r.sealed++
		if a.Pull {
			device.PutTag(pool.Slot(it.Src.Page, it.Slot), tag)
		}
	}
	return out
}

// post hands a batch to the fabric.
func (r *prefillRank) post(a core.Post) {
	w := r.side.w
	l := r.links[pathKey{a.Peer, a.Epoch}]
	if l == nil || l.src == nil {
		w.violate(Contract, "%s posts on a path that is not open", r.host.name)
		return
	}
	b := transport.Batch{ID: a.Batch, Lease: a.Lease}
	for _, it := range a.Items {
		segs, err := it.Part.Segments(r.mem[it.Part.Component].Layout, it.Index, nil)
		if err != nil {
			w.violate(Contract, "post: %v", err)
			return
		}
		b.Writes = append(b.Writes, transport.Write{Component: it.Part.Component, Part: it.Part.Index, Of: it.Part, Index: it.Index,
			Src: it.Src.Page, SrcSegs: segs, Dst: it.Dst, Tag: it.Tag})
	}
	l.writes[a.Batch] = b.Writes
	l.src.Post(b)
	if w.cfg.Plant.PostedEarly {
		r.side.later(r.host, core.Posted{Peer: a.Peer, Epoch: a.Epoch, Batch: a.Batch})
	}
}

// sourceSink carries the fabric's reports to the rank.
type sourceSink struct {
	r *prefillRank
	l *sourcePath
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func (s *sourceSink) Posted(batch uint64, err error) {
	if s.r.side.w.cfg.Plant.PostedEarly && !errors.Is(err, mem.ErrFailed) {
		return
	}
	s.r.side.later(s.r.host, core.Posted{Peer: s.l.peer, Epoch: s.l.epoch, Batch: batch, Err: text(err)})
}

func (s *sourceSink) Noticed(lease spec.LeaseID, channels []spec.Channel, err error) {
	n := core.Noticed{Peer: s.l.peer, Epoch: s.l.epoch, Lease: lease, Number: s.l.number[lease], Channels: channels, Err: text(err)}
	s.r.side.later(s.r.host, n)
}

func (s *sourceSink) Lost(error) {
	s.r.side.later(s.r.host, core.DataLost{Peer: s.l.peer, Epoch: s.l.epoch})
}

func (s *sourceSink) Fenced() {
	s.l.fenced = true
	s.r.fenced()
}

// exportSink is the same for a pull link.
type exportSink struct{ *sourceSink }

func (s exportSink) Opened() {
	s.r.side.later(s.r.host, core.DataUp{Peer: s.l.peer, Epoch: s.l.epoch})
}

func (s exportSink) ReaderEnded() { s.r.side.later(s.r.host, core.ReaderEnded{Peer: s.l.peer}) }
