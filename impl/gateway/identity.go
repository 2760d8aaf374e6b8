package gateway

import (
	"crypto/x509"
	"net"
	"net/http"
	"slices"
	"strings"
)

// noKeysTenant is the one tenant of a gateway without keys, on loopback only.
const noKeysTenant = "default"

// identify says who sends a request, from its connection and key; nothing in the body
// counts. The tenant header is believed from a named proxy with a verified
// certificate, and refused, not ignored, from anyone else.
func (g *Gateway) identify(r *http.Request) (identity, *failure) {
	if values := r.Header.Values(g.cfg.TenantHeader); len(values) > 0 {
		return g.fromProxy(r, values)
	}
	if g.keys == nil {
		return g.fromLoopback(r)
	}
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	key = strings.TrimSpace(key)
	if !strings.EqualFold(scheme, "Bearer") || key == "" || len(r.Header.Values("Authorization")) != 1 {
		return identity{}, refuse(http.StatusUnauthorized, "invalid_api_key", "no API key: send it as Authorization: Bearer KEY")
	}
	id, ok := g.keys.lookup(key)
	if !ok {
		return identity{}, refuse(http.StatusUnauthorized, "invalid_api_key", "this API key is not known here")
	}
	return id, nil
}

func (g *Gateway) fromProxy(r *http.Request, values []string) (identity, *failure) {
	if !g.namedProxy(r) {
		return identity{}, refuse(http.StatusForbidden, "tenant_header_refused",
			"the header %s is believed only from a configured proxy with a verified client certificate; send an API key instead", g.cfg.TenantHeader)
	}
	if len(values) != 1 || !tenantPattern.MatchString(values[0]) {
		return identity{}, refuse(http.StatusBadRequest, "invalid_tenant",
			"the header %s must hold one tenant name: letters, digits, dot, dash and underscore, at most 64", g.cfg.TenantHeader)
	}
	return identity{tenant: values[0]}, nil
}

// namedProxy says whether the connection's verified certificate bears a configured name.
func (g *Gateway) namedProxy(r *http.Request) bool {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 || len(r.TLS.VerifiedChains[0]) == 0 {
		return false
	}
	for _, name := range certificateNames(r.TLS.VerifiedChains[0][0]) {
		if slices.Contains(g.cfg.HeaderProxies, name) {
			return true
		}
	}
	return false
}

func certificateNames(c *x509.Certificate) []string {
	names := append([]string{}, c.DNSNames...)
	for _, u := range c.URIs {
		names = append(names, u.String())
	}
	if c.Subject.CommonName != "" {
		names = append(names, c.Subject.CommonName)
	}
	return names
}

// fromLoopback admits this machine only, and only under a loopback name: a web page
// that rebinds its own name to 127.0.0.1 sends its name as Host.
func (g *Gateway) fromLoopback(r *http.Request) (identity, *failure) {
	remote, _, err := net.SplitHostPort(r.RemoteAddr)
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if err != nil || !loopbackHost(remote) || !loopbackHost(strings.Trim(host, "[]")) {
		return identity{}, refuse(http.StatusForbidden, "loopback_only", "this gateway has no API keys and answers only requests from and to loopback")
	}
	return identity{tenant: noKeysTenant, share: 100}, nil
}
