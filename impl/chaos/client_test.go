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
	known map[string][]int32
}

// want is the answer of one process alone: the tokens.
func (o *oracle) want(prompt string, n int) ([]int32, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if w, ok := o.known[prompt]; ok {
		return w, nil
	}
	r, err := workload.Generate(context.Background(), o.model, workload.Encode(prompt), workload.Options{MaxTokens: n})
	if err != nil {
		return nil, err
	}
	o.known[prompt] = r.Tokens
	return r.Tokens, nil
}

// request is one prompt of one tenant, with the tenant's canary in it.
type request struct {
	tenant, key, prompt string
	n                   int
	stream              bool
}

func canary(tenant string) string { return "CANARY<" + tenant + ">" }

// draw makes a request: a few prompts for each tenant, so that the oracle's work is bounded.
func draw(r *rand.Rand, c *cluster) request {
	tenant := c.tenants[r.IntN(len(c.tenants))]
	k := r.IntN(3)
	body := strings.Repeat(fmt.Sprintf("%s says %d. ", canary(tenant), k), 1+k*3)
	return request{tenant: tenant, key: c.keys[tenant], prompt: body, n: 8, stream: r.IntN(2) == 0}
}

// do sends one request and judges the answer. A false 200 or a foreign byte is an error.
func (o *oracle) do(ctx context.Context, c *cluster, q request) (outcome, error) {
	body, err := json.Marshal(map[string]any{"model": "kvfence-transformer", "prompt": q.prompt, "max_tokens": q.n, "temperature": 0, "stream": q.stream, "logprobs": 0})
	if err != nil {
		return outcome{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.gatewayURL+"/v1/completions", bytes.NewReader(body))
	if err != nil {
		return outcome{}, err
	}
	req.Header.Set("Authorization", "Bearer "+q.key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
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
	Usage *struct {
		PromptTokens     int `json:"prompt_tokens"`
		CompletionTokens int `json:"completion_tokens"`
	} `json:"usage"`
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
	if m.Usage.PromptTokens != len(q.prompt) {
		return outcome{}, fmt.Errorf("prompt_tokens %d for a prompt of %d", m.Usage.PromptTokens, len(q.prompt))
	}
	return o.compare(q, m.Choices[0].Logprobs.Tokens, m.Choices[0].Text, true)
}

// judgeStream compares a stream: it ends with [DONE] and is whole, or with an error event and is a true beginning.
func (o *oracle) judgeStream(ctx context.Context, q request, body io.Reader) (outcome, error) {
	var tokens []string
	var text strings.Builder
	finished := false
	sc := bufio.NewScanner(body)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		data, ok := strings.CutPrefix(sc.Text(), "data: ")
		switch {
		case !ok:
			continue
		case data == "[DONE]":
			if !finished {
				return outcome{}, errors.New("[DONE] without a finish reason")
			}
			return o.compare(q, tokens, text.String(), true)
		}
		var e apiError
		if json.Unmarshal([]byte(data), &e) == nil && e.Error.Code != "" {
			if finished {
				return outcome{}, errors.New("an error after a finish reason")
			}
			if _, err := o.compare(q, tokens, text.String(), false); err != nil {
				return outcome{}, err
			}
			return outcome{kind: "failed", cause: "stream " + e.Error.Code}, nil
		}
		var m completion
		if err := json.Unmarshal([]byte(data), &m); err != nil {
			return outcome{}, fmt.Errorf("stream event %q: %w", data, err)
		}
		for _, ch := range m.Choices {
			text.WriteString(ch.Text)
			if ch.Logprobs != nil {
				tokens = append(tokens, ch.Logprobs.Tokens...)
			}
			finished = finished || ch.FinishReason != nil
		}
	}
	if _, err := o.compare(q, tokens, text.String(), false); err != nil {
		return outcome{}, err
	}
	return gone(ctx, "stream")
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
	if i := strings.Index(text, "CANARY<"); i >= 0 && !strings.HasPrefix(text[i:], canary(q.tenant)) {
		return outcome{}, fmt.Errorf("another tenant's canary in %s's answer: %q", q.tenant, text)
	}
	return outcome{kind: "exact", status: 200}, nil
}
