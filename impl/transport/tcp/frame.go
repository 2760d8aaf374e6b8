package tcp

import (
	"encoding/binary"
	"errors"
	"fmt"

	"kvfence/spec"
)

// After authentication a stream carries frames from prefill to decode and nothing the other way. Integers are little-endian.
//
//	frame head, 32 bytes
//	offset bytes field    writes frame                         notice frame
//	 0     4     magic    "KVFW"                               "KVFN"
//	 4     4     count    number of writes, 1..256             0
//	 8     8     lease    lease of all writes, not 0           lease, not 0
//	16     8     number   sum of the writes' bytes             number of the notice
//	24     8     zero     0                                    0
//
//	A writes frame goes on with count entries of 24 bytes, then the bytes of each write in that order, each write's segments
//	in canonical order without gaps, then count tags of 64 bytes (spec.Tag) in the same order:
//	 0     1     component   1  1  zero      2  2  part       4  4  index (of the page within the lease's component)
//	 8     4     page        12 4  bytes, 1..spec.MaxPageBytes   16 8  generation
//
// Head and entries fit into headBytes, so one small read has them all, usually with the first page bytes behind them. What an
// entry claims is the grant table's to judge; a refused write's bytes are read and thrown away. A frame that breaks this
// table loses the stream (ErrFrame): it cannot be known where the next one begins.
const (
	frameBytes = 32
	entryBytes = 24
	maxEntries = 256
	headBytes  = 8192

	magicWrites = 0x5746564b // "KVFW"
	magicNotice = 0x4e46564b // "KVFN"
)

// ErrFrame is wrapped when the peer's bytes are no frame.
var ErrFrame = errors.New("malformed data frame")

// frame is a frame's head.
type frame struct {
	notice bool
	count  int
	lease  spec.LeaseID
	number uint64
}

// entry is one write of a frame, as the peer claims it.
type entry struct {
	c     spec.Component
	part  spec.PartIndex
	index uint32
	dst   spec.GrantedPage
	bytes uint32
}

func (f frame) put(b []byte) {
	magic := uint32(magicWrites)
	if f.notice {
		magic = magicNotice
	}
	binary.LittleEndian.PutUint32(b[0:], magic)
	binary.LittleEndian.PutUint32(b[4:], uint32(f.count))
	binary.LittleEndian.PutUint64(b[8:], uint64(f.lease))
	binary.LittleEndian.PutUint64(b[16:], f.number)
	binary.LittleEndian.PutUint64(b[24:], 0)
}

// parseFrame reads a head from frameBytes bytes.
func parseFrame(b []byte) (frame, error) {
	b = b[:frameBytes]
	magic, count := binary.LittleEndian.Uint32(b[0:]), binary.LittleEndian.Uint32(b[4:])
	f := frame{
		notice: magic == magicNotice, lease: spec.LeaseID(binary.LittleEndian.Uint64(b[8:])),
		number: binary.LittleEndian.Uint64(b[16:]),
	}
	switch {
	case magic != magicWrites && magic != magicNotice:
		return frame{}, fmt.Errorf("%w: magic %#x", ErrFrame, magic)
	case binary.LittleEndian.Uint64(b[24:]) != 0:
		return frame{}, fmt.Errorf("%w: reserved bytes are not zero", ErrFrame)
	case f.lease == 0:
		return frame{}, fmt.Errorf("%w: lease 0", ErrFrame)
	case f.notice && count != 0, !f.notice && (count == 0 || count > maxEntries):
		return frame{}, fmt.Errorf("%w: %d writes", ErrFrame, count)
	}
	f.count = int(count)
	return f, nil
}

func (e entry) put(b []byte) {
	b[0], b[1] = byte(e.c), 0
	binary.LittleEndian.PutUint16(b[2:], uint16(e.part))
	binary.LittleEndian.PutUint32(b[4:], e.index)
	binary.LittleEndian.PutUint32(b[8:], uint32(e.dst.Page))
	binary.LittleEndian.PutUint32(b[12:], e.bytes)
	binary.LittleEndian.PutUint64(b[16:], uint64(e.dst.Gen))
}

// parseEntries reads f.count entries into out and checks their sum.
func parseEntries(f frame, b []byte, out []entry) error {
	sum := uint64(0)
	for i := range f.count {
		p := b[i*entryBytes:][:entryBytes]
		e := entry{
			c: spec.Component(p[0]), part: spec.PartIndex(binary.LittleEndian.Uint16(p[2:])), index: binary.LittleEndian.Uint32(p[4:]),
			dst:   spec.GrantedPage{Page: spec.PageID(binary.LittleEndian.Uint32(p[8:])), Gen: spec.Generation(binary.LittleEndian.Uint64(p[16:]))},
			bytes: binary.LittleEndian.Uint32(p[12:]),
		}
		if p[1] != 0 || e.bytes == 0 || e.bytes > spec.MaxPageBytes {
			return fmt.Errorf("%w: write %d of %d bytes", ErrFrame, i, e.bytes)
		}
		sum += uint64(e.bytes)
		out[i] = e
	}
	if sum != f.number {
		return fmt.Errorf("%w: head says %d bytes, its writes have %d", ErrFrame, f.number, sum)
	}
	return nil
}
