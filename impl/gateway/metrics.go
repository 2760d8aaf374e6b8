package gateway

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// maxTenantLabels bounds the series that tenants can make; the rest are "other".
const maxTenantLabels = 256

// metrics are the gateway's figures; spec/metrics describes the names.
type metrics struct {
	requests    *prometheus.CounterVec   // endpoint, status, code
	byTenant    *prometheus.CounterVec   // tenant, outcome
	firstToken  *prometheus.HistogramVec // endpoint
	duration    *prometheus.HistogramVec // endpoint
	tokens      *prometheus.CounterVec   // kind
	streams     prometheus.Gauge
	keyFailures prometheus.Counter

	mu      sync.Mutex
	tenants map[string]bool
}

func newMetrics(reg prometheus.Registerer, a *admission) (*metrics, error) {
	name := func(s string) string { return "kvfence_gateway_" + s }
	buckets := prometheus.ExponentialBuckets(0.001, 2.5, 15) // 1 ms to 6 min
	m := &metrics{
		tenants: map[string]bool{},
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: name("requests_total"),
			Help: "HTTP requests answered, by endpoint, status and error code (ok: none)."}, []string{"endpoint", "status", "code"}),
		byTenant: prometheus.NewCounterVec(prometheus.CounterOpts{Name: name("tenant_requests_total"),
			Help: "HTTP requests by tenant (at most 256 names, then other) and outcome."}, []string{"tenant", "outcome"}),
		firstToken: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name("first_token_seconds"),
			Help: "From a request's arrival to its first text.", Buckets: buckets}, []string{"endpoint"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name("request_seconds"),
			Help: "From a request's arrival to the end of its answer.", Buckets: buckets}, []string{"endpoint"}),
		tokens: prometheus.NewCounterVec(prometheus.CounterOpts{Name: name("tokens_total"),
			Help: "Tokens of successful requests, prompt and completion."}, []string{"kind"}),
		streams:     prometheus.NewGauge(prometheus.GaugeOpts{Name: name("active_streams"), Help: "Streams being answered."}),
		keyFailures: prometheus.NewCounter(prometheus.CounterOpts{Name: name("key_file_failures_total"), Help: "Reloads of the key file that failed."}),
	}
	gauge := func(what, help string, value func() int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name(what), Help: help}, func() float64 { return float64(value()) })
	}
	for _, c := range []prometheus.Collector{
		m.requests, m.byTenant, m.firstToken, m.duration, m.tokens, m.streams, m.keyFailures,
		gauge("active_choices", "Choices at the node.", func() int { n, _, _ := a.load(); return n }),
		gauge("waiting_choices", "Choices that wait for a slot.", func() int { _, n, _ := a.load(); return n }),
		gauge("tenants_inside", "Tenants with requests inside.", func() int { _, _, n := a.load(); return n }),
	} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("gateway: metrics: %w", err)
		}
	}
	return m, nil
}

// tenantLabel bounds the names; bounded says that the tenant stands in the key file.
func (m *metrics) tenantLabel(tenant string, bounded bool) string {
	if tenant == "" {
		return "none"
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tenants[tenant] {
		return tenant
	}
	if !bounded || len(m.tenants) >= maxTenantLabels {
		return "other"
	}
	m.tenants[tenant] = true
	return tenant
}

func (m *metrics) observe(x *exchange, status int, took time.Duration, bounded bool) {
	code := x.code
	if code == "" {
		code = "ok"
	}
	m.requests.WithLabelValues(x.endpoint, strconv.Itoa(status), code).Inc()
	if !x.generates {
		return
	}
	outcome := "failed"
	switch {
	case x.code == "":
		outcome = "ok"
	case status < 500 && status != 429:
		outcome = "refused"
	case status == 429:
		outcome = "over_capacity"
	}
	m.byTenant.WithLabelValues(m.tenantLabel(x.tenant, bounded), outcome).Inc()
	m.duration.WithLabelValues(x.endpoint).Observe(took.Seconds())
	if x.code == "" {
		m.tokens.WithLabelValues("prompt").Add(float64(x.usage.PromptTokens))
		m.tokens.WithLabelValues("completion").Add(float64(x.usage.CompletionTokens))
	}
}
