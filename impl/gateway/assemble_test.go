package gateway

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kvfence/impl/node/api"
	"kvfence/impl/workload"
)

func assembled(a *assembler, text string) (pieces []string, tokens []placed) {
	take := func(p piece) {
		if p.text != "" {
			pieces = append(pieces, p.text)
		}
		tokens = append(tokens, p.tokens...)
	}
	for _, b := range []byte(text) {
		take(a.push(api.Token{ID: int32(b)}))
	}
	take(a.finish())
	return pieces, tokens
}

func TestAssembler_StopAcrossTokens_IsNeverShown(t *testing.T) {
	pieces, tokens := assembled(newAssembler(ByteTokenizer{}, []string{"END", "\n\n"}), "go EN ENDless")
	require.Equal(t, "go EN ", strings.Join(pieces, ""))
	require.Len(t, tokens, 6)
	require.NotContains(t, pieces, "E", "what may begin a stop sequence is kept back")
	pieces, _ = assembled(newAssembler(ByteTokenizer{}, []string{"END"}), "the EN")
	require.Equal(t, "the EN", strings.Join(pieces, ""), "kept back, then given out at the end")
	pieces, tokens = assembled(newAssembler(ByteTokenizer{}, []string{"a"}), "abc")
	require.Empty(t, pieces)
	require.Empty(t, tokens)
}

func TestAssembler_PartialCharacter_WaitsForItsEnd(t *testing.T) {
	pieces, tokens := assembled(newAssembler(ByteTokenizer{}, nil), "aé😀\xffz\xe2\x82")
	require.Equal(t, []string{"a", "é", "😀", "\ufffd", "z", "\ufffd\ufffd"}, pieces)
	var offsets []int
	for _, p := range tokens {
		offsets = append(offsets, p.offset)
	}
	require.Equal(t, []int{0, 1, 1, 2, 2, 2, 2, 3, 4, 5, 6}, offsets)
	_, tokens = assembled(newAssembler(ByteTokenizer{}, []string{"€"}), "x\xe2\x82\xac!")
	require.Len(t, tokens, 1)
}

func TestAssembler_TokenWithoutBytes_KeepsItsPlace(t *testing.T) {
	a := newAssembler(ByteTokenizer{}, nil)
	var got []placed
	for _, id := range []int32{'a', workload.BOS, 'b'} {
		got = append(got, a.push(api.Token{ID: id}).tokens...)
	}
	require.Len(t, got, 3)
	require.Equal(t, []int{0, 1, 1}, []int{got[0].offset, got[1].offset, got[2].offset})
}

// Whatever the cut into tokens: the text is the answer up to the first stop sequence,
// each piece is whole characters, and nothing of the sequence was shown early.
func TestAssembler_AnyAnswer_EqualsTheWholeText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		alphabet := rapid.SampledFrom([]string{"a", "b", "ab", "é", "\xc3", "\xa9", "😀", "\xf0\x9f"})
		text := strings.Join(rapid.SliceOfN(alphabet, 0, 30).Draw(t, "text"), "")
		stops := rapid.SliceOfN(rapid.StringOfN(rapid.SampledFrom([]rune("abé")), 1, 4, -1), 0, 4).Draw(t, "stops")
		want := untilStop(text, stops)
		a := newAssembler(ByteTokenizer{}, stops)
		pieces, tokens := assembled(a, text)
		if got := strings.Join(pieces, ""); got != validText(want) {
			t.Fatalf("text %q stops %q: got %q, want %q", text, stops, got, validText(want))
		}
		if len(tokens) != len(want) {
			t.Fatalf("%d tokens for %d bytes", len(tokens), len(want))
		}
		for i, p := range tokens {
			if p.ID != int32(want[i]) || p.offset < 0 || p.offset > utf8.RuneCountInString(want) || i > 0 && p.offset < tokens[i-1].offset {
				t.Fatalf("token %d: %+v", i, p)
			}
		}
		for _, p := range pieces {
			if !utf8.ValidString(p) {
				t.Fatalf("piece %q", p)
			}
		}
		if a.stopped != (len(want) != len(text) || anyStop(text, stops)) {
			t.Fatalf("stopped %v", a.stopped)
		}
	})
}

func anyStop(text string, stops []string) bool {
	for _, s := range stops {
		if strings.Contains(text, s) {
			return true
		}
	}
	return false
}

// untilStop cuts at the sequence that is complete first; of several, at the earliest.
func untilStop(text string, stops []string) string {
	for end := 1; end <= len(text); end++ {
		cut := -1
		for _, s := range stops {
			if at := strings.Index(text[:end], s); at >= 0 && (cut < 0 || at < cut) {
				cut = at
			}
		}
		if cut >= 0 {
			return text[:cut]
		}
	}
	return text
}
