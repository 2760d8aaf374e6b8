package fuzz

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"kvfence/impl/gateway"
	"kvfence/impl/node/api"
	"kvfence/impl/workload"
)

// play is what a node says to one request: so many tokens of a good answer, and then how it goes on.
type play struct {
	tokens []int32
	end    int // 0: the right end; the others are faults, see events
}

// faults is how many ends a play has.
const faults = 10

// events are what a play says. Everything but end 0 is a lie, an error, or no end.
func (p play) events(req *api.Request) (out []api.Event) {
	n := len(req.Prompt)
	ready := api.Event{Kind: api.KindReady, Ready: &api.Ready{DecodePromptTokens: n, PrefillPromptTokens: n}}
	if p.end == 1 {
		ready.Ready.PrefillPromptTokens++
	}
	if p.end != 2 { // 2: tokens before ready
		out = append(out, ready)
	}
	for _, id := range p.tokens {
		out = append(out, api.Event{Kind: api.KindToken, Token: &api.Token{ID: id, Logprob: -1}})
	}
	done := api.Event{Kind: api.KindDone, Done: &api.Done{Finish: api.FinishLength, PromptTokens: n, CompletionTokens: len(p.tokens)}}
	switch p.end {
	case 3:
		done.Done.CompletionTokens++
	case 4:
		return append(out, api.Event{Kind: api.KindError, Error: api.Errorf(api.PeerLost, "gone")})
	case 5:
		return append(out, ready, done)
	case 6:
		return out // no end
	case 7:
		done.Done.Finish = "enough"
	case 8:
		return append(out, api.Event{Kind: api.KindToken, Token: &api.Token{ID: -1}}, done)
	case 9:
		return append(out, api.Event{Kind: "done"})
	}
	return append(out, done)
}

// playedNode is a backend that plays; what was asked of it is kept.
type playedNode struct {
	mu    sync.Mutex
	plays [4]play // by choice
	asked []api.Request
}

// Info implements api.Backend.
func (p *playedNode) Info(context.Context) (api.Info, error) {
	return api.Info{Model: "m", Adapters: []string{"a"}, Vocab: workload.Vocab, WindowTokens: 4096, PrefillPoolTokens: 8192, DecodePoolTokens: 8192, PageTokens: 16, MaxPromptTokens: 8192, Ready: true}, nil
}

// Open implements api.Backend. A request has no answer behind its bound.
func (p *playedNode) Open(_ context.Context, req *api.Request) (api.Stream, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, *req)
	_, choice, _ := strings.Cut(req.ID, "-")
	i, err := strconv.Atoi(choice)
	if err != nil {
		return nil, api.Errorf(api.Internal, "request id %q", req.ID)
	}
	return &played{events: p.plays[i%len(p.plays)].events(req)}, nil
}

type played struct{ events []api.Event }

// Next implements api.Stream.
func (p *played) Next() (api.Event, error) {
	if len(p.events) == 0 {
		return api.Event{}, io.EOF
	}
	e := p.events[0]
	p.events = p.events[1:]
	return e, nil
}

// Close implements api.Stream.
func (p *played) Close() error { return nil }

// FuzzGateway: whatever a client sends and whatever its node answers, the client gets one answer in the API's shape. It is a 200 without
// an error in it only if the node ended every choice well, its text is that of the node's tokens, and the node is asked in the name of the key's tenant alone.
func FuzzGateway(f *testing.F) {
	f.Add([]byte(`{"prompt":"hi","max_tokens":4}`), []byte{0, 0, 2, 65, 66})
	f.Add([]byte(`{"prompt":["a",[1,2]],"n":2,"stream":true,"tenant":"bob","stream_options":{"include_usage":true}}`), []byte{0, 1, 1, 67, 0, 1, 68, 4})
	f.Add([]byte(`{"messages":[{"role":"user","content":"x"}],"stream":true,"stop":"B","logprobs":true}`), []byte{1, 0, 3, 65, 66, 67})
	f.Add([]byte(`{"prompt":"x","user":"bob","cache_salt":"s","seed":3}`), []byte{0, 2, 1, 255, 3})
	keys := filepath.Join(f.TempDir(), "keys")
	require.NoError(f, os.WriteFile(keys, []byte("ann:"+gateway.HashKey("key-ann")+"\nbob:"+gateway.HashKey("key-bob")+":100\n"), 0o600))
	node := &playedNode{}
	g, err := gateway.New(gateway.Config{KeysFile: keys}, gateway.Deps{Backend: node, Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry(), Now: time.Now, Rand: rand.Reader})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, body, how []byte) {
		tape := NewTape(how)
		path := []string{"/v1/completions", "/v1/chat/completions", "/v1/models", "/v1/models/a", "/v1/completions/", "/other"}[tape.N(6)]
		key := []string{"ann", "bob", ""}[tape.N(3)]
		tenant := key
		node.asked = nil
		for i := range node.plays {
			p := play{}
			for range tape.N(5) {
				p.tokens = append(p.tokens, int32(tape.Byte()))
			}
			if p.end = tape.N(2 * faults); p.end >= faults {
				p.end = 0
			}
			node.plays[i] = p
		}
		r := httptest.NewRequest([]string{http.MethodPost, http.MethodGet}[tape.N(2)], path, strings.NewReader(string(body)))
		r.Header.Set("Content-Type", []string{"application/json", "text/plain"}[tape.N(9)/8])
		if tape.One(9) {
			r.Header.Set(gateway.DefaultTenantHeader, "mallory") // nobody may say this
			tenant = ""
		}
		if key != "" {
			r.Header.Set("Authorization", "Bearer key-"+key)
		}
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		a := answered{t: t, node: node, w: w, body: body}
		a.judge(tenant)
	})
}

// answered is one answer of the gateway to be judged.
type answered struct {
	t    *testing.T
	node *playedNode
	w    *httptest.ResponseRecorder
	body []byte
}

func (a answered) judge(tenant string) {
	t, w := a.t, a.w
	for _, req := range a.node.asked {
		require.Equal(t, tenant, req.Tenant)
		require.NoError(t, req.Validate())
	}
	if tenant == "" {
		require.Empty(t, a.node.asked)
		require.NotEqual(t, 200, w.Code)
	}
	if w.Code != 200 {
		require.Contains(t, []int{400, 401, 403, 404, 405, 413, 415, 429, 499, 500, 502, 503, 504}, w.Code)
		a.fault(w.Body.Bytes())
		return
	}
	if len(a.node.asked) == 0 {
		require.True(t, json.Valid(w.Body.Bytes())) // a list of models
		return
	}
	if w.Header().Get("Content-Type") == "text/event-stream" {
		a.stream()
		return
	}
	require.True(t, a.sound(), "a 200 although the node did not end every choice well")
	var whole chunk
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &whole))
	require.Len(t, whole.Choices, len(a.node.asked))
	for i, c := range whole.Choices {
		require.Equal(t, i, c.Index)
		require.NotNil(t, c.Finish)
		a.text(i, c.Text+c.Message.Content, *c.Finish)
	}
}

// sound reports whether every choice that was asked for ended well.
func (a answered) sound() bool {
	for i := range a.node.asked {
		if p := a.node.plays[i%len(a.node.plays)]; p.end != 0 {
			return false
		}
	}
	return true
}

// text: a choice's text is that of its tokens, from the beginning, up to a stop sequence. An echoed prompt stands before it.
func (a answered) text(choice int, text, finish string) {
	p := a.node.plays[choice%len(a.node.plays)]
	want := strings.ToValidUTF8(string(workload.Decode(p.tokens)), "\uFFFD")
	req := a.request(choice)
	var asked struct{ Echo bool }
	if err := json.Unmarshal(a.body, &asked); err == nil && asked.Echo {
		want = strings.ToValidUTF8(string(workload.Decode(req.Prompt)), "\uFFFD") + want
	}
	if want == text || len(req.Stop) > 0 && finish == api.FinishStop && len(text) < len(want) {
		return
	}
	// A broken character is one mark a byte here and one a run there: compare without them.
	plain := func(s string) string { return strings.ReplaceAll(s, "\uFFFD", "") }
	require.Equal(a.t, plain(want), plain(text))
}

func (a answered) request(choice int) api.Request {
	for _, req := range a.node.asked {
		if strings.HasSuffix(req.ID, "-"+strconv.Itoa(choice)) {
			return req
		}
	}
	a.t.Fatalf("choice %d was never asked for", choice)
	return api.Request{}
}

type chunk struct {
	Choices []struct {
		Index   int
		Text    string
		Message struct{ Content string }
		Delta   struct{ Content string }
		Finish  *string `json:"finish_reason"`
	}
}

func (a answered) fault(b []byte) {
	var e struct {
		Error struct{ Message, Type, Code string }
	}
	require.NoError(a.t, json.Unmarshal(b, &e), "%s", b)
	require.NotEmpty(a.t, e.Error.Message)
	require.NotEmpty(a.t, e.Error.Type)
	require.NotEmpty(a.t, e.Error.Code)
}

// stream: an event stream ends with [DONE] or with an error, never both; [DONE] only if every choice ended well.
func (a answered) stream() {
	t := a.t
	texts, finished := map[int]string{}, map[int]string{}
	ended, failed, isError := false, false, false
	for line := range strings.SplitSeq(a.w.Body.String(), "\n") {
		data, isData := strings.CutPrefix(line, "data: ")
		switch {
		case line == "":
			isError = false
		case ended || failed && line != "":
			t.Fatalf("%q behind the end", line)
		case line == "event: error":
			isError = true
		case !isData:
			t.Fatalf("line %q", line)
		case isError:
			a.fault([]byte(data))
			failed = true
		case data == "[DONE]":
			ended = true
		default:
			var c chunk
			require.NoError(t, json.Unmarshal([]byte(data), &c))
			for _, x := range c.Choices {
				require.NotContains(t, finished, x.Index, "text behind a finish reason")
				texts[x.Index] += x.Text + x.Delta.Content
				if x.Finish != nil {
					finished[x.Index] = *x.Finish
				}
			}
		}
	}
	require.True(t, ended != failed, "a stream has one end: done %t, failed %t", ended, failed)
	require.Equal(t, a.sound(), ended)
	for i, finish := range finished {
		require.Zero(t, a.node.plays[i%len(a.node.plays)].end, "choice %d has a finish reason and did not end well", i)
		a.text(i, texts[i], finish)
	}
}
