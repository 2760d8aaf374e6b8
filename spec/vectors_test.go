package spec

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// update rewrites the vectors under testdata (make docs). Without it nothing tracked is written.
var update = flag.Bool("update", false, "rewrite spec/testdata and the tables of wire.md")

// parseHex reads a vector: hex digits, blanks and line ends; # starts a comment.
func parseHex(t *testing.T, text string) []byte {
	var digits strings.Builder
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		digits.WriteString(strings.Join(strings.Fields(line), ""))
	}
	b, err := hex.DecodeString(digits.String())
	require.NoError(t, err)
	return b
}

// annotated is the vector of e: one line a field, with its offset and name.
func annotated(t *testing.T, e Envelope) string {
	var rows []wireRow
	b, err := appendEnvelope(nil, e, &rows)
	require.NoError(t, err)
	var out strings.Builder
	fmt.Fprintf(&out, "# %s, kind %d, %d bytes. Left: hex. Right: offset and field.\n", e.Body.Kind(), e.Body.Kind(), len(b))
	line := func(at, n int, field string) {
		if n == 0 {
			return
		}
		fmt.Fprintf(&out, "%-40s # %d %s\n", hex.EncodeToString(b[at:at+n]), at, field)
	}
	for _, h := range headerRows() {
		line(h.at, h.bytes, h.field)
	}
	for i, r := range rows {
		end := len(b)
		if i+1 < len(rows) {
			end = HeaderBytes + rows[i+1].at
		}
		line(HeaderBytes+r.at, end-HeaderBytes-r.at, r.field)
	}
	return out.String()
}

func headerRows() []wireRow {
	row := func(at, bytes int, field, limits string, checks ...string) wireRow {
		return wireRow{at, bytes, field, limits, checks}
	}
	return []wireRow{
		row(0, 4, "magic", `"KVF1"`), row(4, 2, "version", fmt.Sprint(Version)), row(6, 2, "kind", "1.."+fmt.Sprint(int(KindEnd)-1)),
		row(8, 4, "body", "0.."+fmt.Sprint(MaxBody), "not the bytes that follow"), row(12, 16, "from", "any", "no incarnation"),
		row(28, 16, "to", "any", "no incarnation, but in connect"), row(44, 8, "epoch", "any"), row(52, 8, "mark", "any"),
		row(60, 4, "checksum", "any", "not CRC-32C of bytes 0..59 and the body"),
	}
}

// refusedVectors are byte strings that must be refused, with the error that each must have.
func refusedVectors(t *testing.T) map[string][]byte {
	grant := func(change func(b []byte) []byte) []byte { return change(encode(t, sampleBodies()[KindGrant-1])) }
	set := func(at int, v ...byte) func(b []byte) []byte {
		return func(b []byte) []byte { copy(b[at:], v); return resum(b) }
	}
	parts := HeaderBytes + 24 + 8 + 16 + 4 + (4 + 3*12) + 4 + (4 + 12) // the parts' count
	return map[string][]byte{
		"magic":              grant(func(b []byte) []byte { b[3] = '2'; return b }),
		"version":            grant(set(4, 2, 0)),
		"kind":               grant(set(6, 0xff, 0xff)),
		"kind_zero":          grant(set(6, 0, 0)),
		"checksum":           grant(func(b []byte) []byte { b[HeaderBytes] ^= 1; return b }),
		"oversize":           grant(func(b []byte) []byte { binary.LittleEndian.PutUint32(b[8:], MaxBody+1); return b }),
		"header_cut":         grant(func(b []byte) []byte { return b[:HeaderBytes-1] }),
		"body_cut":           grant(func(b []byte) []byte { return b[:len(b)-1] }),
		"body_cut_resummed":  grant(func(b []byte) []byte { return resum(b[:len(b)-1]) }),
		"trailing":           grant(func(b []byte) []byte { return append(b, 0) }),
		"trailing_resummed":  grant(func(b []byte) []byte { return resum(append(b, 0)) }),
		"from_zero":          grant(set(12, make([]byte, 16)...)),
		"to_zero":            grant(set(28, make([]byte, 16)...)),
		"lease_zero":         grant(set(HeaderBytes+24, make([]byte, 8)...)),
		"digests_two":        grant(func(b []byte) []byte { b[len(b)-1] = 2; return resum(b) }),
		"count_over_bytes":   grant(set(HeaderBytes+52, 0xff, 0xff, 0, 0)),
		"count_over_limit":   grant(set(HeaderBytes+52, 0xff, 0xff, 0xff, 0xff)),
		"component":          grant(set(parts+4, byte(ComponentCount))),
		"part_index":         grant(set(parts+5, 0xff, 0xff)),
		"parts_out_of_order": grant(set(parts+4+29+1, 0, 0)),
		"tokens_over_range":  grant(set(parts+4+29+25, 41, 0, 0, 0)),
		"top_p_nan": func() []byte {
			b := encode(t, Ask{Transfer: sampleName})
			at := HeaderBytes + 24 + 24 + 4*2 + 4 + 8 + 4
			binary.LittleEndian.PutUint32(b[at:], math.Float32bits(float32(math.NaN())))
			return resum(b)
		}(),
		"unknown_cause": func() []byte {
			b := encode(t, Abort{sampleName, 8, CauseDeadline})
			b[len(b)-1] = 'x'
			return resum(b)
		}(),
	}
}

func sentinelOf(err error) string {
	for _, s := range listed {
		if errors.Is(err, s) {
			return s.Error()
		}
	}
	return "none"
}

func TestVectors_EachKind_AgreesWithCodec(t *testing.T) {
	for _, m := range sampleBodies() {
		path := filepath.Join("testdata", "vectors", m.Kind().String()+".hex")
		want := annotated(t, sampleEnvelope(m))
		if *update {
			require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
		}
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, want, string(got), "make docs rewrites the vectors; a change is a change of the protocol")
		e, err := ParseEnvelope(parseHex(t, string(got)))
		require.NoError(t, err)
		require.Equal(t, sampleEnvelope(m), e)
	}
}

func TestVectors_Refused_AnswerTheirError(t *testing.T) {
	seen := map[string]bool{}
	for name, b := range refusedVectors(t) {
		path := filepath.Join("testdata", "refused", name+".hex")
		_, err := ParseEnvelope(b)
		require.Error(t, err, name)
		want := fmt.Sprintf("# refused: %s\n%s\n", sentinelOf(err), hex.EncodeToString(b))
		if *update {
			require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
		}
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, want, string(got), name)
		seen[sentinelOf(func() error { _, err := ParseEnvelope(parseHex(t, string(got))); return err }())] = true
	}
	for _, s := range listed {
		require.True(t, seen[s.Error()], "no vector is refused as %q", s)
	}
	files, err := os.ReadDir("testdata/refused")
	require.NoError(t, err)
	require.Len(t, files, len(refusedVectors(t)))
}
