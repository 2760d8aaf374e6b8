package fuzz

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"kvfence/impl/gateway"
	"kvfence/impl/workload"
)

// FuzzTokens: text goes into tokens and comes back, in the vocabulary; no conversation has the tokens of another one, whatever its contents
// pretend to be.
func FuzzTokens(f *testing.F) {
	f.Add("hé\x00\xff", "user", "a\nassistant\nb", "system", "")
	f.Add("", "user", "x", "user x", "")
	f.Fuzz(func(t *testing.T, text, roleA, contentA, roleB, contentB string) {
		tok := gateway.ByteTokenizer{}
		ids := tok.Encode(text)
		require.Equal(t, text, string(workload.Decode(ids)))
		for _, id := range ids {
			require.GreaterOrEqual(t, id, int32(0))
			require.Less(t, int(id), tok.Vocab())
		}
		roles := []string{"system", "developer", "user", "assistant"}
		role := func(s string) string { return roles[len(s)%len(roles)] }
		one := []gateway.Message{{Role: role(roleA), Content: contentA}, {Role: role(roleB), Content: contentB}}
		joined := []gateway.Message{{Role: role(roleA), Content: contentA + "\n" + role(roleB) + "\n" + contentB}}
		swapped := []gateway.Message{one[1], one[0]}
		named := []gateway.Message{{Role: role(roleA), Name: "n", Content: contentA}, one[1]}
		seen := map[string]string{}
		for _, conversation := range [][]gateway.Message{one, joined, swapped, named, one[:1], one[1:]} {
			key, err := json.Marshal(tok.Chat(conversation))
			require.NoError(t, err)
			said, err := json.Marshal(conversation)
			require.NoError(t, err)
			if other, known := seen[string(key)]; known && utf8.ValidString(contentA+contentB) {
				require.Equal(t, other, string(said), "two conversations have the same tokens")
			}
			seen[string(key)] = string(said)
		}
	})
}
