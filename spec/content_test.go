package spec

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// contentVector is one row of testdata/content_vectors.json.
type contentVector struct {
	Tenant, Salt, Adapter, Revision string
	Page                            uint32
	Tokens                          []int32
	IDs                             []string
}

const contentVectors = "testdata/content_vectors.json"

func (v contentVector) ids() (out []string) {
	for _, id := range ContentIDs(v.Tokens, DomainOf(v.Tenant, v.Salt, v.Adapter, v.Revision), v.Page) {
		out = append(out, hex.EncodeToString(id[:]))
	}
	return out
}

// The vectors are for other implementations; -update writes them anew.
func TestContentIDs_Vectors(t *testing.T) {
	if *update {
		var all []contentVector
		for _, v := range []contentVector{
			{Tenant: "a", Revision: "m", Page: 4, Tokens: []int32{1, 2, 3, 4, 5, 6, 7, 8, 9}},
			{Tenant: "b", Revision: "m", Page: 4, Tokens: []int32{1, 2, 3, 4, 5, 6, 7, 8, 9}},
			{Tenant: "a", Adapter: "x", Revision: "m", Page: 4, Tokens: []int32{1, 2, 3, 4}},
			{Tenant: "a", Salt: "s", Revision: "m", Page: 4, Tokens: []int32{1, 2, 3, 4}},
			{Tenant: "a", Revision: "n", Page: 4, Tokens: []int32{1, 2, 3, 4}},
			{Tenant: "a", Revision: "m", Page: 2, Tokens: []int32{1, 2, 3, 4}},
			{Tenant: "a", Revision: "m", Page: 4, Tokens: []int32{1, 2, 3}},
			{Revision: "m", Page: 1, Tokens: []int32{-1, 2147483647}},
		} {
			v.IDs = v.ids()
			all = append(all, v)
		}
		text, err := json.MarshalIndent(all, "", " ")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(contentVectors, append(text, '\n'), 0o644))
	}
	text, err := os.ReadFile(contentVectors)
	require.NoError(t, err)
	var all []contentVector
	require.NoError(t, json.Unmarshal(text, &all))
	require.Len(t, all, 8)
	seen := map[string]bool{}
	for _, v := range all {
		require.Equal(t, v.IDs, v.ids(), "%+v", v)
		for _, id := range v.IDs {
			require.False(t, seen[id], "one id for two contents: %+v", v)
			seen[id] = true
		}
	}
}

// Ids agree exactly as far as the prompts do, and only within one domain and page size.
func TestContentIDs_AgreeAsFarAsThePromptsDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		page := rapid.Uint32Range(1, 5).Draw(t, "page")
		prompt := func(name string) []int32 { return rapid.SliceOfN(rapid.Int32Range(0, 1), 0, 14).Draw(t, name) }
		a, b := prompt("a"), prompt("b")
		d := DomainOf("a", "", rapid.SampledFrom([]string{"", "x"}).Draw(t, "adapter"), "m")
		x, y := ContentIDs(a, d, page), ContentIDs(b, d, page)
		require.Len(t, x, len(a)/int(page))
		for i := range min(len(x), len(y)) {
			n := (i + 1) * int(page)
			require.Equal(t, string(idsOf(a[:n])) == string(idsOf(b[:n])), x[i] == y[i])
			require.NotEqual(t, x[i], ContentIDs(a, DomainOf("b", "", "", "m"), page)[i])
		}
		for _, id := range x {
			require.False(t, id.IsZero())
			require.Len(t, id.String(), 8)
		}
	})
	require.Nil(t, ContentIDs([]int32{1}, Domain{}, 0))
}

func idsOf(tokens []int32) (b []byte) {
	for _, t := range tokens {
		b = append(b, byte(t))
	}
	return b
}
