package core

import (
	"fmt"

	"kvfence/spec"
)

// DecodeLeader admits requests, mints transfers and holds the one verdict of each. It knows requests, tenants, prefill sides and
// the leases of its ranks by their numbers; pages, holds and epochs are the ranks'. Not safe for concurrent use.
// decode_leader_admit.go has admission and the queue, _peers.go prefill sides, _ask.go the Ask, _take.go leases, _run.go steps, growth
// and preemption, _end.go verdicts, answers and retries.
type DecodeLeader struct {
	cfg      DecodeLeaderConfig
	own      spec.Incarnation
	capacity uint32 // positions that one request could ever have
	perPage  uint32 // tokens of a KV page

	now      Time
	out      []Action
	sides    []*pside
	requests map[RequestID]*drequest
	xfers    map[uint64]*dxfer // by counter
	order    []*dxfer          // all transfers that are not freed, by age
	tenants  []*dtenant        // with anything queued or active, in turn
	byTenant map[string]*dtenant
	turn     int
	queued   int
	again    []*drequest // preempted or to be tried again, in order of their first arrival
	waiting  []*dxfer    // asked, wait for pages, by age
	taking   *dxfer
	short    bool     // the head of waiting was told NoRoom and nothing came back since
	growers  []*dxfer // wait for a page to grow into, by age
	counter  uint64   // of transfers
	arrivals uint64
	downAt   Time // when the last whole prefill side broke, or the start
	peerAt   Time // when the wait for prefill sides is looked at next; 0: not planned
	clock    timers

	draining bool
	ended    spec.Cause // why nothing is admitted any more; "" if draining was asked for
	stopped  bool
	lost     []bool // by rank

	succeeded, failed, preempted, retried uint64
}

// Timer kinds of a decode leader.
const (
	timeDeadline uint8 = iota
	timePeer
	timeAsk
	timeGrace
)

// NewDecodeLeader makes a leader with nothing admitted. cfg goes through WithDefaults and Validate.
func NewDecodeLeader(cfg DecodeLeaderConfig) (*DecodeLeader, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	l := &DecodeLeader{cfg: cfg, own: cfg.Identity.Incarnation, capacity: cfg.Capacity(), requests: map[RequestID]*drequest{},
		xfers: map[uint64]*dxfer{}, byTenant: map[string]*dtenant{}, lost: make([]bool, cfg.Identity.Size)}
	l.perPage = layoutOf(cfg.SideLayouts[0], spec.KV).Equal.TokensPerPage
	for _, peers := range cfg.Prefill {
		l.sides = append(l.sides, newSide(peers, int(cfg.Identity.Size)))
	}
	return l, nil
}

// Step carries one event through the machine and returns what is to be done, in order. The returned slice is the caller's. An
// error (ErrContract) means that the driver broke its contract; nothing that a client, a rank or a peer sends is one.
func (l *DecodeLeader) Step(now Time, ev Event) ([]Action, error) {
	if now < l.now {
		return nil, fmt.Errorf("%w: time went back from %d to %d", ErrContract, l.now, now)
	}
	if err := l.known(ev); err != nil {
		return nil, err
	}
	l.now, l.out = now, nil
	if l.stopped {
		if s, ok := ev.(Submit); ok {
			l.do(Answer{Req: s.Req, Cause: spec.CauseInvariant, Detail: "this node has stopped"})
		}
		return l.out, nil
	}
	l.handle(ev)
	l.runTimers()
	l.pump()
	l.tryTake()
	return l.out, nil
}

func (l *DecodeLeader) known(ev Event) error {
	rank := spec.Rank(0)
	switch e := ev.(type) {
	case Submit:
		if l.requests[e.Req] != nil {
			return fmt.Errorf("%w: request %d stands already", ErrContract, e.Req)
		}
	case Side:
		rank = e.Rank
	case SideLost:
		rank = e.Rank
	case Tick, ClientGone, FirstRead, StepDone, Drain:
	default:
		return fmt.Errorf("%w: a decode leader takes no %T", ErrContract, ev)
	}
	if int(rank) >= len(l.lost) {
		return fmt.Errorf("%w: rank %d of %d", ErrContract, rank, len(l.lost))
	}
	return nil
}

func (l *DecodeLeader) handle(ev Event) {
	switch e := ev.(type) {
	case Submit:
		l.submit(e)
	case ClientGone:
		l.clientGone(e)
	case FirstRead:
		l.firstRead(e)
	case StepDone:
		l.stepDone(e)
	case Drain:
		l.drain("")
	case Side:
		if !l.lost[e.Rank] {
			l.side(e.Rank, e.Msg)
		}
	case SideLost:
		l.rankLost(e.Rank)
	}
}

func (l *DecodeLeader) side(rank spec.Rank, m SideMsg) {
	switch m := m.(type) {
	case PeerUp:
		l.peerUp(rank, m)
	case PeerDown:
		l.peerDown(rank, m)
	case PeerRefused:
		l.peerRefused(m)
	case PeerSaid:
		l.peerSaid(m)
	case Taken:
		l.taken(rank, m)
	case NoRoom:
		l.noRoom(rank, m)
	case NoPlan:
		l.noPlan(rank, m)
	case LeaseReady:
		l.leaseReady(rank, m)
	case LeaseFailed:
		if x := l.find(m.Transfer); x != nil {
			l.failure(x, m.Cause, m.Detail)
		}
	case LeaseFreed:
		l.leaseFreed(rank, m)
	case Grown:
		l.grown(rank, m.Transfer, true)
	case GrowNoRoom:
		l.grown(rank, m.Transfer, false)
	case PagesFreed:
		l.pagesFreed()
	case RankEnding:
		l.drain(m.Cause)
	default:
		l.do(Count{Refusal: spec.RefuseUnknownKind, Detail: fmt.Sprintf("side message %T", m)})
	}
}

// Deadline is the time by which Step(Tick) must be called; 0: none.
func (l *DecodeLeader) Deadline() Time {
	if l.stopped {
		return 0
	}
	return l.clock.next()
}

func (l *DecodeLeader) runTimers() {
	for {
		t, ok := l.clock.due(l.now)
		if !ok || l.stopped {
			return
		}
		switch t.kind {
		case timeDeadline:
			l.deadline(RequestID(t.a), t.at)
		case timePeer:
			if t.at == l.peerAt {
				l.peerAt = 0
				l.sweepPeers()
			}
		case timeAsk:
			l.askTime(l.xfers[t.a], t.at)
		case timeGrace:
			if x := l.xfers[t.a]; x != nil {
				l.settle(x, true)
			}
		}
	}
}

func (l *DecodeLeader) do(a Action) { l.out = append(l.out, a) }

func (l *DecodeLeader) did(name string, t spec.TransferID, detail string) {
	l.do(Did{Name: name, Transfer: t, Detail: detail})
}

// didFor records one that has a cause.
func (l *DecodeLeader) didFor(cause spec.Cause, d Did) {
	d.Cause, d.Detail = cause, string(cause)
	l.do(d)
}

// toRank sends a side message to a rank that is not lost.
func (l *DecodeLeader) toRank(k int, m SideMsg) {
	if !l.lost[k] {
		l.do(ToRank{Rank: spec.Rank(k), Msg: m})
	}
}

// find is a transfer of this leader that is not freed; nil for any other.
func (l *DecodeLeader) find(t spec.TransferID) *dxfer {
	if t.Leader != l.own {
		return nil
	}
	return l.xfers[t.Counter]
}

// Status is a snapshot for people.
func (l *DecodeLeader) Status() DecodeLeaderStatus {
	s := DecodeLeaderStatus{Draining: l.draining, Stopped: l.stopped, Queued: l.queued + len(l.again), Capacity: l.capacity,
		Succeeded: l.succeeded, Failed: l.failed, Preempted: l.preempted, Retried: l.retried}
	for _, x := range l.order {
		switch x.state {
		case xAsking:
			s.Asking++
		case xAsked, xTaking:
			s.Waiting++
		case xFilling:
			s.Filling++
		case xEnding:
			s.Ending++
		default:
			s.Running++
		}
	}
	for _, p := range l.sides {
		if p.whole {
			s.PrefillUp++
		}
	}
	for _, lost := range l.lost {
		if lost {
			s.LostRanks++
		}
	}
	return s
}
