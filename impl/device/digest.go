package device

import (
	"encoding/binary"

	"github.com/zeebo/xxh3"

	"kvfence/spec"
)

// The page digest (spec/tags-and-digests.md). The used bytes of one part in one page, in canonical order, are cut into chunks of
// DigestChunk bytes; the digest is XXH3-64 over a header and the chunks' XXH3-64 values. It does not depend on how either
// side's page cuts those bytes into segments, chunks can be hashed in any order or place, and a whole chunk is hashed where
// it lies. It detects errors, not attacks: writers are trusted not to lie.

// DigestChunk is the bytes of one chunk; the last chunk of a part may be shorter.
const DigestChunk = 4096

const (
	digestHeader = 24
	digestLabel  = 0x3144564b // "KVD1"
	// valsBytes is how much of header and chunk values is held before it is folded: all of it for up to 1 MiB.
	valsBytes = digestHeader + 8*256
	// smallChunks is the most chunks of one segment that take the short way in DigestSegments.
	smallChunks = 32
)

// DigestHeader is what the digest covers beside the bytes: which kind, which tokens, how many bytes.
type DigestHeader struct {
	Component        spec.Component
	TokenLo, TokenHi uint32 // tokens [lo, hi) of the request that lie in this page; 0, 0 for a whole-request record
	Used             uint32 // bytes of the part in this page
}

// HeaderOf is the header of part p in page index i of layout l, of which used bytes belong to it.
func HeaderOf(p spec.Part, l spec.Layout, i, used uint32) DigestHeader {
	h := DigestHeader{Component: p.Component, Used: used}
	if t := l.Equal.TokensPerPage; t != 0 {
		lo, hi := p.Tokens(l, i)
		h.TokenLo, h.TokenHi = i*t+lo, i*t+hi
	}
	return h
}

func (h DigestHeader) put(b []byte) {
	le := binary.LittleEndian
	le.PutUint32(b[0:], digestLabel)
	le.PutUint32(b[4:], uint32(h.Component))
	le.PutUint32(b[8:], h.TokenLo)
	le.PutUint32(b[12:], h.TokenHi)
	le.PutUint64(b[16:], uint64(h.Used))
}

// DigestSegments is the digest of the part whose bytes are page's segments, in canonical order; h.Used is set from segs. The
// segments lie within the page. It allocates nothing.
func DigestSegments(page []byte, segs []spec.Segment, h DigestHeader) uint64 {
	h.Used = spec.UsedBytes(segs)
	if len(segs) == 1 && h.Used <= smallChunks*DigestChunk {
		return digestSmall(page[segs[0].Offset:][:segs[0].Bytes], h)
	}
	var d Digester
	d.Start(h)
	for _, s := range segs {
		d.Write(page[s.Offset:][:s.Bytes])
	}
	return d.Sum()
}

func digestSmall(b []byte, h DigestHeader) uint64 {
	var v [digestHeader + 8*smallChunks]byte
	h.put(v[:])
	n := digestHeader
	for len(b) > 0 {
		k := min(len(b), DigestChunk)
		binary.LittleEndian.PutUint64(v[n:], xxh3.Hash(b[:k]))
		n += 8
		b = b[k:]
	}
	return xxh3.Hash(v[:n])
}

// Digester computes the digest of one part of one page from pieces given in canonical order, for instance each as soon as it
// was received and while it is in the cache. Start begins the next one; the zero value must be started. Not safe for concurrent use.
type Digester struct {
	n      int // bytes of vals in use
	have   int // bytes of part in use
	folded bool
	vals   [valsBytes]byte   // header and chunk values not yet folded
	part   [DigestChunk]byte // a chunk that pieces cut
	h      xxh3.Hasher       // over folded vals
}

// Start begins a digest. h.Used is the number of bytes that will be written; with any other number the result is that of no part.
func (d *Digester) Start(h DigestHeader) {
	d.n, d.have, d.folded = digestHeader, 0, false
	h.put(d.vals[:])
}

// Write adds the next bytes. They are not kept.
func (d *Digester) Write(b []byte) {
	if d.have > 0 {
		k := copy(d.part[d.have:], b)
		d.have += k
		b = b[k:]
		if d.have < DigestChunk {
			return
		}
		d.chunk(d.part[:])
		d.have = 0
	}
	for len(b) >= DigestChunk {
		d.chunk(b[:DigestChunk])
		b = b[DigestChunk:]
	}
	d.have = copy(d.part[:], b)
}

func (d *Digester) chunk(b []byte) {
	if d.n == valsBytes {
		d.fold()
	}
	binary.LittleEndian.PutUint64(d.vals[d.n:], xxh3.Hash(b))
	d.n += 8
}

func (d *Digester) fold() {
	if !d.folded {
		d.h.Reset()
		d.folded = true
	}
	_, _ = d.h.Write(d.vals[:d.n]) // never fails
	d.n = 0
}

// Sum ends the digest and returns it.
func (d *Digester) Sum() uint64 {
	if d.have > 0 {
		d.chunk(d.part[:d.have])
		d.have = 0
	}
	if !d.folded {
		return xxh3.Hash(d.vals[:d.n])
	}
	d.fold()
	return d.h.Sum64()
}
