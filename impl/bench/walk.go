//go:build linux

package bench

import (
	"encoding/binary"
	"math/rand/v2"

	"kvfence/spec"
)

// walk is a pool's pages in random order; each request takes the next ones, round and round, as the ledger's free list does:
// a page is used again as late as possible, so the lists are as cold as the pool is large.
type walk struct {
	order []uint32
	at    int
}

func newWalk(pages int, r *rand.Rand) *walk {
	w := &walk{order: make([]uint32, pages)}
	for i, p := range r.Perm(pages) {
		w.order[i] = uint32(p)
	}
	return w
}

// next gives n pages, n at most the pool's.
func (w *walk) next(n int) []uint32 {
	if w.at+n > len(w.order) {
		w.at = 0
	}
	out := w.order[w.at : w.at+n]
	w.at += n
	return out
}

// layoutOf is a KV pool of pages of 16 tokens without holes: [2 layers, 2, 1 head, 16 tokens, dim] bytes. One page more than the
// bytes hold, for the position behind a prompt that fills the pool.
func layoutOf(page, poolBytes int, shared bool) spec.Layout {
	m := spec.Meaning{ModelRevision: "bench", Quantization: "none", DType: "u8", ByteOrder: "little", HeadDim: uint32(page / (4 * pageTokens)), ElemBytes: 1, KVs: 2,
		TokensPerPage: pageTokens, Layers: 2, Heads: 1}
	l := spec.NewDense(spec.KV, m, 0, 2, 0, 1, uint32(poolBytes/page)+1, 1)
	l.Shape.Shared = shared
	return l
}

const pageTokens = 16

// stamp writes what each page is: its number in its first and last 8 bytes, noise between.
func stamp(pool []byte, page int, r *rand.Rand) {
	for i := 0; i+8 <= len(pool); i += 64 {
		binary.LittleEndian.PutUint64(pool[i:], r.Uint64())
	}
	for p := 0; (p+1)*page <= len(pool); p++ {
		b := pool[p*page:][:page]
		binary.LittleEndian.PutUint64(b, uint64(p)+1)
		binary.LittleEndian.PutUint64(b[page-8:], ^(uint64(p) + 1))
	}
}

// stamped reports whether a page holds what source page p was stamped with.
func stamped(b []byte, p uint32) bool {
	return binary.LittleEndian.Uint64(b) == uint64(p)+1 && binary.LittleEndian.Uint64(b[len(b)-8:]) == ^(uint64(p)+1)
}
