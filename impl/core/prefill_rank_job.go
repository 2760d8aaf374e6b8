package core

import (
	"fmt"
	"slices"

	"kvfence/impl/pages"
	"kvfence/spec"
)

// prefillJob is one transfer at this rank: its source pages, and the leases that are fed from them.
type prefillJob struct {
	key      spec.TransferID // as the leader calls it
	transfer spec.TransferID // zero for a prefill-first half that is not bound
	half     bool
	assigned bool
	assignBy Time // a grant came before the leader's Assign: how long it waits; 0 otherwise
	request  spec.RequestDigest
	domain   spec.Domain
	tokens   uint32
	links    []spec.Incarnation

	owner    pages.Owner
	pages    [spec.ComponentCount][]spec.GrantedPage
	taken    bool
	contents []spec.ContentID    // of the prompt's full pages; nil: nothing is shared
	shared   []pages.Publication // the first KV pages: other jobs computed them
	share    pages.Group         // the hold on them; 0 without
	sealed   map[uint32][]sealedPart
	computed uint32
	last     bool // everything is computed

	told        bool // Granted was said
	computeOver bool
	stopped     bool
	stopTold    bool
	cause       spec.Cause
	detail      string
	leases      []*prefillLease // whose hold on it stands, by arrival
	released    bool            // the job's own hold has ended
	gone        bool
}

func (j *prefillJob) expects(inc spec.Incarnation) bool { return slices.Contains(j.links, inc) }

// side takes a message of the leader.
func (r *PrefillRank) side(e Side) error {
	switch m := e.Msg.(type) {
	case Assign:
		r.assign(m)
	case Bind:
		r.bind(m)
	case TakeSource:
		r.takeSource(m.Transfer, m.MostShare)
	case UntakeSource:
		r.untake(m.Transfer)
	case ChunkDone:
		r.chunkDone(m)
	case ComputeOver:
		if j := r.jobs[m.Transfer]; j != nil {
			r.computeIsOver(j)
		}
	case Break:
		if j := r.jobs[m.Transfer]; j != nil {
			j.stopTold = true
			r.breakJob(j, m.Cause, m.Detail)
			r.settle(j)
		}
	default:
		return fmt.Errorf("%w: a prefill rank takes no side message %T", ErrContract, e.Msg)
	}
	return nil
}

// newJob enters a job under its key.
func (r *PrefillRank) newJob(key, transfer spec.TransferID) *prefillJob {
	r.numbers.owner++
	j := &prefillJob{key: key, transfer: transfer, owner: pages.Owner(r.numbers.owner)}
	r.jobs[key] = j
	r.jobq = append(r.jobq, j)
	if transfer != (spec.TransferID{}) {
		r.bound[transfer] = j
	}
	return j
}

// shell makes the job of a grant that came before the leader's word; nil when the table is full.
func (r *PrefillRank) shell(t spec.TransferID) *prefillJob {
	if len(r.jobq) >= r.cfg.MaxJobs {
		return nil
	}
	j := r.newJob(t, t)
	j.assignBy = r.now + Time(r.cfg.AssignBound)
	r.at(j.assignBy)
	return j
}

// assign makes a transfer known. Grants that came before it are judged now.
func (r *PrefillRank) assign(m Assign) {
	half := m.Transfer.Leader == r.cfg.Identity.Side[0]
	j := r.jobs[m.Transfer]
	switch {
	case j == nil && half:
		j = r.newJob(m.Transfer, spec.TransferID{})
	case j == nil:
		j = r.newJob(m.Transfer, m.Transfer)
	case j.assigned:
		return
	}
	j.assigned, j.assignBy, j.half = true, 0, half
	j.request, j.domain, j.tokens, j.links, j.contents = m.Request, m.Domain, m.Tokens, m.Links, m.Contents
	r.judgeEarly(j)
	if j.stopped {
		j.told = false
		r.tellStopped(j)
	}
	r.checkGranted(j)
}

// judgeEarly judges leases that came before the job was known.
func (r *PrefillRank) judgeEarly(j *prefillJob) {
	for _, l := range append([]*prefillLease(nil), j.leases...) {
		if l.state != leaseWriting {
			continue
		}
		l.parts = nil
		if why := r.judgeGrant(l); why != "" {
			r.failLease(l, spec.CauseProtocol, why)
		}
	}
}

// bind gives a half its transfer; grants of it that came early are moved to it.
func (r *PrefillRank) bind(m Bind) {
	j := r.jobs[m.Source]
	if j == nil || !j.half || j.transfer != (spec.TransferID{}) {
		return
	}
	early := r.bound[m.Transfer]
	j.transfer, j.links = m.Transfer, m.Links
	j.told = false
	r.bound[m.Transfer] = j
	if early != nil && early != j && !early.assigned {
		for _, l := range append([]*prefillLease(nil), early.leases...) {
			r.detachOnly(l)
			r.attach(l, j)
		}
		r.dropJob(early)
		r.bound[m.Transfer] = j
		r.judgeEarly(j)
	}
	r.checkGranted(j)
	for _, l := range append([]*prefillLease(nil), j.leases...) {
		r.advance(l)
	}
}

// checkGranted tells the leader once every decode rank that this rank owes a part has sent its grant.
func (r *PrefillRank) checkGranted(j *prefillJob) {
	if !j.assigned || j.told || j.stopped || j.gone {
		return
	}
	for _, inc := range j.links {
		i := slices.IndexFunc(r.linkq, func(k *prefillLink) bool { return k.identity.Incarnation == inc && k.state <= linkOpen })
		if i < 0 {
			return
		}
		k := r.linkq[i]
		if k.owes && !slices.ContainsFunc(j.leases, func(l *prefillLease) bool { return l.link == k }) {
			return
		}
	}
	j.told = true
	name := j.key
	if j.half && j.transfer != (spec.TransferID{}) {
		name = j.transfer // these grants are the bound transfer's
	}
	r.do(ToLeader{Msg: Granted{Transfer: name}})
	r.settle(j)
}

// takeSource takes the source pages of a job, all or none over its components.
func (r *PrefillRank) takeSource(key spec.TransferID, most uint32) {
	j := r.jobs[key]
	if j == nil || j.stopped || !j.assigned || r.stopped {
		r.do(ToLeader{Msg: SourceNoRoom{Transfer: key}})
		return
	}
	if !j.taken && !r.takePages(j, most) {
		r.do(ToLeader{Msg: SourceNoRoom{Transfer: key}})
		return
	}
	r.do(ToLeader{Msg: SourceTaken{Transfer: key, Pages: j.pages, Shared: uint32(len(j.shared))}})
}

// takePages takes shares of a published prefix and fresh pages for the rest, all or none.
func (r *PrefillRank) takePages(j *prefillJob, most uint32) bool {
	var need [spec.ComponentCount]uint32
	freed := r.freed
	r.sharePrefix(j, most)
	for _, l := range r.own {
		need[l.Component] = l.PagesFor(j.tokens)
		if writer, ok := AuxWriter(r.cfg.SideLayouts); l.Component == spec.Aux && (!ok || writer != r.cfg.Identity.Rank) {
			need[l.Component] = 0
		}
		if l.Component == spec.KV {
			need[spec.KV] -= uint32(len(j.shared))
		}
		if r.ledgers[l.Component].Counts().Free < need[l.Component] {
			r.endShare(j)
			r.freed = freed // the leader knows
			return false
		}
	}
	for c := range spec.ComponentCount {
		if need[c] == 0 {
			continue
		}
		got, ok := r.ledgers[c].Take(need[c], j.owner)
		if !ok {
			r.broken(17, "%s ledger has %d free pages and gives none", c, r.ledgers[c].Counts().Free)
			return false
		}
		j.pages[c] = got
		ids := make([]spec.PageID, len(got))
		for i, p := range got {
			ids[i] = p.Page
		}
		r.do(VoidTags{Component: c, Pages: ids})
	}
	r.ledgers[spec.KV].Ended()
	if len(j.shared) > 0 {
		all := make([]spec.GrantedPage, 0, len(j.shared)+len(j.pages[spec.KV]))
		for _, p := range j.shared {
			all = append(all, spec.GrantedPage{Page: p.Page, Gen: p.Gen})
		}
		j.pages[spec.KV] = append(all, j.pages[spec.KV]...)
	}
	j.taken = true
	r.didJob(Did{Name: "TakeSource", Pages: j.pages, Shared: uint32(len(j.shared))}, j)
	if len(j.shared) > 0 {
		r.didJob(Did{Name: "Compute", To: uint32(len(j.shared)) * layoutOf(r.own, spec.KV).Equal.TokensPerPage}, j) // what is shared was computed before
	}
	r.hold(j, kernelHold)
	for _, l := range j.leases {
		r.hold(j, pages.Hold{Kind: pages.LinkKind, ID: l.serial})
	}
	return true
}

// kernelHold is the hold of a job's computation, from TakeSource to ComputeOver.
var kernelHold = pages.Hold{Kind: pages.KernelKind, ID: 0}

// untake gives back what a TakeSource took; nothing was computed into it.
func (r *PrefillRank) untake(key spec.TransferID) {
	j := r.jobs[key]
	if j == nil || !j.taken || j.stopped || j.computed > 0 {
		return
	}
	freed := r.freed
	r.endHold(j, kernelHold)
	for _, l := range j.leases {
		r.endHold(j, pages.Hold{Kind: pages.LinkKind, ID: l.serial})
	}
	r.endHold(j, pages.RequestHold())
	r.endShare(j)
	r.didJob(Did{Name: "GiveBack"}, j)
	j.pages, j.taken = [spec.ComponentCount][]spec.GrantedPage{}, false
	r.numbers.owner++
	j.owner = pages.Owner(r.numbers.owner)
	r.freed = freed // the leader knows
}

// hold begins a hold on all pages of a job.
func (r *PrefillRank) hold(j *prefillJob, h pages.Hold) {
	for c := range spec.ComponentCount {
		if len(j.pages[c]) == 0 {
			continue
		}
		if err := r.ledgers[c].AddHold(j.owner, h); err != nil {
			r.broken(17, "%s ledger: %v", c, err)
		}
	}
}

// endHold ends a hold on all pages of a job; its caller has the proof.
func (r *PrefillRank) endHold(j *prefillJob, h pages.Hold) {
	for c := range spec.ComponentCount {
		if len(j.pages[c]) == 0 {
			continue
		}
		e, err := r.ledgers[c].EndHold(j.owner, h)
		if err != nil {
			r.broken(17, "%s ledger: %v", c, err)
			continue
		}
		r.freed = r.freed || e.Freed > 0
	}
}

// attach makes a lease feed from a job.
func (r *PrefillRank) attach(l *prefillLease, j *prefillJob) {
	l.job, l.held = j, true
	j.leases = append(j.leases, l)
	if j.taken {
		r.hold(j, pages.Hold{Kind: pages.LinkKind, ID: l.serial})
	}
}

func (r *PrefillRank) detachOnly(l *prefillLease) {
	j := l.job
	l.held = false
	if i := slices.Index(j.leases, l); i >= 0 {
		j.leases = slices.Delete(j.leases, i, i+1)
	}
	if j.taken {
		r.endHold(j, pages.Hold{Kind: pages.LinkKind, ID: l.serial})
	}
}

// detach ends a lease's hold on its job: nothing of the lease reads the source pages any more, or each thing that does has a hold of
// its own.
func (r *PrefillRank) detach(l *prefillLease) {
	if l.job == nil || !l.held {
		return
	}
	r.detachOnly(l)
	r.settle(l.job)
}

// chunkDone makes more of a job's pages final.
func (r *PrefillRank) chunkDone(m ChunkDone) {
	j := r.jobs[m.Transfer]
	if j == nil || !j.taken || m.To < j.computed || m.To > j.tokens {
		return
	}
	j.computed, j.last = m.To, m.Last
	r.didJob(Did{Name: "Compute", To: j.computed, Last: j.last}, j)
	for _, l := range append([]*prefillLease(nil), j.leases...) {
		r.advance(l)
	}
}

// computeIsOver ends the hold of the job's kernels.
func (r *PrefillRank) computeIsOver(j *prefillJob) {
	if j.computeOver {
		return
	}
	j.computeOver = true
	if j.taken {
		r.endHold(j, kernelHold)
	}
	r.settle(j)
}

// breakJob stops every lease of a job with prefill's own cause.
func (r *PrefillRank) breakJob(j *prefillJob, c spec.Cause, detail string) {
	if !j.stopped {
		j.stopped, j.cause, j.detail = true, c, detail
	}
	for _, l := range append([]*prefillLease(nil), j.leases...) {
		r.failLease(l, c, detail)
	}
}

// jobStopped is breakJob with word to the leader: one lease has ended badly, so has the transfer.
func (r *PrefillRank) jobStopped(j *prefillJob, c spec.Cause, detail string) {
	if !j.stopped {
		j.stopped, j.cause, j.detail = true, c, detail
		r.tellStopped(j)
		r.breakJob(j, c, detail)
	}
	r.settle(j)
}

func (r *PrefillRank) tellStopped(j *prefillJob) {
	if j.assigned && !j.stopTold {
		j.stopTold = true
		r.do(ToLeader{Msg: JobStopped{Transfer: j.key, Cause: j.cause}})
	}
}

// settle ends a job's own hold when nothing of it can start again, and forgets it when its pages are back.
func (r *PrefillRank) settle(j *prefillJob) {
	if j.gone {
		return
	}
	if j.stopped && j.taken && !j.released {
		for c := range spec.ComponentCount {
			if len(j.pages[c]) > 0 && r.ledgers[c].Revoke(j.owner) != nil {
				r.broken(17, "%s ledger does not know an owner of %d pages", c, len(j.pages[c]))
			}
		}
	}
	finished := j.stopped || j.last && j.told && j.transfer != (spec.TransferID{})
	if !j.released && finished && (j.computeOver || !j.assigned) && len(j.leases) == 0 {
		j.released = true
		r.publish(j)
		if j.taken {
			r.endHold(j, pages.RequestHold())
		}
	}
	if !j.released {
		return
	}
	for c := range spec.ComponentCount {
		if len(j.pages[c]) > 0 && r.ledgers[c].Pages(j.owner) > 0 {
			return // something still reads them
		}
	}
	if j.taken {
		r.didJob(Did{Name: "GiveBack"}, j)
	}
	r.dropJob(j)
	if j.assigned {
		r.do(ToLeader{Msg: JobOver{Transfer: j.key}})
	}
}

// dropJob forgets a job and remembers that its transfer is over.
func (r *PrefillRank) dropJob(j *prefillJob) {
	j.gone = true
	r.endShare(j) // its own pages are back: nothing of it reads
	delete(r.jobs, j.key)
	if i := slices.Index(r.jobq, j); i >= 0 {
		r.jobq = slices.Delete(r.jobq, i, i+1)
	}
	if j.transfer == (spec.TransferID{}) {
		return
	}
	if r.bound[j.transfer] == j {
		delete(r.bound, j.transfer)
	}
	if _, known := r.over[j.transfer]; !known && j.assigned {
		r.over[j.transfer] = j.cause
		r.overq = append(r.overq, j.transfer)
		if len(r.overq) > r.cfg.MaxOver {
			delete(r.over, r.overq[0])
			r.overq = r.overq[1:]
		}
	}
}

// sideLost: the leader is gone for good. Its open transfers are over here; the driver says so only when no kernel that the leader
// ordered runs any more, which is the proof for their holds.
func (r *PrefillRank) sideLost() {
	r.leaderLost = true
	for _, j := range append([]*prefillJob(nil), r.jobq...) {
		j.stopTold = true
		r.breakJob(j, spec.CauseLeaderLost, "the prefill leader is lost")
		r.computeIsOver(j)
		r.settle(j)
	}
}

// sayFor sends a message of the leader over an open link.
func (r *PrefillRank) sayFor(e SayFor) {
	if k := r.links[e.Peer]; k != nil && k.state == linkOpen && !r.stopped {
		r.send(k, e.Body)
	}
}
