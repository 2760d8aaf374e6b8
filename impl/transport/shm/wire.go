//go:build linux

package shm

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"kvfence/impl/device"
	"kvfence/impl/transport"
	"kvfence/spec"
)

// The handshake, five packets over a Unix socket that keeps packet borders. The key never crosses it.
//
//	1 exporter: magic, challenge
//	2 reader:   link (prefill, decode, epoch), challenge, nonce, MAC; descriptor of its control page
//	3 exporter: nonce, table of regions, MAC; descriptors of its control page and of the pools
//	4 reader:   the nonce that it read in the exporter's control page, MAC
//	5 exporter: the nonce that it read in the reader's control page, MAC
//
// Each MAC is HMAC-SHA256 with the link's key over a label of the packet, all packets before it and its own body, so no packet
// of one direction, step, attempt or link passes for another.
const (
	magic       = "KVFSHM01"
	nonceBytes  = 16
	challenge   = 32
	macBytes    = sha256.Size
	helloBytes  = len(magic) + challenge
	claimBytes  = 16 + 16 + 8 + challenge + nonceBytes
	regionBytes = 1 + 1 + 8 + 8 // file number, sealed, offset, length
	tableBytes  = nonceBytes + int(spec.ComponentCount)*(1+2*regionBytes)
	packetMax   = 512
	filesMax    = 1 + 2*int(spec.ComponentCount)
)

// Errors of the handshake.
var (
	// ErrNonce says that a control page does not hold the nonce that its owner announced: it is not the memory we were told of.
	ErrNonce = errors.New("nonce in the control page differs")
	// ErrRegions is wrapped when the exporter's table of memory does not fit the layouts that both sides agreed on.
	ErrRegions = errors.New("exported regions differ from the layouts")
	// ErrPeer is wrapped when the process at the other end may not open links here (user id), or cannot be watched.
	ErrPeer = errors.New("peer process refused")
	// ErrTwin says that the link already has a reader.
	ErrTwin = errors.New("link already has a reader")
	// ErrJob is wrapped when a copy names memory outside of the pools.
	ErrJob = errors.New("copy lies outside of the pools")
	// ErrSource is wrapped when the source's memory went away under a copy.
	ErrSource = errors.New("source memory is gone")
	// ErrClosed says that this end was closed.
	ErrClosed = errors.New("closed")
)

// script is one run of the handshake: the packets so far, under one key.
type script struct {
	conn *net.UnixConn
	key  [32]byte
	said []byte
	step byte
}

// mac is the MAC of the packet that is next to be said.
func (s *script) mac(body []byte) []byte {
	h := hmac.New(sha256.New, s.key[:])
	h.Write([]byte{'k', 'v', 'f', 's', 'h', 'm', s.step})
	h.Write(s.said)
	h.Write(body)
	return h.Sum(nil)
}

// send says body with its MAC (without one in the first step), and files with it.
func (s *script) send(body []byte, files ...int) error {
	s.step++
	p := body
	if s.step > 1 {
		p = append(body[:len(body):len(body)], s.mac(body)...)
	}
	s.said = append(s.said, p...)
	var rights []byte
	if len(files) > 0 {
		rights = unix.UnixRights(files...)
	}
	_, _, err := s.conn.WriteMsgUnix(p, rights, nil)
	return err
}

// receive hears a packet of exactly n bytes and its MAC, with exactly nf files if nf >= 0. keyOf is called with the body before the
// MAC is checked. Files are closed when anything is wrong.
func (s *script) receive(n, nf int, keyOf func(body []byte) error) (body []byte, files []int, err error) {
	s.step++
	p, files, err := readPacket(s.conn)
	defer func() {
		if err != nil {
			closeAll(files)
			files = nil
		}
	}()
	if err != nil {
		return nil, files, fmt.Errorf("%w: packet %d: %w", transport.ErrAuth, s.step, err)
	}
	tail := macBytes
	if s.step == 1 {
		tail = 0
	}
	if len(p) != n+tail || (nf >= 0 && len(files) != nf) {
		return nil, files, fmt.Errorf("%w: packet %d has %d bytes and %d descriptors", transport.ErrAuth, s.step, len(p), len(files))
	}
	body = p[:n:n]
	if keyOf != nil {
		if err = keyOf(body); err != nil {
			return nil, files, err
		}
	}
	if tail > 0 && !hmac.Equal(p[n:], s.mac(body)) {
		return nil, files, fmt.Errorf("%w: MAC of packet %d differs", transport.ErrAuth, s.step)
	}
	s.said = append(s.said, p...)
	return body, files, nil
}

// readPacket reads one packet and the descriptors with it. The caller owns the descriptors, also with an error.
func readPacket(c *net.UnixConn) ([]byte, []int, error) {
	buf, oob := make([]byte, packetMax), make([]byte, unix.CmsgSpace(4*filesMax))
	n, on, flags, _, err := c.ReadMsgUnix(buf, oob)
	if err != nil {
		return nil, nil, err
	}
	var files []int
	msgs, err := unix.ParseSocketControlMessage(oob[:on])
	for i := range msgs {
		if got, rerr := unix.ParseUnixRights(&msgs[i]); rerr == nil {
			files = append(files, got...)
		}
	}
	switch {
	case err != nil:
		return nil, files, err
	case flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0:
		return nil, files, errors.New("packet is too long")
	case n == 0:
		return nil, files, io.EOF
	}
	return buf[:n], files, nil
}

func closeAll(files []int) {
	for _, fd := range files {
		_ = unix.Close(fd) // nothing was written through it
	}
}

// random fills b; the system's generator does not fail (it ends the program if it cannot deliver).
func random(b []byte) { _, _ = rand.Read(b) }

// claim is the body of packet 2.
type claim struct {
	prefill, decode spec.Incarnation
	epoch           spec.Epoch
	nonce           spec.Nonce
}

func (c claim) encode() []byte {
	b := make([]byte, 0, claimBytes)
	b = append(b, c.prefill[:]...)
	b = append(b, c.decode[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(c.epoch))
	b = append(b, make([]byte, challenge)...)
	random(b[len(b)-challenge:])
	return append(b, c.nonce[:]...)
}

func decodeClaim(b []byte) (c claim) {
	copy(c.prefill[:], b)
	copy(c.decode[:], b[16:])
	c.epoch = spec.Epoch(binary.LittleEndian.Uint64(b[32:]))
	copy(c.nonce[:], b[40+challenge:])
	return c
}

// region is one line of the exporter's table: which of the descriptors that came with it, and where.
type region struct {
	file   int // number among the packet's descriptors; 0 is the control page
	sealed bool
	at     device.Region
}

// table is the body of packet 3.
type table struct {
	nonce spec.Nonce
	pools [spec.ComponentCount]struct {
		has         bool
		bytes, tags region
	}
}

// tableOf lists the pools' memory and the descriptors to send after the control page.
func tableOf(nonce spec.Nonce, pools [spec.ComponentCount]*device.Shared) (t table, files []*os.File) {
	t.nonce = nonce
	number := map[*os.File]int{}
	add := func(r device.SharedRegion) region {
		if number[r.File] == 0 {
			files = append(files, r.File)
			number[r.File] = len(files)
		}
		return region{number[r.File], r.Sealed, r.Region}
	}
	for c, p := range pools {
		if p != nil {
			t.pools[c].has = true
			t.pools[c].bytes, t.pools[c].tags = add(p.Bytes), add(p.Tags)
		}
	}
	return t, files
}

func (t table) encode() []byte {
	b := append(make([]byte, 0, tableBytes), t.nonce[:]...)
	for _, p := range t.pools {
		b = append(b, flag(p.has))
		for _, r := range []region{p.bytes, p.tags} {
			b = append(b, byte(r.file), flag(r.sealed))
			b = binary.LittleEndian.AppendUint64(b, uint64(r.at.Offset))
			b = binary.LittleEndian.AppendUint64(b, uint64(r.at.Length))
		}
	}
	return b
}

func decodeTable(b []byte) (t table) {
	copy(t.nonce[:], b)
	b = b[nonceBytes:]
	for c := range t.pools {
		t.pools[c].has = b[0] == 1
		b = b[1:]
		for _, r := range []*region{&t.pools[c].bytes, &t.pools[c].tags} {
			*r = region{int(b[0]), b[1] == 1, device.Region{
				Offset: int64(binary.LittleEndian.Uint64(b[2:])), Length: int64(binary.LittleEndian.Uint64(b[10:])),
			}}
			b = b[regionBytes:]
		}
	}
	return t
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}
