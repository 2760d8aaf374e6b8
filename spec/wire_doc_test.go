package spec

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// described is what the codec itself says about the fields of one kind.
func described(t *testing.T, m Message) []wireRow {
	var rows []wireRow
	codec, ok := codecOf(m.Kind())
	require.True(t, ok)
	c := cursor{mode: describing, kind: m.Kind(), rows: &rows}
	codec.parse(&c)
	require.NoError(t, c.err)
	return rows
}

// wireTable is the table of one message as it stands in wire.md.
func wireTable(rows []wireRow, start int) string {
	var out strings.Builder
	out.WriteString("| offset | bytes | field | range | refused |\n| --- | --- | --- | --- | --- |\n")
	after := map[string]string{} // the last field of variable length, in the message and in each list's element
	for _, r := range rows {
		scope := r.field[:strings.LastIndex(r.field, "[].")+1]
		offset, bytes := fmt.Sprint(start+r.at), fmt.Sprint(r.bytes)
		if scope != "" {
			offset = fmt.Sprintf("element + %d", r.at)
		}
		if after[scope] != "" {
			offset = fmt.Sprintf("end of `%s` + %d", after[scope], r.at)
		}
		switch r.bytes {
		case 0:
			bytes = "its length"
			after[scope] = r.field
		case -1:
			offset, bytes = "-", "-"
		}
		fmt.Fprintf(&out, "| %s | %s | `%s` | %s | %s |\n", offset, bytes, r.field, r.limits, strings.Join(r.checks, "; "))
	}
	return out.String()
}

// replaceTable puts table between the markers of name in text.
func replaceTable(t *testing.T, text, name, table string) string {
	begin, end := "<!-- table "+name+" -->\n", "<!-- end "+name+" -->"
	head, rest, ok := strings.Cut(text, begin)
	require.True(t, ok, "no table %s", name)
	_, tail, ok := strings.Cut(rest, end)
	require.True(t, ok, "no end of table %s", name)
	return head + begin + table + end + tail
}

// wire.md says what the codec does: its tables are the codec's own description.
func TestWireDoc_Tables_AreTheCodecs(t *testing.T) {
	got, err := os.ReadFile("wire.md")
	require.NoError(t, err)
	want := replaceTable(t, string(got), "header", wireTable(headerRows(), 0))
	for _, m := range sampleBodies() {
		want = replaceTable(t, want, m.Kind().String(), wireTable(described(t, m), HeaderBytes))
	}
	if *update {
		require.NoError(t, os.WriteFile("wire.md", []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(got), "make docs rewrites the tables")
	require.Equal(t, len(sampleBodies())+1, strings.Count(string(got), "<!-- table "))
}

// The fixed part of each description lies where the vector has it.
func TestWireDoc_FixedOffsets_AgreeWithVectors(t *testing.T) {
	for _, m := range sampleBodies() {
		var laid []wireRow
		_, err := appendEnvelope(nil, sampleEnvelope(m), &laid)
		require.NoError(t, err)
		for i, r := range described(t, m) {
			require.Equal(t, r.field, laid[i].field)
			require.Equal(t, r.at, laid[i].at, "%s.%s", m.Kind(), r.field)
			require.Equal(t, r.bytes, laid[i].bytes, "%s.%s", m.Kind(), r.field)
			if r.bytes == 0 || strings.Contains(r.field, ".count") {
				break
			}
		}
	}
}

// Each constant of limits.go is in wire.md with its value.
func TestWireDoc_Limits_AreTheCodecs(t *testing.T) {
	text, err := os.ReadFile("wire.md")
	require.NoError(t, err)
	for name, v := range map[string]int{"MaxBody": MaxBody, "MaxHandshakeBody": MaxHandshakeBody, "MaxName": MaxName, "MaxLabel": MaxLabel,
		"MaxText": MaxText, "MaxCapabilities": MaxCapabilities, "MaxPrompt": MaxPrompt, "MaxLeasePages": MaxLeasePages, "MaxParts": MaxParts,
		"MaxChannels": MaxChannels, "MaxTemperature": MaxTemperature, "MaxRanks": MaxRanks, "MaxTagSlots": MaxTagSlots, "MaxLayers": MaxLayers, "MaxHeads": MaxHeads} {
		require.Contains(t, string(text), fmt.Sprintf("| `%s` | %d |", name, v))
	}
}
