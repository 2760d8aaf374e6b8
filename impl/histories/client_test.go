package histories

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/model/history"
)

// caller asks a server that answers everything with the same.
func caller(t *testing.T, status int, body string) *Caller {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "Bearer k", r.Header.Get("Authorization"))
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body)) // the client may have gone
	}))
	t.Cleanup(srv.Close)
	now := int64(0)
	return &Caller{Client: history.Client{Now: func() int64 { now++; return now }}, URL: srv.URL, HTTP: srv.Client()}
}

func TestWhole_Answers_AreReadOrCalledMalformed(t *testing.T) {
	good := `{"choices":[{"text":"ab","finish_reason":"stop","logprobs":{"tokens":["a","b"]}}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`
	for body, want := range map[string]history.Ended{
		good: {Status: 200, Said: history.Said{Tokens: `"a""b"`, Finish: "stop", Prompt: 3, Completion: 2}},
		strings.Replace(good, `"stop"`, "null", 1):                      {Status: 200, Code: "malformed"},
		strings.Replace(good, `{"choices"`, `{"error":{},"choices"`, 1): {Status: 200, Code: "malformed"},
		"<html>": {Status: 200, Code: "malformed"},
	} {
		c := caller(t, 200, body)
		c.Whole(context.Background(), c.Ask("k", "abc", 2))
		got := c.Ops[0].Output.(history.Ended)
		if want.Code != "" {
			got.Code, got.Said = got.Code[:len(want.Code)], want.Said
		}
		require.Equal(t, want, got, body)
	}
	c := caller(t, 502, `{"error":{"message":"gone","code":"peer_lost"}}`)
	c.Whole(context.Background(), c.Ask("k", "abc", 2))
	require.Equal(t, history.Ended{Status: 502, Code: "peer_lost"}, c.Ops[0].Output)
	c = caller(t, 502, `{"error":{"message":"","code":"peer_lost"}}`)
	c.Whole(context.Background(), c.Ask("k", "abc", 2))
	require.Contains(t, c.Ops[0].Output.(history.Ended).Code, "malformed")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	c.Whole(ctx, c.Ask("k", "abc", 2))
	require.Len(t, c.Ops, 1, "who leaves has no answer")
}

func TestStream_Ends_AreToldApart(t *testing.T) {
	chunk := `data: {"choices":[{"text":"a","finish_reason":null,"logprobs":{"tokens":["a"]}}]}` + "\n\n"
	last := `data: {"choices":[{"text":"","finish_reason":"length"}]}` + "\n\n" + `data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}` + "\n\n"
	failed := "event: error\n" + `data: {"error":{"message":"gone","code":"peer_lost"}}` + "\n\n"
	said := history.Said{Tokens: `"a"`}
	for body, want := range map[string]history.Ended{
		chunk + last + "data: [DONE]\n\n": {Said: history.Said{Tokens: `"a"`, Finish: "length", Prompt: 3, Completion: 1}},
		chunk + failed:                    {Code: "peer_lost", Said: said},
		chunk:                             {Code: "malformed: a stream that ends like a whole one, without [DONE] and without an error", Said: said},
		chunk + failed + chunk:            {Code: "malformed"},
		chunk + last + "data: [DONE]\n\n" + chunk: {Code: "malformed"},
		"data: {\n\n": {Code: "malformed"},
	} {
		c := caller(t, 200, body)
		s := c.Open(c.Ask("k", "abc", 2))
		require.NotNil(t, s)
		require.Equal(t, history.Opened{Status: 200}, c.Ops[0].Output)
		c.Rest(s)
		got := c.Ops[1].Output.(history.Ended)
		if want.Code == "malformed" {
			got.Code = got.Code[:len(want.Code)]
		}
		require.Equal(t, want, got, body)
	}
	c := caller(t, 401, `{"error":{"message":"no key","code":"invalid_api_key"}}`)
	require.Nil(t, c.Open(c.Ask("k", "abc", 2)))
	require.Equal(t, history.Opened{Status: 401, Code: "invalid_api_key"}, c.Ops[0].Output)
	c.URL = "http://127.0.0.1:1"
	require.Nil(t, c.Open(c.Ask("k", "abc", 2)))
	require.Equal(t, history.Opened{Code: history.Cut}, c.Ops[1].Output)
}
