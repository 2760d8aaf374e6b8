// Package device is where pages live: pools of pages with their tag slots, byte digests, and the tag checks of the read path.
// It keeps no ownership (impl/pages does), decides nothing (impl/core does) and moves nothing
// between nodes (impl/transport does). Called by impl/transport, impl/node and impl/workload's adapters.
// Read next: store.go (what a device offers), host.go, tag.go, digest.go.
package device

import (
	"fmt"

	"kvfence/spec"
)

// Pool is the memory of one component of one node: Layout.Shape.Pages pages of PageBytes bytes each, and for each page
// TagSlots slots of spec.TagBytes. Page p's bytes start at p*PageBytes; its slot s at (p*TagSlots+s)*spec.TagBytes.
// A Pool does not synchronise: the ledger's holds decide who may touch which page.
type Pool struct {
	Layout spec.Layout
	Bytes  []byte // nil where the host cannot address the memory; then Tags, Page and Slot must not be used, and Store is the only way
	Tags   []byte
	Store  Store
}

// NewPool wraps memory that the caller allocated; nil slices are allocated on the Go heap.
func NewPool(l spec.Layout, bytes, tags []byte) (*Pool, error) {
	if err := l.Validate(); err != nil {
		return nil, err
	}
	nb := uint64(l.Shape.Pages) * uint64(l.Shape.PageBytes)
	nt := uint64(l.Shape.Pages) * uint64(l.Shape.TagSlots) * spec.TagBytes
	if bytes == nil {
		bytes = make([]byte, nb)
	}
	if tags == nil {
		tags = make([]byte, nt)
	}
	if uint64(len(bytes)) < nb || uint64(len(tags)) < nt {
		return nil, fmt.Errorf("pool %s: %d + %d bytes given, %d + %d needed", l.Component, len(bytes), len(tags), nb, nt)
	}
	p := &Pool{Layout: l, Bytes: bytes[:nb:nb], Tags: tags[:nt:nt]}
	p.Store = hostStore{p}
	return p, nil
}

// Page is the bytes of page p; it panics for a page outside of the pool, which the ledger has excluded before.
func (p *Pool) Page(id spec.PageID) []byte {
	n := uint64(p.Layout.Shape.PageBytes)
	at := uint64(id) * n
	return p.Bytes[at : at+n : at+n]
}

// Slot is tag slot s of page id.
func (p *Pool) Slot(id spec.PageID, s spec.PartIndex) []byte {
	at := (uint64(id)*uint64(p.Layout.Shape.TagSlots) + uint64(s)) * spec.TagBytes
	return p.Tags[at : at+spec.TagBytes : at+spec.TagBytes]
}

// VoidTags voids every slot of page id: at hand-out, before any new byte and before the grant is sent.
func (p *Pool) VoidTags(id spec.PageID) {
	n := uint64(p.Layout.Shape.TagSlots) * spec.TagBytes
	at := uint64(id) * n
	clear(p.Tags[at : at+n])
}

// Memory is the pools of one node, by component; nil where it has none.
type Memory [spec.ComponentCount]*Pool
