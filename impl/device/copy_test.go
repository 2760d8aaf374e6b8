package device

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/spec"
)

// The bytes of the copied tokens arrive, in every layer and head; those of the tokens behind them, and the tags, stay.
func TestCopyTokens_CopiesTheseTokensAndNothingElse(t *testing.T) {
	m := spec.Meaning{ModelRevision: "m", DType: "u8", ByteOrder: "little", HeadDim: 2, ElemBytes: 1, KVs: 2, TokensPerPage: 4, Layers: 4, Heads: 2}
	p, err := NewPool(spec.NewDense(spec.KV, m, 1, 3, 0, 2, 3, 2), nil, nil)
	require.NoError(t, err)
	for i := range p.Page(0) {
		p.Page(0)[i], p.Page(1)[i] = 1, 2
	}
	PutTag(p.Slot(1, 0), spec.Tag{Lease: 9})
	before := append([]byte(nil), p.Slot(1, 0)...)
	require.NoError(t, p.CopyTokens(5, 0, 1, 3))
	s := p.Layout.Shape
	ones := 0
	for i, b := range p.Page(1) {
		token := uint32(i) % s.HeadStride / s.TokenStride
		require.Equal(t, token < 3, b == 1, "byte %d", i)
		ones += int(b & 1)
	}
	require.Equal(t, len(p.Page(1))*3/4, ones)
	require.Equal(t, before, p.Slot(1, 0))
	require.Error(t, p.CopyTokens(0, 0, 1, 5))
	require.NoError(t, p.CopyTokens(0, 0, 2, 0))
	require.Equal(t, p.Page(0), p.Page(2))
}
