package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kvfence/impl/node/api"
)

const maxHeaderBytes = 32 << 10

// errShutdown is the cause of what a drain ends by force.
var errShutdown = errors.New("gateway: shutting down")

// Deps are what the gateway is handed. All but TLS and Tokenizer must be there.
type Deps struct {
	Backend   api.Backend
	Log       *slog.Logger
	Registry  prometheus.Registerer
	Now       func() time.Time
	Rand      io.Reader   // ids and seeds; a cryptographic source
	TLS       *tls.Config // of the listener; nil: plain
	Tokenizer Tokenizer   // nil: ByteTokenizer
}

// Gateway is the HTTP front. Safe for concurrent use.
type Gateway struct {
	cfg     Config
	deps    Deps
	tok     Tokenizer
	keys    *keyring // nil: no keys, loopback only
	admit   *admission
	info    *infoCache
	metrics *metrics
	started time.Time
	random  sync.Mutex // for deps.Rand

	forced context.Context // ends when a drain's patience does
	force  context.CancelCauseFunc

	mu       sync.Mutex
	draining bool
	drain    chan struct{} // closed by Drain
	serving  bool
}

// New checks everything that can be checked before a listener is open: the
// configuration (defaults are filled in), the key file, the dependencies.
func New(cfg Config, deps Deps) (*Gateway, error) {
	cfg = cfg.WithDefaults()
	if deps.Backend == nil || deps.Log == nil || deps.Registry == nil || deps.Now == nil || deps.Rand == nil {
		return nil, fmt.Errorf("%w: backend, log, registry, clock and randomness must be handed in", ErrConfig)
	}
	if err := cfg.Validate(deps.TLS != nil); err != nil {
		return nil, err
	}
	if len(cfg.HeaderProxies) > 0 {
		deps.TLS = deps.TLS.Clone()
		if deps.TLS.ClientAuth == tls.NoClientCert {
			deps.TLS.ClientAuth = tls.VerifyClientCertIfGiven
		}
		if deps.TLS.ClientCAs == nil && deps.TLS.GetConfigForClient == nil {
			return nil, fmt.Errorf("%w: a header proxy needs a certificate authority for client certificates", ErrConfig)
		}
	}
	g := &Gateway{cfg: cfg, deps: deps, tok: deps.Tokenizer, admit: newAdmission(cfg), drain: make(chan struct{}), started: deps.Now()}
	if g.tok == nil {
		g.tok = ByteTokenizer{}
	}
	g.forced, g.force = context.WithCancelCause(context.Background())
	g.info = &infoCache{backend: deps.Backend, now: deps.Now}
	var err error
	if g.metrics, err = newMetrics(deps.Registry, g.admit); err != nil {
		return nil, err
	}
	if cfg.KeysFile != "" {
		if g.keys, err = openKeys(cfg.KeysFile, cfg.KeysReload, deps.Now, g.keysChanged); err != nil {
			return nil, err
		}
	}
	return g, nil
}

func (g *Gateway) keysChanged(err error) {
	if err != nil {
		g.metrics.keyFailures.Inc()
		g.deps.Log.Error("the changed key file cannot be used; the old keys stay in force", "err", err)
		return
	}
	g.deps.Log.Info("API keys reloaded", "file", g.cfg.KeysFile)
}

// Serve answers on ln until ctx ends or Drain is called, then drains: it stops
// accepting, lets running requests finish within the drain timeout, and ends the rest
// with their error. It closes ln and returns nil after a drain. Call it once.
func (g *Gateway) Serve(ctx context.Context, ln net.Listener) error {
	g.mu.Lock()
	again := g.serving
	g.serving = true
	g.mu.Unlock()
	if again {
		return errors.New("gateway: Serve was called twice")
	}
	if g.keys == nil {
		g.deps.Log.Info("no API keys: only requests from and to loopback are answered, all as one tenant", "header_proxies", g.cfg.HeaderProxies)
	}
	srv := &http.Server{
		Handler: g, TLSConfig: g.deps.TLS, MaxHeaderBytes: maxHeaderBytes,
		ReadHeaderTimeout: g.cfg.HeaderTimeout, IdleTimeout: g.cfg.IdleTimeout,
		ErrorLog: slog.NewLogLogger(g.deps.Log.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() {
		limited := newLimitListener(ln, g.cfg.MaxConns)
		if g.deps.TLS != nil {
			ended <- srv.ServeTLS(limited, "", "")
			return
		}
		ended <- srv.Serve(limited)
	}()
	select {
	case err := <-ended:
		return fmt.Errorf("gateway: %w", err)
	case <-ctx.Done():
		g.Drain()
	case <-g.drain:
	}
	g.shutdown(srv)
	<-ended
	return nil
}

// shutdown waits for running requests, then ends them.
func (g *Gateway) shutdown(srv *http.Server) {
	g.deps.Log.Info("gateway drains", "timeout", g.cfg.DrainTimeout)
	ctx, cancel := context.WithTimeout(context.Background(), g.cfg.DrainTimeout)
	defer cancel()
	if srv.Shutdown(ctx) == nil {
		return
	}
	g.deps.Log.Warn("requests are still running after the drain timeout; they are ended")
	g.force(errShutdown)
	last, cancelLast := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancelLast()
	if err := srv.Shutdown(last); err != nil {
		_ = srv.Close() // connections whose handlers wait for a client that does not read
	}
}

// Drain begins the drain: new requests get 503, Serve ends when the running ones
// have. It returns at once; a second call does nothing.
func (g *Gateway) Drain() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.draining {
		g.draining = true
		close(g.drain)
	}
}

func (g *Gateway) isDraining() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.draining
}

// Ready says why the gateway cannot answer now, or nil.
func (g *Gateway) Ready(ctx context.Context) error {
	if g.isDraining() {
		return errors.New("draining")
	}
	info, err := g.info.get(ctx, true)
	switch {
	case err != nil:
		return fmt.Errorf("no node: %w", err)
	case info.Draining:
		return errors.New("the node is draining")
	case !info.Ready:
		return fmt.Errorf("the node is not ready: %s", info.Reason)
	}
	return nil
}

// Status is the gateway's part of a status page.
type Status struct {
	Draining      bool     `json:"draining"`
	ActiveChoices int      `json:"active_choices"`
	WaitingChoice int      `json:"waiting_choices"`
	TenantsInside int      `json:"tenants_inside"`
	APIKeys       int      `json:"api_keys"`
	KeysError     string   `json:"keys_error,omitempty"`
	UptimeSeconds int64    `json:"uptime_seconds"`
	Node          api.Info `json:"node"`
	NodeError     string   `json:"node_error,omitempty"`
}

// Text is the status for people.
func (s Status) Text() string {
	out := fmt.Sprintf("gateway  draining %t  active choices %d  waiting choices %d  tenants inside %d  API keys %d\n", s.Draining, s.ActiveChoices, s.WaitingChoice, s.TenantsInside, s.APIKeys)
	if s.KeysError != "" {
		out += "  the keys file cannot be used, the old keys stay in force: " + s.KeysError + "\n"
	}
	if s.NodeError != "" {
		return out + "  node does not answer: " + s.NodeError + "\n"
	}
	n := s.Node
	out += fmt.Sprintf("  node %s  ready %t  model %s  window %d  prefill pool %d  decode pool %d tokens", n.Node, n.Ready, n.Model, n.WindowTokens, n.PrefillPoolTokens, n.DecodePoolTokens)
	if n.Reason != "" {
		out += "  (" + n.Reason + ")"
	}
	return out + "\n"
}

// Status reports what the gateway carries and what it knows of its node.
func (g *Gateway) Status(ctx context.Context) Status {
	s := Status{Draining: g.isDraining(), UptimeSeconds: int64(g.deps.Now().Sub(g.started) / time.Second)}
	s.ActiveChoices, s.WaitingChoice, s.TenantsInside = g.admit.load()
	if g.keys != nil {
		n, err := g.keys.state()
		s.APIKeys = n
		if err != nil {
			s.KeysError = err.Error()
		}
	}
	info, err := g.info.get(ctx, true)
	s.Node = info
	if err != nil {
		s.NodeError = err.Error()
	}
	return s
}
