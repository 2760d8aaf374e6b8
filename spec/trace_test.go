package spec

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTrace_Texts_ReadBack(t *testing.T) {
	l := TraceLine{At: 5, Node: Incarnation{1}, Machine: TraceDecode, Event: TraceEvent{Kind: "Recv", From: Incarnation{2}, Transfer: TraceTransfer{Incarnation{3}, 7}},
		Did: []TraceDid{{Name: "Grant", Domain: TraceDomain{4}, Pages: TracePages{KV: {{1, 2}}}}}, Out: []TraceOut{{Kind: "Send", Items: []TraceItem{{1, 2, 3, 4, 5, 6, 7}}}}}
	b, err := json.Marshal(l)
	require.NoError(t, err)
	var got TraceLine
	require.NoError(t, json.Unmarshal(b, &got))
	require.Equal(t, l, got)
	for _, bad := range []string{`"x"`, `"00/1"`, `"` + strings.Repeat("0", 32) + `/x"`, `"` + strings.Repeat("g", 32) + `/1"`} {
		require.Error(t, json.Unmarshal([]byte(bad), &TraceTransfer{}), bad)
	}
	require.Error(t, json.Unmarshal([]byte(`"0011"`), &TraceDomain{}))
}

// What a trace must not have: nothing in it is named like a secret, and the page says so.
func TestTrace_Fields_AreNoSecrets(t *testing.T) {
	var names []string
	var walk func(reflect.Type)
	walk = func(of reflect.Type) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Array {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct {
			return
		}
		for i := range of.NumField() {
			names = append(names, of.Field(i).Name)
			walk(of.Field(i).Type)
		}
	}
	walk(reflect.TypeFor[TraceLine]())
	require.Greater(t, len(names), 50)
	for _, n := range names {
		for _, secret := range []string{"Tenant", "Prompt", "Token", "Key", "Address", "Label", "Salt", "Digest"} {
			require.False(t, strings.Contains(n, secret) && n != "Tokens", n)
		}
	}
	text, err := os.ReadFile("trace.md")
	require.NoError(t, err)
	require.Contains(t, string(text), "Never: tenants, prompts, tokens, keys")
}
