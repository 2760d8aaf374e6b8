package node

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"kvfence/impl/config"
	"kvfence/impl/gateway/operator"
)

// operator serves people and their tools, on a listener of its own. The node's Status is the section "node" of /status.
func (n *Node) operator() (http.Handler, error) {
	sections := []operator.Section{{Name: "node", Status: func(ctx context.Context) (any, error) { return n.Status(ctx), nil }}}
	if n.gate != nil {
		sections = append(sections, operator.Section{Name: "gateway", Status: func(ctx context.Context) (any, error) { return n.gate.Status(ctx), nil }})
	}
	return operator.Handler(operator.Config{
		Title: "kvfence " + string(n.cfg.Role), LoopbackOnly: config.Loopback(n.cfg.Operator.Listen), Log: n.log, Ready: n.Ready, Sections: sections,
		Gatherer: prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
			n.metrics.gauge(n.Status(context.Background()))
			return n.metrics.registry.Gather()
		}),
		Drain: func() {
			n.wg.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), n.cfg.Timeouts.Drain)
				defer cancel()
				n.Drain(ctx)
			})
		},
	})
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
