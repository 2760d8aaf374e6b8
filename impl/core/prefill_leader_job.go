package core

import (
	"fmt"
	"slices"

	"kvfence/spec"
)

// jobState is how far the leader is with a transfer that it has not stopped.
type jobState uint8

const (
	jobGranting  jobState = iota // waits for Granted of every rank
	jobQueued                    // waits for source pages
	jobTaking                    // source pages are being taken, rank by rank
	jobComputing                 // has its pages, is in the ring
	jobFinishing                 // computed; the ranks write, drain and answer
)

// leaderJob is one admitted transfer, or a prefill-first half.
type leaderJob struct {
	key      spec.TransferID // its name at the ranks and in Compute
	transfer spec.TransferID // zero for a half that is not bound
	peer     PeerID          // link of rank 0 with its decode leader
	half     bool
	bound    bool
	req      RequestID // of a half
	prompt   []int32
	domain   spec.Domain
	request  spec.RequestDigest
	adapter  string
	sampling spec.Sampling
	links    []spec.Incarnation
	deadline Time
	grantBy  Time
	sayAt    Time     // when Asked is said again: grants are what this side waits for
	sayWait  Duration // to the repeat after that

	state     jobState
	granted   []bool
	regranted []bool    // of a half, since it is bound
	taking    spec.Rank // the rank that was asked for pages
	pages     [][spec.ComponentCount][]spec.GrantedPage
	contents  []spec.ContentID
	most      uint32 // pages of a shared prefix that every rank can have, as far as is known
	done      uint32 // tokens computed

	stopped   bool // Break was sent
	cause     spec.Cause
	detail    string
	endedHere bool // ComputeOver was sent
	over      []bool
	gone      bool // removed
}

// ungranted reports a job of which some rank still waits for grants: of a half, those that come when it is bound.
func (j *leaderJob) ungranted() bool {
	return j.state == jobGranting || j.half && j.bound && slices.Contains(j.regranted, false)
}

// granted notes that a rank has all its grants; when all have, the job queues for source pages. A half needs none for that: its ranks
// say Granted by its key at once, and again by the name of the transfer that took it.
func (l *PrefillLeader) granted(r spec.Rank, name spec.TransferID) {
	j := l.jobs[name]
	if j == nil {
		if j = l.bound[name]; j != nil && j.half {
			j.regranted[r] = true
		}
		return
	}
	if j.stopped || j.state != jobGranting {
		return
	}
	j.granted[r] = true
	if !slices.Contains(j.granted, false) {
		j.state = jobQueued
		l.takeq = append(l.takeq, j)
	}
}

// kick starts whatever can start: the oldest waiting job's pages, the next job's chunk.
func (l *PrefillLeader) kick() {
	if len(l.takeq) > 0 && l.takeq[0].state == jobQueued && l.blocked < 0 {
		j := l.takeq[0]
		j.state, j.taking = jobTaking, 0
		l.do(ToRank{Rank: 0, Msg: TakeSource{Transfer: j.key, MostShare: j.most}})
	}
	if l.running != nil || len(l.ring) == 0 {
		return
	}
	j := l.ring[0]
	l.ring = l.ring[1:]
	l.running = j
	l.chunkTo = min(j.done+min(l.cfg.ChunkTokens, uint32(len(j.prompt))-j.done), uint32(len(j.prompt)))
	l.do(Compute{Transfer: j.key, Tokens: j.prompt, From: j.done, To: l.chunkTo, Last: l.chunkTo == uint32(len(j.prompt)),
		Sampling: j.sampling, Adapter: j.adapter, Pages: j.pages})
}

// sourceTaken goes on to the next rank, in rank order; with the last one the job computes.
func (l *PrefillLeader) sourceTaken(r spec.Rank, m SourceTaken) {
	j := l.jobs[m.Transfer]
	if j == nil || j.stopped || j.state != jobTaking || j.taking != r {
		return // stopped meanwhile: the rank gives the pages back when the job is over there
	}
	if shared := min(m.Shared, j.most); r == 0 {
		j.most = shared
	} else if shared < j.most { // one prefix at all ranks: a kernel stores behind it at each of them
		j.most = shared
		l.untake(j, r+1)
		return
	}
	j.pages[r] = m.Pages
	if int(r)+1 < len(l.lost) {
		j.taking = r + 1
		l.do(ToRank{Rank: r + 1, Msg: TakeSource{Transfer: j.key, MostShare: j.most}})
		return
	}
	l.takeq = l.takeq[1:]
	j.state = jobComputing
	j.done = j.most * l.perPage()
	l.ring = append(l.ring, j)
}

// sourceNoRoom gives back what lower ranks hold, so that no job ever waits with some of its pages, and waits for that rank.
func (l *PrefillLeader) sourceNoRoom(r spec.Rank, key spec.TransferID) {
	j := l.jobs[key]
	if j == nil || j.stopped || j.state != jobTaking || j.taking != r {
		return
	}
	l.untake(j, r)
	j.most = ^uint32(0)
	l.blocked = int(r)
}

// untake gives back the source pages of a job at the ranks below r: it takes them anew.
func (l *PrefillLeader) untake(j *leaderJob, r spec.Rank) {
	for k := range r {
		j.pages[k] = [spec.ComponentCount][]spec.GrantedPage{}
		l.do(ToRank{Rank: k, Msg: UntakeSource{Transfer: j.key}})
	}
	j.state = jobQueued
}

// perPage is how many tokens a KV page has.
func (l *PrefillLeader) perPage() uint32 {
	return layoutOf(l.cfg.SideLayouts[0], spec.KV).Equal.TokensPerPage
}

// computed ends a Compute.
func (l *PrefillLeader) computed(e ComputeDone) error {
	j := l.running
	if j == nil || j.key != e.Transfer || j.done != e.From || l.chunkTo != e.To {
		return fmt.Errorf("%w: no computation of %s [%d,%d) is running", ErrContract, e.Transfer, e.From, e.To)
	}
	l.running = nil
	switch {
	case j.stopped:
		l.computeOver(j)
		l.closeIfOver(j)
	case e.Err != "":
		l.stop(j, spec.CauseCompute, e.Err)
	default:
		j.done = e.To
		last := j.done == uint32(len(j.prompt))
		l.toRanks(ChunkDone{Transfer: j.key, From: e.From, To: e.To, Last: last})
		if !last {
			l.ring = append(l.ring, j)
			return nil
		}
		j.state = jobFinishing
		l.computeOver(j)
	}
	return nil
}

// computeOver tells the ranks, once, that no kernel touches the job's pages any more.
func (l *PrefillLeader) computeOver(j *leaderJob) {
	if !j.endedHere {
		j.endedHere = true
		l.toRanks(ComputeOver{Transfer: j.key})
	}
}

// stop gives up a job: the ranks stop posting at once; a chunk that is being computed runs to its end, then the pages may go.
// Writes in flight are not cancelled. The first cause stays.
func (l *PrefillLeader) stop(j *leaderJob, c spec.Cause, detail string) {
	if j.stopped || j.gone {
		return
	}
	j.stopped, j.cause, j.detail = true, c, detail
	if len(l.takeq) > 0 && l.takeq[0] == j {
		l.blocked = -1 // the next one asks for other pages
	}
	l.takeq = without(l.takeq, j)
	l.ring = without(l.ring, j)
	l.toRanks(Break{Transfer: j.key, Cause: c, Detail: detail})
	if l.running != j {
		l.computeOver(j)
	}
	switch {
	case !j.bound:
		l.do(HalfOver{Req: j.req, Cause: c, Detail: detail})
	case !c.Derived() && j.state != jobFinishing:
		l.do(ReplyLeader{Peer: j.peer, Body: spec.AskFailed{Transfer: j.transfer, Cause: c, Detail: detail}})
	}
}

func without(q []*leaderJob, j *leaderJob) []*leaderJob {
	for i := range q {
		if q[i] == j {
			return append(q[:i:i], q[i+1:]...)
		}
	}
	return q
}

// rankOver notes that a rank holds nothing of a job any more (or is lost); with the last one the job is over.
func (l *PrefillLeader) rankOver(j *leaderJob, r spec.Rank) {
	j.over[r] = true
	l.closeIfOver(j)
}

func (l *PrefillLeader) closeIfOver(j *leaderJob) {
	for _, ok := range j.over {
		if !ok {
			return
		}
	}
	if l.running != j { // only lost ranks are over before their computation: its end comes back here
		l.close(j)
	}
}

// close removes a job and remembers its answer.
func (l *PrefillLeader) close(j *leaderJob) {
	j.gone = true
	l.takeq, l.ring = without(l.takeq, j), without(l.ring, j)
	delete(l.jobs, j.key)
	l.order = without(l.order, j)
	l.tokens -= len(j.prompt)
	if !j.bound {
		return
	}
	delete(l.bound, j.transfer)
	l.over[j.transfer] = overTransfer{peer: j.peer, tokens: uint32(len(j.prompt)), cause: j.cause, detail: j.detail}
	l.overq = append(l.overq, j.transfer)
	for len(l.overq) > l.cfg.MaxOver {
		old := l.overq[0]
		l.overq = l.overq[1:]
		if k := l.links[l.over[old].peer]; k != nil && k.identity.Incarnation == old.Leader {
			k.floor = max(k.floor, old.Counter)
		}
		delete(l.over, old)
	}
}
