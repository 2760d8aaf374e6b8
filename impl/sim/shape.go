package sim

import (
	"math/rand/v2"

	"kvfence/impl/core"
	"kvfence/impl/transport/mem"
)

// bigPool is a pool of a million pages; bigShare is the one in how many seeds that has one.
const (
	bigPool  = 1_000_000
	bigShare = 2048
)

// Shape draws a cluster from a seed: sizes, direction, faults of the network.
func Shape(seed uint64) Config {
	r := rand.New(rand.NewPCG(seed, 0x5368617065))
	c := Config{Seed: seed, Pull: r.IntN(3) == 0, PrefillPages: uint32(6 + r.IntN(12)), DecodePages: uint32(8 + r.IntN(16)), Chunk: uint32(3 + r.IntN(8)), Channels: uint32(1 + r.IntN(3))}
	for range 1 + r.IntN(2) {
		c.Prefill = append(c.Prefill, 1+r.IntN(2))
	}
	for range 1 + r.IntN(2) {
		c.Decode = append(c.Decode, 1+r.IntN(2))
	}
	if r.IntN(2) == 0 {
		c.Net = NetFaults{Drop: r.IntN(8), Duplicate: r.IntN(8), Reorder: r.IntN(30)}
	}
	c.PrefillRank = func(*core.PrefillRankConfig) {} // for changes that wrap it
	c.Answers, c.PostItems, c.Posts, c.SealItems = 4, 1+int(seed%5), 2, 3
	if r.IntN(2) == 0 {
		c.Sharing = 1 + r.IntN(16)
		if c.NoState = r.IntN(2) == 0; c.NoState { // a state record is computed from the first token on: prefill shares without it only
			c.Sources = 1 + r.IntN(16)
		}
	}
	c.Drift = r.IntN(3) == 0
	c.Lax = !c.Pull && r.IntN(8) == 0
	switch r.IntN(12) {
	case 0:
		c.AuxPages = uint32(1 + r.IntN(2))
	case 1:
		c.DecodePages = uint32(3 + r.IntN(5))
	case 2:
		c.PrefillPages = uint32(3 + r.IntN(3))
	}
	if r.IntN(24) == 0 {
		c.Mismatch = 1 + r.IntN(3)
	}
	if r.IntN(bigShare) == 0 {
		c.Prefill, c.Decode, c.PrefillPages, c.DecodePages, c.AuxPages = []int{1}, []int{1}, 64, 64, 8
		if r.IntN(2) == 0 {
			c.PrefillPages = bigPool
		} else {
			c.DecodePages = bigPool
		}
	}
	if !c.Pull && !c.Lax && r.IntN(4) == 0 { // drawn last: it moves no other draw
		c.Verbs = mem.Verbs{On: true, Windows: r.IntN(2) == 0}
	}
	return c
}

// countShape counts what is special about a cluster.
func (w *World) countShape() {
	c := w.cfg
	switch {
	case c.PrefillPages >= bigPool || c.DecodePages >= bigPool:
		w.count(ManyPages)
	case min(c.PrefillPages, c.DecodePages) < 8:
		w.count(FewPages)
	}
	if c.Verbs.On {
		w.count(OverVerbs)
	}
	if c.Verbs.Windows {
		w.count(OverWindows)
	}
	if c.AuxPages == 1 || c.AuxPages == 2 {
		w.count(FewRecords)
	}
}
