package device

import (
	"errors"

	"kvfence/spec"
)

// ErrLost is wrapped by every error after which a device's memory can no longer be trusted: what was queued may or may not have happened,
// and may still happen. Nothing of its pools is handed out again in this process; only its end is proof. Any other error of a Store
// or Lane means that nothing was done; Wait is the exception that it names.
var ErrLost = errors.New("device is lost")

// Device is a place for pools: host memory, or one GPU. Safe for concurrent use.
type Device interface {
	// Name is for logs and status: "host", "cuda:0 NVIDIA H100".
	Name() string
	// NewPool allocates the pool of a layout, bytes zero and all tags void. Pool.Store is what the device does with it.
	NewPool(l spec.Layout) (*Pool, error)
	// Err is the first loss, which wraps ErrLost, or nil. Lost is closed with it.
	Err() error
	Lost() <-chan struct{}
	// Fail makes the device lost, for who learns of it from elsewhere: a health event of the card.
	Fail(cause error)
	// Close frees all pools of the device. Nothing uses them any more: no request, no link, no registration.
	Close() error
}

// Store is what the engine does with the memory of one pool, wherever it lies. All calls are complete when they return: the next
// call of anyone, a peer's write that was granted afterwards included, comes behind. Pages and slots outside of the pool are refused
// with ErrRange before anything is done. Safe for concurrent use on different pages; the ledger's holds decide who may touch which page.
type Store interface {
	// Void voids all slots of these pages: at hand-out, before any new byte and before the grant is sent.
	Void(pages []spec.PageID) error
	// Put stores tags, each in its slot.
	Put(tags []SlotTag) error
	// Check compares slots with what is expected there and returns a state for each, in order. A Want of 64 zero bytes expects a void slot
	// (of such a slot TagGood is the answer if it is void).
	Check(wants []SlotTag) ([]spec.TagState, error)
	// Digests are the digests of parts, read from the pages.
	Digests(parts []PagePart) ([]uint64, error)
	// CopyTokens copies the first tokens tokens of a page (0: all of it) to another page of the pool; tags stay where they are.
	CopyTokens(index uint32, from, to spec.PageID, tokens uint32) error
	// ReadPage and WritePage copy a run of a page's bytes to and from host memory.
	ReadPage(id spec.PageID, offset uint32, into []byte) error
	WritePage(id spec.PageID, offset uint32, from []byte) error
	// Scrub fills these pages with a byte and voids their slots.
	Scrub(pages []spec.PageID, with byte) error
	// Lane is a way in and out of the pool for one goroutine, with staging memory of at least size bytes.
	Lane(size int) (Lane, error)
}

// ErrRange is wrapped when a page, slot, part or run lies outside of its pool; nothing was done.
var ErrRange = errors.New("outside of the pool")

// SlotTag is a tag slot and the encoding (PutTag) of what is, or should be, in it.
type SlotTag struct {
	Page spec.PageID
	Slot spec.PartIndex
	Tag  [spec.TagBytes]byte
}

// PagePart is one part of one page: page index Index of the lease lies in page Page.
type PagePart struct {
	Part  spec.Part
	Index uint32
	Page  spec.PageID
}

// Staged is a part of a page and where its bytes, in canonical order and without gaps, stand in staging. At is a multiple of StageAlign.
type Staged struct {
	PagePart
	At int
}

// StageAlign is the alignment of a part in staging memory.
const StageAlign = 16

// Landing is a part to be stored from staging into its page, and then its tag into the slot of the part, which is void until then.
// With HasDigest in the tag, the tag is stored only if the bytes that landed have its digest; a Tag of 64 zero bytes is none, and the slot stays as it is.
type Landing struct {
	Staged
	Slot spec.PartIndex
	Tag  [spec.TagBytes]byte
}

// Lane moves parts between staging memory, which the host can address, and pages. One goroutine, one operation at a time: Land or Fetch
// begins, Wait ends it. In between the staging memory is the device's and must not be touched, and what is landed counts as being
// placed. Lanes of one pool run side by side.
type Lane interface {
	Staging() []byte
	Land(items []Landing) error
	Fetch(items []Staged) error
	// Wait returns when all bytes and tags of the operation are in place, or staging holds what was fetched, with the digest of each item's bytes.
	// After an error it is not known whether the operation is over, unless a later Wait says so; what is then in pages or staging is not known either.
	Wait() ([]uint64, error)
	// Close waits for what is in progress and frees the staging memory.
	Close() error
}
