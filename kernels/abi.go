// Package kernels is the launch interface of the GPU kernels in this folder: the Go form of abi.h, the names of the kernels, the sizes of
// their grids, and the arithmetic of parts in pages. It launches nothing, holds no device memory and needs no GPU. Called by impl/gpucheck, kernels/check
// and by kernels/emulation, which runs the same sources on the CPU. Read next: README.md, cut.go, grid.go.
package kernels

import "strings"

// Constants of abi.h.
const (
	Threads       = 256
	Chunk         = 4096
	TagBytes      = 64
	VerifyEntries = 256
	MaxOffenders  = 16
	TagStates     = 5
	None          = 0xffffffff
)

// Names of the kernels, as the modules export them. Each takes one struct by value.
const (
	NameDigest    = "kvf_digest"    // MoveArgs
	NameGather    = "kvf_gather"    // MoveArgs
	NameScatter   = "kvf_scatter"   // MoveArgs
	NameConvert   = "kvf_convert"   // MoveArgs
	NameTagVerify = "kvf_tagverify" // VerifyArgs
	NameScrub     = "kvf_scrub"     // ScrubArgs
	NameTagPut    = "kvf_tagput"    // PutArgs
)

// Names lists the kernels.
func Names() []string {
	return []string{NameDigest, NameGather, NameScatter, NameConvert, NameTagVerify, NameScrub, NameTagPut}
}

// SourceOf is the file of a kernel, in this folder.
func SourceOf(name string) string { return strings.TrimPrefix(name, "kvf_") + ".cu" }

// Addr is an address of the device.
type Addr uint64

// Div divides by D: struct kvf_div.
type Div struct{ D, M, S uint32 }

// Flags of a Cut.
const (
	CutAligned uint32 = 1
	CutLayered uint32 = 2
)

// Cut is struct kvf_cut; NewCut makes one.
type Cut struct {
	Offset uint64
	Stride [4]uint64
	Run    Div
	N      [3]Div
	Used   uint32
	Flags  uint32
	Layer  uint32
	Zero   uint32
}

// ViewAligned is the flag of a View whose addresses are all multiples of 16.
const ViewAligned uint32 = 1

// View is struct kvf_view; NewView makes one.
type View struct {
	Base   Addr
	Stride uint64
	Layers Addr
	Pages  uint32
	Flags  uint32
}

// Item is struct kvf_item.
type Item struct {
	Flat             uint64
	SrcPage, SrcCut  uint32
	DstPage, DstCut  uint32
	Component        uint32
	TokenLo, TokenHi uint32
	Used             uint32
	First            uint32
	Slot             uint32
	Want             uint32
	Zero             uint32
}

// ItemState says what became of an Item.
type ItemState uint32

// States of an Item.
const (
	ItemNone    ItemState = iota // not finished
	ItemDone                     // moved, digest in Result, tag written if one was wanted
	ItemDiffers                  // moved, but the digest is not the wanted tag's: no tag was written
	ItemRefused                  // it names something outside of its table; nothing was touched
)

// Result is struct kvf_result.
type Result struct {
	Digest uint64
	State  ItemState
	Zero   uint32
}

// MoveArgs is struct kvf_move_args.
type MoveArgs struct {
	Src, Dst                     View
	Cuts, Items                  Addr
	Values, Counters             Addr
	Results                      Addr
	Tags, Wants                  Addr
	NCuts, NItems, NTags, NWants uint32
	Slices, SliceChunks          uint32
}

// Want is struct kvf_want; Tag is the encoding of device.PutTag.
type Want struct {
	Tag  [TagBytes]byte
	At   uint32
	Slot uint32
	Live uint32
	Zero uint32
}

// TagOutside is the state, next to those of spec.TagState, of an entry whose page, place or slot does not exist.
const TagOutside = 4

// Offender is struct kvf_offender.
type Offender struct{ Entry, Page, Slot, State uint32 }

// Report is struct kvf_report.
type Report struct {
	Step      uint64
	Checked   uint32
	Bad       uint32
	States    [TagStates]uint32
	Kept      uint32
	Offenders [MaxOffenders]Offender
}

// Values of the flag that tagverify sets.
const (
	FlagUnset uint32 = iota
	FlagGood
	FlagBad
)

// VerifyState is struct kvf_verify_state.
type VerifyState struct {
	Step   uint64
	Done   uint32
	States [TagStates]uint32
}

// VerifyBlock is struct kvf_verify_block.
type VerifyBlock struct {
	Kept      uint32
	Zero      [3]uint32
	Offenders [MaxOffenders]Offender
}

// VerifyArgs is struct kvf_verify_args.
type VerifyArgs struct {
	Tags, Table, Wants Addr
	Count              Addr
	Blocks, State      Addr
	Flag, Report       Addr
	Pages, TagSlots    uint32
	TableLen, Capacity uint32
}

// ScrubArgs is struct kvf_scrub_args.
type ScrubArgs struct {
	Pages              View
	List, Tags         Addr
	SpanBytes          uint64
	N, TagSlots, Spans uint32
	Slices             uint32
	Pattern            uint32
	Zero               uint32
}

// Put is struct kvf_put.
type Put struct{ Slot, Want uint32 }

// PutArgs is struct kvf_put_args.
type PutArgs struct {
	Tags, Puts, Wants Addr
	N, NTags, NWants  uint32
	Zero              uint32
}
