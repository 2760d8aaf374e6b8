package node

import (
	"kvfence/impl/device"
	"kvfence/impl/workload"
	"kvfence/spec"
)

// sideKV shows a model the cache of one request whose layers and heads lie in the pools of a side's ranks. It implements
// workload.KV and workload.Runner. One goroutine at a time; the pages must be held for as long as it is used.
type sideKV struct {
	ranks []rankKV
	// owner is the index into ranks of each (layer, head), layer-major: the lowest rank that has it.
	owner []int
	heads int
}

type rankKV struct {
	pool  *device.Pool
	pages []spec.GrantedPage
	copy  [][]byte // of pages that the host cannot address; store writes back what was computed
}

// newSideKV makes the view; pages are by rank.
func newSideKV(g workload.Geometry, mems []device.Memory, pages [][]spec.GrantedPage) (*sideKV, error) {
	k := &sideKV{heads: g.KVHeads, owner: make([]int, g.Layers*g.KVHeads)}
	for i := range k.owner {
		k.owner[i] = -1
	}
	for r, mem := range mems {
		pool := mem[spec.KV]
		rk := rankKV{pool: pool, pages: pages[r]}
		if pool.Bytes == nil {
			for _, p := range rk.pages {
				b, err := readPage(pool, p.Page)
				if err != nil {
					return nil, err
				}
				rk.copy = append(rk.copy, b)
			}
		}
		k.ranks = append(k.ranks, rk)
		s := pool.Layout.Shape
		for l := s.LayerLo; l < s.LayerHi; l++ {
			for h := s.HeadLo; h < s.HeadHi; h++ {
				if at := int(l)*k.heads + int(h); k.owner[at] < 0 {
					k.owner[at] = r
				}
			}
		}
	}
	return k, nil
}

// store puts the tokens from one up to another where pages are copies; others lie there already.
func (k *sideKV) store(from, to int) error {
	for _, r := range k.ranks {
		tokens := int(r.pool.Layout.Equal.TokensPerPage)
		for i := from / tokens; i < len(r.copy) && i*tokens < to; i++ {
			if err := r.pool.Store.WritePage(r.pages[i].Page, 0, r.copy[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// Slot implements workload.KV; nil where no page is.
func (k *sideKV) Slot(layer, kv, head, pos int) []byte { return k.Run(layer, kv, head, pos, 1) }

// Run implements workload.Runner; a run ends with its page.
func (k *sideKV) Run(layer, kv, head, from, n int) []byte {
	r := k.ranks[k.owner[layer*k.heads+head]]
	m, s := r.pool.Layout.Equal, r.pool.Layout.Shape
	tokens := int(m.TokensPerPage)
	index, at := from/tokens, from%tokens
	if from < 0 || index >= len(r.pages) {
		return nil
	}
	slot := int(m.HeadDim * m.ElemBytes)
	n = min(n, tokens-at)
	if int(s.TokenStride) != slot {
		n = 1
	}
	start := (layer-int(s.LayerLo))*int(s.LayerStride) + kv*int(s.KVStride) + (head-int(s.HeadLo))*int(s.HeadStride) + at*int(s.TokenStride)
	page := []byte(nil)
	if r.copy != nil {
		page = r.copy[index]
	} else {
		page = r.pool.Page(r.pages[index].Page)
	}
	return page[start : start+n*slot : start+n*slot]
}
