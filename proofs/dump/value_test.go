package dump

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestValues_OfALabel_AreRead(t *testing.T) {
	a := func(text string) Value { return Value{Text: text} }
	pair := func(x, y Value) Value { return Value{Kind: Tuple, Items: []Value{x, y}} }
	got, err := Values(`/\\ n = -3\n/\\ word = \"a b\"\n/\\ none = {}\n/\\ seq = <<TRUE,\n   p1>>\n/\\ f = (<<1, k1>> :> {2} @@ k2 :> <<>>)`)
	require.NoError(t, err)
	require.Equal(t, map[string]Value{
		"n": a("-3"), "word": a(`"a b"`), "none": {Kind: Set}, "seq": pair(a("TRUE"), a("p1")),
		"f": {Kind: Function, Items: []Value{
			pair(pair(a("1"), a("k1")), Value{Kind: Set, Items: []Value{a("2")}}), pair(a("k2"), Value{Kind: Tuple}),
		}},
	}, got)
}

func TestParse_Malformed_IsRefused(t *testing.T) {
	for _, text := range []string{"", "{", "<<1", "<<1>> 2", "{1 2}", "{1,}", "<<,1>>", "(1 :> 2", "(1 @@ 2)", "(1 :> 2 3)", ")", "[a |-> 1]", "1 }"} {
		_, err := Parse(text)
		require.ErrorIs(t, err, ErrDump, text)
		_, err = Values(`/\\ x = ` + text + `\n/\\ y = 1`)
		if text != "" {
			require.ErrorIs(t, err, ErrDump, text)
		}
	}
}
