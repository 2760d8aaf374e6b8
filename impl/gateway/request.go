package gateway

import (
	"encoding/json"
	"fmt"
	"regexp"

	"kvfence/impl/node/api"
)

// job is a parsed request: what to ask of the backend and how to say the answer.
type job struct {
	chat    bool
	model   string // as given; "" is the served one
	prompts [][]int32
	n       int
	max     int // new tokens; 0: not given

	temperature, topP float32
	seed              *uint64 // nil: the gateway draws one
	stop              []string
	salt              string

	logprobs bool
	top      int // alternatives a token

	stream, usage bool
	echo          bool
}

// promptParam is the field that holds the prompt.
func (j *job) promptParam() string {
	if j.chat {
		return "messages"
	}
	return "prompt"
}

// limits of parsing, from the configuration.
type limits struct {
	choices    int // prompts x n
	defaultMax int
}

const maxStopBytes = 256

// parseCompletion reads the body of /v1/completions.
func parseCompletion(body []byte, tok Tokenizer, lim limits) (*job, *failure) {
	f, fault := parseFields(body)
	if fault != nil {
		return nil, fault
	}
	j := &job{}
	j.common(f, lim)
	if raw, ok := f.take("prompt"); ok {
		j.prompts, fault = parsePrompts(raw, tok, lim.choices)
		if fault != nil && f.fault == nil {
			f.fault = fault
		}
	} else {
		f.fail("prompt", "prompt is missing")
	}
	if v, ok := f.integer("logprobs", 0, 5); ok {
		j.logprobs, j.top = true, int(v)
	}
	j.echo = f.boolean("echo")
	if j.echo && j.logprobs {
		f.fail("echo", "echo with logprobs is not supported: log probabilities of prompt tokens are not computed")
	}
	f.neutral("best_of", fmt.Sprint(j.n))
	f.neutral("suffix", `""`)
	return j.checked(f, lim)
}

// parseChat reads the body of /v1/chat/completions.
func parseChat(body []byte, tok Tokenizer, lim limits) (*job, *failure) {
	f, fault := parseFields(body)
	if fault != nil {
		return nil, fault
	}
	j := &job{chat: true}
	j.common(f, lim)
	if raw, ok := f.take("messages"); ok {
		messages, fault := parseMessages(raw)
		if fault != nil && f.fault == nil {
			f.fault = fault
		}
		j.prompts = [][]int32{tok.Chat(messages)}
	} else {
		f.fail("messages", "messages is missing")
	}
	if v, ok := f.integer("max_completion_tokens", 1, 1<<28); ok {
		if j.max > 0 && j.max != int(v) {
			f.fail("max_completion_tokens", "max_tokens and max_completion_tokens differ")
		}
		j.max = int(v)
	}
	j.logprobs = f.boolean("logprobs")
	if v, ok := f.integer("top_logprobs", 0, api.MaxTopLogprobs); ok {
		if v > 0 && !j.logprobs {
			f.fail("top_logprobs", "top_logprobs needs logprobs")
		}
		j.top = int(v)
	}
	f.neutral("response_format", `{"type":"text"}`)
	f.neutral("tools", "[]")
	f.neutral("tool_choice", `"none"`, `"auto"`)
	f.neutral("functions", "[]")
	f.neutral("function_call", `"none"`, `"auto"`)
	f.neutral("parallel_tool_calls", "true", "false")
	f.neutral("modalities", `["text"]`)
	f.neutral("audio")
	f.neutral("prediction")
	f.neutral("reasoning_effort")
	f.neutral("verbosity")
	f.neutral("web_search_options")
	return j.checked(f, lim)
}

// common takes the fields that both forms share.
func (j *job) common(f *fields, lim limits) {
	j.model = f.text("model", 256)
	j.n = 1
	if v, ok := f.integer("n", 1, 128); ok {
		j.n = int(v)
	}
	if v, ok := f.integer("max_tokens", 1, 1<<28); ok {
		j.max = int(v)
	}
	j.temperature = float32(f.number("temperature", 0, 2, 1))
	j.topP = float32(f.number("top_p", 0, 1, 1))
	if v, ok := f.integer("seed", -1<<63, 1<<63-1); ok {
		seed := uint64(v)
		j.seed = &seed
	}
	j.stream = f.boolean("stream")
	if raw, ok := f.take("stop"); ok {
		j.stop = parseStop(f, raw)
	}
	if raw, ok := f.take("stream_options"); ok {
		j.streamOptions(f, raw)
	}
	_ = f.text("user", 512) // the caller's own label; nothing depends on it
	j.salt = f.text("cache_salt", api.MaxSaltBytes)
	f.neutral("frequency_penalty", "0")
	f.neutral("presence_penalty", "0")
	f.neutral("logit_bias", "{}")
	f.neutral("store", "false")
	f.neutral("metadata", "{}")
	f.neutral("service_tier", `"auto"`, `"default"`)
	f.neutral("safety_identifier")
	f.neutral("prompt_cache_key")
	f.neutral("prompt_cache_retention")
}

func (j *job) streamOptions(f *fields, raw json.RawMessage) {
	if !j.stream {
		f.fail("stream_options", "stream_options needs stream")
		return
	}
	o, fault := parseFields(raw)
	if fault == nil {
		j.usage = o.boolean("include_usage")
		o.neutral("include_obfuscation", "false")
		fault = o.finish()
	}
	if fault != nil {
		f.fail("stream_options", "stream_options: %s", fault.message)
	}
}

// checked ends the parsing.
func (j *job) checked(f *fields, lim limits) (*job, *failure) {
	if fault := f.finish(); fault != nil {
		return nil, fault
	}
	if len(j.prompts)*j.n > lim.choices {
		return nil, badParam("n", "%d prompts with n %d are %d choices; at most %d a request", len(j.prompts), j.n, len(j.prompts)*j.n, lim.choices)
	}
	if j.topP == 0 {
		j.temperature = 0 // the smallest nucleus is the most probable token alone
	}
	if j.max == 0 {
		j.max = lim.defaultMax
	}
	return j, nil
}

// parseStop reads one string or up to four.
func parseStop(f *fields, raw json.RawMessage) []string {
	var many []string
	if raw[0] == '"' {
		many = []string{""}
		if json.Unmarshal(raw, &many[0]) != nil {
			many = nil
		}
	} else if json.Unmarshal(raw, &many) != nil || len(many) == 0 {
		many = nil
		if string(raw) == "[]" {
			return nil
		}
	}
	if len(many) < 1 || len(many) > api.MaxStops {
		f.fail("stop", "stop must be a string, or a list of at most %d", api.MaxStops)
		return nil
	}
	for _, s := range many {
		if s == "" || len(s) > maxStopBytes {
			f.fail("stop", "a stop sequence must have 1 to %d bytes", maxStopBytes)
			return nil
		}
	}
	return many
}

var messageName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// parseMessages reads a conversation of text.
func parseMessages(raw json.RawMessage) ([]Message, *failure) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil || len(list) == 0 {
		return nil, badParam("messages", "messages must be a list with at least one message")
	}
	out := make([]Message, 0, len(list))
	for i, item := range list {
		at := fmt.Sprintf("messages[%d]", i)
		f, fault := parseFields(item)
		if fault != nil {
			return nil, badParam(at, "a message must be an object: %s", fault.message)
		}
		m := Message{Role: f.text("role", 32), Name: f.text("name", 64)}
		switch m.Role {
		case "system", "developer", "user", "assistant":
		default:
			f.fail("role", "role must be system, developer, user or assistant; tools are not supported")
		}
		if m.Name != "" && !messageName.MatchString(m.Name) {
			f.fail("name", "name may have letters, digits, underscore and dash, at most 64")
		}
		if content, ok := f.take("content"); ok {
			m.Content = parseContent(f, content)
		} else {
			f.fail("content", "content is missing")
		}
		f.neutral("refusal")
		f.neutral("tool_calls", "[]")
		if fault := f.finish(); fault != nil {
			return nil, badParam(at+"."+fault.param, "%s", fault.message)
		}
		out = append(out, m)
	}
	return out, nil
}

// parseContent reads a string or a list of text parts, which are joined.
func parseContent(f *fields, raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var parts []json.RawMessage
	if json.Unmarshal(raw, &parts) != nil || len(parts) == 0 {
		f.fail("content", "content must be a string or a list of text parts")
		return ""
	}
	for _, p := range parts {
		part, fault := parseFields(p)
		if fault == nil {
			if kind := part.text("type", 32); kind != "text" {
				part.fail("type", "only parts of type text are supported")
			}
			if _, ok := part.raw["text"]; !ok {
				part.fail("text", "a text part without text")
			}
			text += part.text("text", 1<<34)
			fault = part.finish()
		}
		if fault != nil {
			f.fail("content", "%s", fault.message)
			return ""
		}
	}
	return text
}
