package spec

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// Incarnation identifies one life of one node: 128 random bits drawn at each start, and again by a restored or forked
// process before it speaks. The zero value means "none" and is never a node's.
type Incarnation [16]byte

// String is the first 8 hex digits, for people; Hex gives all of it.
func (i Incarnation) String() string { return hex.EncodeToString(i[:4]) }

// Hex is the whole incarnation as 32 hex digits.
func (i Incarnation) Hex() string { return hex.EncodeToString(i[:]) }

// MarshalText is Hex, for JSON and logs.
func (i Incarnation) MarshalText() ([]byte, error) { return []byte(i.Hex()), nil }

// UnmarshalText reads what MarshalText wrote.
func (i *Incarnation) UnmarshalText(b []byte) error {
	var got Incarnation
	if len(b) != hex.EncodedLen(len(got)) {
		return fmt.Errorf("incarnation of %d characters, not %d", len(b), hex.EncodedLen(len(got)))
	}
	if _, err := hex.Decode(got[:], b); err != nil {
		return fmt.Errorf("incarnation: %w", err)
	}
	*i = got
	return nil
}

// IsZero reports whether i names no node.
func (i Incarnation) IsZero() bool { return i == Incarnation{} }

// Rank is a node's index within its side, 0 for the leader.
type Rank uint16

// TransferID names one attempt to move one request. It is minted by the decode side's leader, is never used twice, and is
// carried in every message. Room numbers, request ids and other outside ids are labels only.
type TransferID struct {
	Leader  Incarnation // the decode leader that minted it
	Counter uint64      // 1 upwards within that incarnation
}

// String is for people and logs.
func (t TransferID) String() string { return fmt.Sprintf("%s/%d", t.Leader, t.Counter) }

// Less orders transfers of one leader by age; transfers of different leaders by incarnation.
func (t TransferID) Less(o TransferID) bool {
	if t.Leader != o.Leader {
		return string(t.Leader[:]) < string(o.Leader[:])
	}
	return t.Counter < o.Counter
}

// SourceName names a prefill-first half before any transfer is bound to it (protocol, step 0). Zero means "none".
type SourceName struct {
	Leader  Incarnation // the prefill leader that minted it
	Counter uint64
}

// LeaseID numbers the leases of one decode incarnation: one counter for all its links, rising in the order in which grants
// are sent, never reset, never reused. 0 means "no lease"; the first is 1.
type LeaseID uint64

// Generation counts the hand-outs of one page. 0 means "never handed out".
type Generation uint64

// Epoch counts the fences of one link. It is owned by the decode side and only rises. 0 means "never connected".
type Epoch uint64

// Nonce makes an answer to a connect recognisable: an answer to any other nonce configures nothing.
type Nonce [16]byte

// PageID is an index into the pool of one component of one node.
type PageID uint32

// PartIndex numbers the parts of one component in one lease's plan and is also the tag slot of that part in each page.
type PartIndex uint16

// PartLocal marks a page that decode filled itself (growth, copy): no prefill rank owes it.
const PartLocal PartIndex = 0xffff

// Component is a kind of pool.
type Component uint8

// The components. KV is paged by token; State (SSM, sliding window) and Aux (first token, sampling state) are one page a lease.
const (
	KV Component = iota
	State
	Aux
	ComponentCount
)

// String is the component's name in metrics, traces and errors.
func (c Component) String() string {
	switch c {
	case KV:
		return "kv"
	case State:
		return "state"
	case Aux:
		return "aux"
	}
	return fmt.Sprintf("component(%d)", uint8(c))
}

// Domain is what must be equal for two requests to share bytes, next to tokens: tenant, salt, adapter and model revision, hashed.
type Domain [16]byte

// DomainOf hashes the four separators; each is length-prefixed, so no two different quadruples collide by concatenation.
func DomainOf(tenant, salt, adapter, revision string) Domain {
	h := sha256.New()
	for _, s := range []string{"kvfence-domain-1", tenant, salt, adapter, revision} {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	var d Domain
	copy(d[:], h.Sum(nil))
	return d
}

// RequestDigest is a digest of token ids and domain. Both sides compute it from what they hold; a difference is a protocol error.
type RequestDigest [32]byte

// DigestRequest computes the RequestDigest: SHA-256 over a label, the domain, the token count and each token as 4 bytes little-endian.
func DigestRequest(tokens []int32, d Domain) RequestDigest {
	h := sha256.New()
	h.Write([]byte("kvfence-request-1"))
	h.Write(d[:])
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(len(tokens)))
	h.Write(b[:])
	buf := make([]byte, 0, 4096)
	for _, t := range tokens {
		buf = binary.LittleEndian.AppendUint32(buf, uint32(t))
		if len(buf) == cap(buf) {
			h.Write(buf)
			buf = buf[:0]
		}
	}
	h.Write(buf)
	var r RequestDigest
	h.Sum(r[:0])
	return r
}
