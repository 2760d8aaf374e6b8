// Package config is the one typed configuration of kvfence, and the only reader of configuration files and flags.
// A YAML file comes first, flags over it, defaults fill the rest. Unknown keys, bad values and contradictions stop the start,
// and all of them are reported at once (ErrConfig). It opens no socket, draws no randomness and starts nothing; whether a
// window fits its pools is impl/node's preflight. Called by impl/cmd/kvfence and tests.
// Read next: flags.go (the names of the flags), defaults.go, validate.go.
package config

import (
	"errors"
	"time"
)

// ErrConfig is wrapped by every problem of a configuration.
var ErrConfig = errors.New("bad configuration")

// Role is what a process runs.
type Role string

// The roles. All runs a prefill node, a decode node and a gateway in one process.
const (
	RoleAll     Role = "all"
	RolePrefill Role = "prefill"
	RoleDecode  Role = "decode"
	RoleGateway Role = "gateway"
)

// Switch is a setting that is on or off; empty means its default.
type Switch string

// The two positions of a Switch.
const (
	On  Switch = "on"
	Off Switch = "off"
)

// Enabled reports whether s is on.
func (s Switch) Enabled() bool { return s == On }

// Config is the whole configuration. Sections of a role that a process does not run are read and ignored, so that one file can
// serve a whole deployment. The zero value of a field means its default (WithDefaults).
type Config struct {
	Role      Role      `yaml:"role"`
	Prefill   Prefill   `yaml:"prefill"`
	Decode    Decode    `yaml:"decode"`
	Gateway   Gateway   `yaml:"gateway"`
	Operator  Operator  `yaml:"operator"`
	Model     Model     `yaml:"model"`
	Sizes     Sizes     `yaml:"sizes"`
	Transport Transport `yaml:"transport"`
	Guards    Guards    `yaml:"guards"`
	TLS       TLS       `yaml:"tls"`
	Timeouts  Timeouts  `yaml:"timeouts"`
	Bounds    Bounds    `yaml:"bounds"`
	Log       Log       `yaml:"log"`
	// TraceFile receives every step of every machine as NDJSON; empty: no trace.
	TraceFile string `yaml:"trace_file"`
}

// Prefill is the prefill side: all its ranks live in one process.
type Prefill struct {
	Name    string `yaml:"name"`    // stable name; its TLS certificate must be valid for it
	Ranks   int    `yaml:"ranks"`   // 1 upwards
	Split   string `yaml:"split"`   // how ranks divide the model: "heads" or "layers"
	Control string `yaml:"control"` // address for decode's control links, of all ranks
	Data    string `yaml:"data"`    // address for decode's data streams (tcp); rank k listens k ports behind it
	Chunk   uint32 `yaml:"chunk_tokens"`
	// Sharing lets prompts of one tenant, adapter and model revision be computed behind a common beginning (tcp only).
	Sharing Switch `yaml:"sharing"`
	// Decodes are the names of the decode sides that may connect; empty: every one that the authority vouches for.
	Decodes []string `yaml:"decodes,omitempty"`
}

// Decode is the decode side: all its ranks live in one process.
type Decode struct {
	Name    string `yaml:"name"`
	Ranks   int    `yaml:"ranks"`
	Split   string `yaml:"split"`
	API     string `yaml:"api"` // address of the internal HTTP API for gateways; role all has none unless it is given
	Peers   []Peer `yaml:"peers,omitempty"`
	Workers int    `yaml:"workers"` // decode steps that run at the same time
	// Sharing lets requests of one tenant, adapter and model revision share the pages of a common beginning of their prompts.
	Sharing Switch `yaml:"sharing"`
	// Gateways are the certificate names that may use the API; empty: every one that the authority vouches for.
	Gateways []string `yaml:"gateways,omitempty"`
}

// Peer is one prefill side as the decode side knows it.
type Peer struct {
	Name string `yaml:"name"` // expected name of the side; empty: any name that the certificate vouches for
	// Addresses are the control addresses, by rank. One address may stand for a whole side: its ranks are learned.
	Addresses []string `yaml:"addresses"`
	Ranks     int      `yaml:"ranks"` // 0: learned from the one address, or one for each address
}

// Gateway is the HTTP front.
type Gateway struct {
	Listen      string `yaml:"listen"`
	Upstream    string `yaml:"upstream"`     // base URL of the decode node's API; unused when the decode node is in this process
	UpstreamAs  string `yaml:"upstream_as"`  // name that the decode node's certificate must be valid for; empty: the URL's host
	KeysFile    string `yaml:"keys_file"`    // hashed API keys; none: loopback only
	HeaderProxy string `yaml:"header_proxy"` // certificate name of the one proxy whose tenant header is believed; empty: none
	Plain       bool   `yaml:"plain"`        // serve HTTP without TLS on an address that is not loopback
}

// Operator is the listener for metrics, status and drain.
type Operator struct {
	Listen string `yaml:"listen"`
	Plain  bool   `yaml:"plain"` // serve without TLS on an address that is not loopback
}

// Model chooses the reference workload. Both sides must agree.
type Model struct {
	Kind     string `yaml:"kind"` // "transformer" or "rolling"
	Seed     uint64 `yaml:"seed"`
	Layers   int    `yaml:"layers"`   // transformer; 0: its default
	Heads    int    `yaml:"heads"`    // transformer; 0: its default
	HeadDim  int    `yaml:"head_dim"` // transformer; 0: its default
	Revision string `yaml:"revision"` // appended to the model's own revision; compared with the peer's
}

// Sizes are in tokens.
type Sizes struct {
	Window              uint32 `yaml:"window_tokens"`
	Pool                uint32 `yaml:"pool_tokens"`         // both pools, where not given apart
	PrefillPool         uint32 `yaml:"prefill_pool_tokens"` // 0: Pool
	DecodePool          uint32 `yaml:"decode_pool_tokens"`  // 0: Pool
	Page                uint32 `yaml:"page_tokens"`
	AuxSlots            uint32 `yaml:"aux_slots"` // leases that a pool can hold at once
	TagSlots            uint16 `yaml:"tag_slots"` // parts that one page can carry
	AllowWindowOverPool bool   `yaml:"allow_window_over_pool"`
}

// Transport is how pages travel.
type Transport struct {
	Kind              string `yaml:"kind"` // "tcp", "shm" or "verbs"
	Streams           int    `yaml:"streams"`
	CongestionControl string `yaml:"congestion_control"` // of data sockets; empty: the system's
	SocketDir         string `yaml:"socket_dir"`         // shm: where the exporter's socket is made; empty: an abstract one
	Verbs             Verbs  `yaml:"verbs"`
}

// Verbs is how pages travel over RDMA (transport.kind verbs, kvfence-native). Both sides of a deployment list their rails in the same order: rail
// k of one goes to rail k of the other.
type Verbs struct {
	// Devices are the rails: NAME or NAME:PORT, port 1 where not given; empty: every active port, nearest first (kvfence devices shows them).
	Devices []string `yaml:"devices,omitempty"`
	// Near is what found devices are ordered by: the PCI address of a GPU, or numa:N; empty: by name.
	Near     string `yaml:"near"`
	MaxRails int    `yaml:"max_rails"` // of devices that were found, how many are used
	GIDIndex string `yaml:"gid_index"` // "auto", or an index that holds on every rail
	MTU      string `yaml:"mtu"`       // "auto", or 256 to 4096, the same at both ends
	Leases   string `yaml:"leases"`    // decode: "auto", "windows" or "regions": what makes a lease a right of the adapter's
	// RetryCount and TimeoutExponent decide how soon an end without answer fails: (count + 1) times 4.096 us * 2^exponent, more on some adapters.
	RetryCount      int    `yaml:"retry_count"`
	TimeoutExponent int    `yaml:"timeout_exponent"`
	RNRRetry        int    `yaml:"rnr_retry"`    // notices that find no receive: 7 waits for ever
	SendDepth       int    `yaml:"send_depth"`   // requests posted on one queue pair
	NoticeDepth     int    `yaml:"notice_depth"` // receives that wait for notices
	BusyPoll        Switch `yaml:"busy_poll"`    // completions without sleeping: a core for each rail of each link
}

// Guards are the two guards that an operator may trade. Both ends of a link must agree on digests.
type Guards struct {
	PageDigests  Switch `yaml:"page_digests"`
	StepTagCheck Switch `yaml:"step_tag_check"`
}

// TLS names the files of the node's own certificate and of the authority that both sides trust. They are read again when they
// change. Mutual TLS is in force when they are given; it must be as soon as an address of the node is not loopback.
type TLS struct {
	Cert      string `yaml:"cert"`
	Key       string `yaml:"key"`
	CA        string `yaml:"ca"`
	PlainData bool   `yaml:"plain_data"` // data streams without TLS; the control links keep it
}

// Enabled reports whether certificates are given.
func (t TLS) Enabled() bool { return t.Cert != "" || t.Key != "" || t.CA != "" }

// Timeouts never end a page hold; they start a repeat, a fence or an answer to a client.
type Timeouts struct {
	Liveness time.Duration `yaml:"liveness"` // silence of a peer that leads to a fence
	Repeat   time.Duration `yaml:"repeat"`   // first repeat of an unanswered message; doubles
	Progress time.Duration `yaml:"progress"` // an owed answer stays out: fence
	Request  time.Duration `yaml:"request"`  // default time for one request; 0: none
	Drain    time.Duration `yaml:"drain"`    // bound for what still runs after the first Ctrl-C
}

// Bounds limit what is held.
type Bounds struct {
	Queue       int `yaml:"queue"`        // requests that wait at the decode leader
	Running     int `yaml:"running"`      // transfers that are open at the same time
	WriteQueue  int `yaml:"write_queue"`  // messages waiting on one control connection
	Connections int `yaml:"connections"`  // control connections of the prefill side
	TopLogprobs int `yaml:"top_logprobs"` // alternatives a token that may be asked for
}

// Log is what is logged, to standard error.
type Log struct {
	Level  string `yaml:"level"`  // debug, info, warn, error
	Format string `yaml:"format"` // text or json
}

// RunsPrefill reports whether the process has a prefill side.
func (c Config) RunsPrefill() bool { return c.Role == RoleAll || c.Role == RolePrefill }

// RunsDecode reports whether the process has a decode side.
func (c Config) RunsDecode() bool { return c.Role == RoleAll || c.Role == RoleDecode }

// RunsGateway reports whether the process has a gateway.
func (c Config) RunsGateway() bool { return c.Role == RoleAll || c.Role == RoleGateway }
