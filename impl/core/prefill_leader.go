package core

import (
	"fmt"

	"kvfence/spec"
)

// PrefillLeader answers the asks of decode leaders and orders the computation of its side: it admits, tells the ranks, lets
// them take source pages in one order, computes chunk by chunk, one chunk at a time over all transfers in turn, and stops what
// nobody waits for any more. It holds no page: the ranks do. Not safe for concurrent use.
type PrefillLeader struct {
	cfg PrefillLeaderConfig
	now Time
	due Time // not later than the next deadline; 0: none
	out []Action

	draining bool
	lost     []bool // ranks that are gone for good
	lostN    int

	links  map[PeerID]*leaderLink
	linked []PeerID // keys of links, in order of arrival

	jobs   map[spec.TransferID]*leaderJob // by job key
	bound  map[spec.TransferID]*leaderJob // by transfer; halves are not in it before they are bound
	order  []*leaderJob                   // by admission
	tokens int                            // prompt tokens of all jobs
	minted uint64                         // counter of source names

	takeq   []*leaderJob // granted everywhere, waiting for source pages, oldest first
	blocked int          // rank whose PagesFreed the head of takeq waits for; -1: none
	ring    []*leaderJob // computing, in turn
	running *leaderJob   // the one whose chunk is being computed
	chunkTo uint32

	over  map[spec.TransferID]overTransfer
	overq []spec.TransferID // oldest first
}

// leaderLink is the link of rank 0 with one decode leader.
type leaderLink struct {
	identity spec.Identity
	up       bool
	down     Time   // since when, if not up
	floor    uint64 // transfers up to this counter that are not known any more are not begun again
}

// overTransfer is the last answer about a transfer that is over.
type overTransfer struct {
	peer   PeerID
	tokens uint32
	cause  spec.Cause // "" if it ran to its end
	detail string
}

// NewPrefillLeader makes a leader; an error wraps ErrConfig.
func NewPrefillLeader(cfg PrefillLeaderConfig) (*PrefillLeader, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &PrefillLeader{
		cfg: cfg, lost: make([]bool, len(cfg.SideLayouts)), links: map[PeerID]*leaderLink{}, jobs: map[spec.TransferID]*leaderJob{},
		bound: map[spec.TransferID]*leaderJob{}, over: map[spec.TransferID]overTransfer{}, blocked: -1,
	}, nil
}

// Step takes one event and returns what to do, in order. The error wraps ErrContract. The slice is the caller's.
func (l *PrefillLeader) Step(now Time, ev Event) ([]Action, error) {
	l.out = nil
	if now < l.now {
		return nil, fmt.Errorf("%w: time went back from %d to %d", ErrContract, l.now, now)
	}
	l.now = now
	var err error
	switch e := ev.(type) {
	case Tick:
	case Side:
		err = l.side(e)
	case SideLost:
		err = l.lostRank(e.Rank)
	case ComputeDone:
		err = l.computed(e)
	case Submit:
		l.half(e)
	case Drain:
		l.draining = true
	default:
		err = fmt.Errorf("%w: a prefill leader takes no %T", ErrContract, ev)
	}
	if err != nil {
		return nil, err
	}
	l.timers()
	l.kick()
	return l.out, nil
}

// Deadline is when Tick is due at the latest; 0 means never.
func (l *PrefillLeader) Deadline() Time { return l.due }

// Status is a copy for people.
func (l *PrefillLeader) Status() PrefillLeaderStatus {
	s := PrefillLeaderStatus{Draining: l.draining, Waiting: len(l.takeq), Computing: l.running != nil, LostRanks: l.lostN}
	for i, j := range l.order {
		if j.bound {
			s.Admitted++
		} else {
			s.Halves++
		}
		s.Tokens += uint64(len(j.prompt))
		s.Computed += uint64(j.done)
		if i == 0 {
			s.Oldest, s.OldestTokens, s.OldestComputed = j.key, uint32(len(j.prompt)), j.done
		}
	}
	return s
}

// side takes a message of one of the ranks.
func (l *PrefillLeader) side(e Side) error {
	if int(e.Rank) >= len(l.lost) {
		return fmt.Errorf("%w: message of rank %d, the side has %d", ErrContract, e.Rank, len(l.lost))
	}
	if l.lost[e.Rank] {
		return nil // a last word of a rank that is given up
	}
	switch m := e.Msg.(type) {
	case PeerLink:
		l.peerLink(e.Rank, m)
	case PeerSaid:
		l.said(e.Rank, m)
	case Granted:
		l.granted(e.Rank, m.Transfer)
	case SourceTaken:
		l.sourceTaken(e.Rank, m)
	case SourceNoRoom:
		l.sourceNoRoom(e.Rank, m.Transfer)
	case PagesFreed:
		if l.blocked == int(e.Rank) {
			l.blocked = -1
		}
	case JobStopped:
		if j := l.jobs[m.Transfer]; j != nil {
			l.stop(j, m.Cause, fmt.Sprintf("stopped at prefill rank %d", e.Rank))
		}
	case JobOver:
		if j := l.jobs[m.Transfer]; j != nil {
			l.rankOver(j, e.Rank)
		}
	default:
		return fmt.Errorf("%w: a prefill leader takes no side message %T", ErrContract, e.Msg)
	}
	return nil
}

// peerLink notes which decode leaders are in reach. Leaders speak over rank 0's links only.
func (l *PrefillLeader) peerLink(r spec.Rank, m PeerLink) {
	if r != 0 {
		return
	}
	k := l.links[m.Peer]
	if k == nil {
		if !m.Up {
			return
		}
		l.forgetLinks()
		k = &leaderLink{}
		l.links[m.Peer] = k
		l.linked = append(l.linked, m.Peer)
	}
	if m.Up {
		k.identity = m.Identity
	} else if k.up {
		k.down = l.now
		l.at(l.now + Time(l.cfg.LinkBound))
	}
	k.up = m.Up
}

// maxLeaderLinks is how many decode leaders are remembered before closed links are forgotten; a rank bounds the open ones.
const maxLeaderLinks = 4096

// forgetLinks keeps the table of links bounded: closed ones of nobody's transfer go, oldest first.
func (l *PrefillLeader) forgetLinks() {
	if len(l.linked) < maxLeaderLinks {
		return
	}
	used := map[PeerID]bool{}
	for _, j := range l.order {
		if j.bound {
			used[j.peer] = true
		}
	}
	kept := l.linked[:0]
	for _, p := range l.linked {
		if l.links[p].up || used[p] {
			kept = append(kept, p)
		} else {
			delete(l.links, p)
		}
	}
	l.linked = kept
}

// lostRank gives up a rank: the side is not whole any more, every transfer has a part there.
func (l *PrefillLeader) lostRank(r spec.Rank) error {
	if int(r) >= len(l.lost) {
		return fmt.Errorf("%w: rank %d lost, the side has %d", ErrContract, r, len(l.lost))
	}
	if l.lost[r] {
		return nil
	}
	l.lost[r] = true
	l.lostN++
	for _, j := range append([]*leaderJob(nil), l.order...) {
		if j.gone {
			continue
		}
		l.stop(j, spec.CausePeerLost, fmt.Sprintf("prefill rank %d is lost", r))
		l.rankOver(j, r)
	}
	return nil
}

func (l *PrefillLeader) do(a Action) { l.out = append(l.out, a) }

func (l *PrefillLeader) did(name string, j *leaderJob) {
	l.do(Did{Name: name, Transfer: j.transfer, Peer: j.peer})
}

// toRanks sends m to every rank that is not lost, in rank order.
func (l *PrefillLeader) toRanks(m SideMsg) {
	for r := range l.lost {
		if !l.lost[r] {
			l.do(ToRank{Rank: spec.Rank(r), Msg: m})
		}
	}
}

// at makes Deadline no later than t.
func (l *PrefillLeader) at(t Time) {
	if l.due == 0 || t < l.due {
		l.due = t
	}
}

// timers acts on every deadline that has passed and finds the next.
func (l *PrefillLeader) timers() {
	if l.due == 0 || l.now < l.due {
		return
	}
	l.due = 0
	for _, j := range append([]*leaderJob(nil), l.order...) {
		if j.gone || j.stopped {
			continue
		}
		l.jobTimers(j)
	}
}

func (l *PrefillLeader) jobTimers(j *leaderJob) {
	late := func(t Time) bool {
		if t != 0 && l.now < t {
			l.at(t)
		}
		return t != 0 && l.now >= t
	}
	if late(j.deadline) {
		l.stop(j, spec.CauseDeadline, "the time of the request is up")
		return
	}
	if j.ungranted() && late(j.grantBy) {
		l.stop(j, spec.CauseDeadline, "its grants did not come")
		return
	}
	if j.bound && j.ungranted() && late(j.sayAt) {
		l.askedAgain(j)
	}
	if k := l.links[j.peer]; j.bound && k != nil && !k.up && late(k.down+Time(l.cfg.LinkBound)) {
		l.stop(j, spec.CausePeerLost, "no link to its decode leader")
	}
}
