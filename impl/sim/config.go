package sim

import (
	"kvfence/impl/core"
	"kvfence/impl/transport/mem"
	"kvfence/spec"
)

// Config is what a cluster is made of. Zero values have the defaults of withDefaults.
type Config struct {
	Seed         uint64
	Prefill      []int // ranks of each prefill side; default one side of one rank
	Decode       []int // ranks of each decode side
	PrefillPages uint32
	DecodePages  uint32
	AuxPages     uint32 // of the whole-request pools; default as many as KV pages
	Window       uint32
	Chunk        uint32
	Channels     uint32
	Pull         bool
	Sharing      int // KV pages that a decode rank may publish; 0: nothing is shared
	Sources      int // KV pages that a prefill rank may publish
	NoState      bool
	Net          NetFaults
	Fabric       mem.Faults // guards of the fabric that are off: a planted bug
	Plant        Plant
	Trace        func(line string) // if set, is given everything that happens

	// Changes to the machines' configurations, for scenarios.
	PrefillRank   func(*core.PrefillRankConfig)
	PrefillLeader func(*core.PrefillLeaderConfig)
	DecodeRank    func(*core.DecodeRankConfig)
	DecodeLeader  func(*core.DecodeLeaderConfig)
}

// NetFaults are chances of one message, in percent.
type NetFaults struct{ Drop, Duplicate, Reorder int }

// Plant is a bug of the driver that the oracle must find. All false is a driver that keeps its contract.
type Plant struct {
	PostedEarly bool // a batch is said to be over while its sources are still read
	FenceEarly  bool // a fence at decode is said to be back at once, and does not fence
	SealEarly   bool // computation is said to be over while it still writes
	AppendOver  bool // a step stores its token into the first page of its block table, which others may share (no copy before append)
	NoCopy      bool // a further sample's copies are said to be done and are not
	ShortIDs    bool // content ids leave out the tokens before the page
	AnyDomain   bool // content ids leave out the domain
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
	for r := range uint32(ranks) {
		lLo, lHi, hLo, hHi := uint32(0), uint32(layers), uint32(0), uint32(heads)
		if ranks > 1 && role == spec.RolePrefill {
			hLo, hHi = r*heads/uint32(ranks), (r+1)*heads/uint32(ranks)
		} else if ranks > 1 {
			lLo, lHi = r*layers/uint32(ranks), (r+1)*layers/uint32(ranks)
		}
		pools := []spec.Layout{spec.NewDense(spec.KV, meaning(spec.KV), lLo, lHi, hLo, hHi, pages, tagSlots)}
		if !c.NoState {
			pools = append(pools, spec.NewDense(spec.State, meaning(spec.State), lLo, lHi, hLo, hHi, single, tagSlots))
		}
		side = append(side, append(pools, spec.NewDense(spec.Aux, meaning(spec.Aux), 0, 1, 0, 1, single, tagSlots)))
	}
	return side
}
