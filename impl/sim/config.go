package sim

import (
	"kvfence/impl/core"
	"kvfence/impl/transport/mem"
	"kvfence/spec"
)

// Config is what a cluster is made of. Zero values have the defaults of withDefaults. What has a name in YAML stands in scripts.
type Config struct {
	Seed         uint64    `yaml:"seed"`
	Prefill      []int     `yaml:"prefill,flow"` // ranks of each prefill side; default one side of one rank
	Decode       []int     `yaml:"decode,flow"`  // ranks of each decode side
	PrefillPages uint32    `yaml:"prefill-pages"`
	DecodePages  uint32    `yaml:"decode-pages"`
	AuxPages     uint32    `yaml:"aux-pages,omitempty"` // of the whole-request pools; default as many as KV pages
	Window       uint32    `yaml:"window"`
	Chunk        uint32    `yaml:"chunk"`
	Channels     uint32    `yaml:"channels"`
	Pull         bool      `yaml:"pull,omitempty"`
	Sharing      int       `yaml:"sharing,omitempty"` // KV pages that a decode rank may publish; 0: nothing is shared
	Sources      int       `yaml:"sources,omitempty"` // KV pages that a prefill rank may publish
	NoState      bool      `yaml:"no-state,omitempty"`
	Drift        bool      `yaml:"drift,omitempty"`    // each process has a clock of its own
	Lax          bool      `yaml:"lax,omitempty"`      // notices may overtake writes: the oracle does not judge writes under way
	Mismatch     int       `yaml:"mismatch,omitempty"` // the last prefill side has 1: another window, 2: other pools, 3: another name
	Answers      int       `yaml:"answers,omitempty"`  // that a prefill rank remembers; these four: 0 is the machine's default
	PostItems    int       `yaml:"post-items,omitempty"`
	Posts        int       `yaml:"posts,omitempty"`
	SealItems    int       `yaml:"seal-items,omitempty"`
	Net          NetFaults `yaml:"net,omitempty"`

	Fabric mem.Faults        `yaml:"fabric,omitempty"` // guards of the fabric that are off: a planted bug
	Verbs  mem.Verbs         `yaml:"verbs,omitempty"`  // push links over RDMA verbs, with guards of their fence off; as many rails as channels
	Plant  Plant             `yaml:"plant,omitempty"`
	Mix    map[Kind]int      `yaml:"-"` // how often a director draws a kind of fault, in place of its own figures; missing: never
	Trace  func(line string) `yaml:"-"` // if set, is given everything that happens

	// Line, if set, is given each step of each machine as a line of a trace (spec/trace.go), before its actions are carried out, and must not
	// keep it. An error of it is a violation: this is where model/follow listens.
	Line func(*spec.TraceLine) error `yaml:"-"`

	// Changes to the machines' configurations, for scenarios; they do not stand in scripts.
	PrefillRank   func(*core.PrefillRankConfig)   `yaml:"-"`
	PrefillLeader func(*core.PrefillLeaderConfig) `yaml:"-"`
	DecodeRank    func(*core.DecodeRankConfig)    `yaml:"-"`
	DecodeLeader  func(*core.DecodeLeaderConfig)  `yaml:"-"`
}

// NetFaults are chances of one message, in percent.
type NetFaults struct {
	Drop      int `yaml:"drop,omitempty"`
	Duplicate int `yaml:"duplicate,omitempty"`
	Reorder   int `yaml:"reorder,omitempty"`
}

// Plant is a bug of the driver, or a fault that nothing detects, that the oracle must find. All false is a driver that keeps its contract.
type Plant struct {
	PostedEarly bool `yaml:"posted-early,omitempty"` // a batch is said to be over while its sources are still read
	FenceEarly  bool `yaml:"fence-early,omitempty"`  // a fence at decode is said to be back at once, and does not fence
	SealEarly   bool `yaml:"seal-early,omitempty"`   // computation is said to be over while it still writes
	AppendOver  bool `yaml:"append-over,omitempty"`  // a step stores its token into the first page of its block table, which others may share (no copy before append)
	NoCopy      bool `yaml:"no-copy,omitempty"`      // a further sample's copies are said to be done and are not
	ShortIDs    bool `yaml:"short-ids,omitempty"`    // content ids leave out the tokens before the page
	AnyDomain   bool `yaml:"any-domain,omitempty"`   // content ids leave out the domain
	FlipLanded  bool `yaml:"flip-landed,omitempty"`  // a bit flips in decode's memory after its digest was taken: only error-correcting memory helps
	VerifyFirst bool `yaml:"verify-first,omitempty"` // a lease is verified while its writer still holds the right to write (verbs with windows)
	NoExpel     bool `yaml:"no-expel,omitempty"`     // pages are handed out although something is still being placed there
}

const (
	layers, heads, dim, pageTokens = 2, 2, 2, 4
	vocabulary                     = 997
	revision                       = "toy-1"
	tagSlots                       = 8
	adapter                        = "low-rank"
)

func (c Config) withDefaults() Config {
	if len(c.Prefill) == 0 {
		c.Prefill = []int{1}
	}
	if len(c.Decode) == 0 {
		c.Decode = []int{1}
	}
	def := func(n *uint32, v uint32) {
		if *n == 0 {
			*n = v
		}
	}
	def(&c.PrefillPages, 16)
	def(&c.DecodePages, 16)
	def(&c.Window, 64)
	def(&c.Chunk, 6)
	def(&c.Channels, 2)
	if c.Verbs.On {
		c.Verbs.Rails = int(c.Channels)
	}
	return c
}

func meaning(c spec.Component) spec.Meaning {
	m := spec.Meaning{ModelRevision: revision, DType: "u8", ByteOrder: "little", HeadDim: dim, ElemBytes: 1, KVs: 2, TokensPerPage: pageTokens, Layers: layers, Heads: heads}
	switch c {
	case spec.State:
		m.KVs, m.TokensPerPage = 1, 0
	case spec.Aux:
		m = spec.Meaning{ModelRevision: revision, DType: "u8", ByteOrder: "little", HeadDim: auxBytes, ElemBytes: 1, KVs: 1, Layers: 1, Heads: 1}
	}
	return m
}

// sideLayouts are the pools of a side's ranks: prefill splits heads, decode splits layers, so that every part is a cut through both.
func (c Config) sideLayouts(role string, ranks int) (side [][]spec.Layout) {
	pages, single := c.PrefillPages, c.AuxPages
	if role == spec.RoleDecode {
		pages = c.DecodePages
	}
	if single == 0 {
		single = pages
	}
	slots := uint16(tagSlots)
	if pages >= bigPool {
		slots = 2 // enough for one link, and a quarter of the memory
	}
	for r := range uint32(ranks) {
		lLo, lHi, hLo, hHi := uint32(0), uint32(layers), uint32(0), uint32(heads)
		if ranks > 1 && role == spec.RolePrefill {
			hLo, hHi = r*heads/uint32(ranks), (r+1)*heads/uint32(ranks)
		} else if ranks > 1 {
			lLo, lHi = r*layers/uint32(ranks), (r+1)*layers/uint32(ranks)
		}
		pools := []spec.Layout{spec.NewDense(spec.KV, meaning(spec.KV), lLo, lHi, hLo, hHi, pages, slots)}
		if !c.NoState {
			pools = append(pools, spec.NewDense(spec.State, meaning(spec.State), lLo, lHi, hLo, hHi, single, slots))
		}
		side = append(side, append(pools, spec.NewDense(spec.Aux, meaning(spec.Aux), 0, 1, 0, 1, single, slots)))
	}
	return side
}
