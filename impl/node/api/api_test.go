package api

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type service struct {
	generate func(ctx context.Context, req *Request, sink Sink) (Done, error)
	info     Info
}

func (s service) Generate(ctx context.Context, req *Request, sink Sink) (Done, error) {
	return s.generate(ctx, req, sink)
}
func (s service) Info(context.Context) (Info, error) { return s.info, nil }

func request() *Request {
	return &Request{
		ID: "r-1", Tenant: "x", Prompt: Tokens{104, 105, 257}, MaxTokens: 8, Temperature: 0.5, TopP: 0.9,
		Seed: 1 << 63, Logprobs: true, TopLogprobs: 1, Stop: [][]int32{{46}}, TimeLeft: Millis(time.Minute),
	}
}

func serve(t *testing.T, s Service) *Client {
	h, err := NewHandler(HandlerConfig{Service: s, MaxPromptTokens: 100})
	require.NoError(t, err)
	return dial(t, h)
}

func dial(t *testing.T, h http.Handler) *Client {
	srv := httptest.NewServer(h)
	c, err := NewClient(ClientConfig{BaseURL: srv.URL})
	require.NoError(t, err)
	t.Cleanup(func() { c.Close(); srv.Close() })
	return c
}

// raw serves fixed bytes as the whole stream.
func raw(t *testing.T, status int, lines string) *Client {
	return dial(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, lines)
	}))
}

// drain reads a request's stream to its end: the kinds seen and the final error.
func drain(c *Client, req *Request) (kinds []Kind, err error) {
	s, err := c.Open(context.Background(), req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.Close() }()
	for {
		e, err := s.Next()
		if err != nil {
			_, again := s.Next()
			if !errors.Is(again, err) {
				return kinds, errors.New("the final error does not stay")
			}
			return kinds, err
		}
		kinds = append(kinds, e.Kind)
	}
}

func answer(n int) func(context.Context, *Request, Sink) (Done, error) {
	return func(_ context.Context, req *Request, sink Sink) (Done, error) {
		if err := sink.Accepted(len(req.Prompt)); err != nil {
			return Done{}, err
		}
		if err := sink.Ready(Ready{DecodePromptTokens: len(req.Prompt), PrefillPromptTokens: len(req.Prompt)}); err != nil {
			return Done{}, err
		}
		for i := range n {
			if err := sink.Token(Token{ID: int32(i), Logprob: -0.5, Top: []TopToken{{ID: 3, Logprob: -1}}}); err != nil {
				return Done{}, err
			}
		}
		return Done{Finish: FinishLength, PromptTokens: len(req.Prompt), CompletionTokens: n}, nil
	}
}

func TestClient_WholeAnswer_ArrivesInOrder(t *testing.T) {
	var got Request
	c := serve(t, service{generate: func(ctx context.Context, req *Request, sink Sink) (Done, error) {
		got = *req
		return answer(2)(ctx, req, sink)
	}})
	for range 3 { // also over a kept connection
		kinds, err := drain(c, request())
		require.Equal(t, io.EOF, err)
		require.Equal(t, []Kind{KindAccepted, KindReady, KindToken, KindToken, KindDone}, kinds)
	}
	require.Equal(t, *request(), got)
}

func TestClient_NodeError_ComesWithAllItsFields(t *testing.T) {
	want := &Error{
		Code: ContextLengthExceeded, Message: "too long", Cause: "prompt_too_long", Limit: LimitPrefillPool, Need: 681281, Allowed: 681280,
		PromptTokens: 681281, MaxTokens: 16, WindowTokens: 1048576, PrefillPoolTokens: 681280, DecodePoolTokens: 2040000,
	}
	c := serve(t, service{generate: func(context.Context, *Request, Sink) (Done, error) { return Done{}, want }})
	_, err := drain(c, request())
	var got *Error
	require.ErrorAs(t, err, &got)
	want.Status = 400
	require.Equal(t, want, got)

	c = serve(t, service{generate: func(_ context.Context, req *Request, sink Sink) (Done, error) {
		_ = sink.Accepted(len(req.Prompt))
		return Done{}, errors.New("boom")
	}})
	kinds, err := drain(c, request())
	require.Equal(t, []Kind{KindAccepted}, kinds)
	require.Equal(t, Internal, CodeOf(err))
	require.ErrorContains(t, err, "boom")
}

func TestClient_IllegalStream_IsNeverASuccess(t *testing.T) {
	ready := `{"event":"ready","ready":{"decode_prompt_tokens":3,"prefill_prompt_tokens":3}}` + "\n"
	token := `{"event":"token","token":{"id":1}}` + "\n"
	done := `{"event":"done","done":{"finish":"stop","prompt_tokens":3,"completion_tokens":1}}` + "\n"
	require.NotNil(t, raw(t, 200, ready+token+done))
	kinds, err := drain(raw(t, 200, ready+token+done), request())
	require.Equal(t, io.EOF, err)
	require.Len(t, kinds, 3)

	for name, c := range map[string]struct {
		status int
		body   string
		code   Code
		is     error
	}{
		"empty":                    {200, "", PeerLost, ErrTruncated},
		"no end":                   {200, ready + token, PeerLost, ErrTruncated},
		"cut line":                 {200, ready + token + done[:20], PeerLost, ErrTruncated},
		"done without newline":     {200, ready + token + strings.TrimSpace(done), PeerLost, ErrTruncated},
		"garbage":                  {200, ready + "hello\n", PeerLost, ErrProtocol},
		"blank line":               {200, ready + "\n" + done, PeerLost, ErrProtocol},
		"two values a line":        {200, strings.TrimSpace(ready) + token, PeerLost, ErrProtocol},
		"unknown kind":             {200, ready + `{"event":"perhaps"}` + "\n", PeerLost, ErrProtocol},
		"unknown field":            {200, `{"event":"accepted","accepted":{"prompt_tokens":3},"x":1}` + "\n", PeerLost, ErrProtocol},
		"kind without field":       {200, ready + `{"event":"token"}` + "\n", PeerLost, ErrProtocol},
		"field of another kind":    {200, ready + `{"event":"token","done":{"finish":"stop"}}` + "\n", PeerLost, ErrProtocol},
		"token before ready":       {200, token + done, PeerLost, ErrProtocol},
		"done before ready":        {200, done, PeerLost, ErrProtocol},
		"ready twice":              {200, ready + ready, PeerLost, ErrProtocol},
		"accepted after ready":     {200, ready + `{"event":"accepted","accepted":{"prompt_tokens":3}}` + "\n", PeerLost, ErrProtocol},
		"fewer tokens than done":   {200, ready + done, PeerLost, ErrProtocol},
		"more tokens than asked":   {200, ready + strings.Repeat(token, 9), PeerLost, ErrProtocol},
		"odd finish":               {200, ready + token + strings.Replace(done, "stop", "abort", 1), PeerLost, ErrProtocol},
		"negative token":           {200, ready + `{"event":"token","token":{"id":-1}}` + "\n", PeerLost, ErrProtocol},
		"placeholder prompt":       {200, strings.Replace(ready, `"prefill_prompt_tokens":3`, `"prefill_prompt_tokens":1`, 1), KVMismatch, nil},
		"decode counts otherwise":  {200, strings.Replace(ready, `"decode_prompt_tokens":3`, `"decode_prompt_tokens":4`, 1), KVMismatch, nil},
		"accepted counts another":  {200, `{"event":"accepted","accepted":{"prompt_tokens":1}}` + "\n", KVMismatch, nil},
		"done counts otherwise":    {200, ready + token + strings.Replace(done, `"prompt_tokens":3`, `"prompt_tokens":1`, 1), KVMismatch, nil},
		"error with odd status":    {200, `{"event":"error","error":{"code":"deadline","status":200,"message":""}}` + "\n", PeerLost, ErrProtocol},
		"unknown code":             {200, `{"event":"error","error":{"code":"fine","status":200,"message":""}}` + "\n", PeerLost, ErrProtocol},
		"status of another":        {429, `{"event":"error","error":{"code":"deadline","status":504,"message":""}}` + "\n", PeerLost, ErrProtocol},
		"refusal that is no error": {400, ready + token + done, PeerLost, ErrProtocol},
		"line too long":            {200, ready + strings.Repeat("x", maxLineBytes+1) + "\n", PeerLost, ErrProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			kinds, err := drain(raw(t, c.status, c.body), request())
			require.NotContains(t, kinds, KindDone)
			require.Equal(t, c.code, CodeOf(err), err)
			if c.is != nil {
				require.ErrorIs(t, err, c.is)
			}
		})
	}
}

func TestClient_NotANode_IsPeerLost(t *testing.T) {
	c := dial(t, http.NotFoundHandler())
	_, err := drain(c, request())
	require.Equal(t, PeerLost, CodeOf(err))
	require.ErrorIs(t, err, ErrProtocol)
	_, err = c.Info(t.Context())
	require.Equal(t, PeerLost, CodeOf(err))

	srv := httptest.NewServer(http.NotFoundHandler())
	c, err = NewClient(ClientConfig{BaseURL: srv.URL})
	require.NoError(t, err)
	srv.Close()
	_, err = drain(c, request())
	require.Equal(t, PeerLost, CodeOf(err))
	require.ErrorIs(t, err, ErrUnreachable)

	c = dial(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.1:1/elsewhere", http.StatusTemporaryRedirect)
	}))
	_, err = drain(c, request())
	require.Equal(t, PeerLost, CodeOf(err), "a node does not send its gateway elsewhere")
}

func TestClient_Closed_EndsTheNodesContext(t *testing.T) {
	ended := make(chan error, 1)
	c := serve(t, service{generate: func(ctx context.Context, req *Request, sink Sink) (Done, error) {
		if err := sink.Accepted(len(req.Prompt)); err != nil {
			return Done{}, err
		}
		<-ctx.Done()
		ended <- ctx.Err()
		return Done{}, ctx.Err()
	}})
	s, err := c.Open(t.Context(), request())
	require.NoError(t, err)
	e, err := s.Next()
	require.NoError(t, err)
	require.Equal(t, KindAccepted, e.Kind)
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	require.ErrorIs(t, <-ended, context.Canceled)
	_, err = s.Next()
	require.Equal(t, ClientGone, CodeOf(err))
}

func TestClient_ContextEnds_IsDeadlineOrClientGone(t *testing.T) {
	c := serve(t, service{generate: func(ctx context.Context, _ *Request, _ Sink) (Done, error) {
		<-ctx.Done()
		return Done{}, ctx.Err()
	}})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := c.Open(ctx, request())
	require.Equal(t, Deadline, CodeOf(err))
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	_, err = c.Open(ctx, request())
	require.Equal(t, ClientGone, CodeOf(err))
}

func TestHandler_ServiceBreaksTheOrder_SendsAnError(t *testing.T) {
	for name, g := range map[string]func(context.Context, *Request, Sink) (Done, error){
		"never ready": func(_ context.Context, r *Request, s Sink) (Done, error) {
			return Done{Finish: FinishStop, PromptTokens: len(r.Prompt)}, nil
		},
		"wrong count": func(ctx context.Context, r *Request, s Sink) (Done, error) {
			d, err := answer(2)(ctx, r, s)
			d.CompletionTokens = 3
			return d, err
		},
		"no finish": func(ctx context.Context, r *Request, s Sink) (Done, error) {
			d, err := answer(2)(ctx, r, s)
			d.Finish = ""
			return d, err
		},
		"token first": func(_ context.Context, r *Request, s Sink) (Done, error) {
			return Done{}, s.Token(Token{ID: 1})
		},
		"not a number": func(_ context.Context, r *Request, s Sink) (Done, error) {
			_ = s.Ready(Ready{len(r.Prompt), len(r.Prompt)})
			return Done{}, s.Token(Token{ID: 1, Logprob: float32(math.NaN())})
		},
		"panics": func(context.Context, *Request, Sink) (Done, error) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			kinds, err := drain(serve(t, service{generate: g}), request())
			require.NotContains(t, kinds, KindDone)
			require.Contains(t, []Code{Internal, PeerLost}, CodeOf(err))
			require.NotErrorIs(t, err, io.EOF)
		})
	}
}

func TestHandler_CountsDiffer_IsKVMismatch(t *testing.T) {
	c := serve(t, service{generate: func(_ context.Context, r *Request, s Sink) (Done, error) {
		if err := s.Ready(Ready{DecodePromptTokens: len(r.Prompt), PrefillPromptTokens: 1}); err != nil {
			return Done{}, err
		}
		return Done{Finish: FinishStop, PromptTokens: len(r.Prompt)}, nil
	}})
	kinds, err := drain(c, request())
	require.Empty(t, kinds)
	require.Equal(t, KVMismatch, CodeOf(err))
}

func TestHandler_LateSink_IsRefused(t *testing.T) {
	var kept Sink
	c := serve(t, service{generate: func(ctx context.Context, r *Request, s Sink) (Done, error) {
		kept = s
		return answer(1)(ctx, r, s)
	}})
	_, err := drain(c, request())
	require.Equal(t, io.EOF, err)
	require.ErrorIs(t, kept.Token(Token{ID: 1}), ErrProtocol)
}

func TestHandler_BadRequest_Is400BeforeTheService(t *testing.T) {
	h, err := NewHandler(HandlerConfig{MaxPromptTokens: 10, Service: service{generate: func(context.Context, *Request, Sink) (Done, error) {
		return Done{}, errors.New("the service must not be asked")
	}}})
	require.NoError(t, err)
	good, err := json.Marshal(request())
	require.NoError(t, err)
	for name, body := range map[string]string{
		"empty": "", "not json": "{", "array": "[]", "unknown field": `{"x":1}`, "trailing": string(good) + "{}",
		"prompt as numbers": strings.Replace(string(good), `"prompt":"`, `"prompt":[1],"p":"`, 1),
		"prompt odd bytes":  strings.Replace(string(good), `"prompt":"`, `"prompt":"AAAA`, 1),
		"too long":          `{"id":"` + strings.Repeat("x", requestOverhead+100) + `"}`,
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", PathGenerate, strings.NewReader(body)))
		require.Equal(t, 400, w.Code, name)
		e, err := ParseEvent(bytes.TrimSpace(w.Body.Bytes()))
		require.NoError(t, err)
		require.Equal(t, InvalidRequest, e.Error.Code, name)
		require.NotContains(t, e.Error.Message, "must not be asked")
	}
}

func TestRequest_Validate_NamesEachBound(t *testing.T) {
	for name, change := range map[string]func(*Request){
		"no tenant": func(r *Request) { r.Tenant = "" }, "long tenant": func(r *Request) { r.Tenant = strings.Repeat("x", 65) },
		"no tokens": func(r *Request) { r.Prompt = nil }, "negative": func(r *Request) { r.Prompt = Tokens{-1} },
		"max": func(r *Request) { r.MaxTokens = -1 }, "nan": func(r *Request) { r.Temperature = float32(math.NaN()) },
		"top_p": func(r *Request) { r.TopP = 1.5 }, "top": func(r *Request) { r.TopLogprobs = 21 }, "top alone": func(r *Request) { r.Logprobs = false },
		"stops": func(r *Request) { r.Stop = make([][]int32, 5) }, "empty stop": func(r *Request) { r.Stop = [][]int32{{}} },
		"time": func(r *Request) { r.TimeLeft = 0 }, "utf8": func(r *Request) { r.Salt = "\xff" },
	} {
		r := request()
		change(r)
		require.ErrorIs(t, r.Validate(), ErrRequest, name)
	}
	require.NoError(t, request().Validate())
}

func TestNewClient_Address_IsChecked(t *testing.T) {
	for _, u := range []string{"", "127.0.0.1:80", "ftp://x", "http://user:pw@127.0.0.1", "http://127.0.0.1/x", "http://127.0.0.1?x=1", "://"} {
		_, err := NewClient(ClientConfig{BaseURL: u})
		require.Error(t, err, u)
	}
	_, err := NewClient(ClientConfig{BaseURL: "http://10.0.0.1:9"})
	require.ErrorIs(t, err, ErrPlain)
	_, err = NewClient(ClientConfig{BaseURL: "http://10.0.0.1:9", AllowPlain: true})
	require.NoError(t, err)
	for _, u := range []string{"http://localhost:1", "http://[::1]:1/", "https://10.0.0.1:9"} {
		_, err := NewClient(ClientConfig{BaseURL: u})
		require.NoError(t, err, u)
	}
}

func TestHandler_MutualTLS_LetsOnlyAuthorisedIn(t *testing.T) {
	h, err := NewHandler(HandlerConfig{Service: service{info: Info{Model: "m", WindowTokens: 7, Ready: true}}, MaxPromptTokens: 9,
		Authorize: func(r *http.Request) error {
			if r.TLS == nil || r.Header.Get("X-No") != "" {
				return errors.New("no")
			}
			return nil
		}})
	require.NoError(t, err)
	srv := httptest.NewTLSServer(h)
	defer srv.Close()
	c, err := NewClient(ClientConfig{BaseURL: srv.URL, TLS: srv.Client().Transport.(*http.Transport).TLSClientConfig})
	require.NoError(t, err)
	defer c.Close()
	info, err := c.Info(t.Context())
	require.NoError(t, err)
	require.Equal(t, Info{Model: "m", WindowTokens: 7, Ready: true, MaxPromptTokens: 9}, info)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", PathInfo, nil))
	require.Equal(t, http.StatusForbidden, w.Code)
	plain, err := NewClient(ClientConfig{BaseURL: srv.URL})
	require.NoError(t, err)
	_, err = plain.Info(t.Context())
	require.Equal(t, PeerLost, CodeOf(err), "an unknown certificate authority is no node")
}

func TestClient_AuthorityChanges_NewConnectionsTakeTheNewOne(t *testing.T) {
	h, err := NewHandler(HandlerConfig{Service: service{info: Info{Model: "m"}}, MaxPromptTokens: 9})
	require.NoError(t, err)
	srv := httptest.NewTLSServer(h)
	defer srv.Close()
	var good atomic.Bool
	right, wrong := srv.Client().Transport.(*http.Transport).TLSClientConfig, &tls.Config{RootCAs: x509.NewCertPool()}
	c, err := NewClient(ClientConfig{BaseURL: srv.URL, EachTLS: func() *tls.Config {
		if good.Load() {
			return right
		}
		return wrong
	}})
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Info(t.Context())
	require.Equal(t, PeerLost, CodeOf(err), "not this authority's")
	good.Store(true)
	info, err := c.Info(t.Context())
	require.NoError(t, err)
	require.Equal(t, "m", info.Model)
}

func TestLocal_BehavesLikeTheSocket(t *testing.T) {
	local := NewLocal(service{generate: answer(20), info: Info{Model: "m"}}, 77)
	s, err := local.Open(t.Context(), &Request{ID: "r", Tenant: "x", Prompt: Tokens{1}, TimeLeft: Millis(time.Second)})
	require.NoError(t, err)
	n := 0
	for ; err == nil; n++ {
		_, err = s.Next()
	}
	require.Equal(t, io.EOF, err)
	require.Equal(t, 1+1+20+1+1, n)
	require.NoError(t, s.Close())
	local.Wait()
	info, err := local.Info(t.Context())
	require.NoError(t, err)
	require.Equal(t, 77, info.MaxPromptTokens)

	illegal := NewLocal(service{generate: func(_ context.Context, r *Request, _ Sink) (Done, error) {
		return Done{Finish: FinishStop, PromptTokens: len(r.Prompt)}, nil
	}}, 1)
	s, err = illegal.Open(t.Context(), request())
	require.NoError(t, err)
	_, err = s.Next()
	require.Equal(t, Internal, CodeOf(err))

	waits := NewLocal(service{generate: func(ctx context.Context, r *Request, sink Sink) (Done, error) {
		if err := sink.Token(Token{}); err == nil {
			return Done{}, errors.New("a token before ready was taken")
		}
		<-ctx.Done()
		return Done{}, ctx.Err()
	}}, 1)
	s, err = waits.Open(t.Context(), request())
	require.NoError(t, err)
	require.NoError(t, s.Close())
	_, err = s.Next()
	require.Equal(t, ClientGone, CodeOf(err))
	waits.Wait()
	_, err = waits.Open(t.Context(), &Request{})
	require.Equal(t, InvalidRequest, CodeOf(err))
}
