package spec

import (
	"bytes"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// FuzzParseEnvelope: whatever arrives is a message that appends to the same bytes, or one listed error. The checksum is made
// right before the second parse, so that the fuzzer reaches the bodies.
func FuzzParseEnvelope(f *testing.F) {
	for _, m := range sampleBodies() {
		f.Add(encode(f, m))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if e, err := ParseEnvelope(b); err != nil {
			requireListed(t, err)
			require.Nil(t, e.Body)
		}
		requireSameOrListed(t, resum(bytes.Clone(b)))
	})
}

// FuzzReadEnvelope: cutting a stream into reads changes nothing, and the buffer grows with what arrived only.
func FuzzReadEnvelope(f *testing.F) {
	for _, m := range sampleBodies() {
		f.Add(append(encode(f, m), encode(f, Ping{1})...))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		whole, halves := bytes.NewReader(b), iotest.HalfReader(bytes.NewReader(b))
		var s1, s2 []byte
		for {
			e1, next1, err1 := ReadEnvelope(whole, s1)
			e2, next2, err2 := ReadEnvelope(halves, s2)
			require.Equal(t, err1, err2)
			require.Equal(t, e1, e2)
			require.LessOrEqual(t, cap(next1), 4*(firstRead+len(b)))
			s1, s2 = next1, next2
			if err1 != nil {
				return
			}
		}
	})
}
