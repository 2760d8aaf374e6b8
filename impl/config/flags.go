package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// option is one flag: its value is kept as text until Load lays it over the file, so that all problems are found together.
type option struct {
	name, usage, kind string
	set               func(*Config, string) error
}

// options lists the flags, in the order of the file's sections.
func options() []option {
	return []option{
		text("role", "all, prefill, decode or gateway", func(c *Config) *string { return (*string)(&c.Role) }),
		text("prefill-name", "stable name of the prefill side; no two in a deployment", func(c *Config) *string { return &c.Prefill.Name }),
		whole("prefill-ranks", "ranks of the prefill side", func(c *Config) *int { return &c.Prefill.Ranks }),
		text("prefill-split", "how prefill ranks divide the model: heads or layers", func(c *Config) *string { return &c.Prefill.Split }),
		text("control", "prefill: address for control links", func(c *Config) *string { return &c.Prefill.Control }),
		text("data", "prefill: address for data streams", func(c *Config) *string { return &c.Prefill.Data }),
		tokens("chunk-tokens", "prefill: tokens computed at a time", func(c *Config) *uint32 { return &c.Prefill.Chunk }),
		text("prefill-sharing", "prefill: prompts of one tenant are computed behind a common prefix: on or off", func(c *Config) *string { return (*string)(&c.Prefill.Sharing) }),
		text("decode-name", "stable name of the decode side; no two in a deployment", func(c *Config) *string { return &c.Decode.Name }),
		whole("decode-ranks", "ranks of the decode side", func(c *Config) *int { return &c.Decode.Ranks }),
		text("decode-split", "how decode ranks divide the model: heads or layers", func(c *Config) *string { return &c.Decode.Split }),
		text("api", "decode: address of the internal API for gateways", func(c *Config) *string { return &c.Decode.API }),
		{"prefill-peer", "decode: one prefill side: NAME=ADDR[,ADDR...] or ADDR[,ADDR...]; repeat for more sides", "peer", addPeer},
		whole("workers", "decode: steps that run at the same time", func(c *Config) *int { return &c.Decode.Workers }),
		text("sharing", "decode: requests of one tenant share the pages of a common prompt prefix: on or off", func(c *Config) *string { return (*string)(&c.Decode.Sharing) }),
		text("gateway", "gateway: address of the OpenAI HTTP API", func(c *Config) *string { return &c.Gateway.Listen }),
		text("upstream", "gateway: URL of the decode node's API", func(c *Config) *string { return &c.Gateway.Upstream }),
		text("upstream-as", "gateway: name that the decode node's certificate must have", func(c *Config) *string { return &c.Gateway.UpstreamAs }),
		text("keys-file", "gateway: file of hashed API keys", func(c *Config) *string { return &c.Gateway.KeysFile }),
		text("header-proxy", "gateway: certificate name of the proxy whose tenant header is believed", func(c *Config) *string { return &c.Gateway.HeaderProxy }),
		toggle("gateway-plain", "gateway: no TLS, also where not on loopback", func(c *Config) *bool { return &c.Gateway.Plain }),
		text("operator", "address of metrics, status and drain", func(c *Config) *string { return &c.Operator.Listen }),
		toggle("operator-plain", "operator listener: no TLS, also where not on loopback", func(c *Config) *bool { return &c.Operator.Plain }),
		text("model", "reference model: transformer or rolling", func(c *Config) *string { return &c.Model.Kind }),
		{"model-seed", "seed of the model's weights", "uint", setSeed},
		text("model-revision", "appended to the model's revision", func(c *Config) *string { return &c.Model.Revision }),
		tokens("window-tokens", "context window: prompt and answer together", func(c *Config) *uint32 { return &c.Sizes.Window }),
		tokens("pool-tokens", "size of both pools, where not given apart", func(c *Config) *uint32 { return &c.Sizes.Pool }),
		tokens("prefill-pool-tokens", "size of the prefill pool", func(c *Config) *uint32 { return &c.Sizes.PrefillPool }),
		tokens("decode-pool-tokens", "size of the decode pool", func(c *Config) *uint32 { return &c.Sizes.DecodePool }),
		tokens("page-tokens", "tokens in one page", func(c *Config) *uint32 { return &c.Sizes.Page }),
		toggle("allow-window-over-pool", "start although a pool cannot hold the window", func(c *Config) *bool { return &c.Sizes.AllowWindowOverPool }),
		text("transport", "how pages travel: tcp, shm or verbs", func(c *Config) *string { return &c.Transport.Kind }),
		whole("streams", "data streams of one link (tcp)", func(c *Config) *int { return &c.Transport.Streams }),
		text("congestion-control", "congestion control of data sockets", func(c *Config) *string { return &c.Transport.CongestionControl }),
		text("leases", "verbs, decode: what makes a lease a right of the adapter's: auto, windows or regions", func(c *Config) *string { return &c.Transport.Verbs.Leases }),
		{"rdma-device", "verbs: one rail, NAME or NAME:PORT; repeat for more, in the same order on both sides", "peer", addDevice},
		text("page-digests", "digest of every page at verify: on or off", func(c *Config) *string { return (*string)(&c.Guards.PageDigests) }),
		text("step-tag-check", "tags checked before and after every step: on or off", func(c *Config) *string { return (*string)(&c.Guards.StepTagCheck) }),
		text("tls-cert", "certificate of this node (PEM)", func(c *Config) *string { return &c.TLS.Cert }),
		text("tls-key", "key of the certificate (PEM)", func(c *Config) *string { return &c.TLS.Key }),
		text("tls-ca", "authority that signs all nodes' certificates (PEM)", func(c *Config) *string { return &c.TLS.CA }),
		toggle("plain-data", "data streams without TLS", func(c *Config) *bool { return &c.TLS.PlainData }),
		span("liveness", "silence of a peer that leads to a fence", func(c *Config) *time.Duration { return &c.Timeouts.Liveness }),
		span("request-timeout", "time for one request", func(c *Config) *time.Duration { return &c.Timeouts.Request }),
		span("drain-timeout", "time for what still runs after the first Ctrl-C", func(c *Config) *time.Duration { return &c.Timeouts.Drain }),
		text("trace", "write every step of every machine to this file (NDJSON)", func(c *Config) *string { return &c.TraceFile }),
		text("log-level", "debug, info, warn or error", func(c *Config) *string { return &c.Log.Level }),
		text("log-format", "text or json", func(c *Config) *string { return &c.Log.Format }),
	}
}

func text(name, usage string, at func(*Config) *string) option {
	return option{name, usage, "text", func(c *Config, v string) error { *at(c) = v; return nil }}
}

func whole(name, usage string, at func(*Config) *int) option {
	return option{name, usage, "number", func(c *Config, v string) error {
		n, err := strconv.Atoi(v)
		*at(c) = n
		return err
	}}
}

func tokens(name, usage string, at func(*Config) *uint32) option {
	return option{name, usage, "tokens", func(c *Config, v string) error {
		n, err := strconv.ParseUint(v, 10, 32)
		if err == nil && n == 0 {
			return fmt.Errorf("must be at least 1")
		}
		*at(c) = uint32(n)
		return err
	}}
}

func toggle(name, usage string, at func(*Config) *bool) option {
	return option{name, usage, "bool", func(c *Config, v string) error {
		b, err := strconv.ParseBool(v)
		*at(c) = b
		return err
	}}
}

func span(name, usage string, at func(*Config) *time.Duration) option {
	return option{name, usage, "duration", func(c *Config, v string) error {
		d, err := time.ParseDuration(v)
		*at(c) = d
		return err
	}}
}

func setSeed(c *Config, v string) error {
	n, err := strconv.ParseUint(v, 10, 64)
	c.Model.Seed = n
	return err
}

// addPeer reads NAME=ADDR,ADDR or ADDR,ADDR.
func addPeer(c *Config, v string) error {
	var p Peer
	if name, rest, ok := strings.Cut(v, "="); ok {
		p.Name, v = name, rest
	}
	p.Addresses = strings.Split(v, ",")
	c.Decode.Peers = append(c.Decode.Peers, p)
	return nil
}

// addDevice adds one rail.
func addDevice(c *Config, v string) error {
	c.Transport.Verbs.Devices = append(c.Transport.Verbs.Devices, v)
	return nil
}

// Flags are the flags of one command line, after AddFlags and parsing.
type Flags struct {
	scope Scope
	file  string
	given []given
}

type given struct {
	opt   option
	value string
}

// recorder keeps what a flag was given, in order.
type recorder struct {
	flags *Flags
	opt   option
	last  string
}

func (r *recorder) String() string { return r.last }
func (r *recorder) Type() string   { return r.opt.kind }
func (r *recorder) Set(v string) error {
	r.last = v
	r.flags.given = append(r.flags.given, given{r.opt, v})
	return nil
}

// AddFlags adds the flags of a scope to fs. Give the result to Load after parsing.
func AddFlags(fs *pflag.FlagSet, scope Scope) *Flags {
	f := &Flags{scope: scope}
	fs.StringVarP(&f.file, "config", "c", "", "configuration file (YAML)")
	for _, o := range options() {
		if !scope.has(o.name) {
			continue
		}
		fs.Var(&recorder{flags: f, opt: o}, o.name, o.usage)
		if o.kind == "bool" {
			fs.Lookup(o.name).NoOptDefVal = "true"
		}
	}
	return f
}
