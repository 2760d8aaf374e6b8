package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Section is a part of /status and of the page, in the order given.
type Section struct {
	Name   string                                 // key in /status
	Status func(ctx context.Context) (any, error) // must be sayable as JSON; called at most once a request
}

// Config is what the listener shows. Ready and Gatherer must be there.
type Config struct {
	Title        string // of the page, e.g. "kvfence decode"
	LoopbackOnly bool   // the listener is on loopback: other host names are refused
	Gatherer     prometheus.Gatherer
	Ready        func(ctx context.Context) error // nil: ready
	Drain        func()                          // nil: POST /drain is refused
	Sections     []Section
	Log          *slog.Logger
}

// Handler serves the operator's paths. Safe for concurrent use.
func Handler(cfg Config) (http.Handler, error) {
	if cfg.Gatherer == nil || cfg.Ready == nil || cfg.Log == nil {
		return nil, errors.New("operator: gatherer, readiness and log must be handed in")
	}
	seen := map[string]bool{"ready": true, "reason": true, "": true}
	for _, s := range cfg.Sections {
		if seen[s.Name] || s.Status == nil {
			return nil, fmt.Errorf("operator: section %q has no status, or its name is taken", s.Name)
		}
		seen[s.Name] = true
	}
	h := &handler{cfg}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(cfg.Gatherer, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", h.ready)
	mux.HandleFunc("GET /status", h.status)
	mux.HandleFunc("POST /drain", h.drain)
	mux.HandleFunc("GET /{$}", h.page)
	var cross http.CrossOriginProtection
	return h.guard(cross.Handler(mux)), nil
}

// Serve answers on ln until ctx ends. TLS is the listener's.
func Serve(ctx context.Context, ln net.Listener, handler http.Handler, log *slog.Logger) error {
	srv := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: 60 * time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(ln) }()
	select {
	case err := <-ended:
		return fmt.Errorf("operator: %w", err)
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if srv.Shutdown(last) != nil {
		_ = srv.Close() // whoever still reads a status of a process that ends
	}
	<-ended
	return nil
}

type handler struct{ cfg Config }

func (h *handler) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("X-Frame-Options", "DENY")
		w.Header().Set("Cache-Control", "no-store")
		if h.cfg.LoopbackOnly && !loopbackName(r.Host) {
			plain(w, http.StatusForbidden, "this listener answers under loopback's names only")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// loopbackName looks at a Host header.
func loopbackName(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, text) // a client that left reads nothing
}

func (h *handler) ready(w http.ResponseWriter, r *http.Request) {
	if err := h.cfg.Ready(r.Context()); err != nil {
		plain(w, http.StatusServiceUnavailable, "not ready: "+err.Error())
		return
	}
	plain(w, http.StatusOK, "ok")
}

func (h *handler) drain(w http.ResponseWriter, r *http.Request) {
	if h.cfg.Drain == nil {
		plain(w, http.StatusNotImplemented, "this process does not drain by request")
		return
	}
	h.cfg.Log.Info("drain asked for", "from", r.RemoteAddr)
	h.cfg.Drain()
	writeJSON(w, http.StatusAccepted, []byte(`{"draining":true}`))
}

// part is one section as it answered.
type part struct {
	Name string
	JSON json.RawMessage
}

func (h *handler) parts(ctx context.Context) []part {
	out := make([]part, 0, len(h.cfg.Sections))
	for _, s := range h.cfg.Sections {
		v, err := s.Status(ctx)
		var b []byte
		if err == nil {
			b, err = json.Marshal(v)
		}
		if err != nil {
			b, _ = json.Marshal(map[string]string{"error": err.Error()}) // strings always marshal
		}
		out = append(out, part{s.Name, b})
	}
	return out
}

// status is {"ready", "reason", then each section by its name}.
func (h *handler) status(w http.ResponseWriter, r *http.Request) {
	reason := ""
	if err := h.cfg.Ready(r.Context()); err != nil {
		reason = err.Error()
	}
	all := map[string]any{"ready": reason == "", "reason": reason}
	for _, p := range h.parts(r.Context()) {
		all[p.Name] = p.JSON
	}
	b, err := json.Marshal(all) // map keys come out sorted
	if err != nil {
		plain(w, http.StatusInternalServerError, "a section is not JSON")
		return
	}
	writeJSON(w, http.StatusOK, b)
}

func writeJSON(w http.ResponseWriter, status int, b []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // a client that left reads nothing
}
