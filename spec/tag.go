package spec

// TagBytes is the size of one tag slot in memory and on the wire.
const TagBytes = 64

// Tag names the owner of one part of one page, in a slot beside the bytes. It is written after the bytes: by the writer
// (push), by the reader (pull), by decode itself for a page it fills (Part == PartLocal). Expected values come from the
// reader's ledger, never from the tag. Layout, little-endian:
//
//	 0 lease u64      8 generation u64   16 part u16   18 flags u16   20 index u32
//	24 domain [16]   40 byte digest u64  48 used bytes u32  52 zero u32  56 tag digest u64 (over bytes 0..55)
//
// A slot of 64 zero bytes is void. Encoding, decoding and digests are in impl/device (they need a hash).
type Tag struct {
	Lease  LeaseID
	Gen    Generation
	Part   PartIndex
	Index  uint32 // page index within the lease's component
	Domain Domain
	Digest uint64 // byte digest of the part's bytes in this page; meaningless without HasDigest
	Used   uint32 // bytes of the part in this page
	// HasDigest says that page digests are in force for this lease.
	HasDigest bool
}

// TagState is what a slot holds when compared with the expected tag.
type TagState uint8

// The states of a slot. Void and Foreign are different answers: "not yet written" is not corruption.
const (
	TagGood TagState = iota
	TagVoid
	TagForeign // a whole tag of something else, or this lease's with other fields
	TagTorn    // the tag digest does not match its bytes
)

// String names the state for metrics and reports.
func (s TagState) String() string { return [...]string{"good", "void", "foreign", "torn"}[s&3] }
