//go:build chaos

package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fake is a gateway that answers everything in one way.
func fake(t *testing.T, h http.HandlerFunc) front {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return front{url: s.URL, client: s.Client()}
}

// whole is a good answer's body with some fields changed.
func whole(tokens []string, text string, prompt int) map[string]any {
	return map[string]any{
		"choices": []any{map[string]any{"index": 0, "text": text, "finish_reason": "length", "logprobs": map[string]any{"tokens": tokens}}},
		"usage":   map[string]any{"prompt_tokens": prompt, "completion_tokens": len(tokens)},
	}
}

func said(t *testing.T, v any) string {
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}

func answers(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

func asError(code string) string {
	return fmt.Sprintf(`{"error":{"message":"what happened","type":"server_error","code":%q}}`, code)
}

// TestOracle_WrongAnswers_AreCalledWrong: the judge of every run here is alive. Each row is an answer that must not pass.
func TestOracle_WrongAnswers_AreCalledWrong(t *testing.T) {
	o, err := sharedOracle()
	require.NoError(t, err)
	q := request{tenant: "tenant-07", prompt: canary("tenant-07") + " says 1. ", n: 8}
	ids, err := o.want(q.prompt, q.n)
	require.NoError(t, err)
	good := tokenStrings(ids)
	other, err := o.want(canary("tenant-08")+" says 1. ", q.n)
	require.NoError(t, err)
	stale := append(append([]string{}, good[:len(good)-1]...), "?")
	length := len(q.prompt)

	for name, h := range map[string]http.HandlerFunc{
		"another prompt's tokens":      answers(200, said(t, whole(tokenStrings(other), "x", length))),
		"the last token wrong":         answers(200, said(t, whole(stale, "x", length))),
		"one token too few":            answers(200, said(t, whole(good[:len(good)-1], "x", length))),
		"one token too many":           answers(200, said(t, whole(append(good[:len(good):len(good)], "x"), "x", length))),
		"another tenant's canary":      answers(200, said(t, whole(good, "so "+canary("tenant-08"), length))),
		"its own canary, then another": answers(200, said(t, whole(good, canary("tenant-07")+canary("tenant-08"), length))),
		"prompt_tokens 1":              answers(200, said(t, whole(good, "x", 1))),
		"200 with an empty body":       answers(200, ""),
		"200 with an error":            answers(200, asError("peer_lost")),
		"200 without usage":            answers(200, strings.Replace(said(t, whole(good, "x", length)), `"usage"`, `"used"`, 1)),
		"an error without a code":      answers(502, `{"error":{"message":"oh"}}`),
		"an error that is no JSON":     answers(502, "Bad Gateway"),
		"an error's status is another": answers(500, asError("peer_lost")),
		"internal":                     answers(500, asError("internal")),
		"a detector spoke":             answers(502, asError("kv_mismatch")),
		"a 400 for a prompt that fits": answers(400, asError("context_length_exceeded")),
		"429 without Retry-After":      answers(429, asError("over_capacity")),
		"an error with a prompt in it": answers(502, strings.Replace(asError("peer_lost"), "what", "CANARY<tenant-03>", 1)),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := o.do(context.Background(), fake(t, h), q)
			require.Error(t, err, "%+v", got)
		})
	}
}

// TestOracle_WrongStreams_AreCalledWrong: the same of streams.
func TestOracle_WrongStreams_AreCalledWrong(t *testing.T) {
	o, err := sharedOracle()
	require.NoError(t, err)
	q := request{tenant: "tenant-07", prompt: canary("tenant-07") + " says 1. ", n: 8, stream: true}
	ids, err := o.want(q.prompt, q.n)
	require.NoError(t, err)
	good := tokenStrings(ids)
	event := func(v any) string { return "data: " + said(t, v) + "\n\n" }
	part := func(tokens ...string) string {
		return event(map[string]any{"choices": []any{map[string]any{"text": "x", "logprobs": map[string]any{"tokens": tokens}}}})
	}
	finish := event(map[string]any{"choices": []any{map[string]any{"text": "", "finish_reason": "length"}}})
	used := event(map[string]any{"choices": []any{}, "usage": map[string]any{"prompt_tokens": len(q.prompt), "completion_tokens": len(good)}})
	falsely := event(map[string]any{"choices": []any{}, "usage": map[string]any{"prompt_tokens": 1, "completion_tokens": len(good)}})
	failed := "event: error\ndata: " + asError("peer_lost") + "\n\n"
	const done = "data: [DONE]\n\n"

	for name, body := range map[string]string{
		"[DONE] without finish":         part(good...) + used + done,
		"[DONE] before all tokens":      part(good[:3]...) + finish + used + done,
		"no usage":                      part(good...) + finish + done,
		"a false prompt_tokens":         part(good...) + finish + falsely + done,
		"a wrong token, then an error":  part(good[0], "?") + failed,
		"a wrong token at all":          part("?") + part(good[1:]...) + finish + used + done,
		"nothing, ended as if whole":    "",
		"half, ended as if whole":       part(good[:4]...),
		"an error after the finish":     part(good...) + finish + failed,
		"[DONE] after an error":         part(good[:2]...) + failed + done,
		"an error of no known cause":    part(good[:2]...) + "data: " + asError("oops") + "\n\n",
		"an error without a code":       part(good[:2]...) + `data: {"error":{"message":"oh"}}` + "\n\n",
		"tokens after [DONE]":           part(good...) + finish + used + done + part("x"),
		"an event that is no JSON":      "data: {\n\n",
		"another tenant's canary in it": event(map[string]any{"choices": []any{map[string]any{"text": canary("tenant-09")}}}) + failed,
	} {
		t.Run(name, func(t *testing.T) {
			got, err := o.do(context.Background(), fake(t, answers(200, body, "Content-Type", "text/event-stream")), q)
			require.Error(t, err, "%+v", got)
		})
	}
}

// TestOracle_RightAnswers_Pass: it does not call everything wrong.
func TestOracle_RightAnswers_Pass(t *testing.T) {
	o, err := sharedOracle()
	require.NoError(t, err)
	q := request{tenant: "tenant-07", prompt: canary("tenant-07") + " says 1. ", n: 8}
	ids, err := o.want(q.prompt, q.n)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		kind string
		h    http.HandlerFunc
	}{
		"the answer":                         {"exact", answers(200, said(t, whole(tokenStrings(ids), "x", len(q.prompt))))},
		"a cause":                            {"failed", answers(502, asError("peer_lost"))},
		"over capacity, with Retry-After":    {"failed", answers(429, asError("over_capacity"), "Retry-After", "1")},
		"a body that breaks off":             {"cut", answers(200, "{", "Content-Length", "100")},
		"no connection: the gateway is gone": {"cut", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := o.do(context.Background(), fake(t, c.h), q)
			require.NoError(t, err)
			require.Equal(t, c.kind, got.kind)
		})
	}
}
