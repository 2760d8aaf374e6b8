package gateway

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

// ErrConfig is wrapped by every complaint about a configuration or key file.
var ErrConfig = errors.New("gateway: bad configuration")

// Defaults that others name, too.
const (
	DefaultListen       = "127.0.0.1:8080"
	DefaultTenantHeader = "X-Kvfence-Tenant"
)

// Config is the gateway's whole configuration. The zero value of a field means its
// default, given at [Config.WithDefaults].
type Config struct {
	Listen        string   // address; 127.0.0.1:8080
	AllowPlain    bool     // no TLS beyond loopback (a proxy ends it)
	KeysFile      string   // hashed API keys, see [ParseKeys]; none: loopback only, one tenant
	TenantHeader  string   // header that a proxy of HeaderProxies sets; X-Kvfence-Tenant
	HeaderProxies []string // certificate names (common or alternative) that may set it; none

	WindowTokens int   // the model's window, for the body's bound; 32768
	MaxBodyBytes int64 // 0: 1 MiB + 8 bytes for each token of the window
	MaxActive    int   // choices at the backend at once; 64
	MaxWaiting   int   // choices waiting for that; 256
	SharePercent int   // of both, that one tenant may use unless its key says otherwise; 25
	MaxChoices   int   // prompts x n of one request; 16
	MaxTenants   int   // tenants known at once; 1024
	MaxConns     int   // open connections; 4096

	DefaultMaxTokens int // where a request gives none; 0: the node's rule (what window and pools leave)

	RequestTimeout time.Duration // from arrival to the last token; 10 min
	DrainTimeout   time.Duration // for running requests at the end; 30 s
	HeaderTimeout  time.Duration // to read a request's header; 10 s
	BodyTimeout    time.Duration // to read its body; 30 s
	WriteTimeout   time.Duration // for each write to a client that does not read; 30 s
	IdleTimeout    time.Duration // of kept connections; 2 min
	KeysReload     time.Duration // how old the key file's contents may get; 2 s
	RetryAfter     time.Duration // told with 429 and 503 where the node says nothing; 1 s
}

// WithDefaults returns a copy with every default filled in.
func (c Config) WithDefaults() Config {
	fill(&c.Listen, DefaultListen)
	fill(&c.TenantHeader, DefaultTenantHeader)
	fill(&c.WindowTokens, 32768)
	fill(&c.MaxBodyBytes, 1<<20+8*int64(c.WindowTokens))
	fill(&c.MaxActive, 64)
	fill(&c.MaxWaiting, 256)
	fill(&c.SharePercent, 25)
	fill(&c.MaxChoices, 16)
	fill(&c.MaxTenants, 1024)
	fill(&c.MaxConns, 4096)
	fill(&c.RequestTimeout, 10*time.Minute)
	fill(&c.DrainTimeout, 30*time.Second)
	fill(&c.HeaderTimeout, 10*time.Second)
	fill(&c.BodyTimeout, 30*time.Second)
	fill(&c.WriteTimeout, 30*time.Second)
	fill(&c.IdleTimeout, 2*time.Minute)
	fill(&c.KeysReload, 2*time.Second)
	fill(&c.RetryAfter, time.Second)
	return c
}

func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Validate reports everything that is wrong, at once. It reads no file. tlsOn says
// whether the listener will have TLS with a certificate.
func (c Config) Validate(tlsOn bool) error {
	var problems []error
	bad := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...))
	}
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		bad("listen %q is not host:port", c.Listen)
	} else if !loopbackHost(host) {
		if c.KeysFile == "" && len(c.HeaderProxies) == 0 {
			bad("listen %s is not loopback: without a key file everyone would be one tenant; set a key file or a header proxy", c.Listen)
		}
		if !tlsOn && !c.AllowPlain {
			bad("listen %s is not loopback and has no TLS: set a certificate, or allow plain HTTP by name if a proxy ends TLS", c.Listen)
		}
	}
	if len(c.HeaderProxies) > 0 && !tlsOn {
		bad("a proxy whose tenant header is believed is known by its certificate: set up TLS with client certificates")
	}
	for _, name := range c.HeaderProxies {
		if name == "" || strings.ContainsAny(name, " *,") {
			bad("header proxy %q is not one certificate name", name)
		}
	}
	if !tokenPattern.MatchString(c.TenantHeader) || http.CanonicalHeaderKey(c.TenantHeader) == "Authorization" {
		bad("tenant header %q cannot be a header of its own", c.TenantHeader)
	}
	for _, n := range []struct {
		name         string
		value, limit int64
	}{
		{"window tokens", int64(c.WindowTokens), 1 << 28}, {"max body bytes", c.MaxBodyBytes, 1 << 34},
		{"max active", int64(c.MaxActive), 1 << 20}, {"max waiting", int64(c.MaxWaiting), 1 << 20},
		{"share percent", int64(c.SharePercent), 100}, {"max choices", int64(c.MaxChoices), 1 << 10},
		{"max tenants", int64(c.MaxTenants), 1 << 20}, {"max connections", int64(c.MaxConns), 1 << 20},
	} {
		if n.value < 1 || n.value > n.limit {
			bad("%s is %d, must be 1..%d", n.name, n.value, n.limit)
		}
	}
	if c.DefaultMaxTokens < 0 {
		bad("default max tokens is %d", c.DefaultMaxTokens)
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"request timeout", c.RequestTimeout}, {"drain timeout", c.DrainTimeout}, {"header timeout", c.HeaderTimeout},
		{"body timeout", c.BodyTimeout}, {"write timeout", c.WriteTimeout}, {"idle timeout", c.IdleTimeout},
		{"keys reload", c.KeysReload}, {"retry after", c.RetryAfter},
	} {
		if d.value <= 0 || d.value > 24*time.Hour {
			bad("%s is %v, must be within (0, 24h]", d.name, d.value)
		}
	}
	return errors.Join(problems...)
}

// loopbackHost says whether a listener on host can only be reached from this machine.
func loopbackHost(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
