//go:build linux

package shm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"kvfence/impl/device"
	"kvfence/impl/transport"
	"kvfence/spec"
)

// A control page is 4096 bytes of sealed memory that its owner writes and its peer maps for reading:
//
//	0 magic [8]   8 nonce [16]   24 epoch u64, set to 0 when the owner has ended the link   32 prefill [16]   48 decode [16]
const (
	pageBytes    = 4096
	controlMagic = "KVFCTL01"
	atNonce      = 8
	atEpoch      = 24
	atPrefill    = 32
	atDecode     = 48
)

// control is one end's view of a control page: writable for its owner, read-only for the peer.
type control struct {
	file *os.File // nil at the peer once it is mapped
	page []byte
}

// newControl makes this end's page with a fresh nonce.
func newControl(info transport.LinkInfo) (*control, error) {
	f, m, err := device.NewSealed("kvfence-control", pageBytes)
	if err != nil {
		return nil, fmt.Errorf("control page: %w", err)
	}
	c := &control{f, m}
	copy(m, controlMagic)
	random(m[atNonce : atNonce+nonceBytes])
	binary.LittleEndian.PutUint64(m[atEpoch:], uint64(info.Epoch))
	copy(m[atPrefill:], info.Prefill[:])
	copy(m[atDecode:], info.Decode[:])
	return c, nil
}

// openControl maps the peer's page, insisting on the seals (without them it could be shrunk under us), and compares it with what
// the peer announced. fd stays the caller's.
func openControl(fd int, info transport.LinkInfo, announced spec.Nonce) (*control, error) {
	if err := device.CheckSealed(fd); err != nil {
		return nil, fmt.Errorf("peer's control page: %w", err)
	}
	m, err := mapRegion(fd, device.Region{Length: pageBytes}, true)
	if err != nil {
		return nil, fmt.Errorf("peer's control page: %w", err)
	}
	c := &control{nil, m}
	if string(m[:8]) != controlMagic || spec.Incarnation(m[atPrefill:atDecode]) != info.Prefill ||
		spec.Incarnation(m[atDecode:atDecode+16]) != info.Decode || c.epoch() != info.Epoch || c.nonce() != announced {
		return nil, errors.Join(fmt.Errorf("peer's control page: %w", ErrNonce), c.close())
	}
	return c, nil
}

func (c *control) nonce() spec.Nonce { return spec.Nonce(c.page[atNonce : atNonce+nonceBytes]) }

func (c *control) word() *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(&c.page[atEpoch])) }

// epoch is the epoch that the page's owner serves at this moment; 0 when it has ended the link.
func (c *control) epoch() spec.Epoch { return spec.Epoch(c.word().Load()) }

// end tells whoever has mapped the page that its owner has ended the link.
func (c *control) end() { c.word().Store(0) }

func (c *control) close() (err error) {
	if c.page != nil {
		err = unix.Munmap(c.page)
		c.page = nil
	}
	if c.file != nil {
		err = errors.Join(err, c.file.Close())
		c.file = nil
	}
	return err
}

// mapRegion maps r of fd for reading, after checking that the file holds it. A child of a fork does not inherit the mapping, so
// the process that was watched from outside is the only one that reads through it. All pages are entered now unless lazy.
func mapRegion(fd int, r device.Region, lazy bool) ([]byte, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRegions, err)
	}
	if r.Offset < 0 || r.Offset%pageBytes != 0 || r.Length <= 0 || r.Length > st.Size || r.Offset > st.Size-r.Length {
		return nil, fmt.Errorf("%w: %d+%d of a file of %d bytes", ErrRegions, r.Offset, r.Length, st.Size)
	}
	flags := unix.MAP_SHARED
	if !lazy {
		flags |= unix.MAP_POPULATE
	}
	m, err := unix.Mmap(fd, r.Offset, int(r.Length), unix.PROT_READ, flags)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRegions, err)
	}
	if err := unix.Madvise(m, unix.MADV_DONTFORK); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrRegions, err), unix.Munmap(m))
	}
	return m, nil
}
