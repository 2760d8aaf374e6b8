package core

import (
	"kvfence/impl/pages"
	"kvfence/spec"
)

// PageView is what a ledger says of one page, for oracles and status pages; a copy.
type PageView struct {
	State pages.State
	Gen   spec.Generation
}

// Page looks at one source page; a page outside of the pool is free with generation 0.
func (r *PrefillRank) Page(c spec.Component, p spec.PageID) PageView { return viewOf(r.ledgers[c], p) }

// Page looks at one page of decode's pool; a page outside of the pool is free with generation 0.
func (r *DecodeRank) Page(c spec.Component, p spec.PageID) PageView { return viewOf(r.pools[c], p) }

// Check walks this rank's ledgers, at the cost of their size, and reports the first fault (I2, I17).
func (r *PrefillRank) Check() error { return checkAll(r.ledgers[:]) }

// Check walks this rank's ledgers, at the cost of their size, and reports the first fault (I2, I17).
func (r *DecodeRank) Check() error { return checkAll(r.pools[:]) }

func viewOf(l *pages.Ledger, p spec.PageID) PageView {
	if l == nil {
		return PageView{}
	}
	return PageView{State: l.State(p), Gen: l.Gen(p)}
}

func checkAll(ls []*pages.Ledger) error {
	for _, l := range ls {
		if l == nil {
			continue
		}
		if err := l.Check(); err != nil {
			return err
		}
	}
	return nil
}
