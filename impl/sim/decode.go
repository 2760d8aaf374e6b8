package sim

import (
	"fmt"

	"kvfence/impl/core"
	"kvfence/impl/device"
	"kvfence/impl/transport"
	"kvfence/impl/transport/mem"
	"kvfence/spec"
)

// decodeSide is one decode engine: a leader and its ranks.
type decodeSide struct {
	side
	lead  *host
	l     *core.DecodeLeader
	ranks []*decodeRank
	forks map[spec.TransferID]*fork

	failing bool // the next step fails
}

// decodeRank is one rank of it with its memory and its links.
type decodeRank struct {
	side  *decodeSide
	rank  spec.Rank
	host  *host
	m     *core.DecodeRank
	mem   device.Memory
	links map[core.PeerID]*targetLink
	order []*targetLink
	asked *read // the read whose ReadBegin is being stepped

	badOpen, badFence bool // the next one fails
}

// targetLink is decode's end of the link with one configured prefill rank, over all epochs.
type targetLink struct {
	peer   core.PeerID
	slot   int // of the prefill side
	rank   int
	grants *transport.Grants
	conn   *conn
	dialAt core.Time
	fails  int // connections lost since the last one that came to a data path
	paths  []*targetPath
	fences []spec.Epoch // under way
}

// targetPath is decode's end of a data path in one epoch.
type targetPath struct {
	info   transport.LinkInfo
	theirs []spec.Layout // of the source
	dst    *mem.Target
	rd     *mem.Reader
	copies map[uint64][]transport.Copy // by job, for the oracle
	fenced bool
}

func (d *decodeSide) start() {
	w := d.w
	d.life++
	d.up, d.paused, d.box = true, false, nil
	d.incs, d.hosts, d.forks = nil, nil, map[spec.TransferID]*fork{}
	for range d.ranks {
		d.incs = append(d.incs, w.mint())
	}
	layouts := w.cfg.sideLayouts(spec.RoleDecode, len(d.ranks))
	id := func(r int) spec.Identity {
		return spec.Identity{Name: fmt.Sprintf("d%d.%d", d.slot, r), Role: spec.RoleDecode, Incarnation: d.incs[r], Rank: spec.Rank(r), Size: uint16(len(d.ranks)), Side: d.incs}
	}
	var peers []core.PeerConfig
	var sides [][]core.PeerID
	for s, n := range w.cfg.Prefill {
		var side []core.PeerID
		for r := range n {
			p := core.PeerConfig{ID: core.PeerID(len(peers) + 1), Name: fmt.Sprintf("p%d.%d", s, r), Pull: w.cfg.Pull}
			peers = append(peers, p)
			side = append(side, p.ID)
		}
		sides = append(sides, side)
	}
	lc := core.DecodeLeaderConfig{Identity: id(0), SideLayouts: layouts, Revision: revision, Vocabulary: vocabulary, Window: w.cfg.Window, Prefill: sides, Sharing: w.cfg.Sharing > 0}
	if w.cfg.DecodeLeader != nil {
		w.cfg.DecodeLeader(&lc)
	}
	l, err := core.NewDecodeLeader(lc)
	if err != nil {
		w.violate(Contract, "decode leader: %v", err)
		return
	}
	d.l = l
	d.lead = d.newHost(fmt.Sprintf("d%d", d.slot), l, d.act)
	w.introduce(d.lead, spec.TraceDecodeLeader, id(0), nil)
	for r := range d.ranks {
		rc := core.DecodeRankConfig{Identity: id(r), Layouts: layouts[r], Window: w.cfg.Window, Digests: true, Peers: peers, MaxPublished: w.cfg.Sharing}
		if w.cfg.DecodeRank != nil {
			w.cfg.DecodeRank(&rc)
		}
		m, err := core.NewDecodeRank(rc)
		if err != nil {
			w.violate(Contract, "decode rank: %v", err)
			return
		}
		k := &decodeRank{side: d, rank: spec.Rank(r), m: m, mem: w.memory(layouts[r]), links: map[core.PeerID]*targetLink{}}
		k.host = d.newHost(fmt.Sprintf("d%d.%d", d.slot, r), m, k.act)
		w.introduce(k.host, spec.TraceDecode, id(r), layouts[r], peers...)
		i := core.PeerID(0)
		for s, n := range w.cfg.Prefill {
			for pr := range n {
				i++
				t := &targetLink{peer: i, slot: s, rank: pr, grants: transport.NewGrants(k.mem), dialAt: w.now}
				k.links[i] = t
				k.order = append(k.order, t)
			}
		}
		d.ranks[r] = k
	}
}

// crash ends the side's life: nothing lands in its memory any more. Its requests are lost with it.
func (d *decodeSide) crash() {
	d.up, d.box = false, nil
	d.life++
	d.incs = nil
	for _, r := range d.ranks {
		r.crash()
	}
	d.lose()
}

// crash ends one rank's process.
func (r *decodeRank) crash() {
	for _, l := range r.order {
		for _, p := range l.paths {
			if p.dst != nil {
				p.dst.Crash()
			}
			if p.rd != nil {
				p.rd.Crash()
			}
		}
	}
	for _, c := range r.side.w.conns {
		if c.d == r && !c.dClosed {
			c.drop(false)
		}
	}
}

// lose ends the requests of a leader that died: their clients see their connections end.
func (d *decodeSide) lose() {
	for _, q := range d.w.requests {
		if q.Slot == d.slot && !q.Done {
			q.Done, q.Lost = true, true
		}
	}
}

// dials adds the connects that are due.
func (d *decodeSide) dials() {
	d.eachDial(func(r *decodeRank, t *targetLink) {
		if t.dialAt <= d.w.now {
			d.w.run = append(d.w.run, choice{dialer: r, link: t})
		}
	})
}

// eachDial visits the links that are to be dialed and whose other end can be reached.
func (d *decodeSide) eachDial(visit func(*decodeRank, *targetLink)) {
	if !d.up || d.paused {
		return
	}
	for _, r := range d.ranks {
		for _, t := range r.order {
			if t.conn != nil || r.host.dead {
				continue
			}
			if p := d.w.prefill[t.slot]; p.up && !p.ranks[t.rank].host.dead && !d.w.cuts[[2]int{t.slot, d.slot}] {
				visit(r, t)
			}
		}
	}
}

func (r *decodeRank) dial(t *targetLink, p *prefillRank) {
	w := r.side.w
	w.lastID++
	t.conn = &conn{id: w.lastID, d: r, p: p, dLife: r.side.life, pLife: p.side.life, dPeer: t.peer}
	w.conns = append(w.conns, t.conn)
	e := core.Dialed{Peer: t.peer, Conn: t.conn.id}
	for i := range e.Nonce {
		e.Nonce[i] = byte(w.noise.Uint32())
	}
	r.side.later(r.host, e)
}

// lost ends a connection at decode; a new one is dialed after a while.
func (r *decodeRank) lost(c *conn) {
	t := r.links[c.dPeer]
	if t.conn == c {
		t.conn, t.dialAt = nil, r.side.w.now+core.Time((1_000_000+r.side.w.chance.pick(dialTime, 20_000_000))<<min(t.fails, 7))
		t.fails++
	}
	r.side.later(r.host, core.ConnLost{Peer: c.dPeer, Conn: c.id})
}

// act carries out the leader's actions.
func (d *decodeSide) act(a core.Action) {
	switch a := a.(type) {
	case core.ToRank:
		d.later(d.ranks[a.Rank].host, core.Side{Rank: a.Rank, Msg: d.plantedIDs(a.Msg)})
	case core.SendLeader:
		if ask, ok := a.Body.(spec.Ask); ok && d.w.xfers[ask.Transfer] == nil {
			dom := spec.DomainOf(ask.Tenant, ask.Salt, ask.Adapter, revision)
			d.w.asks = append(d.w.asks, ask.Transfer)
			d.w.xfers[ask.Transfer] = &xfer{domain: dom, prompt: len(ask.Prompt), tokens: ask.Prompt, toy: newToy(dom, ask.Prompt)}
		}
		d.later(d.ranks[0].host, core.SayFor{Peer: a.Peer, Body: a.Body})
	case core.OpenStream:
		d.w.request(a.Req).opened(a)
	case core.Emit:
		d.w.request(a.Req).emit(a)
	case core.Answer:
		d.w.request(a.Req).answer(a)
	case core.ReadFirst:
		d.begin(&read{transfer: a.Transfer, leases: a.Leases, first: true}, 0)
	case core.RunStep:
		d.begin(&read{transfer: a.Transfer, leases: a.Leases, run: a}, a.Pos)
	default:
		d.w.violate(Contract, "%s: the driver does not know %T", d.lead.name, a)
	}
}

// act carries out a rank's actions.
func (r *decodeRank) act(a core.Action) {
	w := r.side.w
	switch a := a.(type) {
	case core.Send:
		if c := w.conn(a.Conn); c != nil && c.dUp() && c.d == r {
			w.noteSend(r.host, a.Peer, a.Env)
			w.transmit(c, true, a.Env)
		}
	case core.CloseConn:
		if c := w.conn(a.Conn); c != nil && c.d == r {
			c.closeAtDecode()
		}
	case core.ToLeader:
		if !r.side.forkSaid(r.rank, a.Msg) {
			r.side.later(r.side.lead, core.Side{Rank: r.rank, Msg: a.Msg})
		}
	case core.OpenData:
		r.openData(a)
	case core.Fence:
		r.fence(a)
	case core.Allow:
		if !r.links[a.Peer].grants.Allow(a.Grant) {
			w.violate(Contract, "%s: lease %d cannot enter the grant table", r.host.name, a.Grant.Lease)
		}
	case core.Revoke:
		r.links[a.Peer].grants.Revoke(a.Lease)
	case core.VoidTags:
		r.expel(a.Component, a.Pages)
		for _, page := range a.Pages {
			r.mem[a.Component].VoidTags(page)
		}
	case core.PutTag:
		device.PutTag(r.mem[a.Component].Slot(a.Page, a.Slot), a.Tag)
	case core.Verify:
		r.verify(a)
	case core.PullCopy:
		r.pullCopy(a)
	case core.ReadPages:
		if r.asked != nil && r.asked.leases[r.rank] == a.Lease {
			r.asked.tables[r.rank] = &a
		}
	case core.ReadRefused:
	case core.Alarm:
		w.note("%s alarm lease %d: %v", r.host.name, a.Lease, a.Bad)
		w.alarms++
	default:
		w.violate(Contract, "%s: the driver does not know %T", r.host.name, a)
	}
}

// openData opens decode's end of a data path; prefill's end hears of it.
func (r *decodeRank) openData(a core.OpenData) {
	w, t := r.side.w, r.links[a.Peer]
	t.fails = 0
	p := &targetPath{copies: map[uint64][]transport.Copy{}, theirs: a.Info.PeerLayouts, info: transport.LinkInfo{Prefill: a.Info.Prefill, Decode: a.Info.Decode, Epoch: a.Epoch, Key: a.Info.Key}}
	up := core.DataUp{Peer: a.Peer, Epoch: a.Epoch}
	peer := w.prefill[t.slot]
	e := w.endsOf(p.info)
	sink := &targetSink{r, t, p}
	switch {
	case r.badOpen:
		r.badOpen, up.Err = false, "made to fail"
	case !e.srcAlive() || e.src.info != p.info || e.src.fenced || w.cuts[[2]int{t.slot, r.side.slot}]:
		up.Err = "nobody listens for this path"
	case a.Info.Pull:
		rd, err := w.fabric.OpenReader(p.info, r.mem, sink)
		if p.rd = rd; err != nil {
			p.rd, up.Err = nil, err.Error()
		}
	default:
		dst, err := w.fabric.OpenTarget(p.info, r.mem, t.grants, sink)
		if p.dst = dst; err != nil {
			p.dst, up.Err = nil, err.Error()
		} else {
			peer.later(e.srcRank.host, core.DataUp{Peer: e.src.peer, Epoch: a.Epoch})
		}
	}
	if up.Err == "" {
		t.paths = append(t.paths, p)
		e.dst, e.dstLink, e.dstRank, e.dstLife = p, t, r, r.side.life
	}
	r.side.later(r.host, up)
}

// expel sees to it that nothing is being placed into pages that are handed out now, as impl/node does: a doubled write may stand between
// its check and its tag when the receipt is taken. Its stream is cut, and the copy that it is in comes to its end first.
func (r *decodeRank) expel(c spec.Component, pages []spec.PageID) {
	w := r.side.w
	for _, t := range r.order {
		if w.cfg.Plant.NoExpel || len(t.grants.Strays(c, pages)) == 0 {
			continue
		}
		for _, p := range t.paths {
			if p.dst == nil || p.fenced {
				continue
			}
			if w.cfg.Verbs.On {
				p.dst.Settle(t.grants.Strays(c, pages))
				continue
			}
			for _, op := range w.fabric.Pending() {
				for op.Kind == mem.Write && op.Link == p.info && op.State >= mem.Checked && w.fabric.Step(op.Ref, mem.Advance) == nil {
					w.sum.add(uint64(op.Ref))
				}
			}
			w.fabric.CutPush(p.info)
		}
	}
}

// fence raises the epoch first, then waits for every placer and copy of the older ones.
func (r *decodeRank) fence(a core.Fence) {
	t := r.links[a.Peer]
	switch {
	case r.side.w.cfg.Plant.FenceEarly:
		r.side.later(r.host, core.FenceDone{Peer: a.Peer, Old: a.Old, OK: true})
		return
	case r.badFence:
		r.badFence, r.host.excused = false, true
		r.side.later(r.host, core.FenceDone{Peer: a.Peer, Old: a.Old})
		return
	}
	t.grants.Raise(a.New)
	wait := false
	for _, p := range t.paths {
		switch {
		case p.fenced || p.info.Epoch > a.Old:
		case p.dst != nil:
			wait = true
			p.dst.Fence()
		case p.rd != nil:
			wait = true
			p.rd.Fence()
		}
	}
	if !wait {
		r.side.later(r.host, core.FenceDone{Peer: a.Peer, Old: a.Old, OK: true})
		return
	}
	t.fences = append(t.fences, a.Old)
}

// targetSink carries the fabric's reports to the rank.
type targetSink struct {
	r *decodeRank
	t *targetLink
	p *targetPath
}

func (s *targetSink) NoticeIn(channel uint32, lease spec.LeaseID, number uint64) {
	s.r.side.later(s.r.host, core.NoticeIn{Peer: s.t.peer, Epoch: s.p.info.Epoch, Channel: channel, Lease: lease, Number: number})
}

func (s *targetSink) Refused(lease spec.LeaseID, why spec.Refusal) {
	s.r.side.w.note("%s places nothing of lease %d: %s", s.r.host.name, lease, why)
}

func (s *targetSink) Lost(error) {
	s.r.side.later(s.r.host, core.DataLost{Peer: s.t.peer, Epoch: s.p.info.Epoch})
}

// Fenced ends every fence whose paths have all ended.
func (s *targetSink) Fenced() {
	s.p.fenced = true
	kept := s.t.fences[:0]
	for _, old := range s.t.fences {
		open := false
		for _, p := range s.t.paths {
			open = open || !p.fenced && p.info.Epoch <= old
		}
		if open {
			kept = append(kept, old)
		} else {
			s.r.side.later(s.r.host, core.FenceDone{Peer: s.t.peer, Old: old, OK: true})
		}
	}
	s.t.fences = kept
}

func (s *targetSink) Copied(c transport.CopyResult) {
	e := core.PullDone{Peer: s.t.peer, Epoch: s.p.info.Epoch, Job: c.Job, Lease: c.Lease, Err: text(c.Err)}
	for _, b := range c.Bad {
		e.Bad = append(e.Bad, core.BadPart{Component: b.Component, Part: b.Part, Index: b.Index, State: b.State, Digest: b.Digest})
	}
	s.r.side.later(s.r.host, e)
}
