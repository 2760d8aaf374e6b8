package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"kvfence/impl/node/api"
)

// failure is an error as the HTTP client sees it.
type failure struct {
	status     int
	kind       string // "type" in the API's words
	code       string // stable; "" is null
	param      string // the field at fault; "" is null
	message    string
	retryAfter time.Duration // 0: no Retry-After
	allow      string        // 405: the method that works
}

// Error implements error, for logs; it holds no prompt text.
func (f *failure) Error() string { return f.code + ": " + f.message }

const kindRequest = "invalid_request_error"

// badParam refuses a field.
func badParam(param, format string, args ...any) *failure {
	return &failure{status: http.StatusBadRequest, kind: kindRequest, code: string(api.InvalidRequest), param: param, message: fmt.Sprintf(format, args...)}
}

func refuse(status int, code, format string, args ...any) *failure {
	return &failure{status: status, kind: kindRequest, code: code, message: fmt.Sprintf(format, args...)}
}

// body is the error shape: {"error": {"message", "type", "param", "code"}}.
func (f *failure) body() []byte {
	orNull := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	b, err := json.Marshal(map[string]any{"error": map[string]any{
		"message": f.message, "type": f.kind, "param": orNull(f.param), "code": orNull(f.code),
	}})
	if err != nil { // strings and nils only: cannot happen
		return []byte(`{"error":{"message":"internal error","type":"server_error","param":null,"code":"internal"}}`)
	}
	return append(b, '\n')
}

// write sends the failure as the whole response.
func (f *failure) write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	if f.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(max(1, int((f.retryAfter+time.Second-1)/time.Second))))
	}
	if f.allow != "" {
		h.Set("Allow", f.allow)
	}
	if f.status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="kvfence"`)
	}
	w.WriteHeader(f.status)
	_, _ = w.Write(f.body()) // a client that left reads nothing
}

// fromNode translates a node's error. promptParam is the field that holds the prompt;
// retryAfter is said where the node says nothing.
func fromNode(err error, promptParam string, retryAfter time.Duration) *failure {
	var own *failure
	if errors.As(err, &own) {
		return own
	}
	e := api.AsError(err)
	f := &failure{status: e.Code.Status(), code: string(e.Code), message: e.Message, param: e.Param, kind: "server_error"}
	if f.status == 0 {
		f.status, f.code = http.StatusInternalServerError, string(api.Internal)
	}
	if f.message == "" {
		f.message = "the node gave no reason"
	}
	if e.Cause != "" && e.Cause != string(e.Code) {
		f.message += " (cause: " + e.Cause + ")"
	}
	switch e.Code {
	case api.ContextLengthExceeded:
		f.kind, f.param, f.message = kindRequest, promptParam, tooLong(e)
	case api.InvalidRequest:
		f.kind = kindRequest
		if f.param == "" {
			f.param = promptParam
		}
	case api.OverCapacity:
		f.kind = "rate_limit_error"
	case api.Deadline:
		f.kind = "timeout_error"
	}
	if e.Code == api.OverCapacity || e.Code == api.ShuttingDown {
		f.retryAfter = retryAfter
		if e.RetryAfterSeconds > 0 {
			f.retryAfter = time.Duration(min(e.RetryAfterSeconds, 3600)) * time.Second
		}
	}
	return f
}

// tooLong names the prompt's length and the limit, whatever the node's own words are.
func tooLong(e *api.Error) string {
	limit, name := e.Allowed, map[string]string{
		api.LimitWindow: "context window", api.LimitPrefillPool: "prefill pool", api.LimitDecodePool: "decode pool",
	}[e.Limit]
	if name == "" {
		name = "limit"
	}
	if limit == 0 {
		limit = map[string]int{
			api.LimitWindow: e.WindowTokens, api.LimitPrefillPool: e.PrefillPoolTokens, api.LimitDecodePool: e.DecodePoolTokens,
		}[e.Limit]
	}
	var b strings.Builder
	fmt.Fprintf(&b, "the prompt has %d tokens", e.PromptTokens)
	switch {
	case e.MaxTokens == 1:
		b.WriteString(" and 1 new token was asked for")
	case e.MaxTokens > 1:
		fmt.Fprintf(&b, " and %d new tokens were asked for", e.MaxTokens)
	}
	fmt.Fprintf(&b, ", but the %s holds %d", name, limit)
	if e.WindowTokens+e.PrefillPoolTokens+e.DecodePoolTokens > 0 {
		fmt.Fprintf(&b, " (window %d, prefill pool %d, decode pool %d tokens)", e.WindowTokens, e.PrefillPoolTokens, e.DecodePoolTokens)
	}
	if e.Message != "" {
		b.WriteString(": " + e.Message)
	}
	return b.String()
}
