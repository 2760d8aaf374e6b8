package gateway

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// The JSON of answers. Completion and chunk share a shape; null fields are part of it.

type usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
}

type response struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"`
	Model   string   `json:"model"`
	Choices []choice `json:"choices"`
	Usage   *usage   `json:"usage,omitempty"`
}

// usageChunk is a chunk of a stream that was asked for usage: null until the end.
type usageChunk struct {
	response
	Usage *usage `json:"usage"`
}

type choice struct {
	Index        int      `json:"index"`
	Text         *string  `json:"text,omitempty"`
	Message      *message `json:"message,omitempty"`
	Delta        *delta   `json:"delta,omitempty"`
	Logprobs     any      `json:"logprobs"` // *textLogprobs, *chatLogprobs or nil
	FinishReason *string  `json:"finish_reason"`
}

type message struct {
	Role    string  `json:"role"`
	Content string  `json:"content"`
	Refusal *string `json:"refusal"`
}

type delta struct {
	Role    string  `json:"role,omitempty"`
	Content *string `json:"content,omitempty"`
}

type textLogprobs struct {
	Tokens        []string             `json:"tokens"`
	TokenLogprobs []float32            `json:"token_logprobs"`
	TopLogprobs   []map[string]float32 `json:"top_logprobs"`
	TextOffset    []int                `json:"text_offset"`
}

type chatLogprobs struct {
	Content []chatToken `json:"content"`
	Refusal *string     `json:"refusal"`
}

type chatToken struct {
	Token       string         `json:"token"`
	Logprob     float32        `json:"logprob"`
	Bytes       []int          `json:"bytes"`
	TopLogprobs []chatTopToken `json:"top_logprobs"`
}

type chatTopToken struct {
	Token   string  `json:"token"`
	Logprob float32 `json:"logprob"`
	Bytes   []int   `json:"bytes"`
}

// renderer says one request's answer.
type renderer struct {
	job     *job
	tok     Tokenizer
	id      string
	model   string
	created int64
}

func (r *renderer) frame(object string, choices ...choice) response {
	if choices == nil {
		choices = []choice{}
	}
	return response{ID: r.id, Object: object, Created: r.created, Model: r.model, Choices: choices}
}

// whole is the body of an answer that is not a stream.
func (r *renderer) whole(results []result, total usage) ([]byte, error) {
	choices := make([]choice, len(results))
	for i, res := range results {
		finish := res.finish
		choices[i] = choice{Index: i, FinishReason: &finish, Logprobs: r.logprobs(res.tokens)}
		if r.job.chat {
			choices[i].Message = &message{Role: "assistant", Content: res.text}
		} else {
			text := r.echo(i) + res.text
			choices[i].Text = &text
		}
	}
	object := "text_completion"
	if r.job.chat {
		object = "chat.completion"
	}
	out := r.frame(object, choices...)
	out.Usage = &total
	b, err := json.Marshal(out)
	return append(b, '\n'), err
}

// echo is the prompt's text of a choice, if it was asked for.
func (r *renderer) echo(index int) string {
	if !r.job.echo {
		return ""
	}
	return detokenize(r.tok, r.job.prompts[index/r.job.n])
}

// chunk is one event of a stream.
func (r *renderer) chunk(c choice) ([]byte, error) { return r.chunkOf(nil, c) }

// usageChunk is the last event of a stream that was asked for usage.
func (r *renderer) usageChunk(total usage) ([]byte, error) { return r.chunkOf(&total) }

func (r *renderer) chunkOf(total *usage, choices ...choice) ([]byte, error) {
	object := "text_completion"
	if r.job.chat {
		object = "chat.completion.chunk"
	}
	out := r.frame(object, choices...)
	if r.job.usage {
		return json.Marshal(usageChunk{response: out, Usage: total})
	}
	return json.Marshal(out)
}

// opening is a choice's first event: chat names the role, an echo repeats the prompt.
func (r *renderer) opening(index int) (choice, bool) {
	c := choice{Index: index}
	if r.job.chat {
		empty := ""
		c.Delta = &delta{Role: "assistant", Content: &empty}
		return c, true
	}
	text := r.echo(index)
	c.Text = &text
	return c, text != ""
}

// part is an event with text.
func (r *renderer) part(index int, p piece) choice {
	c := choice{Index: index, Logprobs: r.logprobs(p.tokens)}
	if r.job.chat {
		c.Delta = &delta{Content: &p.text}
	} else {
		c.Text = &p.text
	}
	return c
}

// closing is the event with a choice's finish reason.
func (r *renderer) closing(index int, finish string) choice {
	c := choice{Index: index, FinishReason: &finish}
	if r.job.chat {
		c.Delta = &delta{}
	} else {
		empty := ""
		c.Text = &empty
	}
	return c
}

func (r *renderer) logprobs(tokens []placed) any {
	if !r.job.logprobs {
		return nil
	}
	if r.job.chat {
		return r.chatLogprobs(tokens)
	}
	out := &textLogprobs{Tokens: []string{}, TokenLogprobs: []float32{}, TextOffset: []int{}}
	for _, t := range tokens {
		out.Tokens = append(out.Tokens, r.tokenText(t.ID))
		out.TokenLogprobs = append(out.TokenLogprobs, t.Logprob)
		out.TextOffset = append(out.TextOffset, t.offset)
		top := map[string]float32{}
		for _, x := range t.Top {
			top[r.tokenText(x.ID)] = x.Logprob
		}
		out.TopLogprobs = append(out.TopLogprobs, top)
	}
	if r.job.top == 0 {
		out.TopLogprobs = nil
	}
	return out
}

func (r *renderer) chatLogprobs(tokens []placed) *chatLogprobs {
	out := &chatLogprobs{Content: []chatToken{}}
	for _, t := range tokens {
		c := chatToken{Token: r.tokenText(t.ID), Logprob: t.Logprob, Bytes: r.tokenBytes(t.ID), TopLogprobs: []chatTopToken{}}
		for _, x := range t.Top {
			c.TopLogprobs = append(c.TopLogprobs, chatTopToken{Token: r.tokenText(x.ID), Logprob: x.Logprob, Bytes: r.tokenBytes(x.ID)})
		}
		out.Content = append(out.Content, c)
	}
	return out
}

func (r *renderer) tokenBytes(id int32) []int {
	out := []int{}
	for _, b := range r.tok.Bytes(id) {
		out = append(out, int(b))
	}
	return out
}

// tokenText prints a token: its text, "bytes:\xe2..." where that is no text of its own,
// or its name where it has none.
func (r *renderer) tokenText(id int32) string {
	b := r.tok.Bytes(id)
	if len(b) == 0 {
		return r.tok.Name(id)
	}
	if utf8.Valid(b) {
		return string(b)
	}
	var s strings.Builder
	s.WriteString("bytes:")
	for _, x := range b {
		fmt.Fprintf(&s, `\x%02x`, x)
	}
	return s.String()
}
