package node

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzGreeting: what opens a control connection is taken only if it is what this version writes, and nothing behind it is eaten.
func FuzzGreeting(f *testing.F) {
	var b bytes.Buffer
	require.NoError(f, putGreeting(&b, 3))
	f.Add(b.Bytes())
	f.Add([]byte("GET / HTTP/1.1\r\n"))
	f.Add([]byte("KVFC\x02\x00\x01\x00rest"))
	f.Fuzz(func(t *testing.T, in []byte) {
		r := bytes.NewReader(in)
		value, err := getGreeting(r)
		if err != nil {
			require.ErrorIs(t, err, ErrGreeting)
			return
		}
		var again bytes.Buffer
		require.NoError(t, putGreeting(&again, value))
		require.Equal(t, in[:greetingBytes], again.Bytes())
		require.Equal(t, len(in)-greetingBytes, r.Len())
	})
}
