package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"
)

// Code is the stable name of a failure.
type Code string

// The codes, each with one HTTP status.
const (
	ContextLengthExceeded Code = "context_length_exceeded" // 400: refused at admission, can never fit
	InvalidRequest        Code = "invalid_request"         // 400
	OverCapacity          Code = "over_capacity"           // 429: could fit, not now
	Deadline              Code = "deadline"                // 504
	PeerLost              Code = "peer_lost"               // 502: a node went away or spoke garbage
	ShuttingDown          Code = "shutting_down"           // 503
	KVMismatch            Code = "kv_mismatch"             // 502: a tag, digest or token count differs
	ClientGone            Code = "client_gone"             // 499: nobody is there to read it
	Internal              Code = "internal"                // 500
)

// Status is the HTTP status of a code; 0 for an unknown one.
func (c Code) Status() int {
	switch c {
	case ContextLengthExceeded, InvalidRequest:
		return http.StatusBadRequest
	case OverCapacity:
		return http.StatusTooManyRequests
	case Deadline:
		return http.StatusGatewayTimeout
	case PeerLost, KVMismatch:
		return http.StatusBadGateway
	case ShuttingDown:
		return http.StatusServiceUnavailable
	case ClientGone:
		return 499
	case Internal:
		return http.StatusInternalServerError
	}
	return 0
}

// Causes of [PeerLost] that this package itself finds; errors.Is finds them in an *Error.
var (
	// ErrTruncated: the stream ended without done or error.
	ErrTruncated = errors.New("the stream ended without an end")
	// ErrProtocol: the peer sent what the interface does not allow.
	ErrProtocol = errors.New("the peer broke the interface")
	// ErrUnreachable: no connection, or it broke.
	ErrUnreachable = errors.New("the node cannot be reached")
)

// Names of limits in Error.Limit.
const (
	LimitWindow      = "window"
	LimitPrefillPool = "prefill_pool"
	LimitDecodePool  = "decode_pool"
)

// Error is a failed request as both ends and the HTTP client see it.
type Error struct {
	Code    Code   `json:"code"`
	Status  int    `json:"status"`            // always Code.Status()
	Message string `json:"message"`           // for people; at most 4 KiB
	Cause   string `json:"cause,omitempty"`   // the first original cause, by its name in spec/reasons
	Param   string `json:"param,omitempty"`   // InvalidRequest: the field
	Limit   string `json:"limit,omitempty"`   // ContextLengthExceeded: the limit that refused, one of Limit*
	Need    int    `json:"need,omitempty"`    // tokens asked of that limit
	Allowed int    `json:"allowed,omitempty"` // tokens that limit has

	PromptTokens      int `json:"prompt_tokens,omitempty"`
	MaxTokens         int `json:"max_tokens,omitempty"` // as asked; 0: not given
	WindowTokens      int `json:"window_tokens,omitempty"`
	PrefillPoolTokens int `json:"prefill_pool_tokens,omitempty"`
	DecodePoolTokens  int `json:"decode_pool_tokens,omitempty"`

	RetryAfterSeconds int `json:"retry_after_seconds,omitempty"` // OverCapacity, ShuttingDown; 0: not said

	err error
}

// Errorf makes an Error of a code.
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Status: code.Status(), Message: clip(err.Error()), err: err}
}

// Error implements error.
func (e *Error) Error() string {
	s := string(e.Code) + ": " + e.Message
	if e.Cause != "" {
		s += " (cause: " + e.Cause + ")"
	}
	return s
}

// Unwrap gives the error that this end found, if it did.
func (e *Error) Unwrap() error { return e.err }

// CodeOf is the code of any error: "" for nil, that of an *Error in the chain,
// Deadline or ClientGone for the context's errors, else Internal.
func CodeOf(err error) Code {
	var e *Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return e.Code
	case errors.Is(err, context.DeadlineExceeded):
		return Deadline
	case errors.Is(err, context.Canceled):
		return ClientGone
	}
	return Internal
}

// AsError turns any error but nil into an *Error of its code.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return Errorf(CodeOf(err), "%w", err)
}

// sanitised is a copy with the status of its code and bounded texts; an unknown
// code becomes Internal.
func (e *Error) sanitised() *Error {
	c := *e
	if c.Code.Status() == 0 {
		c.Message = "code " + string(c.Code) + ": " + c.Message
		c.Code = Internal
	}
	c.Status = c.Code.Status()
	c.Message, c.Cause, c.Param, c.Limit = clip(c.Message), clip(c.Cause), clip(c.Param), clip(c.Limit)
	return &c
}

// check refuses what no node of ours sends.
func (e *Error) check() error {
	if e.Code.Status() == 0 || e.Status != e.Code.Status() {
		return fmt.Errorf("%w: error code %.40q with status %d", ErrProtocol, e.Code, e.Status)
	}
	for _, n := range []int{e.Need, e.Allowed, e.PromptTokens, e.MaxTokens, e.WindowTokens, e.PrefillPoolTokens, e.DecodePoolTokens, e.RetryAfterSeconds} {
		if n < 0 {
			return fmt.Errorf("%w: negative number in an error", ErrProtocol)
		}
	}
	return nil
}

const maxTextBytes = 4 << 10

func clip(s string) string {
	if len(s) > maxTextBytes {
		n := maxTextBytes
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
