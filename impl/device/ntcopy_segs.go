package device

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/zeebo/xxh3"

	"kvfence/spec"
)

// ErrSegments says that two lists of segments do not describe the same number of bytes inside their pages.
var ErrSegments = errors.New("segments do not fit")

// ErrStopped says that a copy was given up half-way because its owner asked for it.
var ErrStopped = errors.New("copy was stopped")

// moverStep is how many bytes are copied between two looks at Stop.
const moverStep = 256 << 10

// Mover copies the bytes of one part from one page to another, both cut into segments in canonical order, and can hash what it
// copies: the bytes that are hashed are the bytes that land, also if the source changes meanwhile. The source may be another
// process's memory; a fault in it is a panic (debug.SetPanicOnFault) that the caller recovers. Not safe for concurrent use.
type Mover struct {
	// Stream stores past the cache: right for large requests of large pages, that nobody reads at once.
	Stream bool
	// Stop, if set, is asked before every step of at most 256 KiB; true gives the copy up with ErrStopped.
	Stop func() bool

	digest  Digester
	scratch [sumUnit]byte // a private copy of what is being hashed
	since   int           // bytes copied since Stop was asked
	s, d    cursor
}

// Copy copies src's segments over dst's. Nothing is written when the segments do not fit.
func (m *Mover) Copy(dst []byte, dstSegs []spec.Segment, src []byte, srcSegs []spec.Segment) error {
	if err := m.begin(dst, dstSegs, src, srcSegs); err != nil {
		return err
	}
	for m.s.more() {
		n := min(len(m.s.run), len(m.d.run), moverStep)
		if err := m.step(n); err != nil {
			return err
		}
		if m.Stream && n >= DigestChunk {
			CopyStream(m.d.run[:n], m.s.run[:n])
		} else {
			copy(m.d.run[:n], m.s.run[:n])
		}
		m.s.skip(n)
		m.d.skip(n)
	}
	return nil
}

// CopyDigest copies like Copy and returns the digest of the bytes that landed. h.Used is set from the segments.
func (m *Mover) CopyDigest(dst []byte, dstSegs []spec.Segment, src []byte, srcSegs []spec.Segment, h DigestHeader) (uint64, error) {
	if err := m.begin(dst, dstSegs, src, srcSegs); err != nil {
		return 0, err
	}
	h.Used = spec.UsedBytes(srcSegs)
	m.digest.Start(h)
	for m.s.more() {
		run := min(len(m.s.run), len(m.d.run), moverStep)
		if m.Stream && canFuse() && run >= sumUnit && misalign(m.d.run) == 0 {
			n := run / sumUnit * sumUnit
			if err := m.step(n); err != nil {
				return 0, err
			}
			fusedUnits(m.d.run, m.s.run, n/sumUnit, m.digest.value)
			m.s.skip(n)
			m.d.skip(n)
			continue
		}
		if err := m.viaScratch(); err != nil {
			return 0, err
		}
	}
	return m.digest.Sum(), nil
}

// viaScratch copies at most a scratch full: out of the source once, hashed there, and from there to the destination. It ends on
// a chunk border unless the part ends.
func (m *Mover) viaScratch() error {
	n := 0
	for n < len(m.scratch) && m.s.more() {
		k := copy(m.scratch[n:], m.s.run)
		m.s.skip(k)
		n += k
	}
	if err := m.step(n); err != nil {
		return err
	}
	b := m.scratch[:n]
	for o := 0; o < n; o += DigestChunk {
		m.digest.value(xxh3.Hash(b[o:min(n, o+DigestChunk)]))
	}
	for len(b) > 0 {
		k := min(len(b), len(m.d.run))
		if m.Stream && k >= DigestChunk {
			CopyStream(m.d.run[:k], b[:k])
		} else {
			copy(m.d.run, b[:k])
		}
		m.d.skip(k)
		b = b[k:]
	}
	return nil
}

func (m *Mover) begin(dst []byte, dstSegs []spec.Segment, src []byte, srcSegs []spec.Segment) error {
	sn, err := within(src, srcSegs)
	if err != nil {
		return fmt.Errorf("source %w", err)
	}
	dn, err := within(dst, dstSegs)
	if err != nil {
		return fmt.Errorf("destination %w", err)
	}
	if sn != dn {
		return fmt.Errorf("%w: source has %d bytes, destination %d", ErrSegments, sn, dn)
	}
	m.s, m.d, m.since = cursor{page: src, rest: srcSegs}, cursor{page: dst, rest: dstSegs}, moverStep
	m.s.skip(0)
	m.d.skip(0)
	return nil
}

// step asks Stop before n bytes are stored, if enough were stored since it was asked last.
func (m *Mover) step(n int) error {
	if m.since+n > moverStep {
		m.since = 0
		if m.Stop != nil && m.Stop() {
			return ErrStopped
		}
	}
	m.since += n
	return nil
}

// within sums segments and checks that each lies in the page.
func within(page []byte, segs []spec.Segment) (n uint64, err error) {
	for _, s := range segs {
		if uint64(s.Offset)+uint64(s.Bytes) > uint64(len(page)) {
			return 0, fmt.Errorf("%w: %d+%d lies outside of a page of %d bytes", ErrSegments, s.Offset, s.Bytes, len(page))
		}
		n += uint64(s.Bytes)
	}
	if n > spec.MaxPageBytes {
		return 0, fmt.Errorf("%w: %d bytes are more than a page can have", ErrSegments, n)
	}
	return n, nil
}

// cursor walks the bytes of a page's segments: run is what is left of the present one.
type cursor struct {
	page []byte
	rest []spec.Segment
	run  []byte
}

func (c *cursor) more() bool { return len(c.run) > 0 }

// skip drops n bytes of the run and goes to the next segment that has any when the run is used up.
func (c *cursor) skip(n int) {
	c.run = c.run[n:]
	for len(c.run) == 0 && len(c.rest) > 0 {
		c.run = c.page[c.rest[0].Offset:][:c.rest[0].Bytes]
		c.rest = c.rest[1:]
	}
}

// value adds the XXH3 value of one whole chunk (or of the part's last, shorter one), which was hashed elsewhere. It must not be
// mixed with pieces that leave a chunk open.
func (d *Digester) value(v uint64) {
	if d.n == valsBytes {
		d.fold()
	}
	binary.LittleEndian.PutUint64(d.vals[d.n:], v)
	d.n += 8
}
