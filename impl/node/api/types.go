package api

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"
	"unicode/utf8"
)

// Bounds of a request's small fields.
const (
	MaxIDBytes       = 128  // Request.ID
	MaxTenantBytes   = 64   // Request.Tenant
	MaxSaltBytes     = 256  // Request.Salt
	MaxAdapterBytes  = 128  // Request.Adapter
	MaxTopLogprobs   = 20   // Request.TopLogprobs
	MaxStops         = 4    // sequences of Request.Stop
	MaxStopTokens    = 1024 // tokens of one of them
	maxTimeLeft      = 24 * time.Hour
	maxTemperature   = 100
	requestOverhead  = 64 << 10 // bytes of a request beside its prompt
	bytesPerToken    = 6        // base64 of four bytes, rounded up
	maxPromptCeiling = 1 << 28  // tokens: no configuration may exceed it
)

// ErrRequest: a request that breaks a bound of this package.
var ErrRequest = errors.New("api: bad request")

// Tokens are token ids. As JSON they are base64 of little-endian uint32, so that a
// million of them parse in milliseconds.
type Tokens []int32

// MarshalJSON implements json.Marshaler.
func (t Tokens) MarshalJSON() ([]byte, error) {
	raw := make([]byte, 0, 4*len(t))
	for _, id := range t {
		raw = binary.LittleEndian.AppendUint32(raw, uint32(id))
	}
	out := make([]byte, 0, base64.StdEncoding.EncodedLen(len(raw))+2)
	out = append(out, '"')
	out = base64.StdEncoding.AppendEncode(out, raw)
	return append(out, '"'), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *Tokens) UnmarshalJSON(b []byte) error {
	if len(b) < 2 || b[0] != '"' || b[len(b)-1] != '"' {
		return fmt.Errorf("%w: prompt is not a base64 string", ErrRequest)
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(string(b[1 : len(b)-1]))
	if err != nil || len(raw)%4 != 0 {
		return fmt.Errorf("%w: prompt is not base64 of 32-bit token ids", ErrRequest)
	}
	ids := make(Tokens, len(raw)/4)
	for i := range ids {
		ids[i] = int32(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	*t = ids
	return nil
}

// Request is one completion of one prompt. Several samples of a prompt are
// several requests.
type Request struct {
	ID          string    `json:"id"`     // a label for logs; may repeat, names nothing
	Tenant      string    `json:"tenant"` // isolation domain; set by the gateway from the caller's identity
	Salt        string    `json:"salt,omitempty"`
	Adapter     string    `json:"adapter,omitempty"` // empty: the base model
	Prompt      Tokens    `json:"prompt"`
	MaxTokens   int       `json:"max_tokens,omitempty"`  // most new tokens; 0: not given, what window and pool leave
	Temperature float32   `json:"temperature,omitempty"` // 0: greedy
	TopP        float32   `json:"top_p,omitempty"`       // 0: 1
	Seed        uint64    `json:"seed,omitempty"`
	Logprobs    bool      `json:"logprobs,omitempty"`     // log probability of each token
	TopLogprobs int       `json:"top_logprobs,omitempty"` // alternatives a token, with Logprobs
	Stop        [][]int32 `json:"stop,omitempty"`         // the node ends (stop) after the token that completes one; that token is sent and counted
	TimeLeft    Millis    `json:"time_left_millis"`       // budget from receipt at the node until done
}

// Millis is a duration that is whole milliseconds in JSON.
type Millis time.Duration

// MarshalJSON implements json.Marshaler; it rounds up, so that some time left stays some.
func (m Millis) MarshalJSON() ([]byte, error) {
	d := time.Duration(m)
	return json.Marshal(int64((d + time.Millisecond - 1) / time.Millisecond))
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *Millis) UnmarshalJSON(b []byte) error {
	var v int64
	if err := json.Unmarshal(b, &v); err != nil {
		return fmt.Errorf("%w: time_left_millis: %w", ErrRequest, err)
	}
	if v > int64(maxTimeLeft/time.Millisecond) || v < -int64(maxTimeLeft/time.Millisecond) {
		return fmt.Errorf("%w: time_left_millis %d beyond a day", ErrRequest, v)
	}
	*m = Millis(time.Duration(v) * time.Millisecond)
	return nil
}

// Validate checks every field's bounds; vocabulary, window and adapter are the
// node's to check. Errors wrap [ErrRequest].
func (r *Request) Validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrRequest}, args...)...)
	}
	for _, f := range []struct {
		name, value string
		limit       int
	}{{"id", r.ID, MaxIDBytes}, {"tenant", r.Tenant, MaxTenantBytes}, {"salt", r.Salt, MaxSaltBytes}, {"adapter", r.Adapter, MaxAdapterBytes}} {
		if len(f.value) > f.limit || !utf8.ValidString(f.value) {
			return bad("%s has %d bytes (at most %d of UTF-8)", f.name, len(f.value), f.limit)
		}
	}
	if r.Tenant == "" {
		return bad("no tenant")
	}
	if len(r.Prompt) == 0 {
		return bad("the prompt has no tokens")
	}
	for i, id := range r.Prompt {
		if id < 0 {
			return bad("token %d at position %d", id, i)
		}
	}
	if r.MaxTokens < 0 || r.MaxTokens > maxPromptCeiling {
		return bad("max_tokens %d", r.MaxTokens)
	}
	if !(r.Temperature >= 0 && r.Temperature <= maxTemperature) || math.IsNaN(float64(r.TopP)) || r.TopP < 0 || r.TopP > 1 {
		return bad("temperature %v or top_p %v", r.Temperature, r.TopP)
	}
	if r.TopLogprobs < 0 || r.TopLogprobs > MaxTopLogprobs || (r.TopLogprobs > 0 && !r.Logprobs) {
		return bad("top_logprobs %d (0..%d, with logprobs)", r.TopLogprobs, MaxTopLogprobs)
	}
	if len(r.Stop) > MaxStops {
		return bad("%d stop sequences, at most %d", len(r.Stop), MaxStops)
	}
	for i, s := range r.Stop {
		if len(s) == 0 || len(s) > MaxStopTokens {
			return bad("stop sequence %d has %d tokens (1..%d)", i, len(s), MaxStopTokens)
		}
	}
	if r.TimeLeft <= 0 || time.Duration(r.TimeLeft) > maxTimeLeft {
		return bad("time left %v", time.Duration(r.TimeLeft))
	}
	return nil
}

// Info is what a decode leader says about itself and its pair. Zero numbers mean
// not known yet (Ready is false then).
type Info struct {
	Model             string   `json:"model"`
	Revision          string   `json:"revision"`
	Adapters          []string `json:"adapters,omitempty"`
	Vocab             int      `json:"vocab"`
	WindowTokens      int      `json:"window_tokens"`
	PrefillPoolTokens int      `json:"prefill_pool_tokens"` // measured capacity, the smallest of the prefill side's ranks
	DecodePoolTokens  int      `json:"decode_pool_tokens"`
	PageTokens        int      `json:"page_tokens"`
	MaxPromptTokens   int      `json:"max_prompt_tokens"` // bound of this interface's body; at least the window
	Node              string   `json:"node,omitempty"`
	Incarnation       string   `json:"incarnation,omitempty"`
	Ready             bool     `json:"ready"`
	Draining          bool     `json:"draining,omitempty"`
	Reason            string   `json:"reason,omitempty"` // why not ready
}

// Backend is what a gateway needs of a node. [Client] implements it; safe for
// concurrent use.
type Backend interface {
	// Open starts a request. The stream must be closed; closing it early aborts
	// the request at the node. ctx covers the whole stream. Errors are *Error.
	Open(ctx context.Context, req *Request) (Stream, error)
	// Info asks the node about itself.
	Info(ctx context.Context) (Info, error)
}

// Stream yields a request's events.
type Stream interface {
	// Next returns the next event (never of kind error: that is returned as
	// *Error), or io.EOF after done. Every error is final. One goroutine at a time.
	Next() (Event, error)
	// Close ends the request if it has not ended. Safe to call from any goroutine
	// and more than once.
	Close() error
}
