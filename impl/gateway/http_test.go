package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvfence/impl/node/api"
	"kvfence/impl/workload"
)

func TestCompletion_Whole_HasTheAPIsShape(t *testing.T) {
	node := newFake(saying("hello"))
	_, srv := start(t, Config{}, node)
	r := post(t, srv, "/v1/completions", `{"model":"kvfence-transformer","prompt":"hi","max_tokens":9,"temperature":0,"seed":5,"user":"u"}`)
	a := r.answer(t)
	require.Equal(t, "text_completion", a.Object)
	require.Equal(t, "kvfence-transformer", a.Model)
	require.True(t, strings.HasPrefix(a.ID, "cmpl-"))
	require.NotZero(t, a.Created)
	require.Len(t, a.Choices, 1)
	require.Equal(t, "hello", a.Choices[0].Text)
	require.Equal(t, "stop", *a.Choices[0].FinishReason)
	require.JSONEq(t, "null", string(a.Choices[0].Logprobs))
	require.Equal(t, [3]int{2, 5, 7}, [3]int{a.Usage.Prompt, a.Usage.Completion, a.Usage.Total})
	require.Equal(t, "application/json", r.header.Get("Content-Type"))
	id := r.header.Get("X-Request-Id")
	require.True(t, strings.HasPrefix(id, "req_"))

	got := node.seen()[0]
	require.Positive(t, got.TimeLeft)
	got.TimeLeft = 0
	require.Equal(t, api.Request{ID: id + "-0", Tenant: "default", Prompt: api.Tokens{'h', 'i'}, MaxTokens: 9, TopP: 1, Seed: 5}, got)
}

func TestCompletion_BatchAndN_AreChoicesInOrder(t *testing.T) {
	node := newFake(func(ctx context.Context, req *api.Request) (api.Stream, error) {
		return play(ctx, says(req, string(workload.Decode(req.Prompt))+"!")...), nil
	})
	_, srv := start(t, Config{}, node)
	body := `{"prompt":["aa","b"],"n":2,"seed":7,"echo":true%s}`
	a := post(t, srv, "/v1/completions", fmt.Sprintf(body, "")).answer(t)
	require.Len(t, a.Choices, 4)
	for i, want := range []string{"aaaa!", "aaaa!", "bb!", "bb!"} {
		require.Equal(t, i, a.Choices[i].Index)
		require.Equal(t, want, a.Choices[i].Text)
	}
	require.Equal(t, [2]int{3, 10}, [2]int{a.Usage.Prompt, a.Usage.Completion})
	seeds := map[uint64]int{}
	for _, r := range node.seen() {
		seeds[r.Seed]++
	}
	require.Equal(t, map[uint64]int{7: 2, SampleSeed(7, 1): 2}, seeds)

	s := post(t, srv, "/v1/completions", fmt.Sprintf(body, `,"stream":true,"stream_options":{"include_usage":true}`)).stream(t)
	texts, finishes := s.texts(4)
	require.Equal(t, []string{"aaaa!", "aaaa!", "bb!", "bb!"}, texts)
	require.Equal(t, []string{"stop", "stop", "stop", "stop"}, finishes)
	require.True(t, s.finished)
	last := s.chunks[len(s.chunks)-1]
	require.Empty(t, last.Choices)
	require.Equal(t, 13, last.Usage.Total)
	require.Nil(t, s.chunks[0].Usage)
}

func TestChat_WholeAndStream_HaveTheAPIsShape(t *testing.T) {
	_, srv := start(t, Config{}, newFake(saying("hé\n\nnever")))
	body := `{"messages":[{"role":"user","content":"hi"}],"stop":"\n\n","logprobs":true,"top_logprobs":2%s}`
	a := post(t, srv, "/v1/chat/completions", fmt.Sprintf(body, "")).answer(t)
	require.Equal(t, "chat.completion", a.Object)
	require.Equal(t, "assistant", a.Choices[0].Message.Role)
	require.Equal(t, "hé", a.Choices[0].Message.Content)
	require.Equal(t, "stop", *a.Choices[0].FinishReason)
	var lp struct {
		Content []struct {
			Token   string
			Logprob float32
			Bytes   []int
			Top     []struct{ Token string } `json:"top_logprobs"`
		}
	}
	require.NoError(t, json.Unmarshal(a.Choices[0].Logprobs, &lp))
	require.Len(t, lp.Content, 3, "the stop sequence has no tokens in the answer")
	require.Equal(t, `bytes:\xc3`, lp.Content[1].Token)
	require.Equal(t, []int{0xc3}, lp.Content[1].Bytes)
	require.Len(t, lp.Content[0].Top, 2)

	s := post(t, srv, "/v1/chat/completions", fmt.Sprintf(body, `,"stream":true`)).stream(t)
	require.Equal(t, "assistant", s.chunks[0].Choices[0].Delta.Role)
	require.Equal(t, "chat.completion.chunk", s.chunks[0].Object)
	texts, finishes := s.texts(1)
	require.Equal(t, "hé", texts[0])
	require.Equal(t, "stop", finishes[0])
	require.True(t, s.finished)
	require.Nil(t, s.fault)
}

func TestCompletion_Logprobs_CarryOffsets(t *testing.T) {
	_, srv := start(t, Config{}, newFake(saying("aéb")))
	a := post(t, srv, "/v1/completions", `{"prompt":"x","logprobs":2}`).answer(t)
	var lp struct {
		Tokens []string
		Probs  []float32            `json:"token_logprobs"`
		Top    []map[string]float32 `json:"top_logprobs"`
		Offset []int                `json:"text_offset"`
	}
	require.NoError(t, json.Unmarshal(a.Choices[0].Logprobs, &lp))
	require.Equal(t, []string{"a", `bytes:\xc3`, `bytes:\xa9`, "b"}, lp.Tokens)
	require.Equal(t, []int{0, 1, 1, 2}, lp.Offset)
	require.Len(t, lp.Probs, 4)
	require.Equal(t, map[string]float32{"a": -0.5, "z": -2}, lp.Top[0])
}

func TestStop_NodeIgnoresIt_FinishIsStillStopAndNothingLeaks(t *testing.T) {
	node := newFake(func(ctx context.Context, req *api.Request) (api.Stream, error) {
		steps := says(req, "one END two")
		steps[len(steps)-1] = done(api.FinishLength, len(req.Prompt), 11)
		return play(ctx, steps...), nil
	})
	_, srv := start(t, Config{}, node)
	s := post(t, srv, "/v1/completions", `{"prompt":"x","stream":true,"stop":["END","never"]}`).stream(t)
	texts, finishes := s.texts(1)
	require.Equal(t, "one ", texts[0])
	require.Equal(t, "stop", finishes[0])
	require.Equal(t, [][]int32{workload.Encode("END"), workload.Encode("never")}, node.seen()[0].Stop)
}

// The heart: a 200 that is no stream stands only for done; a stream that fails after
// ready ends with an error and without end marks; before ready nothing is 200.
func TestGenerate_NodeMisbehaves_IsNeverASuccess(t *testing.T) {
	n := 2 // tokens of "hi"
	lost := api.Errorf(api.PeerLost, "gone")
	cases := map[string]struct {
		steps      []any
		openErr    error
		status     int
		code       string
		afterReady bool
	}{
		"refused at open":              {nil, api.Errorf(api.OverCapacity, "full"), 429, "over_capacity", false},
		"plain error at open":          {nil, errors.New("dial"), 500, "internal", false},
		"nothing at all":               {[]any{}, nil, 502, "peer_lost", false},
		"lost before ready":            {[]any{lost}, nil, 502, "peer_lost", false},
		"deadline before ready":        {[]any{api.Errorf(api.Deadline, "late")}, nil, 504, "deadline", false},
		"shutting down":                {[]any{api.Errorf(api.ShuttingDown, "bye")}, nil, 503, "shutting_down", false},
		"says the client left":         {[]any{api.Errorf(api.ClientGone, "?")}, nil, 502, "peer_lost", false},
		"unknown code":                 {[]any{&api.Error{Code: "fine"}}, nil, 500, "internal", false},
		"token before ready":           {[]any{token('a'), ready(n), done("stop", n, 1)}, nil, 502, "peer_lost", false},
		"done before ready":            {[]any{done("stop", n, 0)}, nil, 502, "peer_lost", false},
		"placeholder prompt":           {[]any{ready(1), token('a'), done("stop", 1, 1)}, nil, 502, "kv_mismatch", false},
		"prefill counts one":           {[]any{api.Event{Kind: api.KindReady, Ready: &api.Ready{DecodePromptTokens: n, PrefillPromptTokens: 1}}, done("stop", n, 0)}, nil, 502, "kv_mismatch", false},
		"accepted counts another":      {[]any{api.Event{Kind: api.KindAccepted, Accepted: &api.Accepted{PromptTokens: 3}}, ready(n), done("stop", n, 0)}, nil, 502, "kv_mismatch", false},
		"ends after ready":             {[]any{ready(n)}, nil, 502, "peer_lost", true},
		"ends after tokens":            {[]any{ready(n), token('a'), token('b')}, nil, 502, "peer_lost", true},
		"error after tokens":           {[]any{ready(n), token('a'), lost}, nil, 502, "peer_lost", true},
		"error event after tokens":     {[]any{ready(n), token('a'), api.Event{Kind: api.KindError, Error: api.Errorf(api.KVMismatch, "tag")}}, nil, 502, "kv_mismatch", true},
		"done counts another prompt":   {[]any{ready(n), token('a'), done("stop", 1, 1)}, nil, 502, "kv_mismatch", true},
		"done counts other tokens":     {[]any{ready(n), token('a'), done("stop", n, 7)}, nil, 502, "peer_lost", true},
		"unknown finish":               {[]any{ready(n), token('a'), done("abort", n, 1)}, nil, 502, "peer_lost", true},
		"more tokens than asked":       {[]any{ready(n), token('a'), token('a'), token('a'), token('a'), done("stop", n, 4)}, nil, 502, "peer_lost", true},
		"event of no kind":             {[]any{ready(n), api.Event{}}, nil, 502, "peer_lost", true},
		"done without its field":       {[]any{ready(n), api.Event{Kind: api.KindDone}}, nil, 502, "peer_lost", true},
		"ready twice":                  {[]any{ready(n), ready(n), done("stop", n, 0)}, nil, 502, "peer_lost", true},
		"stop sequence, then an error": {[]any{ready(n), token('.'), lost}, nil, 502, "peer_lost", true},
	}
	for name, c := range cases {
		for _, streaming := range []bool{false, true} {
			for _, chat := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/stream=%v/chat=%v", name, streaming, chat), func(t *testing.T) {
					node := newFake(func(ctx context.Context, req *api.Request) (api.Stream, error) {
						if c.openErr != nil {
							return nil, c.openErr
						}
						return play(ctx, fitted(c.steps, len(req.Prompt)-n)...), nil
					})
					_, srv := start(t, Config{}, node)
					path, body := "/v1/completions", fmt.Sprintf(`{"prompt":"hi","max_tokens":3,"stop":".","stream":%v}`, streaming)
					if chat {
						path, body = "/v1/chat/completions", fmt.Sprintf(`{"messages":[{"role":"user","content":"hi"}],"max_tokens":3,"stop":".","stream":%v}`, streaming)
					}
					r := post(t, srv, path, body)
					if !streaming || !c.afterReady {
						require.Equal(t, c.status, r.status, string(r.body))
						require.Equal(t, c.code, *r.fault(t).Code)
						return
					}
					s := r.stream(t)
					require.NotNil(t, s.fault, "an error event ends it")
					require.Equal(t, c.code, *s.fault.Code)
					require.False(t, s.finished, "no [DONE]")
					_, finishes := s.texts(1)
					require.Empty(t, finishes[0], "no finish reason")
				})
			}
		}
	}
}

// fitted shifts the prompt counts of scripted events from "hi" to a longer prompt.
func fitted(steps []any, more int) []any {
	out := make([]any, len(steps))
	for i, s := range steps {
		if e, ok := s.(api.Event); ok {
			switch {
			case e.Ready != nil:
				r := *e.Ready
				r.DecodePromptTokens += more
				r.PrefillPromptTokens += more
				e.Ready = &r
			case e.Done != nil:
				d := *e.Done
				d.PromptTokens += more
				e.Done = &d
			case e.Accepted != nil:
				a := *e.Accepted
				a.PromptTokens += more
				e.Accepted = &a
			}
			s = e
		}
		out[i] = s
	}
	return out
}

func TestGenerate_OneOfSeveralChoicesFails_AllFail(t *testing.T) {
	hold := make(chan struct{})
	node := newFake(nil)
	node.open = func(ctx context.Context, req *api.Request) (api.Stream, error) {
		if strings.HasSuffix(req.ID, "-2") {
			return play(ctx, ready(len(req.Prompt)), token('x'), hold, api.Errorf(api.KVMismatch, "tag")), nil
		}
		return play(ctx, says(req, "fine")...), nil
	}
	_, srv := start(t, Config{}, node)
	// The stream's status line is out, as all are ready, before the third one fails.
	resp, err := srv.Client().Post(srv.URL+"/v1/completions", "application/json", strings.NewReader(`{"prompt":"hi","n":3,"stream":true}`))
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	close(hold)
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	s := reply{resp.StatusCode, resp.Header, b}.stream(t)
	require.Equal(t, "kv_mismatch", *s.fault.Code)
	require.False(t, s.finished)
	_, finishes := s.texts(3)
	require.Empty(t, finishes[2])

	r := post(t, srv, "/v1/completions", `{"prompt":"hi","n":3}`)
	require.Equal(t, 502, r.status)
	require.Equal(t, "kv_mismatch", *r.fault(t).Code)
}

// One choice must finish before another can start (a pool for one): the gateway keeps
// reading the first though it may not send a status line yet.
func TestStream_ChoicesOneAfterAnother_NoStatusBeforeAllAreReady(t *testing.T) {
	second := make(chan struct{})
	node := newFake(nil)
	node.open = func(ctx context.Context, req *api.Request) (api.Stream, error) {
		steps := says(req, strings.Repeat("y", 200))
		if strings.HasSuffix(req.ID, "-0") {
			return play(ctx, append(steps[:len(steps)-1], func() { close(second) }, steps[len(steps)-1])...), nil
		}
		return play(ctx, append([]any{second}, steps...)...), nil
	}
	_, srv := start(t, Config{}, node)
	s := post(t, srv, "/v1/completions", `{"prompt":"hi","n":2,"stream":true}`).stream(t)
	texts, _ := s.texts(2)
	require.Len(t, texts[0], 200)
	require.Len(t, texts[1], 200)
	require.True(t, s.finished)
}

func TestCaseB06_PromptTooLong_Is400WithBothNumbers(t *testing.T) {
	node := newFake(func(context.Context, *api.Request) (api.Stream, error) {
		e := api.Errorf(api.ContextLengthExceeded, "refused at admission")
		e.Limit, e.Need, e.Allowed, e.PromptTokens, e.MaxTokens = api.LimitPrefillPool, 681281, 681280, 681281, 16
		e.WindowTokens, e.PrefillPoolTokens, e.DecodePoolTokens = 1048576, 681280, 2040000
		return nil, e
	})
	_, srv := start(t, Config{}, node)
	for _, streaming := range []bool{false, true} {
		r := post(t, srv, "/v1/completions", fmt.Sprintf(`{"prompt":"hi","max_tokens":16,"stream":%v}`, streaming))
		require.Equal(t, 400, r.status)
		e := r.fault(t)
		require.Equal(t, "context_length_exceeded", *e.Code)
		require.Equal(t, "prompt", e.param())
		require.Equal(t, "invalid_request_error", e.Type)
		for _, number := range []string{"681281", "681280", "1048576", "2040000", "prefill pool", "refused at admission"} {
			require.Contains(t, e.Message, number)
		}
	}
	r := post(t, srv, "/v1/chat/completions", `{"messages":[{"role":"user","content":"hi"}]}`)
	require.Equal(t, "messages", r.fault(t).param())
}

func TestGenerate_PromptBeyondTheInterface_Is400WithoutAskingTheNode(t *testing.T) {
	node := newFake(saying("x"))
	_, srv := start(t, Config{MaxBodyBytes: 1 << 20}, node)
	r := post(t, srv, "/v1/completions", `{"prompt":"`+strings.Repeat("a", 8193)+`"}`)
	require.Equal(t, 400, r.status)
	e := r.fault(t)
	require.Equal(t, "context_length_exceeded", *e.Code)
	require.Contains(t, e.Message, "8193")
	require.Contains(t, e.Message, "4096")
	require.Empty(t, node.seen())
	r = post(t, srv, "/v1/completions", `{"prompt":"`+strings.Repeat("a", 1<<20)+`"}`)
	require.Equal(t, 413, r.status)
	require.Equal(t, "body_too_large", *r.fault(t).Code)
}

func TestRoutes_WrongOnes_HaveTheErrorShape(t *testing.T) {
	_, srv := start(t, Config{}, newFake(saying("x")))
	for _, c := range []struct {
		method, path, contentType, body string
		status                          int
		code                            string
	}{
		{"GET", "/v1/nothing", "", "", 404, "not_found"},
		{"GET", "/", "", "", 404, "not_found"},
		{"GET", "/v1/completions", "", "", 405, "method_not_allowed"},
		{"POST", "/v1/models", "application/json", "{}", 405, "method_not_allowed"},
		{"POST", "/v1/completions", "text/plain", `{"prompt":"x"}`, 415, "unsupported_media_type"},
		{"POST", "/v1/completions", "application/json; charset=latin1", `{"prompt":"x"}`, 415, "unsupported_media_type"},
		{"POST", "/v1/completions", "", `{"prompt":"x"}`, 415, "unsupported_media_type"},
		{"POST", "/v1/completions", "application/json", `{`, 400, "invalid_request"},
		{"POST", "/v1/completions", "application/json", `{"prompt":"x","model":"other"}`, 404, "model_not_found"},
		{"GET", "/v1/models/other", "", "", 404, "model_not_found"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, srv.URL+c.path, strings.NewReader(c.body))
		require.NoError(t, err)
		if c.contentType != "" {
			req.Header.Set("Content-Type", c.contentType)
		}
		r := do(t, srv, req)
		require.Equal(t, c.status, r.status, c)
		require.Equal(t, c.code, *r.fault(t).Code, c)
		require.NotEmpty(t, r.header.Get("X-Request-Id"))
		if c.status == 405 {
			require.NotEmpty(t, r.header.Get("Allow"))
		}
	}
	r := post(t, srv, "/v1/completions", `{"prompt":"x"}`, func(r *http.Request) { r.Header.Set("Content-Encoding", "gzip") })
	require.Equal(t, 415, r.status)
}

func TestModels_ListsModelAndAdapters(t *testing.T) {
	node := newFake(saying("x"))
	_, srv := start(t, Config{}, node)
	get := func(path string) reply {
		req, err := http.NewRequestWithContext(t.Context(), "GET", srv.URL+path, nil)
		require.NoError(t, err)
		return do(t, srv, req)
	}
	var list struct{ Data []struct{ ID, Object string } }
	require.NoError(t, json.Unmarshal(get("/v1/models").body, &list))
	require.Len(t, list.Data, 2)
	require.Equal(t, "kvfence-transformer", list.Data[0].ID)
	require.Equal(t, "model", list.Data[0].Object)
	require.Equal(t, 200, get("/v1/models/lora-a").status)
	require.Equal(t, 200, get("/readyz").status)
	require.Equal(t, 200, get("/healthz").status)
	a := post(t, srv, "/v1/completions", `{"prompt":"x","model":"lora-a"}`).answer(t)
	require.Equal(t, "lora-a", a.Model)
	require.Equal(t, "lora-a", node.seen()[0].Adapter)
}

func TestReadyz_FollowsTheNodeAndTheDrain(t *testing.T) {
	node := newFake(saying("x"))
	now := fixedClock()
	deps := testDeps(node)
	deps.Now = func() time.Time { return now }
	g, err := New(Config{}, deps)
	require.NoError(t, err)
	get := func() *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		g.ServeHTTP(w, httptest.NewRequest("GET", "/readyz", nil))
		return w
	}
	require.Equal(t, 200, get().Code)
	node.mu.Lock()
	node.infoErr = api.Errorf(api.PeerLost, "no answer")
	node.mu.Unlock()
	require.Equal(t, 200, get().Code, "an answer of this second")
	now = now.Add(2 * time.Second)
	require.Equal(t, 503, get().Code)
	require.Equal(t, "no node: peer_lost: no answer", strings.TrimPrefix(strings.TrimSpace(get().Body.String()), "not ready: "))
	node.mu.Lock()
	node.infoErr, node.info.Ready, node.info.Reason = nil, false, "no link to prefill"
	node.mu.Unlock()
	now = now.Add(2 * time.Second)
	require.Contains(t, get().Body.String(), "no link to prefill")
	require.Equal(t, "no link to prefill", g.Status(t.Context()).Node.Reason)
	g.Drain()
	g.Drain()
	require.Contains(t, get().Body.String(), "draining")
	w := httptest.NewRecorder()
	g.ServeHTTP(w, httptest.NewRequest("POST", "/v1/completions", strings.NewReader("{}")))
	require.Equal(t, 503, w.Code)
	require.NotEmpty(t, w.Header().Get("Retry-After"))
}
