package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
)

// Kind names an event.
type Kind string

// Kinds of events.
const (
	KindAccepted Kind = "accepted" // admitted; nothing is promised
	KindReady    Kind = "ready"    // KV complete and verified at decode
	KindToken    Kind = "token"
	KindDone     Kind = "done"
	KindError    Kind = "error"
)

// Finish reasons.
const (
	FinishStop   = "stop"
	FinishLength = "length"
)

// Event is one line of a stream: a kind, and the one field of that kind.
type Event struct {
	Kind     Kind      `json:"event"`
	Accepted *Accepted `json:"accepted,omitempty"`
	Ready    *Ready    `json:"ready,omitempty"`
	Token    *Token    `json:"token,omitempty"`
	Done     *Done     `json:"done,omitempty"`
	Error    *Error    `json:"error,omitempty"`
}

// Accepted: the decode leader admitted the request.
type Accepted struct {
	PromptTokens int `json:"prompt_tokens"` // as decode counts
}

// Ready carries both nodes' own counts of the prompt; they must agree with each
// other and with the gateway's.
type Ready struct {
	DecodePromptTokens  int `json:"decode_prompt_tokens"`
	PrefillPromptTokens int `json:"prefill_prompt_tokens"`
}

// Token is one generated token, after its step's second tag check. EOS is never
// sent.
type Token struct {
	ID      int32      `json:"id"`
	Logprob float32    `json:"logprob,omitempty"` // with Request.Logprobs; finite
	Top     []TopToken `json:"top,omitempty"`     // with Request.TopLogprobs
}

// TopToken is an alternative, most probable first.
type TopToken struct {
	ID      int32   `json:"id"`
	Logprob float32 `json:"logprob"`
}

// Done is the success verdict.
type Done struct {
	Finish           string `json:"finish"` // FinishStop or FinishLength
	PromptTokens     int    `json:"prompt_tokens"`
	CompletionTokens int    `json:"completion_tokens"` // number of token events
}

// ParseEvent reads one line without its newline. Errors wrap [ErrProtocol].
func ParseEvent(line []byte) (Event, error) {
	var e Event
	if err := strictJSON(line, &e); err != nil {
		return Event{}, fmt.Errorf("%w: event: %v", ErrProtocol, err)
	}
	if err := e.check(); err != nil {
		return Event{}, err
	}
	return e, nil
}

// AppendEvent appends e as one line with its newline. It refuses what ParseEvent
// would refuse.
func AppendEvent(b []byte, e Event) ([]byte, error) {
	if err := e.check(); err != nil {
		return b, err
	}
	line, err := json.Marshal(e)
	if err != nil {
		return b, fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	return append(append(b, line...), '\n'), nil
}

func (e Event) check() error {
	fields := map[Kind]bool{
		KindAccepted: e.Accepted != nil, KindReady: e.Ready != nil, KindToken: e.Token != nil,
		KindDone: e.Done != nil, KindError: e.Error != nil,
	}
	if _, known := fields[e.Kind]; !known {
		return fmt.Errorf("%w: event kind %.40q", ErrProtocol, e.Kind)
	}
	for kind, present := range fields { // every entry is looked at; order does not matter
		if present != (kind == e.Kind) {
			return fmt.Errorf("%w: event %s without its field, or with another's", ErrProtocol, e.Kind)
		}
	}
	switch e.Kind {
	case KindToken:
		return e.Token.check()
	case KindDone:
		if e.Done.Finish != FinishStop && e.Done.Finish != FinishLength {
			return fmt.Errorf("%w: finish reason %.40q", ErrProtocol, e.Done.Finish)
		}
	case KindError:
		return e.Error.check()
	}
	return nil
}

func (t *Token) check() error {
	bad := t.ID < 0 || !finite(t.Logprob) || len(t.Top) > MaxTopLogprobs
	for _, top := range t.Top {
		bad = bad || top.ID < 0 || !finite(top.Logprob)
	}
	if bad {
		return fmt.Errorf("%w: token %d with log probability %v and %d alternatives", ErrProtocol, t.ID, t.Logprob, len(t.Top))
	}
	return nil
}

func finite(f float32) bool { return !math.IsNaN(float64(f)) && !math.IsInf(float64(f), 0) }

// strictJSON decodes exactly one value without unknown fields.
func strictJSON(b []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("more than one value")
	}
	return nil
}
