package history

import (
	"github.com/anishathalye/porcupine"

	"kvfence/spec"
)

// Ledger operations. Each stands for the call of impl/pages with the same name.
type (
	// Take asks for N free pages, or for those in These if it is not nil.
	Take struct {
		Owner uint64
		N     int
		These []spec.PageID
	}
	// Begin begins a hold on all pages of an owner, End ends it, Revoke says that its user is done.
	Begin struct {
		Owner uint64
		Hold  Hold
	}
	End struct {
		Owner uint64
		Hold  Hold
	}
	Revoke struct{ Owner uint64 }
	// BeginGroup holds some pages of an owner, EndGroup ends that or a share.
	BeginGroup struct {
		Owner uint64
		Pages []spec.PageID
	}
	EndGroup struct{ Group uint64 }
	// Quarantine takes a page out of use: of its owner, or of a share if Group is not 0 (At is its place in it). EndQuarantine ends it.
	Quarantine struct {
		Owner uint64
		Page  spec.PageID
		Group uint64
		At    int
	}
	EndQuarantine struct{ Page spec.PageID }
	// Publish makes a page known by its content, Unpublish ends that, Find looks it up.
	Publish   struct{ Pub Pub }
	Unpublish struct{ Page spec.PageID }
	Find      struct{ Content spec.ContentID }
	// Share takes shares of published pages in a domain.
	Share struct {
		Owner  uint64
		Domain spec.Domain
		Pubs   []Pub
	}
	// Store notes that this side stored into a page.
	Store struct {
		Owner uint64
		Page  spec.PageID
	}
	// Look reads what stands about one page, Count the pages by state.
	Look  struct{ Page spec.PageID }
	Count struct{}
)

// Hold names one reason to keep an owner's pages: a kind and a number. The zero value is the one that taking pages begins.
type Hold struct {
	Kind uint8
	ID   uint64
}

// Pub is what is published of a page.
type Pub struct {
	Content spec.ContentID
	Domain  spec.Domain
	Page    spec.PageID
	Gen     spec.Generation
	Filler  uint64
}

// Answer is what a ledger operation returned. What does not belong to an operation stays zero.
type Answer struct {
	Refused Refusal
	Pages   []spec.GrantedPage // Take
	Freed   int                // of every end
	Over    bool               // End: it was the owner's last hold
	Group   uint64             // BeginGroup, Share
	Done    bool               // Publish: it is published; Find: it was found; Look: stored into
	Pub     Pub                // Find
	Ended   []spec.PageID      // pages whose publication ended by this operation
	Owner   uint64             // Look
	Gen     spec.Generation    // Look
	State   uint8              // Look: place in Counts
	Counts  [4]int             // Count: free, held, revoking, quarantined
}

// Refusal is why the ledger refused; "" is that it did not.
type Refusal string

// The refusals; each is one sentinel of impl/pages.
const (
	UnknownPage  Refusal = "unknown page"
	UnknownOwner Refusal = "unknown owner"
	ForeignOwner Refusal = "foreign owner"
	NotFree      Refusal = "not free"
	AlreadyFree  Refusal = "already free"
	Revoked      Refusal = "revoked"
	UnknownHold  Refusal = "unknown hold"
	HoldExists   Refusal = "hold exists"
	NotBad       Refusal = "not bad"
	NoRoom       Refusal = "no room"
	Published    Refusal = "published"
	Stored       Refusal = "stored"
	NotPublished Refusal = "not published"
	Stale        Refusal = "stale"
	OtherContent Refusal = "other content"
	OtherDomain  Refusal = "other domain"
	Bad          Refusal = "quarantined"
)

// Ledger is the sequential specification of a ledger of so many pages with room for so many publications. Inputs are the operations above,
// outputs are Answers.
//
// Which free pages are taken, how a group is numbered and whose publication makes room are the ledger's to choose; everything else
// follows. Where several things speak against an operation any of them may be named.
func Ledger(pages, publications int) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return newLedger(pages, publications) },
		Step: func(state, in, out any) (bool, any) {
			s := state.(*ledger).clone()
			a, ok := out.(Answer)
			if !ok || !s.step(in, a) {
				return false, state
			}
			return true, s
		},
		Equal: func(a, b any) bool { return a.(*ledger).equal(b.(*ledger)) },
		Hash:  func(state any) uint64 { return state.(*ledger).hash() },
	}
}
