package core

import (
	"kvfence/impl/pages"
	"kvfence/spec"
)

// PrefillView is what a prefill rank is, as far as TLA/Transfer.tla speaks of it; a copy, see DecodeView.
type PrefillView struct {
	Links  []SourceLinkView  // by PeerID
	Leases []SourceLeaseView // by link, then number
	Jobs   []SourceJobView   // by arrival
}

// SourceLinkView is one link at prefill.
type SourceLinkView struct {
	Peer          PeerID
	Decode        spec.Incarnation
	Connected     bool
	Working       bool // grants are taken in this epoch
	Epoch         spec.Epoch
	Fenced        spec.Epoch // highest epoch whose fence is done here
	Mark, OwnMark spec.LeaseID
}

// SourceLeaseView is one lease at prefill. State is "writing", "closing" or "closed"; a lease of an epoch that is over is not there.
type SourceLeaseView struct {
	Peer     PeerID
	ID       spec.LeaseID
	Transfer spec.TransferID
	State    string
	Own      bool // it closes for a failure of prefill's own
}

// SourceJobView is one transfer at a prefill rank. Owner is its name in the ledgers.
type SourceJobView struct {
	Transfer spec.TransferID
	Owner    pages.Owner
	Request  spec.RequestDigest
	Pages    [spec.ComponentCount][]spec.GrantedPage
	Stopped  bool
	Last     bool // everything is computed
}

// Inspect is the machine as it is now.
func (r *PrefillRank) Inspect() PrefillView {
	var v PrefillView
	for _, k := range r.linkq {
		v.Links = append(v.Links, SourceLinkView{Peer: k.peer, Decode: k.identity.Incarnation, Connected: k.conn != 0, Working: k.state <= linkOpen,
			Epoch: k.epoch, Fenced: k.fenced, Mark: k.mark, OwnMark: k.ownMark})
		for _, l := range k.order {
			if l.state < leaseDead {
				v.Leases = append(v.Leases, SourceLeaseView{Peer: k.peer, ID: l.id, Transfer: l.transfer,
					State: [...]string{"writing", "closing", "closed"}[l.state], Own: l.failing != nil})
			}
		}
	}
	for _, j := range r.jobq {
		v.Jobs = append(v.Jobs, SourceJobView{Transfer: j.transfer, Owner: j.owner, Request: j.request, Pages: j.pages, Stopped: j.stopped, Last: j.last})
	}
	return v
}

// TransferView is one transfer of a decode leader that is not forgotten. State is "asking", "asked", "taking", "filling", "first",
// "running", "growing" or "ending"; Verdict "", "failed" or "ok".
type TransferView struct {
	ID       spec.TransferID
	Request  RequestID
	State    string
	Verdict  string
	Cause    spec.Cause
	Answered bool
}

// Inspect is the transfers of the leader as they are now, by age, and the requests that wait for their Ask.
func (l *DecodeLeader) Inspect() (transfers []TransferView, queued []RequestID) {
	for _, x := range l.order {
		transfers = append(transfers, TransferView{ID: x.id, Request: x.req.id, Cause: x.cause, Answered: x.answered,
			State:   [...]string{"asking", "asked", "taking", "filling", "first", "running", "growing", "ending"}[x.state],
			Verdict: [...]string{"", "failed", "ok"}[x.verdict]})
	}
	for _, q := range l.allQueued() {
		queued = append(queued, q.id)
	}
	return transfers, queued
}

// Known reports whether a prefill leader has accepted an Ask for a transfer, now or before, as far as it remembers.
func (l *PrefillLeader) Known(t spec.TransferID) bool {
	_, over := l.over[t]
	return over || l.bound[t] != nil
}
