package gateway

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"kvfence/impl/node/api"
)

// exchange is what is known of one HTTP request, for the log and the metrics.
type exchange struct {
	id        string
	endpoint  string // bounded: a route's name, or "other"
	generates bool
	tenant    string
	code      string // of the error; "": none
	usage     usage
	start     time.Time
}

// recorder remembers the status line and gives every write a deadline of its own: a
// kept connection would otherwise still carry that of its last answer.
type recorder struct {
	http.ResponseWriter
	status  int
	timeout time.Duration
	now     func() time.Time
}

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.extend()
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	w.extend()
	return w.ResponseWriter.Write(b)
}

// extend sets the deadline; a test's recorder has none.
func (w *recorder) extend() {
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(w.now().Add(w.timeout))
}

// Unwrap lets http.ResponseController reach the connection.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// ServeHTTP answers one request: identity in a header, route, log, metrics. A panic
// of a handler is a 500, or, once a status line is out, a broken connection.
func (g *Gateway) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	x := &exchange{id: g.randomID(), endpoint: "other", start: g.deps.Now()}
	w := &recorder{ResponseWriter: rw, timeout: g.cfg.WriteTimeout, now: g.deps.Now}
	w.Header().Set("X-Request-Id", x.id)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	defer func() {
		p := recover()
		if p != nil {
			x.code = string(api.Internal)
			if err, ok := p.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
				g.deps.Log.Error("a handler panicked", "request", x.id, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			}
			if w.status == 0 {
				(&failure{status: http.StatusInternalServerError, kind: "server_error", code: x.code, message: "internal error"}).write(w)
				p = nil
			}
		}
		g.ended(x, w.status, r)
		if p != nil {
			panic(http.ErrAbortHandler)
		}
	}()
	if f := g.route(x, w, r); f != nil {
		x.code = f.code
		f.write(w)
	}
}

func (g *Gateway) ended(x *exchange, status int, r *http.Request) {
	took := g.deps.Now().Sub(x.start)
	g.metrics.observe(x, status, took, g.keys != nil && len(g.cfg.HeaderProxies) == 0 || x.tenant == noKeysTenant)
	level := slog.LevelInfo
	if !x.generates && status < 400 {
		level = slog.LevelDebug
	}
	g.deps.Log.Log(r.Context(), level, "request", "request", x.id, "tenant", x.tenant, "method", clipName(r.Method), "endpoint", x.endpoint,
		"status", status, "code", x.code, "prompt_tokens", x.usage.PromptTokens, "completion_tokens", x.usage.CompletionTokens, "took", took)
}

// route finds the handler. What it returns has not been written yet.
func (g *Gateway) route(x *exchange, w http.ResponseWriter, r *http.Request) *failure {
	only := func(methods ...string) *failure {
		for _, m := range methods {
			if r.Method == m {
				return nil
			}
		}
		f := refuse(http.StatusMethodNotAllowed, "method_not_allowed", "%s is not for this path; use %s", clipName(r.Method), methods[0])
		f.allow = strings.Join(methods, ", ")
		return f
	}
	path := r.URL.Path
	switch {
	case path == "/v1/completions" || path == "/v1/chat/completions":
		x.endpoint, x.generates = strings.TrimPrefix(path, "/v1/"), true
		if f := only(http.MethodPost); f != nil {
			return f
		}
		return g.generate(x, w, r)
	case path == "/v1/models" || strings.HasPrefix(path, "/v1/models/"):
		x.endpoint = "models"
		if f := only(http.MethodGet, http.MethodHead); f != nil {
			return f
		}
		return g.models(x, w, r, strings.TrimPrefix(strings.TrimPrefix(path, "/v1/models"), "/"))
	case path == "/readyz" || path == "/healthz":
		x.endpoint = path[1:]
		if f := only(http.MethodGet, http.MethodHead); f != nil {
			return f
		}
		g.health(x, w, r)
		return nil
	}
	return refuse(http.StatusNotFound, "not_found", "there is nothing here; see /v1/completions, /v1/chat/completions and /v1/models")
}

func (g *Gateway) health(x *exchange, w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if x.endpoint == "readyz" {
		if err := g.Ready(r.Context()); err != nil {
			x.code = "not_ready"
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintf(w, "not ready: %v\n", err)
			return
		}
	}
	fmt.Fprintln(w, "ok")
}

// models lists the served model and its adapters.
func (g *Gateway) models(x *exchange, w http.ResponseWriter, r *http.Request, one string) *failure {
	id, f := g.identify(r)
	if f != nil {
		return f
	}
	x.tenant = id.tenant
	info, err := g.info.get(r.Context(), false)
	if err != nil {
		return fromNode(err, "", g.cfg.RetryAfter)
	}
	type model struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Created int64  `json:"created"`
		OwnedBy string `json:"owned_by"`
	}
	list := []model{}
	for _, name := range append([]string{info.Model}, info.Adapters...) {
		m := model{name, "model", g.started.Unix(), "kvfence"}
		if name == one {
			return g.json(w, m)
		}
		list = append(list, m)
	}
	if one != "" {
		return noModel(one)
	}
	return g.json(w, map[string]any{"object": "list", "data": list})
}

func noModel(name string) *failure {
	f := refuse(http.StatusNotFound, "model_not_found", "the model %q is not served here; see /v1/models", clipName(name))
	f.param = "model"
	return f
}

func (g *Gateway) json(w http.ResponseWriter, v any) *failure {
	b, err := json.Marshal(v)
	if err != nil {
		return fromNode(api.Errorf(api.Internal, "an answer that cannot be said as JSON"), "", 0)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(append(b, '\n')) // a client that left reads nothing
	return nil
}

// body reads a JSON body within its bounds.
func (g *Gateway) body(w http.ResponseWriter, r *http.Request) ([]byte, *failure) {
	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset := strings.ToLower(params["charset"])
	if err != nil || media != "application/json" || charset != "" && charset != "utf-8" {
		return nil, refuse(http.StatusUnsupportedMediaType, "unsupported_media_type", "send Content-Type: application/json, in UTF-8")
	}
	if enc := r.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return nil, refuse(http.StatusUnsupportedMediaType, "unsupported_media_type", "compressed bodies are not accepted")
	}
	rc := http.NewResponseController(w)
	// A test's recorder has no deadline. It is lifted again so that the server's watch
	// for a leaving client does not run into it.
	_ = rc.SetReadDeadline(g.deps.Now().Add(g.cfg.BodyTimeout))
	defer func() { _ = rc.SetReadDeadline(time.Time{}) }()
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, g.cfg.MaxBodyBytes))
	var big *http.MaxBytesError
	switch {
	case errors.As(err, &big):
		return nil, refuse(http.StatusRequestEntityTooLarge, "body_too_large", "the body has more than %d bytes, which no prompt that fits needs", g.cfg.MaxBodyBytes)
	case err != nil:
		return nil, refuse(http.StatusBadRequest, string(api.InvalidRequest), "the body did not arrive whole or in time")
	}
	return b, nil
}

// randomID names a request in logs and answers.
func (g *Gateway) randomID() string {
	var b [12]byte
	if !g.fillRandom(b[:]) {
		return "req_unnamed" // a label only
	}
	return "req_" + hex.EncodeToString(b[:])
}

func (g *Gateway) fillRandom(b []byte) bool {
	g.random.Lock()
	defer g.random.Unlock()
	_, err := io.ReadFull(g.deps.Rand, b)
	return err == nil
}
