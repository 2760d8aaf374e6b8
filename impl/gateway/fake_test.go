package gateway

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"kvfence/impl/node/api"
	"kvfence/impl/workload"
)

// fakeNode is a backend that does what a test says.
type fakeNode struct {
	mu       sync.Mutex
	info     api.Info
	infoErr  error
	requests []api.Request
	open     func(ctx context.Context, req *api.Request) (api.Stream, error)
}

func (f *fakeNode) Info(context.Context) (api.Info, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.info, f.infoErr
}

func (f *fakeNode) Open(ctx context.Context, req *api.Request) (api.Stream, error) {
	f.mu.Lock()
	f.requests = append(f.requests, *req)
	open := f.open
	f.mu.Unlock()
	return open(ctx, req)
}

func (f *fakeNode) seen() []api.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]api.Request(nil), f.requests...)
}

// script is a stream of fixed steps: api.Event, error, or func() to run before the next.
type script struct {
	ctx    context.Context
	steps  []any
	closed chan struct{}
	once   sync.Once
}

func play(ctx context.Context, steps ...any) *script {
	return &script{ctx: ctx, steps: steps, closed: make(chan struct{})}
}

func (s *script) Next() (api.Event, error) {
	for len(s.steps) > 0 {
		step := s.steps[0]
		s.steps = s.steps[1:]
		switch v := step.(type) {
		case api.Event:
			return v, nil
		case error:
			return api.Event{}, v
		case func():
			v()
		case chan struct{}: // wait for the test, or for the end of the request
			select {
			case <-v:
			case <-s.ctx.Done():
				return api.Event{}, s.ctx.Err()
			case <-s.closed:
				return api.Event{}, context.Canceled
			}
		}
	}
	return api.Event{}, io.EOF
}

func (s *script) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

func ready(n int) api.Event {
	return api.Event{Kind: api.KindReady, Ready: &api.Ready{DecodePromptTokens: n, PrefillPromptTokens: n}}
}

func token(id int32) api.Event {
	return api.Event{Kind: api.KindToken, Token: &api.Token{ID: id, Logprob: -0.5, Top: []api.TopToken{{ID: id, Logprob: -0.5}, {ID: 'z', Logprob: -2}}}}
}

func done(finish string, prompt, completion int) api.Event {
	return api.Event{Kind: api.KindDone, Done: &api.Done{Finish: finish, PromptTokens: prompt, CompletionTokens: completion}}
}

// says is a whole good answer.
func says(req *api.Request, text string) []any {
	steps := []any{ready(len(req.Prompt))}
	for _, b := range []byte(text) {
		steps = append(steps, token(int32(b)))
	}
	return append(steps, done(api.FinishStop, len(req.Prompt), len(text)))
}

func saying(text string) func(context.Context, *api.Request) (api.Stream, error) {
	return func(ctx context.Context, req *api.Request) (api.Stream, error) {
		return play(ctx, says(req, text)...), nil
	}
}

func goodInfo() api.Info {
	return api.Info{
		Model: "kvfence-transformer", Adapters: []string{"lora-a"}, Vocab: workload.Vocab, WindowTokens: 4096,
		PrefillPoolTokens: 8192, DecodePoolTokens: 8192, PageTokens: 16, MaxPromptTokens: 8192, Ready: true,
	}
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func testDeps(b api.Backend) Deps {
	return Deps{Backend: b, Log: quiet(), Registry: prometheus.NewRegistry(), Now: time.Now, Rand: rand.Reader}
}

func newFake(open func(context.Context, *api.Request) (api.Stream, error)) *fakeNode {
	return &fakeNode{info: goodInfo(), open: open}
}

// start serves a gateway over a real socket.
func start(t *testing.T, cfg Config, b api.Backend) (*Gateway, *httptest.Server) {
	g, err := New(cfg, testDeps(b))
	require.NoError(t, err)
	srv := httptest.NewServer(g)
	t.Cleanup(srv.Close)
	return g, srv
}

// reply is an HTTP answer, read whole.
type reply struct {
	status int
	header http.Header
	body   []byte
}

func post(t *testing.T, srv *httptest.Server, path, body string, change ...func(*http.Request)) reply {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "POST", srv.URL+path, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	for _, c := range change {
		c(r)
	}
	return do(t, srv, r)
}

func do(t *testing.T, srv *httptest.Server, r *http.Request) reply {
	t.Helper()
	resp, err := srv.Client().Do(r)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return reply{resp.StatusCode, resp.Header, b}
}

type errorBody struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// fault reads the error shape, strictly.
func (r reply) fault(t *testing.T) errorBody {
	t.Helper()
	var e struct {
		Error errorBody `json:"error"`
	}
	d := json.NewDecoder(bytes.NewReader(r.body))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&e), string(r.body))
	require.Equal(t, "application/json", r.header.Get("Content-Type"))
	require.NotEmpty(t, e.Error.Message)
	require.NotEmpty(t, e.Error.Type)
	require.NotNil(t, e.Error.Code)
	return e.Error
}

func (e errorBody) param() string {
	if e.Param == nil {
		return ""
	}
	return *e.Param
}

type answerBody struct {
	ID, Object, Model string
	Created           int64
	Choices           []struct {
		Index        int
		Text         string
		Message      struct{ Role, Content string }
		Delta        struct{ Role, Content string }
		Logprobs     json.RawMessage
		FinishReason *string `json:"finish_reason"`
	}
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Total      int `json:"total_tokens"`
	}
}

func (r reply) answer(t *testing.T) answerBody {
	t.Helper()
	require.Equal(t, 200, r.status, string(r.body))
	var a answerBody
	require.NoError(t, json.Unmarshal(r.body, &a))
	return a
}

// stream is a parsed event stream.
type stream struct {
	chunks   []answerBody
	fault    *errorBody
	finished bool // [DONE] came
}

func (r reply) stream(t *testing.T) stream {
	t.Helper()
	require.Equal(t, 200, r.status, string(r.body))
	require.Equal(t, "text/event-stream", r.header.Get("Content-Type"))
	var s stream
	lines := bufio.NewScanner(bytes.NewReader(r.body))
	isError := false
	for lines.Scan() {
		line := lines.Text()
		require.False(t, s.finished && line != "", "something after [DONE]")
		switch {
		case line == "":
			isError = false
		case line == "event: error":
			isError = true
		case line == "data: [DONE]":
			s.finished = true
		case strings.HasPrefix(line, "data: ") && isError:
			var e struct{ Error errorBody }
			require.NoError(t, json.Unmarshal([]byte(line[6:]), &e))
			s.fault = &e.Error
		case strings.HasPrefix(line, "data: "):
			require.Nil(t, s.fault, "a chunk after the error")
			var a answerBody
			require.NoError(t, json.Unmarshal([]byte(line[6:]), &a))
			s.chunks = append(s.chunks, a)
		default:
			t.Fatalf("line %q", line)
		}
	}
	return s
}

// texts joins each choice's text; finishes has each choice's reason, "" for none.
func (s stream) texts(n int) (texts, finishes []string) {
	texts, finishes = make([]string, n), make([]string, n)
	for _, c := range s.chunks {
		for _, ch := range c.Choices {
			texts[ch.Index] += ch.Text + ch.Delta.Content
			if ch.FinishReason != nil {
				finishes[ch.Index] = *ch.FinishReason
			}
		}
	}
	return texts, finishes
}
