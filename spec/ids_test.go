package spec

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// What separates tenants stands in the domain; moving bytes from one separator to the next gives another domain.
func TestCaseB17_Domain_SeparatesTenantSaltAdapterRevision(t *testing.T) {
	require.NotEqual(t, DomainOf("x", "s", "a", "r"), DomainOf("y", "s", "a", "r"))
	require.NotEqual(t, DomainOf("x", "s", "a", "r"), DomainOf("x", "t", "a", "r"))
	require.NotEqual(t, DomainOf("x", "s", "a", "r"), DomainOf("x", "s", "b", "r"))
	require.NotEqual(t, DomainOf("x", "s", "a", "r"), DomainOf("x", "s", "a", "q"))
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.SampledFrom([]rune("ab\x00")), 0, 8).Draw(t, "bytes")
		cut := func(name string) (q [4]string) {
			at := [5]int{4: len(all)}
			for i := 1; i < 4; i++ {
				at[i] = rapid.IntRange(at[i-1], len(all)).Draw(t, name)
			}
			for i := range q {
				q[i] = string(all[at[i]:at[i+1]])
			}
			return q
		}
		a, b := cut("first"), cut("second")
		require.Equal(t, a == b, DomainOf(a[0], a[1], a[2], a[3]) == DomainOf(b[0], b[1], b[2], b[3]))
	})
}

// The digest is SHA-256 over label, domain, count and tokens, whatever the length: computed here in one piece.
func TestDigestRequest_AnyLength_IsPlainSHA256(t *testing.T) {
	d := DomainOf("x", "", "", "r")
	for _, n := range []int{0, 1, 1023, 1024, 1025, 5000} {
		tokens := make([]int32, n)
		plain := append([]byte("kvfence-request-1"), d[:]...)
		plain = binary.LittleEndian.AppendUint64(plain, uint64(n))
		for i := range tokens {
			tokens[i] = int32(i*7919 - 3)
			plain = binary.LittleEndian.AppendUint32(plain, uint32(tokens[i]))
		}
		require.Equal(t, RequestDigest(sha256.Sum256(plain)), DigestRequest(tokens, d))
	}
	require.NotEqual(t, DigestRequest([]int32{1}, d), DigestRequest([]int32{1}, DomainOf("y", "", "", "r")))
	require.NotEqual(t, DigestRequest([]int32{1}, d), DigestRequest([]int32{1, 0}, d))
}

func TestTransferID_Less_IsAnOrderByAge(t *testing.T) {
	a, b := sampleIncarnation(1), sampleIncarnation(2)
	ordered := []TransferID{{a, 1}, {a, 2}, {a, 1 << 40}, {b, 1}, {b, 3}}
	for i, x := range ordered {
		for j, y := range ordered {
			require.Equal(t, i < j, x.Less(y))
		}
	}
}

func TestIncarnation_Text_IsHex(t *testing.T) {
	i := sampleIncarnation(0xa0)
	require.Equal(t, "a0a1a2a3", i.String())
	require.Equal(t, "a0a1a2a3a4a5a6a7a8a9aaabacadaeaf", i.Hex())
	require.Equal(t, "a0a1a2a3/7", TransferID{i, 7}.String())
	require.True(t, Incarnation{}.IsZero())
	require.False(t, i.IsZero())
}

func TestComponent_Names_AreDistinct(t *testing.T) {
	seen := map[string]bool{}
	for c := range ComponentCount + 2 {
		require.False(t, seen[c.String()])
		seen[c.String()] = true
	}
}

func TestTagState_Names_AreDistinct(t *testing.T) {
	seen := map[string]bool{}
	for s := TagGood; s <= TagTorn; s++ {
		require.False(t, seen[s.String()])
		seen[s.String()] = true
	}
}

func TestIncarnation_Text_IsHexAndReadsBack(t *testing.T) {
	inc := Incarnation{0xab, 15: 0x01}
	b, err := json.Marshal(map[string]Incarnation{"incarnation": inc})
	require.NoError(t, err)
	require.JSONEq(t, `{"incarnation":"ab000000000000000000000000000001"}`, string(b))
	var got map[string]Incarnation
	require.NoError(t, json.Unmarshal(b, &got))
	require.Equal(t, inc, got["incarnation"])
	for _, bad := range []string{"", "ab", strings.Repeat("0", 34), strings.Repeat("g", 32)} {
		var i Incarnation
		require.Error(t, i.UnmarshalText([]byte(bad)), bad)
		require.Zero(t, i)
	}
}
