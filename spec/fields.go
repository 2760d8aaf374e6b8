package spec

import (
	"fmt"
	"math"
	"slices"
)

// The roles of a side.
const (
	RolePrefill = "prefill"
	RoleDecode  = "decode"
)

// Identity is who a node is, checked on both sides before any key is exchanged.
type Identity struct {
	Name        string // stable name of the node
	Role        string // "prefill" or "decode"
	Incarnation Incarnation
	Rank        Rank
	Size        uint16        // ranks of its side
	Side        []Incarnation // incarnations of all ranks of the side, in rank order; rank 0 leads
}

// Sampling is what prefill needs to choose the first token. Zero Temperature is greedy.
type Sampling struct {
	Temperature float32
	TopP        float32
	Seed        uint64
	Logprobs    uint16
}

// SourcePage is a page of the source pool in a manifest (pull).
type SourcePage struct {
	Page PageID
	Gen  Generation
}

// PartDone describes one finished part: its digest for each page index, and for pull its source pages.
type PartDone struct {
	Component Component
	Index     PartIndex
	Digests   []uint64     // one for each page of Part.PageRange, in order; empty without digests
	Source    []SourcePage // pull only; parallel to Digests
}

// Channel is one data stream, rail or queue pair of a link in one epoch, and the number of the drain notice sent behind its last write.
type Channel struct {
	ID     uint32
	Notice uint64
}

func (c *cursor) transfer(v *TransferID) {
	c.raw("transfer.leader", v.Leader[:])
	u64(c, "transfer.counter", &v.Counter, 1, math.MaxUint64)
	c.require("transfer.leader", !v.Leader.IsZero(), "no incarnation")
}

func (c *cursor) lease(v *LeaseID) { u64(c, "lease", v, 1, math.MaxUint64) }

func (c *cursor) grantEpoch(v *Epoch) { u64(c, "grant_epoch", v, 0, math.MaxUint64) }

func (c *cursor) cause(v *Cause) { word(c, "cause", v, Cause.Known) }

func (c *cursor) incarnations(name string, v *[]Incarnation) {
	list(c, name, v, MaxRanks, 16, func(c *cursor, i *Incarnation) {
		c.raw("incarnation", i[:])
		c.require("incarnation", !i.IsZero(), "no incarnation")
	})
	if c.err != nil {
		return
	}
	distinct := true
	for i := range *v {
		distinct = distinct && !slices.Contains((*v)[:i], (*v)[i])
	}
	c.require(name, distinct, "the same incarnation twice")
}

// capabilities are strictly ascending, so that a set has one form.
func (c *cursor) capabilities(v *[]string) {
	list(c, "capabilities", v, MaxCapabilities, 2, func(c *cursor, s *string) {
		text(c, "name", s, MaxName)
		c.require("name", *s != "", "empty")
	})
	ascending(c, "capabilities", *v, func(a, b string) bool { return a < b })
}

func ascending[T any](c *cursor, name string, v []T, less func(a, b T) bool) {
	if c.err != nil {
		return
	}
	ordered := true
	for i := 1; i < len(v); i++ {
		ordered = ordered && less(v[i-1], v[i])
	}
	c.require(name, ordered, "not in strictly ascending order")
}

func (c *cursor) identity(v *Identity) {
	group(c, "identity", v, func(c *cursor, v *Identity) {
		text(c, "name", &v.Name, MaxName)
		c.require("name", v.Name != "", "empty")
		word(c, "role", &v.Role, func(s string) bool { return s == RolePrefill || s == RoleDecode })
		c.raw("incarnation", v.Incarnation[:])
		u16(c, "rank", &v.Rank, 0, MaxRanks-1)
		u16(c, "size", &v.Size, 1, MaxRanks)
		c.incarnations("side", &v.Side)
		c.require("side", len(v.Side) == int(v.Size), "not as many incarnations as the side has ranks")
		c.require("rank", int(v.Rank) < len(v.Side) && v.Side[min(int(v.Rank), len(v.Side)-1)] == v.Incarnation, "the side has another incarnation at this rank")
	})
}

// layouts are at most one for each component, ascending. Their geometry is judged at the handshake (Layout.Validate,
// Meaning.Compare), so that a Refuse can name the field.
func (c *cursor) layouts(v *[]Layout) {
	list(c, "layouts", v, int(ComponentCount), 76, func(c *cursor, l *Layout) {
		u8(c, "component", &l.Component, 0, ComponentCount-1)
		group(c, "equal", &l.Equal, meaning)
		group(c, "shape", &l.Shape, shape)
	})
	ascending(c, "layouts", *v, func(a, b Layout) bool { return a.Component < b.Component })
}

func meaning(c *cursor, m *Meaning) {
	text(c, "model_revision", &m.ModelRevision, MaxName)
	text(c, "quantization", &m.Quantization, MaxName)
	text(c, "dtype", &m.DType, MaxName)
	text(c, "byte_order", &m.ByteOrder, MaxName)
	u32(c, "head_dim", &m.HeadDim, 0, math.MaxUint32)
	u32(c, "elem_bytes", &m.ElemBytes, 0, math.MaxUint32)
	u32(c, "kvs", &m.KVs, 0, math.MaxUint32)
	u32(c, "tokens_per_page", &m.TokensPerPage, 0, math.MaxUint32)
	u32(c, "layers", &m.Layers, 0, math.MaxUint32)
	u32(c, "heads", &m.Heads, 0, math.MaxUint32)
}

func shape(c *cursor, s *Shape) {
	u32(c, "layer_lo", &s.LayerLo, 0, MaxLayers)
	u32(c, "layer_hi", &s.LayerHi, 0, MaxLayers)
	u32(c, "head_lo", &s.HeadLo, 0, MaxHeads)
	u32(c, "head_hi", &s.HeadHi, 0, MaxHeads)
	u32(c, "page_bytes", &s.PageBytes, 0, math.MaxUint32)
	u32(c, "layer_stride", &s.LayerStride, 0, math.MaxUint32)
	u32(c, "kv_stride", &s.KVStride, 0, math.MaxUint32)
	u32(c, "head_stride", &s.HeadStride, 0, math.MaxUint32)
	u32(c, "token_stride", &s.TokenStride, 0, math.MaxUint32)
	u32(c, "pages", &s.Pages, 0, math.MaxUint32)
	u16(c, "tag_slots", &s.TagSlots, 0, math.MaxUint16)
	c.flag("shared", &s.Shared)
}

// parts are strictly ascending by component and index.
func (c *cursor) parts(v *[]Part, tokens uint32) {
	list(c, "parts", v, MaxParts, 29, func(c *cursor, p *Part) {
		u8(c, "component", &p.Component, 0, ComponentCount-1)
		u16(c, "index", &p.Index, 0, MaxTagSlots-1)
		u16(c, "rank", &p.Rank, 0, MaxRanks-1)
		u32(c, "layer_lo", &p.LayerLo, 0, MaxLayers-1)
		u32(c, "layer_hi", &p.LayerHi, 1, MaxLayers)
		u32(c, "head_lo", &p.HeadLo, 0, MaxHeads-1)
		u32(c, "head_hi", &p.HeadHi, 1, MaxHeads)
		u32(c, "token_lo", &p.TokenLo, 0, MaxPrompt)
		u32(c, "token_hi", &p.TokenHi, 0, MaxPrompt)
		c.require("layer_hi", p.LayerLo < p.LayerHi, "no layers")
		c.require("head_hi", p.HeadLo < p.HeadHi, "no heads")
		c.require("token_hi", p.TokenLo <= p.TokenHi && p.TokenHi <= tokens, "token range is not within the lease's tokens")
	})
	ascending(c, "parts", *v, func(a, b Part) bool { return partLess(a.Component, b.Component, a.Index, b.Index) })
}

func partLess(c, d Component, i, j PartIndex) bool { return c < d || c == d && i < j }

// done is one PartDone.
func done(c *cursor, d *PartDone) {
	u8(c, "component", &d.Component, 0, ComponentCount-1)
	u16(c, "index", &d.Index, 0, MaxTagSlots-1)
	c.digests("digests", &d.Digests)
	pages(c, "source", &d.Source)
	c.require("source", len(d.Digests) == 0 || len(d.Source) == 0 || len(d.Digests) == len(d.Source), "not as many source pages as digests")
}

// channels are strictly ascending by id.
func (c *cursor) channels(v *[]Channel) {
	list(c, "channels", v, MaxChannels, 12, func(c *cursor, ch *Channel) {
		u32(c, "id", &ch.ID, 0, math.MaxUint32)
		u64(c, "notice", &ch.Notice, 0, math.MaxUint64)
	})
	ascending(c, "channels", *v, func(a, b Channel) bool { return a.ID < b.ID })
}

func (c *cursor) sampling(v *Sampling) {
	group(c, "sampling", v, func(c *cursor, s *Sampling) {
		c.float("temperature", &s.Temperature, MaxTemperature)
		c.float("top_p", &s.TopP, 1)
		u64(c, "seed", &s.Seed, 0, math.MaxUint64)
		u16(c, "logprobs", &s.Logprobs, 0, math.MaxUint16)
	})
}

// float is an IEEE 754 binary32 in 0..top: not negative (nor negative zero), not infinite, a number.
func (c *cursor) float(name string, v *float32, top float32) {
	bits := math.Float32bits(*v)
	if c.mode == describing {
		c.note(name, 4, fmt.Sprintf("0..%v, binary32", top))
		return
	}
	u32(c, name, &bits, 0, math.MaxUint32)
	if c.mode == parsing {
		*v = math.Float32frombits(bits)
	}
	c.require(name, bits <= math.Float32bits(top), "not a number in its range")
}
