package histories

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"kvfence/model/history"
)

// Tokens are token names as history.Said has them: each in quotes, so that none is the beginning of another.
func Tokens(names []string) string {
	var b strings.Builder
	for _, n := range names {
		b.WriteString(strconv.Quote(n))
	}
	return b.String()
}

// Caller is one client of a gateway, whose requests are recorded. Not safe for concurrent use; each goroutine has its own.
type Caller struct {
	history.Client
	URL    string // of the gateway
	HTTP   *http.Client
	number int
}

// Ask makes a request of this client.
func (c *Caller) Ask(key, prompt string, most int) history.Ask {
	c.number++
	return history.Ask{Client: c.ID, Number: c.number, Key: key, Prompt: prompt, Max: most}
}

// post sends a request.
func (c *Caller) post(ctx context.Context, a history.Ask, stream bool) (*http.Response, error) {
	fields := map[string]any{"prompt": a.Prompt, "max_tokens": a.Max, "temperature": 0, "stream": stream, "logprobs": 0}
	if stream {
		fields["stream_options"] = map[string]any{"include_usage": true}
	}
	body, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL+"/v1/completions", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+a.Key)
	req.Header.Set("Content-Type", "application/json")
	return c.HTTP.Do(req)
}

// malformed is the code of what is no answer.
func malformed(format string, args ...any) string {
	return "malformed: " + fmt.Sprintf(format, args...)
}

type completion struct {
	Choices []struct {
		FinishReason *string `json:"finish_reason"`
		Logprobs     *struct {
			Tokens []string `json:"tokens"`
		} `json:"logprobs"`
	} `json:"choices"`
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
	} `json:"usage"`
	Error *struct {
		Message string `json:"message"`
		Code    string `json:"code"`
	} `json:"error"`
}

// Whole asks for an answer in one piece. With a context that ends, nothing is recorded: there was no answer.
func (c *Caller) Whole(ctx context.Context, a history.Ask) {
	ops := len(c.Ops)
	c.Do(history.Whole{Ask: a}, func() any { return c.whole(ctx, a) })
	if ctx.Err() != nil {
		c.Ops = c.Ops[:ops]
	}
}

func (c *Caller) whole(ctx context.Context, a history.Ask) (e history.Ended) {
	resp, err := c.post(ctx, a, false)
	if err != nil {
		return history.Ended{Code: history.Cut}
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return history.Ended{Code: history.Cut}
	}
	e.Status = resp.StatusCode
	var m completion
	switch err := json.Unmarshal(b, &m); {
	case err != nil:
		e.Code = malformed("%.200q", b)
	case resp.StatusCode != http.StatusOK:
		e.Code = m.code(b)
	case m.Error != nil || len(m.Choices) != 1 || m.Choices[0].FinishReason == nil || m.Choices[0].Logprobs == nil || m.Usage == nil:
		e.Code = malformed("a 200 without an answer: %.200q", b)
	default:
		e.Said = history.Said{Tokens: Tokens(m.Choices[0].Logprobs.Tokens), Finish: *m.Choices[0].FinishReason, Prompt: m.Usage.Prompt, Completion: m.Usage.Completion}
	}
	return e
}

// code is that of an error in shape.
func (m completion) code(raw []byte) string {
	if m.Error == nil || m.Error.Code == "" || m.Error.Message == "" {
		return malformed("an error without a cause: %.200q", raw)
	}
	return m.Error.Code
}

// Stream is an opened one.
type Stream struct {
	ask    history.Ask
	body   io.ReadCloser
	cancel context.CancelFunc
}

// Open asks for a stream; nil if it was refused, or lost.
func (c *Caller) Open(a history.Ask) (s *Stream) {
	ctx, cancel := context.WithCancel(context.Background())
	c.Do(history.Open{Ask: a}, func() any {
		resp, err := c.post(ctx, a, true)
		if err != nil {
			return history.Opened{Code: history.Cut}
		}
		if resp.StatusCode == http.StatusOK {
			s = &Stream{a, resp.Body, cancel}
			return history.Opened{Status: http.StatusOK}
		}
		defer func() { _ = resp.Body.Close() }()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			return history.Opened{Code: history.Cut}
		}
		var m completion
		if err := json.Unmarshal(b, &m); err != nil {
			return history.Opened{Status: resp.StatusCode, Code: malformed("%.200q", b)}
		}
		return history.Opened{Status: resp.StatusCode, Code: m.code(b)}
	})
	if s == nil {
		cancel()
	}
	return s
}

// Hang closes a stream before its end.
func (c *Caller) Hang(s *Stream) {
	c.Do(history.Hang{Ask: s.ask}, func() any {
		s.cancel()
		_ = s.body.Close() // nobody reads on
		return nil
	})
}

// Rest reads a stream to its end.
func (c *Caller) Rest(s *Stream) {
	c.Do(history.Rest{Ask: s.ask}, func() any {
		defer s.cancel()
		defer func() { _ = s.body.Close() }()
		return rest(s.body)
	})
}

// rest takes the events of a stream.
func rest(body io.Reader) (e history.Ended) {
	var names []string
	ended := false
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		switch {
		case !ok:
			continue
		case ended || e.Code != "":
			return history.Ended{Code: malformed("%.200q behind the end of a stream", data)}
		case data == "[DONE]":
			ended = true
			continue
		}
		var m completion
		if err := json.Unmarshal([]byte(data), &m); err != nil {
			return history.Ended{Code: malformed("%.200q", data)}
		}
		if m.Error != nil {
			e.Code = m.code([]byte(data))
		}
		for _, choice := range m.Choices {
			if choice.Logprobs != nil {
				names = append(names, choice.Logprobs.Tokens...)
			}
			if choice.FinishReason != nil {
				e.Said.Finish = *choice.FinishReason
			}
		}
		if m.Usage != nil {
			e.Said.Prompt, e.Said.Completion = m.Usage.Prompt, m.Usage.Completion
		}
	}
	e.Said.Tokens = Tokens(names)
	switch {
	case ended || e.Code != "":
	case lines.Err() != nil:
		e.Code = history.Cut
	default:
		e.Code = malformed("a stream that ends like a whole one, without [DONE] and without an error")
	}
	return e
}
