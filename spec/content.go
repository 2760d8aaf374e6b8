package spec

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// ContentID says what a full KV page of a prompt holds: it is a digest of the domain (tenant, salt, adapter, model revision), the page
// size, and every token from the first one to the last of the page. Two pages with equal ids hold the same bytes at the same
// positions and may be shared. The zero value names no content. Defined in content-id.md.
type ContentID [32]byte

// String is the first 8 hex digits, for people.
func (c ContentID) String() string { return hex.EncodeToString(c[:4]) }

// IsZero reports whether c names no content.
func (c ContentID) IsZero() bool { return c == ContentID{} }

// ContentIDs are the ids of all full pages of a prompt, in order of position; perPage is the page size in tokens. The tokens behind the
// last full page (the tail) have none. No page: nil. It costs one pass over the prompt.
func ContentIDs(tokens []int32, d Domain, perPage uint32) []ContentID {
	if perPage == 0 || uint64(len(tokens)) < uint64(perPage) {
		return nil
	}
	ids := make([]ContentID, 0, uint64(len(tokens))/uint64(perPage))
	prev := contentRoot(d, perPage)
	buf := make([]byte, 0, len(contentLabel)+len(prev)+4*int(perPage))
	for len(tokens) >= int(perPage) {
		buf = append(append(buf[:0], contentLabel...), prev[:]...)
		for _, t := range tokens[:perPage] {
			buf = binary.LittleEndian.AppendUint32(buf, uint32(t))
		}
		prev = sha256.Sum256(buf)
		ids = append(ids, prev)
		tokens = tokens[perPage:]
	}
	return ids
}

const (
	contentRootLabel = "kvfence-content-root-1"
	contentLabel     = "kvfence-content-page-1"
)

// contentRoot stands for the empty prefix of a domain.
func contentRoot(d Domain, perPage uint32) ContentID {
	buf := append([]byte(contentRootLabel), d[:]...)
	return sha256.Sum256(binary.LittleEndian.AppendUint32(buf, perPage))
}
