package api

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func FuzzParseEvent(f *testing.F) {
	for _, s := range []string{
		`{"event":"ready","ready":{"decode_prompt_tokens":3,"prefill_prompt_tokens":3}}`,
		`{"event":"token","token":{"id":1,"logprob":-0.25,"top":[{"id":2,"logprob":-1}]}}`,
		`{"event":"done","done":{"finish":"stop","prompt_tokens":3,"completion_tokens":1}}`,
		`{"event":"error","error":{"code":"deadline","status":504,"message":"late"}}`, `{"event":"token","done":{}}`, `[]`, ``,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := ParseEvent(line)
		if err != nil {
			require.ErrorIs(t, err, ErrProtocol)
			return
		}
		out, err := AppendEvent(nil, e)
		require.NoError(t, err)
		again, err := ParseEvent(bytes.TrimSuffix(out, []byte("\n")))
		require.NoError(t, err)
		twice, err := AppendEvent(nil, again)
		require.NoError(t, err)
		require.Equal(t, out, twice)
	})
}

func FuzzParseRequest(f *testing.F) {
	good, err := json.Marshal(request())
	require.NoError(f, err)
	f.Add(good)
	f.Add([]byte(`{"prompt":"AAAA"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		req, err := ParseRequest(body)
		if err != nil {
			require.ErrorIs(t, err, ErrRequest)
			return
		}
		out, err := json.Marshal(req)
		require.NoError(t, err)
		again, err := ParseRequest(out)
		require.NoError(t, err)
		require.Equal(t, req, again)
	})
}
