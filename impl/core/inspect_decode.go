package core

import (
	"kvfence/impl/pages"
	"kvfence/spec"
)

// DecodeView is what a decode rank is, as far as TLA/Transfer.tla speaks of it: for tests and oracles that compare it with the
// specification (impl/lockstep). A copy; taking it changes nothing.
type DecodeView struct {
	Leases   []LeaseView      // that are not freed, by number
	Links    []LinkView       // by PeerID
	Findings [][]spec.LeaseID // the leases of each finding whose quarantine has not ended
	Next     spec.LeaseID     // the lowest number that may still be granted
}

// LeaseView is one lease at decode. State is "taken", "filling", "verifying", "ready" or "revoking".
type LeaseView struct {
	ID       spec.LeaseID
	Transfer spec.TransferID
	State    string
	Bad      bool // pages of it were found bad
	Reading  bool
	Pages    [spec.ComponentCount][]spec.GrantedPage
	Shared   []pages.Publication // the first KV pages
	Holds    []HoldView
}

// HoldView is the hold of a lease on one link.
type HoldView struct {
	Peer        PeerID
	Epoch       spec.Epoch
	Incarnation spec.Incarnation
	Standing    bool
	Got         bool
	Receipt     spec.Kind // of the receipt that came and waits for its notices; 0: none
	Notices     []spec.Channel
}

// LinkView is one link of a decode rank.
type LinkView struct {
	Peer        PeerID
	Open        bool
	Epoch       spec.Epoch
	Incarnation spec.Incarnation // of the peer behind the last Accept
	Fencing     []spec.Epoch     // Old of each fence that is not back
}

// PageDetail is all that a ledger says of one page.
type PageDetail struct {
	Owner     pages.Owner
	Gen       spec.Generation
	State     pages.State
	Stored    bool
	Published *pages.Publication
	Sharers   []pages.Owner
}

// Inspect is the machine as it is now.
func (r *DecodeRank) Inspect() DecodeView {
	v := DecodeView{Next: r.nextGrant()}
	for id := spec.LeaseID(1); id < r.next && len(v.Leases) < len(r.leases); id++ {
		if l := r.leases[id]; l != nil {
			v.Leases = append(v.Leases, l.inspect())
		}
	}
	for _, k := range r.links {
		v.Links = append(v.Links, LinkView{Peer: k.cfg.ID, Open: k.state == dlinkOpen, Epoch: k.epoch, Incarnation: k.inc, Fencing: append([]spec.Epoch(nil), k.fencing...)})
	}
	for _, f := range r.findings {
		var ids []spec.LeaseID
		for _, l := range f.leases {
			ids = append(ids, l.id)
		}
		v.Findings = append(v.Findings, ids)
	}
	return v
}

func (l *dlease) inspect() LeaseView {
	v := LeaseView{ID: l.id, Transfer: l.transfer, State: l.state.String(), Bad: l.bad, Reading: l.read, Pages: l.pages, Shared: l.shared}
	for _, h := range l.holds {
		x := HoldView{Peer: h.link.cfg.ID, Epoch: h.epoch, Incarnation: h.inc, Standing: h.standing, Got: h.got, Notices: h.notices}
		if h.receipt != nil {
			x.Receipt = h.receipt.kind
		}
		v.Holds = append(v.Holds, x)
	}
	return v
}

// String is the state's name.
func (s dleaseState) String() string {
	return [...]string{"taken", "filling", "verifying", "ready", "revoking", "?"}[min(s, dleaseStates)]
}

// Detail looks at one page of decode's pool; a page outside of the pool is free with generation 0.
func (r *DecodeRank) Detail(c spec.Component, p spec.PageID) PageDetail {
	return detailOf(r.pools[c], p)
}

// Detail looks at one source page; a page outside of the pool is free with generation 0.
func (r *PrefillRank) Detail(c spec.Component, p spec.PageID) PageDetail {
	return detailOf(r.ledgers[c], p)
}

func detailOf(l *pages.Ledger, p spec.PageID) PageDetail {
	if l == nil {
		return PageDetail{}
	}
	d := PageDetail{Owner: l.Owner(p), Gen: l.Gen(p), State: l.State(p), Stored: l.Stored(p), Sharers: l.Sharers(p)}
	if x, ok := l.Published(p); ok {
		d.Published = &x
	}
	return d
}
