package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"kvfence/spec"
)

// Validate checks c, which has its defaults, and returns every problem at once. It only reads c.
func (c Config) Validate() error {
	p := &problems{}
	p.oneOf("role", string(c.Role), "all", "prefill", "decode", "gateway")
	if c.RunsPrefill() {
		p.side("prefill", c.Prefill.Name, c.Prefill.Ranks, c.Prefill.Split)
		p.oneOf("prefill.sharing", string(c.Prefill.Sharing), "on", "off")
		p.address("prefill.control", c.Prefill.Control)
		p.address("prefill.data", c.Prefill.Data)
	}
	if c.RunsDecode() {
		p.side("decode", c.Decode.Name, c.Decode.Ranks, c.Decode.Split)
		if c.Decode.API != "" || c.Role == RoleDecode {
			p.address("decode.api", c.Decode.API)
		}
		p.between("decode.workers", int64(c.Decode.Workers), 1, 1024)
		p.oneOf("decode.sharing", string(c.Decode.Sharing), "on", "off")
		c.validatePeers(p)
	}
	if c.RunsGateway() {
		p.address("gateway.listen", c.Gateway.Listen)
	}
	if c.Role == RoleGateway {
		if u, err := url.Parse(c.Gateway.Upstream); err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			p.add("gateway.upstream %q is not an http or https URL", c.Gateway.Upstream)
		}
	}
	p.address("operator.listen", c.Operator.Listen)
	c.validateSizes(p)
	c.validateRest(p)
	c.validateTLS(p)
	return errors.Join(p.list...)
}

// validateClient checks what a command uses that only asks a node's operator listener: the file may be a whole deployment's.
func (c Config) validateClient() error {
	p := &problems{}
	p.oneOf("role", string(c.Role), "all", "prefill", "decode", "gateway")
	p.address("operator.listen", c.Operator.Listen)
	c.validateFiles(p)
	if !c.TLS.Enabled() {
		c.demandTLS(p, "operator.listen")
	}
	return errors.Join(p.list...)
}

func (c Config) validatePeers(p *problems) {
	if c.Role == RoleAll && len(c.Decode.Peers) > 0 {
		p.add("decode.peers is set, but role all serves its own prefill side: use --role decode")
	}
	seen := map[string]bool{}
	for i, peer := range c.Decode.Peers {
		if len(peer.Addresses) == 0 {
			p.add("decode.peers[%d] has no address", i)
		}
		p.between(fmt.Sprintf("decode.peers[%d].ranks", i), int64(peer.Ranks), 0, 256)
		if peer.Ranks > 0 && len(peer.Addresses) > 1 && len(peer.Addresses) != peer.Ranks {
			p.add("decode.peers[%d] has %d ranks and %d addresses", i, peer.Ranks, len(peer.Addresses))
		}
		for _, a := range peer.Addresses {
			p.address(fmt.Sprintf("decode.peers[%d]", i), a)
			if seen[a] {
				p.add("decode.peers: address %s stands there twice", a)
			}
			seen[a] = true
		}
	}
}

func (c Config) validateSizes(p *problems) {
	s := c.Sizes
	p.oneOf("model.kind", c.Model.Kind, "transformer", "rolling")
	p.between("sizes.window_tokens", int64(s.Window), 2, spec.MaxPrompt)
	p.between("sizes.page_tokens", int64(s.Page), 1, 1<<16)
	p.between("sizes.aux_slots", int64(s.AuxSlots), 1, 1<<20)
	p.between("sizes.tag_slots", int64(s.TagSlots), 1, 256)
	for _, pool := range []struct {
		name   string
		tokens uint32
		runs   bool
	}{{"prefill", s.PrefillPool, c.RunsPrefill()}, {"decode", s.DecodePool, c.RunsDecode()}} {
		if pool.runs && s.Page > 0 && (pool.tokens%s.Page != 0 || pool.tokens < s.Page) {
			p.add("the %s pool of %d tokens is not a whole number of pages of %d tokens (sizes.page_tokens)", pool.name, pool.tokens, s.Page)
		}
	}
	if c.Model.Kind == "rolling" && (c.Prefill.Ranks > 1 && c.RunsPrefill() || c.Decode.Ranks > 1 && c.RunsDecode()) {
		p.add("model rolling has one layer and one head: it cannot be divided over several ranks")
	}
}

func (c Config) validateRest(p *problems) {
	p.oneOf("transport.kind", c.Transport.Kind, "tcp", "shm", "verbs")
	c.Transport.Verbs.validate(p)
	p.between("transport.streams", int64(c.Transport.Streams), 1, 16)
	p.oneOf("guards.page_digests", string(c.Guards.PageDigests), "on", "off")
	p.oneOf("guards.step_tag_check", string(c.Guards.StepTagCheck), "on", "off")
	p.oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error")
	p.oneOf("log.format", c.Log.Format, "text", "json")
	for _, t := range []struct {
		name   string
		d, min time.Duration
	}{
		{"liveness", c.Timeouts.Liveness, 10 * time.Millisecond}, {"repeat", c.Timeouts.Repeat, time.Millisecond},
		{"progress", c.Timeouts.Progress, 10 * time.Millisecond}, {"request", c.Timeouts.Request, time.Millisecond}, {"drain", c.Timeouts.Drain, 0},
	} {
		if t.d < t.min || t.d > 24*time.Hour {
			p.add("timeouts.%s is %v; it must lie between %v and 24h", t.name, t.d, t.min)
		}
	}
	if c.Timeouts.Repeat >= c.Timeouts.Progress {
		p.add("timeouts.repeat (%v) must be shorter than timeouts.progress (%v)", c.Timeouts.Repeat, c.Timeouts.Progress)
	}
	p.between("bounds.queue", int64(c.Bounds.Queue), 1, 1<<20)
	p.between("bounds.running", int64(c.Bounds.Running), 1, 1<<16)
	p.between("bounds.write_queue", int64(c.Bounds.WriteQueue), 16, 1<<20)
	p.between("bounds.connections", int64(c.Bounds.Connections), 1, 1<<16)
	p.between("bounds.top_logprobs", int64(c.Bounds.TopLogprobs), 0, 64)
}

// nearForm is a PCI address as sysfs has it, or a NUMA node.
var nearForm = regexp.MustCompile(`^([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]|numa:[0-9]{1,4})$`)

func (v Verbs) validate(p *problems) {
	p.between("transport.verbs.max_rails", int64(v.MaxRails), 1, 8)
	if len(v.Devices) > 8 {
		p.add("transport.verbs.devices has %d rails; at most 8", len(v.Devices))
	}
	var seen []string
	for i, d := range v.Devices {
		name, port, has := strings.Cut(d, ":")
		n, err := strconv.ParseUint(port, 10, 8)
		if name == "" || strings.ContainsAny(name, "/ ") || has && (err != nil || n == 0) {
			p.add("transport.verbs.devices[%d] is %q; it must be NAME or NAME:PORT", i, d)
		}
		if port == "1" {
			d = name // which is what it means without a port
		}
		if slices.Contains(seen, d) {
			p.add("transport.verbs.devices: %s stands there twice", d)
		}
		seen = append(seen, d)
	}
	if v.Near != "" && !nearForm.MatchString(v.Near) {
		p.add("transport.verbs.near is %q; it must be a PCI address (0000:3b:00.0) or numa:N", v.Near)
	}
	if _, err := strconv.ParseUint(v.GIDIndex, 10, 8); v.GIDIndex != "auto" && err != nil {
		p.add("transport.verbs.gid_index is %q; it must be auto or 0 to 255", v.GIDIndex)
	}
	p.oneOf("transport.verbs.mtu", v.MTU, "auto", "256", "512", "1024", "2048", "4096")
	p.oneOf("transport.verbs.leases", v.Leases, "auto", "windows", "regions")
	p.between("transport.verbs.retry_count", int64(v.RetryCount), 1, 7)
	p.between("transport.verbs.timeout_exponent", int64(v.TimeoutExponent), 1, 31)
	p.between("transport.verbs.rnr_retry", int64(v.RNRRetry), 1, 7)
	p.between("transport.verbs.send_depth", int64(v.SendDepth), 16, 16384)
	p.between("transport.verbs.notice_depth", int64(v.NoticeDepth), 16, 16384)
	p.oneOf("transport.verbs.busy_poll", string(v.BusyPoll), "on", "off")
}

// validateTLS demands certificates where an address is not loopback, and says which address and what to set.
func (c Config) validateTLS(p *problems) {
	t := c.TLS
	c.validateFiles(p)
	if (c.RunsPrefill() && len(c.Prefill.Decodes) > 0 || c.RunsDecode() && len(c.Decode.Gateways) > 0) && !t.Enabled() {
		p.add("prefill.decodes and decode.gateways name certificates: set tls.cert, tls.key and tls.ca")
	}
	if c.Gateway.HeaderProxy != "" && c.RunsGateway() && !t.Enabled() {
		p.add("gateway.header_proxy believes a certificate: set tls.cert, tls.key and tls.ca")
	}
	if !t.Enabled() {
		c.demandTLS(p, "")
	}
}

func (c Config) validateFiles(p *problems) {
	if t := c.TLS; t.Enabled() && (t.Cert == "" || t.Key == "" || t.CA == "") {
		p.add("tls.cert, tls.key and tls.ca go together: all three or none")
	}
}

// demandTLS reports the exposed addresses, or the one of that name.
func (c Config) demandTLS(p *problems, name string) {
	for _, a := range c.Exposed() {
		if name != "" && a.Name != name {
			continue
		}
		p.add("%s = %s is not loopback, so mutual TLS is needed: set tls.cert, tls.key and tls.ca (--tls-cert, --tls-key, --tls-ca)%s", a.Name, a.Address, a.hint)
	}
}

// Exposed is an address that is not loopback and needs TLS.
type Exposed struct{ Name, Address, hint string }

// Exposed lists the addresses of c, own ones and peers', that are not loopback and not excepted by name.
func (c Config) Exposed() []Exposed {
	var out []Exposed
	look := func(runs bool, name, addr, hint string) {
		if _, _, err := net.SplitHostPort(addr); err == nil && runs && !Loopback(addr) { // a malformed one is a problem of its own
			out = append(out, Exposed{name, addr, hint})
		}
	}
	look(c.RunsPrefill(), "prefill.control", c.Prefill.Control, "")
	look(c.RunsPrefill(), "prefill.data", c.Prefill.Data, "")
	look(c.RunsDecode(), "decode.api", c.Decode.API, "")
	for i, peer := range c.Decode.Peers {
		for _, a := range peer.Addresses {
			look(c.RunsDecode(), fmt.Sprintf("decode.peers[%d]", i), a, "")
		}
	}
	if u, err := url.Parse(c.Gateway.Upstream); err == nil {
		look(c.Role == RoleGateway, "gateway.upstream", hostPort(u), "")
	}
	look(c.RunsGateway() && !c.Gateway.Plain, "gateway.listen", c.Gateway.Listen, ", or gateway.plain behind a proxy that ends TLS")
	look(!c.Operator.Plain, "operator.listen", c.Operator.Listen, ", or operator.plain")
	return out
}

func hostPort(u *url.URL) string {
	if u.Port() == "" {
		return net.JoinHostPort(u.Hostname(), "0")
	}
	return u.Host
}

// Loopback reports whether addr (host:port) can be reached from this machine only. A name is loopback only if it is localhost.
func Loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// problems collects what is wrong.
type problems struct{ list []error }

func (p *problems) add(format string, args ...any) {
	p.list = append(p.list, fmt.Errorf("%w: %s", ErrConfig, fmt.Sprintf(format, args...)))
}

func (p *problems) oneOf(name, v string, allowed ...string) {
	if !slices.Contains(allowed, v) {
		p.add("%s is %q; known are %s", name, v, strings.Join(allowed, ", "))
	}
}

func (p *problems) between(name string, v, lo, hi int64) {
	if v < lo || v > hi {
		p.add("%s is %d; it must lie between %d and %d", name, v, lo, hi)
	}
}

func (p *problems) address(name, v string) {
	host, port, err := net.SplitHostPort(v)
	if err != nil {
		p.add("%s is %q; it must be host:port", name, v)
		return
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		p.add("%s is %q; %q is no port", name, v, port)
	}
	if strings.ContainsAny(host, " /@") {
		p.add("%s is %q; %q is no host", name, v, host)
	}
}

// side checks what both sides share. The name becomes part of the node's identity and must fit a certificate.
func (p *problems) side(section, name string, ranks int, split string) {
	p.between(section+".ranks", int64(ranks), 1, 64)
	p.oneOf(section+".split", split, "heads", "layers")
	if len(name) > 63 || strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789-.") != "" {
		p.add("%s.name is %q; letters, digits, '-' and '.', at most 63", section, name)
	}
}
