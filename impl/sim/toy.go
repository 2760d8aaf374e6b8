package sim

import (
	"encoding/binary"
	"hash/fnv"

	"kvfence/impl/device"
	"kvfence/spec"
)

// auxBytes is the auxiliary record: token count, first token, a canary of the request.
const auxBytes = 16

// toy is the model: a chain of hashes over domain and tokens. Every KV byte of a position, and the next token, is a function of
// all that came before in the same domain, so one foreign byte or token shows.
type toy struct{ chain []uint64 } // chain[p+1] stands for tokens 0..p; chain[0] for the domain

func newToy(d spec.Domain, tokens []int32) *toy {
	h := fnv.New64a()
	h.Write(d[:])
	t := &toy{chain: []uint64{mix(h.Sum64())}}
	for _, tok := range tokens {
		t.push(tok)
	}
	return t
}

func (t *toy) push(tok int32) {
	t.chain = append(t.chain, mix(t.chain[len(t.chain)-1]^uint64(uint32(tok))*0x9e3779b97f4a7c15))
}

// next is the token after the first n.
func (t *toy) next(n int) int32 { return int32(mix(t.chain[n]^1) % vocabulary) }

// mix is a permutation of 64 bits.
func mix(x uint64) uint64 {
	x ^= x >> 31
	x *= 0x7fb5d329728ea185
	x ^= x >> 27
	x *= 0x81dadef4bc2dd44d
	return x ^ x>>33
}

// cell is the bytes of one position, layer, K or V, and head.
func (t *toy) cell(pos int, layer, kv, head uint32) (b [dim]byte) {
	x := mix(t.chain[pos+1] ^ uint64(layer)<<40 ^ uint64(kv)<<32 ^ uint64(head)<<48)
	for i := range b {
		b[i] = byte(x >> (8 * i))
	}
	return b
}

// eachCell visits the cells of positions [from, to) in the pages of one rank, with the bytes that are there and that should be.
func (t *toy) eachCell(pool *device.Pool, pages []spec.GrantedPage, from, to uint32, f func(got, want []byte)) {
	s := pool.Layout.Shape
	for pos := from; pos < to; pos++ {
		page := pool.Page(pages[pos/pageTokens].Page)
		for layer := s.LayerLo; layer < s.LayerHi; layer++ {
			for kv := range uint32(2) {
				for head := s.HeadLo; head < s.HeadHi; head++ {
					at := (layer-s.LayerLo)*s.LayerStride + kv*s.KVStride + (head-s.HeadLo)*s.HeadStride + pos%pageTokens*s.TokenStride
					want := t.cell(int(pos), layer, kv, head)
					f(page[at:at+dim], want[:])
				}
			}
		}
	}
}

// eachRecord visits the records of the whole request of n tokens: State by layer and head, and Aux.
func (t *toy) eachRecord(mem device.Memory, pages *[spec.ComponentCount][]spec.GrantedPage, n int, f func(got, want []byte)) {
	if pool := mem[spec.State]; pool != nil && len(pages[spec.State]) > 0 {
		s, page := pool.Layout.Shape, pool.Page(pages[spec.State][0].Page)
		for layer := s.LayerLo; layer < s.LayerHi; layer++ {
			for head := s.HeadLo; head < s.HeadHi; head++ {
				at := (layer-s.LayerLo)*s.LayerStride + (head-s.HeadLo)*s.HeadStride
				want := t.cell(n-1, layer, 7, head)
				f(page[at:at+dim], want[:])
			}
		}
	}
	if pool := mem[spec.Aux]; pool != nil && len(pages[spec.Aux]) > 0 {
		var want [auxBytes]byte
		binary.LittleEndian.PutUint32(want[0:], uint32(n))
		binary.LittleEndian.PutUint32(want[4:], uint32(t.next(n)))
		binary.LittleEndian.PutUint64(want[8:], t.chain[n])
		f(pool.Page(pages[spec.Aux][0].Page)[:auxBytes], want[:])
	}
}
