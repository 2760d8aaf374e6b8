package core

import (
	"fmt"

	"kvfence/impl/pages"
	"kvfence/spec"
)

// reserveOwner has the pages that no request may use.
const reserveOwner = ^pages.Owner(0)

// DecodeRank owns one rank's pools at decode: leases with their pages, generations and holds, the epoch, fences and mark of each
// link. Its rules are protocol.md's; the names in Did are those of TLA/Transfer.tla. Not safe for concurrent use.
// decode_rank_link.go has the life of a link, _fence.go fences and quarantine, _take.go leases, _receipt.go the drain and its
// receipts, _pull.go pulled parts, _ready.go verify and reads,
// _share.go prefixes that leases share.
type DecodeRank struct {
	cfg     DecodeRankConfig
	own     spec.Incarnation
	layouts [spec.ComponentCount]*spec.Layout
	pools   pages.Set

	now        Time
	out        []Action
	links      []*dlink // by rising PeerID
	leases     map[spec.LeaseID]*dlease
	byTransfer map[spec.TransferID]*dlease
	taken      *dlease // pages taken, grants not sent: at most one, so that numbers rise in the order of grants
	next       spec.LeaseID
	lastConn   uint64 // counter of connects
	jobs       map[uint64]*pullJob
	lastJob    uint64
	findings   []*finding
	clock      timers
	touched    []*dlease // leases that this step changed, to be asserted

	within      bool // a Fence or Take revokes leases by itself: it is no Abort of the specification
	ending      bool // takes nothing new
	fenceFailed bool
	stopped     bool
	wanted      bool // somebody was told NoRoom
	states      [dleaseStates]int
	refused     uint64
	fences      uint64
	alarms      uint64
	hits        uint64 // pages shared
	published   int    // pages known
}

// Timer kinds of a decode rank.
const (
	timeLink uint8 = iota
	timeRepeat
	timeQuarantine
)

// NewDecodeRank makes a rank with all pages free and no link. cfg goes through WithDefaults and Validate.
func NewDecodeRank(cfg DecodeRankConfig) (*DecodeRank, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	pools, err := pages.NewSet(cfg.Layouts)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	r := &DecodeRank{cfg: cfg, own: cfg.Identity.Incarnation, pools: pools, next: 1, jobs: map[uint64]*pullJob{},
		leases: map[spec.LeaseID]*dlease{}, byTransfer: map[spec.TransferID]*dlease{}}
	for i := range cfg.Layouts {
		r.layouts[cfg.Layouts[i].Component] = &cfg.Layouts[i]
	}
	r.pools[spec.KV].AllowSharing(cfg.MaxPublished)
	if cfg.Reserve != [spec.ComponentCount]uint32{} {
		if _, ok := r.pools.Take(cfg.Reserve, reserveOwner); !ok {
			return nil, fmt.Errorf("%w: the reserved pages are not there", ErrConfig)
		}
	}
	for i, p := range cfg.Peers {
		r.links = append(r.links, &dlink{cfg: p, index: uint64(i)})
	}
	return r, nil
}

// Step carries one event through the machine and returns what is to be done, in order. The returned slice is the caller's. An
// error (ErrContract) means that the driver broke its contract; nothing that a peer sends is one.
func (r *DecodeRank) Step(now Time, ev Event) ([]Action, error) {
	if now < r.now {
		return nil, fmt.Errorf("%w: time went back from %d to %d", ErrContract, r.now, now)
	}
	if err := r.known(ev); err != nil {
		return nil, err
	}
	r.now, r.out = now, nil
	if r.stopped {
		r.refuse(ev)
		return r.out, nil
	}
	r.handle(ev)
	r.runTimers()
	r.assert()
	r.endIfOver()
	return r.out, nil
}

// known refuses events that are not this machine's and links that were never configured.
func (r *DecodeRank) known(ev Event) error {
	peer, named := PeerID(0), true
	switch e := ev.(type) {
	case Dialed:
		peer = e.Peer
	case Recv:
		peer = e.Peer
	case ConnLost:
		peer = e.Peer
	case DataUp:
		peer = e.Peer
	case DataLost:
		peer = e.Peer
	case FenceDone:
		peer = e.Peer
	case NoticeIn:
		peer = e.Peer
	case PullDone:
		peer = e.Peer
	case SayFor:
		peer = e.Peer
	case Tick, Verified, ReadBegin, ReadEnd, Side, SideLost:
		named = false
	default:
		return fmt.Errorf("%w: a decode rank has no event %T", ErrContract, ev)
	}
	if named && r.link(peer) == nil {
		return fmt.Errorf("%w: %T names peer %d, which is not configured", ErrContract, ev, peer)
	}
	return nil
}

func (r *DecodeRank) handle(ev Event) {
	switch e := ev.(type) {
	case Dialed:
		r.dialed(e)
	case Recv:
		r.recv(e)
	case ConnLost:
		r.connLost(e)
	case DataUp:
		r.dataUp(e)
	case DataLost:
		r.dataLost(e)
	case FenceDone:
		r.fenceDone(e)
	case NoticeIn:
		r.noticeIn(e)
	case PullDone:
		r.pullDone(e)
	case SayFor:
		r.sayFor(e)
	case Verified:
		r.verified(e)
	case ReadBegin:
		r.readBegin(e)
	case ReadEnd:
		r.readEnd(e)
	case Side:
		r.side(e.Msg)
	case SideLost:
		r.leaderLost()
	}
}

func (r *DecodeRank) side(m SideMsg) {
	switch m := m.(type) {
	case Take:
		r.take(m)
	case Go:
		r.goOn(m)
	case AbortLease:
		r.abortLease(m)
	case ReleaseLease:
		r.releaseLease(m)
	case Grow:
		r.grow(m)
	case Fork:
		r.fork(m)
	default:
		r.count(spec.RefuseUnknownKind, 0, 0, fmt.Sprintf("side message %T", m))
	}
}

// refuse answers what must be answered after a Stop: nothing is served.
func (r *DecodeRank) refuse(ev Event) {
	switch e := ev.(type) {
	case Dialed:
		r.do(CloseConn{Conn: e.Conn})
	case ReadBegin:
		r.do(ReadRefused{Lease: e.Lease, Cause: spec.CauseInvariant})
	case Side:
		switch m := e.Msg.(type) {
		case Take:
			r.do(ToLeader{Msg: NoPlan{Transfer: m.Transfer, Cause: spec.CauseInvariant, Detail: "this rank has stopped"}})
		case Fork:
			r.do(ToLeader{Msg: NoPlan{Transfer: m.Transfer, Cause: spec.CauseInvariant, Detail: "this rank has stopped"}})
		case Grow:
			r.do(ToLeader{Msg: GrowNoRoom{Transfer: m.Transfer}})
		}
	}
}

// Deadline is the time by which Step(Tick) must be called; 0: none.
func (r *DecodeRank) Deadline() Time {
	if r.stopped {
		return 0
	}
	return r.clock.next()
}

func (r *DecodeRank) runTimers() {
	for {
		t, ok := r.clock.due(r.now)
		if !ok || r.stopped {
			return
		}
		switch t.kind {
		case timeLink:
			r.linkTime(r.links[t.a], t.at)
		case timeRepeat:
			r.repeatTime(spec.LeaseID(t.a), r.links[t.b], t.at)
		case timeQuarantine:
			r.quarantineTime(r.links[t.a], t.at)
		}
	}
}

// endIfOver stops a rank whose fence failed once nothing that is ready or may become so is left.
func (r *DecodeRank) endIfOver() {
	if r.fenceFailed && !r.stopped && r.states[dleaseReady]+r.states[dleaseVerifying]+r.states[dleaseFilling]+r.states[dleaseTaken] == 0 {
		r.stop(0, "a fence could not be done")
	}
}

// do appends an action.
func (r *DecodeRank) do(a Action) { r.out = append(r.out, a) }

// did records one action of the specification.
func (r *DecodeRank) did(name string, l *dlease, k *dlink, detail string) {
	r.didWith(l, k, Did{Name: name, Detail: detail})
}

// didWith records one with more than lease and link.
func (r *DecodeRank) didWith(l *dlease, k *dlink, d Did) {
	if l != nil {
		d.Transfer, d.Lease = l.transfer, l.id
	}
	if k != nil {
		d.Peer = k.cfg.ID
	}
	r.do(d)
}

// count records a refusal.
func (r *DecodeRank) count(why spec.Refusal, about spec.Kind, peer PeerID, detail string) {
	r.refused++
	r.do(Count{Refusal: why, About: about, Peer: peer, Detail: detail})
}

// tell sends a side message to the leader.
func (r *DecodeRank) tell(m SideMsg) { r.do(ToLeader{Msg: m}) }

// link finds a link by its peer; nil if it is not configured. Links are few and sorted.
func (r *DecodeRank) link(p PeerID) *dlink {
	lo, hi := 0, len(r.links)
	for lo < hi {
		mid := (lo + hi) / 2
		if r.links[mid].cfg.ID < p {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < len(r.links) && r.links[lo].cfg.ID == p {
		return r.links[lo]
	}
	return nil
}

// Status is a snapshot for people.
func (r *DecodeRank) Status() DecodeRankStatus {
	s := DecodeRankStatus{Stopped: r.stopped, Ending: r.ending, Quarantine: len(r.findings), Next: r.nextGrant(), Refused: r.refused, Fences: r.fences, Alarms: r.alarms, Published: r.published, Hits: r.hits}
	for c, l := range r.pools {
		if l != nil {
			s.Pools[c] = PoolStatus(l.Counts())
		}
	}
	s.Leases = LeaseCounts{r.states[dleaseTaken], r.states[dleaseFilling], r.states[dleaseVerifying], r.states[dleaseReady], r.states[dleaseRevoking]}
	for _, k := range r.links {
		s.Links = append(s.Links, DecodeLinkStatus{Peer: k.cfg.ID, Name: k.ident.Name, Incarnation: k.inc, Epoch: k.epoch, State: k.state.String(),
			Mark: r.mark(k), PeerMark: k.peerMark, Pull: k.cfg.Pull, Holds: k.holds, Fencing: len(k.fencing), Heard: k.heard, Refusal: k.refusal})
	}
	return s
}
