package device

import (
	"fmt"

	"kvfence/spec"
)

// CopyTokens copies the first tokens tokens of a page (0: the whole page) to another page of the pool, all layers, heads, K and V; tags
// stay where they are. index is the page's place in its lease. The caller holds both pages, and nothing else stores into those bytes.
func (p *Pool) CopyTokens(index uint32, from, to spec.PageID, tokens uint32) error {
	if tokens == 0 {
		copy(p.Page(to), p.Page(from))
		return nil
	}
	s, t := p.Layout.Shape, p.Layout.Equal.TokensPerPage
	if tokens > t {
		return fmt.Errorf("copy of %d tokens of a page of %d", tokens, t)
	}
	part := spec.Part{Component: p.Layout.Component, LayerLo: s.LayerLo, LayerHi: s.LayerHi, HeadLo: s.HeadLo, HeadHi: s.HeadHi, TokenLo: index * t, TokenHi: index*t + tokens}
	segs, err := part.Segments(p.Layout, index, nil)
	if err != nil {
		return err
	}
	src, dst := p.Page(from), p.Page(to)
	for _, g := range segs {
		copy(dst[g.Offset:g.Offset+g.Bytes], src[g.Offset:g.Offset+g.Bytes])
	}
	return nil
}
