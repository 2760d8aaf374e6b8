package device

import (
	"bytes"
	"encoding/binary"

	"github.com/zeebo/xxh3"

	"kvfence/spec"
)

// Offsets within a tag slot; spec/tag.go is the authority.
const (
	tagLease  = 0
	tagGen    = 8
	tagPart   = 16
	tagFlags  = 18
	tagIndex  = 20
	tagDomain = 24
	tagByte   = 40
	tagUsed   = 48
	tagZero   = 52
	tagSum    = 56

	tagFlagDigest = 1 // Tag.HasDigest
)

// PutTag encodes t into slot, which is spec.TagBytes long. It is the last store of a write, after the bytes it vouches for.
// A Digest without HasDigest is stored as 0, so equal tags have equal encodings. The store is not atomic: a reader that runs
// into it sees a torn tag.
func PutTag(slot []byte, t spec.Tag) {
	_ = slot[spec.TagBytes-1]
	var flags uint16
	digest := uint64(0)
	if t.HasDigest {
		flags, digest = tagFlagDigest, t.Digest
	}
	le := binary.LittleEndian
	le.PutUint64(slot[tagLease:], uint64(t.Lease))
	le.PutUint64(slot[tagGen:], uint64(t.Gen))
	le.PutUint16(slot[tagPart:], uint16(t.Part))
	le.PutUint16(slot[tagFlags:], flags)
	le.PutUint32(slot[tagIndex:], t.Index)
	copy(slot[tagDomain:tagByte], t.Domain[:])
	le.PutUint64(slot[tagByte:], digest)
	le.PutUint32(slot[tagUsed:], t.Used)
	le.PutUint32(slot[tagZero:], 0)
	le.PutUint64(slot[tagSum:], xxh3.Hash(slot[:tagSum]))
}

// GetTag decodes what a slot holds. The state is TagGood for any whole tag that PutTag could have written, TagForeign for a whole
// one that it could not (an unknown flag, a reserved byte), TagVoid and TagTorn as in CheckTag. It is for reports: what a
// page may be used for is CheckTag's to say, with the expected tag from the reader's ledger.
func GetTag(slot []byte) (spec.Tag, spec.TagState) {
	slot = slot[:spec.TagBytes]
	if bytes.Equal(slot, make([]byte, spec.TagBytes)) {
		return spec.Tag{}, spec.TagVoid
	}
	le := binary.LittleEndian
	if le.Uint64(slot[tagSum:]) != xxh3.Hash(slot[:tagSum]) {
		return spec.Tag{}, spec.TagTorn
	}
	flags := le.Uint16(slot[tagFlags:])
	t := spec.Tag{
		Lease: spec.LeaseID(le.Uint64(slot[tagLease:])), Gen: spec.Generation(le.Uint64(slot[tagGen:])),
		Part: spec.PartIndex(le.Uint16(slot[tagPart:])), Index: le.Uint32(slot[tagIndex:]),
		Digest: le.Uint64(slot[tagByte:]), Used: le.Uint32(slot[tagUsed:]), HasDigest: flags&tagFlagDigest != 0,
	}
	copy(t.Domain[:], slot[tagDomain:])
	if flags&^tagFlagDigest != 0 || le.Uint32(slot[tagZero:]) != 0 || (!t.HasDigest && t.Digest != 0) {
		return t, spec.TagForeign
	}
	return t, spec.TagGood
}

// CompareTag compares what a slot holds with the encoding of the tag that is expected there; 64 zero bytes expect a void slot.
func CompareTag(slot []byte, want *[spec.TagBytes]byte) spec.TagState {
	if bytes.Equal(slot[:spec.TagBytes], want[:]) {
		return spec.TagGood
	}
	if _, s := GetTag(slot); s != spec.TagGood {
		return s
	}
	return spec.TagForeign
}

// TagAgrees reports whether a tag may be stored behind bytes with this digest: one that names a digest must name this one, and 64 zero bytes are no tag.
func TagAgrees(tag *[spec.TagBytes]byte, digest uint64) bool {
	le := binary.LittleEndian
	if le.Uint16(tag[tagFlags:])&tagFlagDigest != 0 {
		return le.Uint64(tag[tagByte:]) == digest
	}
	return *tag != [spec.TagBytes]byte{}
}

// CheckTag compares what a slot holds with the tag that the reader's ledger expects there. Every field counts, the byte digest
// only if want.HasDigest. A slot that does not match is void if it is all zero, else torn if its tag digest does not match its
// bytes, else foreign. slot is spec.TagBytes long.
func CheckTag(slot []byte, want spec.Tag) spec.TagState {
	var w [spec.TagBytes]byte
	PutTag(w[:], want)
	return CompareTag(slot, &w)
}
