// Package pages is the ledger of one component's pool: who owns each page, in which generation, and which holds keep it from
// being handed out again. A page is free exactly when its last hold has ended (invariants I2 and I17).
//
// Holds come in two sizes. An *owner* (a lease at decode, a job at prefill) has holds that all its pages share: its request, one
// for each link that owes it a part, each pending operation, each kernel. Beginning or ending one costs O(1), whatever the number
// of pages. A *group* holds some pages of one owner beyond that. Quarantine is a hold of its own, page by page.
//
// A page may be *published*: known by a content id, with what its tags hold. Other owners take *shares* of it, also when nothing holds
// it any more: until it is handed out again a free published page is a cache. A share is a hold like any other and no
// hand-out; content, domain and generation are compared when it begins.
//
// It decides nothing: what counts as proof that a hold has ended is the business of impl/core, its only caller beside the
// adapters of serving engines (TakeThese). It has no lock, clock or chance; a Ledger is used by one goroutine at a time.
// All errors are sentinels; an error changes nothing. Read next: ledger.go, holds.go, share.go, quarantine.go, set.go.
package pages
