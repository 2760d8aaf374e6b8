package core

import (
	"fmt"

	"kvfence/impl/pages"
	"kvfence/spec"
)

// PrefillRank owns one source pool for each component and one end of a link with each decode incarnation. It judges connects and
// grants, takes source pages for the jobs of its leader, seals and posts what is computed, drains, and answers each lease exactly
// once. A source page goes back when the last hold on it has ended: the job's, each kernel's, seal's and post's, and for pull the
// reader's. Not safe for concurrent use. TLA/Transfer.tla names its actions.
type PrefillRank struct {
	cfg     PrefillRankConfig
	own     []spec.Layout
	ledgers [spec.ComponentCount]*pages.Ledger
	now     Time
	due     Time // not later than the next deadline; 0: none
	beat    Time // next heartbeat of all links
	out     []Action

	stopped    bool // a Stop was given
	leaderLost bool
	refused    uint64
	fences     uint64
	hits       uint64 // source pages shared

	links      map[PeerID]*prefillLink
	linkq      []*prefillLink                  // by PeerID
	challenges []*challenge                    // connects that wait, by arrival
	jobs       map[spec.TransferID]*prefillJob // by job key
	bound      map[spec.TransferID]*prefillJob // by transfer
	jobq       []*prefillJob                   // by arrival
	ended      map[spec.Incarnation]bool       // succeeded decode incarnations
	endedq     []spec.Incarnation
	over       map[spec.TransferID]spec.Cause // transfers that are over here, "" if they ran to their end
	overq      []spec.TransferID
	numbers    struct{ owner, lease, seal, batch, notice, ping uint64 } // last given of each
	seals      map[uint64]*prefillLease                                 // seals not over
	batches    map[uint64]*prefillBatch                                 // posts not over, and failed ones that wait for their fence
	batchq     []uint64                                                 // keys of batches, rising
	freed      bool                                                     // pages came back in this step
}

// NewPrefillRank makes a rank with all its pages free and no link; an error wraps ErrConfig.
func NewPrefillRank(cfg PrefillRankConfig) (*PrefillRank, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	r := &PrefillRank{cfg: cfg, own: cfg.SideLayouts[cfg.Identity.Rank], links: map[PeerID]*prefillLink{}, jobs: map[spec.TransferID]*prefillJob{},
		bound: map[spec.TransferID]*prefillJob{}, ended: map[spec.Incarnation]bool{}, over: map[spec.TransferID]spec.Cause{},
		seals: map[uint64]*prefillLease{}, batches: map[uint64]*prefillBatch{}}
	for _, l := range r.own {
		led, err := pages.New(l.Shape.Pages)
		if err != nil {
			return nil, fmt.Errorf("%w: %s pool: %w", ErrConfig, l.Component, err)
		}
		r.ledgers[l.Component] = led
	}
	r.ledgers[spec.KV].AllowSharing(cfg.MaxPublished)
	return r, nil
}

// Step takes one event and returns what to do, in order. The error wraps ErrContract. The slice is the caller's.
func (r *PrefillRank) Step(now Time, ev Event) ([]Action, error) {
	r.out = nil
	if now < r.now {
		return nil, fmt.Errorf("%w: time went back from %d to %d", ErrContract, r.now, now)
	}
	r.now = now
	r.freed = false
	if err := r.handle(ev); err != nil {
		return nil, err
	}
	r.timers()
	if r.freed {
		r.do(ToLeader{Msg: PagesFreed{}})
	}
	return r.out, nil
}

func (r *PrefillRank) handle(ev Event) error {
	switch e := ev.(type) {
	case Tick:
	case ConnectIn:
		return r.connectIn(e)
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
	case ReaderEnded:
		r.readerEnded(e)
	case Sealed:
		return r.sealed(e)
	case Posted:
		return r.posted(e)
	case Noticed:
		return r.noticed(e)
	case SayFor:
		r.sayFor(e)
	case Side:
		return r.side(e)
	case SideLost:
		r.sideLost()
	default:
		return fmt.Errorf("%w: a prefill rank takes no %T", ErrContract, ev)
	}
	return nil
}

// Deadline is when Tick is due at the latest; 0 means never.
func (r *PrefillRank) Deadline() Time { return r.due }

// Knows reports whether this rank has a link with p, or a connect of it waits.
func (r *PrefillRank) Knows(p PeerID) bool { return r.links[p] != nil || r.challengeOf(p) != nil }

// Status is a copy for people.
func (r *PrefillRank) Status() PrefillRankStatus {
	s := PrefillRankStatus{Stopped: r.stopped, Draining: r.stopped || r.leaderLost, Jobs: len(r.jobq), Refused: r.refused, Fences: r.fences, Hits: r.hits}
	for c, led := range r.ledgers {
		if led != nil {
			n := led.Counts()
			s.Pools[c] = PoolStatus{Free: n.Free, Held: n.Held, Revoking: n.Revoking, Quarantined: n.Quarantined, Total: n.Total}
		}
	}
	for _, k := range r.linkq {
		v := PrefillLinkStatus{Peer: k.peer, Name: k.identity.Name, Incarnation: k.identity.Incarnation, Epoch: k.epoch, State: k.state.String(),
			Pull: k.pull, Posts: k.posts, Offered: k.offered, Stopped: k.offered > 0 && k.state > linkOpen, Heard: k.heard}
		for _, l := range k.order {
			if l.state == leaseClosed {
				v.Answers++
			} else if l.state != leaseDead {
				v.Working++
			}
		}
		s.Links = append(s.Links, v)
	}
	return s
}

func (r *PrefillRank) do(a Action) { r.out = append(r.out, a) }

func (r *PrefillRank) did(name string, t spec.TransferID, lease spec.LeaseID, p PeerID) {
	r.do(Did{Name: name, Transfer: t, Lease: lease, Peer: p})
}

// didJob records what a job does with its source pages, for all its leases.
func (r *PrefillRank) didJob(d Did, j *prefillJob) {
	d.Transfer, d.Job, d.Domain = j.transfer, j.key, j.domain
	r.do(d)
}

// count records that something from outside was refused.
func (r *PrefillRank) count(why spec.Refusal, about spec.Kind, p PeerID, detail string) {
	r.refused++
	r.do(Count{Refusal: why, About: about, Peer: p, Detail: detail})
}

// at makes Deadline no later than t.
func (r *PrefillRank) at(t Time) {
	if r.due == 0 || t < r.due {
		r.due = t
	}
}

// timers acts on every deadline that has passed and finds the next.
func (r *PrefillRank) timers() {
	if r.due == 0 || r.now < r.due {
		return
	}
	r.due = 0
	beat := r.now >= r.beat
	if beat {
		r.beat = r.now + Time(r.cfg.Heartbeat)
	}
	live := false
	for _, k := range append([]*prefillLink(nil), r.linkq...) {
		r.linkTimers(k, beat)
		live = live || k.conn != 0
	}
	r.challengeTimers()
	if live {
		r.at(r.beat)
	}
	for _, j := range append([]*prefillJob(nil), r.jobq...) {
		if j.gone || j.assigned || j.assignBy == 0 {
			continue
		}
		if r.now >= j.assignBy {
			j.assignBy = 0
			r.breakJob(j, spec.CausePeerLost, "its leader never named this transfer")
			r.settle(j)
		} else {
			r.at(j.assignBy)
		}
	}
}

// broken stops the machine: an invariant of the promise does not hold any more. It fences what it can and serves nothing again.
// Where a number is asserted at this end:
//
//	6   mayPost: every source page is the job's, in its generation, or one that it shares (ownsSource)
//	9   answer: a receipt leaves only after its drain, in its grant's epoch; mayPost: nothing follows the drain notice
//	13  judgePart refuses a second writer; the cursors of prefillPart seal and post each page of a part once
//	14  mayPost: the link's epoch is the grant's, the job is the transfer's
//	17  hold, endHold, takePages: an error of the ledger (2, 10 and 17: a page free too early, twice, or with an unknown hold)
func (r *PrefillRank) broken(invariant int, format string, args ...any) {
	r.stop(invariant, fmt.Sprintf(format, args...))
}

func (r *PrefillRank) stop(invariant int, text string) {
	if r.stopped {
		return
	}
	r.stopped = true
	r.do(Stop{Broken: text, Invariant: invariant})
	for _, k := range append([]*prefillLink(nil), r.linkq...) {
		if k.state == linkOpening || k.state == linkOpen {
			r.fenceLink(k, spec.CauseInvariant)
		}
	}
}
