package node

import (
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"kvfence/impl/core"
	"kvfence/spec"
)

// metrics are the node's numbers for Prometheus. Label values are words of spec, never anything that a peer or client chose.
// Safe for concurrent use.
type metrics struct {
	registry  *prometheus.Registry
	refusals  *prometheus.CounterVec
	strangers *prometheus.CounterVec
	requests  *prometheus.CounterVec
	tokens    prometheus.Counter
	bytes     *prometheus.CounterVec
	pages     *prometheus.GaugeVec
	links     *prometheus.GaugeVec
	leases    *prometheus.GaugeVec
	fences    *prometheus.HistogramVec
	alarms    *prometheus.CounterVec
	badParts  *prometheus.CounterVec
	stops     *prometheus.CounterVec
	transfers *prometheus.GaugeVec
}

func newMetrics() *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kvfence_" + name, Help: help}, labels)
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "kvfence_" + name, Help: help}, labels)
	}
	m := &metrics{
		registry:  prometheus.NewRegistry(),
		refusals:  counter("refusals_total", "Messages and writes that were not acted upon, by reason.", "role", "reason", "about"),
		strangers: counter("connections_refused_total", "Connections that were closed before they were a link's, by reason.", "role", "reason"),
		requests:  counter("requests_total", "Answered requests by verdict and first cause.", "verdict", "cause"),
		tokens:    prometheus.NewCounter(prometheus.CounterOpts{Name: "kvfence_tokens_total", Help: "Tokens handed out after their second tag check."}),
		bytes:     counter("payload_bytes_total", "Page bytes queued for transfer.", "transport"),
		pages:     gauge("pages", "Pages of a pool by state.", "role", "rank", "component", "state"),
		links:     gauge("links", "Links by state.", "role", "rank", "state"),
		leases:    gauge("leases", "Leases by state at decode.", "rank", "state"),
		transfers: gauge("transfers", "Requests and transfers at the decode leader by state.", "state"),
		fences: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "kvfence_fence_seconds", Help: "From a Fence action to its proof.", Buckets: prometheus.ExponentialBuckets(1e-5, 4, 12),
		}, []string{"role"}),
		alarms:   counter("alarms_total", "Findings of bad tags or digests.", "role"),
		badParts: counter("bad_parts_total", "Parts of pages whose tag or digest was not as expected.", "role", "state"),
		stops:    counter("stops_total", "Stops for a broken invariant or a failed fence.", "role"),
	}
	m.registry.MustRegister(m.refusals, m.strangers, m.requests, m.tokens, m.bytes, m.pages, m.links, m.leases, m.transfers, m.fences, m.alarms, m.badParts, m.stops,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) refused(role, reason, about string) {
	m.refusals.WithLabelValues(role, reason, about).Inc()
}

// Reasons for which a connection is closed before it is a link's.
const (
	strangeGreeting = "greeting" // TLS or greeting did not come about
	strangeIdentity = "identity" // the certificate is another node's
	strangeReader   = "reader"   // shm: the reader did not prove itself
	strangeFull     = "full"     // a bound of this node
	strangeStart    = "start"    // it began with something else than a connect
)

func (m *metrics) stranger(role, reason string) { m.strangers.WithLabelValues(role, reason).Inc() }

// unknownKind books a message of a kind that this version does not know.
func (m *metrics) unknownKind(role string) {
	m.refused(role, string(spec.RefuseUnknownKind), "unknown")
}

// stop books that a machine ("decode/0") stopped, under its role.
func (m *metrics) stop(machine string) {
	role, _, _ := strings.Cut(machine, "/")
	m.stops.WithLabelValues(role).Inc()
}

// count books a machine's Count; its words come from the machine, not from the peer.
func (m *metrics) count(role string, a core.Count) {
	about := "write"
	if a.About != 0 {
		about = a.About.String()
	}
	m.refused(role, string(a.Refusal), about)
}

func (m *metrics) token() { m.tokens.Inc() }

func (m *metrics) answer(a core.Answer) {
	verdict := "failed"
	if a.Cause == "" {
		verdict = "succeeded"
	}
	m.requests.WithLabelValues(verdict, string(a.Cause)).Inc()
}

func (m *metrics) posted(n uint64) { m.bytes.WithLabelValues("push").Add(float64(n)) }
func (m *metrics) pulled(n uint64) { m.bytes.WithLabelValues("pull").Add(float64(n)) }

func (m *metrics) fenced(role string, d time.Duration) {
	m.fences.WithLabelValues(role).Observe(d.Seconds())
}

// alarm reports corruption: it is the one thing that people must look at.
func (m *metrics) alarm(role string, log *slog.Logger, rank spec.Rank, a core.Alarm) {
	m.alarms.WithLabelValues(role).Inc()
	for i, b := range a.Bad {
		state := b.State.String()
		if b.Digest {
			state = "digest"
		}
		m.badParts.WithLabelValues(role, state).Inc()
		if i < 8 {
			log.Error("ALARM: page is not what it must be; it is quarantined", "rank", rank, "lease", a.Lease, "peer", a.Peer,
				"component", b.Component, "part", b.Part, "index", b.Index, "state", b.State, "digest_differs", b.Digest)
		}
	}
	if len(a.Bad) > 8 {
		log.Error("ALARM: more pages are bad", "rank", rank, "lease", a.Lease, "pages", len(a.Bad))
	}
}
