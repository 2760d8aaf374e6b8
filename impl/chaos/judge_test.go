//go:build chaos

package chaos

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"

	"kvfence/impl/workload"
)

// outcome is how one request ended, as its client saw it.
type outcome struct {
	kind   string // "exact", "failed", "cut" (connection lost), "left" (the client went away)
	cause  string
	status int
}

// oracle answers requests alone, in this process.
type oracle struct {
	model workload.Model
	mu    sync.Mutex
	known map[string]answer
}

// answer is what the model says to a prompt when n tokens are asked for; it may end earlier, by itself.
type answer struct {
	tokens []int32
	n      int
}

func newOracle(seed uint64) (*oracle, error) {
	m, err := workload.New(workload.Config{Kind: workload.KindTransformer, Seed: seed})
	return &oracle{model: m, known: map[string]answer{}}, err
}

// sharedOracle is the one of all runs of this process: what it has worked out once it knows.
var sharedOracle = sync.OnceValues(func() (*oracle, error) { return newOracle(modelSeed) })

// want is the answer of one process alone: the tokens. A shorter answer is the beginning of a longer one.
func (o *oracle) want(prompt string, n int) ([]int32, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	a, ok := o.known[prompt]
	if !ok || a.n < n {
		r, err := workload.Generate(context.Background(), o.model, workload.Encode(prompt), workload.Options{MaxTokens: n})
		if err != nil {
			return nil, err
		}
		a = answer{r.Tokens, n}
		o.known[prompt] = a
	}
	return a.tokens[:min(n, len(a.tokens))], nil
}

// request is one prompt of one tenant, with the tenant's canary in it.
type request struct {
	tenant, key, prompt string
	n                   int
	stream              bool
}

func canary(tenant string) string { return "CANARY<" + tenant + ">" }

// draw makes a request: a few prompts for each tenant, so that the oracle's work is bounded. Most take two to twelve pages, a few
// take forty, so that pools run full and requests are preempted.
func draw(r *rand.Rand, c *cluster) request {
	tenant := c.tenants[r.IntN(len(c.tenants))]
	k, n := r.IntN(3), 8
	times := 1 + k*3
	if r.IntN(40) == 0 {
		k, times, n = 3, 25, 24
	}
	body := strings.Repeat(fmt.Sprintf("%s says %d. ", canary(tenant), k), times)
	return request{tenant: tenant, key: c.keys[tenant], prompt: body, n: n, stream: r.IntN(2) == 0}
}

// front is a gateway as its clients see it.
type front struct {
	url    string
	client *http.Client
}

// do sends one request and judges the answer. A false 200, a foreign byte or a failure without a cause that fits is an error.
func (o *oracle) do(ctx context.Context, f front, q request) (outcome, error) {
	fields := map[string]any{"model": o.model.Name(), "prompt": q.prompt, "max_tokens": q.n, "temperature": 0, "stream": q.stream, "logprobs": 0}
	if q.stream {
		fields["stream_options"] = map[string]any{"include_usage": true}
	}
	body, err := json.Marshal(fields)
	if err != nil {
		return outcome{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url+"/v1/completions", bytes.NewReader(body))
	if err != nil {
		return outcome{}, err
	}
	req.Header.Set("Authorization", "Bearer "+q.key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := f.client.Do(req)
	if err != nil {
		return gone(ctx, "connect")
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return failure(ctx, resp)
	}
	if q.stream {
		return o.judgeStream(ctx, q, resp.Body)
	}
	return o.judgeWhole(ctx, q, resp.Body)
}

func gone(ctx context.Context, where string) (outcome, error) {
	if ctx.Err() != nil {
		return outcome{kind: "left", cause: where}, nil
	}
	return outcome{kind: "cut", cause: where}, nil
}

type apiError struct {
	Error struct {
		Message string `json:"message"`
		Type    string `json:"type"`
		Code    string `json:"code"`
	} `json:"error"`
}

// causes are the failures that a fault may cause, by code. No other is an answer to a request that fits: a tag or digest that
// differs (kv_mismatch) would be a detector that had to speak, a 400 a request that was mistaken for another.
var causes = map[string]int{"peer_lost": 502, "over_capacity": 429, "deadline": 504, "shutting_down": 503}

// failure demands that an error names its cause.
func failure(ctx context.Context, resp *http.Response) (outcome, error) {
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return gone(ctx, "error body")
	}
	var e apiError
	if err := json.Unmarshal(b, &e); err != nil || e.Error.Code == "" || e.Error.Message == "" {
		return outcome{}, fmt.Errorf("status %d without a cause: %q", resp.StatusCode, b)
	}
	// Over TLS a client says that it leaves before it closes: what the gateway answers to that can still be read in between.
	if e.Error.Code == "client_gone" && ctx.Err() != nil {
		return outcome{kind: "left", cause: "answered"}, nil
	}
	if causes[e.Error.Code] != resp.StatusCode {
		return outcome{}, fmt.Errorf("status %d with code %s is no answer here: %q", resp.StatusCode, e.Error.Code, b)
	}
	if bytes.Contains(b, []byte("CANARY<")) {
		return outcome{}, fmt.Errorf("an error repeats a prompt: %q", b)
	}
	if resp.StatusCode == http.StatusTooManyRequests && resp.Header.Get("Retry-After") == "" {
		return outcome{}, errors.New("429 without Retry-After")
	}
	return outcome{kind: "failed", cause: fmt.Sprintf("%d %s", resp.StatusCode, e.Error.Code), status: resp.StatusCode}, nil
}

type completion struct {
	Choices []struct {
		Text         string  `json:"text"`
		FinishReason *string `json:"finish_reason"`
		Logprobs     *struct {
			Tokens []string `json:"tokens"`
		} `json:"logprobs"`
	} `json:"choices"`
	Usage *usage `json:"usage"`
}

type usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
}

// judgeWhole compares a whole answer with the oracle's.
func (o *oracle) judgeWhole(ctx context.Context, q request, body io.Reader) (outcome, error) {
	b, err := io.ReadAll(body)
	if err != nil {
		return gone(ctx, "body")
	}
	var m completion
	if err := json.Unmarshal(b, &m); err != nil || len(m.Choices) != 1 || m.Choices[0].FinishReason == nil || m.Usage == nil || m.Choices[0].Logprobs == nil {
		return outcome{}, fmt.Errorf("a 200 without an answer: %q", b)
	}
	if err := m.Usage.check(q); err != nil {
		return outcome{}, err
	}
	if len(m.Choices[0].Logprobs.Tokens) != m.Usage.CompletionTokens {
		return outcome{}, fmt.Errorf("completion_tokens %d for %d tokens", m.Usage.CompletionTokens, len(m.Choices[0].Logprobs.Tokens))
	}
	return o.compare(q, m.Choices[0].Logprobs.Tokens, m.Choices[0].Text, true)
}

func (u *usage) check(q request) error {
	if u.PromptTokens != len(q.prompt) {
		return fmt.Errorf("prompt_tokens %d for a prompt of %d", u.PromptTokens, len(q.prompt))
	}
	return nil
}

// heard is what came of a stream so far.
type heard struct {
	tokens                []string
	text                  strings.Builder
	finished, used, ended bool
	failed                string
}

// judgeStream compares a stream: it ends with usage and [DONE] and is whole, or with an error event and is a true beginning, or
// its connection breaks.
func (o *oracle) judgeStream(ctx context.Context, q request, body io.Reader) (outcome, error) {
	h := &heard{}
	sc := bufio.NewScanner(body)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		if data, ok := strings.CutPrefix(sc.Text(), "data: "); ok {
			if err := h.event(q, data); err != nil {
				return outcome{}, err
			}
		}
	}
	if h.ended && !h.used {
		return outcome{}, errors.New("a stream without the usage that was asked for")
	}
	got, err := o.compare(q, h.tokens, h.text.String(), h.ended)
	switch {
	case err != nil || h.ended:
		return got, err
	case h.failed != "":
		return outcome{kind: "failed", cause: "stream " + h.failed}, nil
	case sc.Err() == nil && ctx.Err() == nil:
		return outcome{}, errors.New("a stream that ends like a whole one, with neither [DONE] nor an error")
	}
	return gone(ctx, "stream")
}

// event takes one data line.
func (h *heard) event(q request, data string) error {
	if h.ended || h.failed != "" {
		return fmt.Errorf("after the end of a stream: %q", data)
	}
	if data == "[DONE]" {
		h.ended = true
		if !h.finished {
			return errors.New("[DONE] without a finish reason")
		}
		return nil
	}
	var e apiError
	if json.Unmarshal([]byte(data), &e) == nil && (e.Error.Code != "" || e.Error.Message != "") {
		if h.finished || causes[e.Error.Code] == 0 || strings.Contains(data, "CANARY<") {
			return fmt.Errorf("an error that is none (finished %t): %q", h.finished, data)
		}
		h.failed = e.Error.Code
		return nil
	}
	var m completion
	if err := json.Unmarshal([]byte(data), &m); err != nil {
		return fmt.Errorf("stream event %q: %w", data, err)
	}
	for _, ch := range m.Choices {
		h.text.WriteString(ch.Text)
		if ch.Logprobs != nil {
			h.tokens = append(h.tokens, ch.Logprobs.Tokens...)
		}
		h.finished = h.finished || ch.FinishReason != nil
	}
	if m.Usage == nil {
		return nil
	}
	h.used = true
	return m.Usage.check(q)
}

// compare checks tokens and text against the oracle: the whole answer, or a true beginning of it.
func (o *oracle) compare(q request, tokens []string, text string, whole bool) (outcome, error) {
	ids, err := o.want(q.prompt, q.n)
	if err != nil {
		return outcome{}, err
	}
	want := tokenStrings(ids)
	if len(tokens) > len(want) || (whole && len(tokens) != len(want)) {
		return outcome{}, fmt.Errorf("%s got %d tokens, wants %d", q.tenant, len(tokens), len(want))
	}
	for i, s := range tokens {
		if s != want[i] {
			return outcome{}, fmt.Errorf("FOREIGN OR STALE BYTES: %s, token %d of %q is %q, wants %q", q.tenant, i, q.prompt, s, want[i])
		}
	}
	if strings.Contains(strings.ReplaceAll(text, canary(q.tenant), ""), "CANARY<") {
		return outcome{}, fmt.Errorf("another tenant's canary in %s's answer: %q", q.tenant, text)
	}
	return outcome{kind: "exact", status: 200}, nil
}
