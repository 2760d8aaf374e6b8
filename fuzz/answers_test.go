package fuzz

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvfence/impl/node/api"
)

// FuzzNodeAnswer: whatever bytes come from the address of a node, a gateway's client hands up events in a legal order whose counts agree, and
// says "finished" only behind a done; everything else is an error with a known code, the same again when asked again.
func FuzzNodeAnswer(f *testing.F) {
	f.Add([]byte(`{"event":"ready","ready":{"decode_prompt_tokens":3,"prefill_prompt_tokens":3}}
{"event":"token","token":{"id":1}}
{"event":"done","done":{"finish":"stop","prompt_tokens":3,"completion_tokens":1}}
`), uint16(200), byte(0))
	f.Add([]byte(`{"event":"accepted","accepted":{"prompt_tokens":3}}
{"event":"error","error":{"code":"deadline","status":504,"message":"late"}}
`), uint16(200), byte(0))
	f.Add([]byte(`{"event":"error","error":{"code":"over_capacity","status":429,"message":"full","retry_after_seconds":3}}
`), uint16(429), byte(0))
	f.Add([]byte(`{"event":"ready","ready":{"decode_prompt_tokens":3,"prefill_prompt_tokens":4}}`), uint16(200), byte(1))
	f.Add([]byte("<html>"), uint16(502), byte(2))
	type answer struct {
		body   []byte
		status int
		kind   byte
	}
	var next atomic.Pointer[answer]
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := next.Load()
		w.Header().Set("Content-Type", []string{"application/x-ndjson", "application/json", "text/html"}[a.kind%3])
		w.WriteHeader(a.status)
		_, _ = w.Write(a.body) // the client may have hung up
	}))
	f.Cleanup(srv.Close)
	client, err := api.NewClient(api.ClientConfig{BaseURL: srv.URL})
	require.NoError(f, err)
	f.Cleanup(client.Close)
	f.Fuzz(func(t *testing.T, b []byte, code uint16, how byte) {
		status := 200 + int(code)%400
		if status == 204 || status == 304 {
			status = 200 // these have no body
		}
		next.Store(&answer{b, status, how})
		req := &api.Request{ID: "x", Tenant: "t", Prompt: api.Tokens{1, 2, 3}, MaxTokens: 4, TimeLeft: api.Millis(time.Minute)}
		s, err := client.Open(t.Context(), req)
		if err != nil {
			requireFault(t, err)
			return
		}
		defer func() { require.NoError(t, s.Close()) }()
		require.Equal(t, 200, status)
		ready, tokens, done := false, 0, false
		for {
			e, err := s.Next()
			if err == io.EOF {
				require.True(t, done, "the end without done")
				break
			}
			if err != nil {
				requireFault(t, err)
				_, again := s.Next()
				require.Equal(t, err, again, "an error is final")
				return
			}
			require.False(t, done, "%s behind done", e.Kind)
			switch e.Kind {
			case api.KindReady:
				require.False(t, ready)
				require.Equal(t, api.Ready{DecodePromptTokens: 3, PrefillPromptTokens: 3}, *e.Ready)
				ready = true
			case api.KindToken:
				require.True(t, ready)
				tokens++
				require.LessOrEqual(t, tokens, 4)
			case api.KindDone:
				require.Equal(t, [2]int{3, tokens}, [2]int{e.Done.PromptTokens, e.Done.CompletionTokens})
				done = ready
			case api.KindAccepted:
				require.False(t, ready)
			default:
				t.Fatalf("event %q", e.Kind)
			}
		}
	})
}

// requireFault: an error with a code that has a status, and never the end of a stream.
func requireFault(t *testing.T, err error) {
	var e *api.Error
	require.True(t, errors.As(err, &e), "%v", err)
	require.NotZero(t, e.Code.Status(), "%v", err)
	require.Equal(t, e.Code.Status(), e.Status)
	require.NotErrorIs(t, err, io.EOF)
}
