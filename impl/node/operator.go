package node

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"kvfence/impl/config"
)

// operator serves people and their tools: health, readiness, metrics, status and drain. It has a listener of its own.
func (n *Node) operator() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		if err := n.Err(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := n.Ready(r.Context()); err != nil {
			http.Error(w, "not ready: "+err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	})
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		_ = e.Encode(n.Status(r.Context())) // the client's loss is its own
	})
	prom := promhttp.HandlerFor(n.metrics.registry, promhttp.HandlerOpts{})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		n.metrics.gauge(n.Status(r.Context()))
		prom.ServeHTTP(w, r)
	})
	mux.HandleFunc("POST /drain", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprintln(w, "draining")
		n.wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), n.cfg.Timeouts.Drain)
			defer cancel()
			n.Drain(ctx)
		})
	})
	return mux
}

// OperatorClient is an HTTP client for a node's operator listener, with this node's certificate where the listener has TLS.
func OperatorClient(cfg config.Config, timeout time.Duration) (client *http.Client, scheme string, err error) {
	client = &http.Client{Timeout: timeout}
	if !cfg.TLS.Enabled() || cfg.Operator.Plain || config.Loopback(cfg.Operator.Listen) {
		return client, "http", nil
	}
	creds, err := loadCredentials(cfg.TLS, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, "", err
	}
	client.Transport = &http.Transport{TLSClientConfig: creds.client(serverName("", cfg.Operator.Listen))}
	return client, "https", nil
}
