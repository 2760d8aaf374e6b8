//go:build linux

package bench

import (
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"net"
	"path/filepath"

	"kvfence/impl/device"
	"kvfence/spec"
)

// A bare request is a header (count, page bytes, whether digests stand there; then for each page its destination and, if so, its
// digest) and the pages; the target answers with one byte. For shm there is only the header: it is the notice.
const (
	bareHead  = 16
	bareEntry = 16
)

// bareSource is the sending end of the bare mover and of the bare stream, over one connection each.
type bareSource struct {
	ln     net.Listener
	pool   *device.Pool
	bytes  []byte // of the pool that are stamped
	copies bool   // shm: nothing but the header is sent
	tls    *tls.Config
	cc     string
	mover  *raw
	flow   *raw
	at     int // of flow in the pool
	sums   map[uint32]uint64
	head   []byte
}

func newBareSource(c config0, pool *device.Pool, bytes int) (b *bareSource, err error) {
	b = &bareSource{pool: pool, bytes: pool.Bytes[:bytes], copies: c.Suite == "shm", cc: c.Congestion, sums: map[uint32]uint64{}}
	network, address := "tcp", "127.0.0.1:0"
	if b.copies {
		network, address = "unix", filepath.Join(c.Dir, fmt.Sprintf("bare-%d", pool.Layout.Shape.PageBytes))
	}
	if c.Suite == "tls" {
		if b.tls, err = bareTLS(c.Dir); err != nil {
			return nil, err
		}
	}
	b.ln, err = net.Listen(network, address)
	return b, err
}

func (b *bareSource) address() string { return b.ln.Addr().String() }

// accept takes the next connection; the target dials one for the mover, then one for the stream.
func (b *bareSource) accept() (*raw, error) {
	c, err := b.ln.Accept()
	if err != nil {
		return nil, err
	}
	if err := tune(c, b.cc); err != nil {
		return nil, err
	}
	conn := c
	if b.tls != nil {
		conn = tls.Server(c, b.tls)
	}
	return newRaw(conn, c)
}

func (b *bareSource) connect() (err error) {
	if b.mover != nil {
		return nil
	}
	if b.mover, err = b.accept(); err != nil || b.copies {
		return err
	}
	b.flow, err = b.accept()
	return err
}

// digest of a source page, as a seal takes it; taken once.
func (b *bareSource) digest(p uint32) uint64 {
	d, ok := b.sums[p]
	if !ok {
		page := b.pool.Page(spec.PageID(p))
		d = device.DigestSegments(page, []spec.Segment{{Bytes: uint32(len(page))}}, device.DigestHeader{})
		b.sums[p] = d
	}
	return d
}

// pages sends one request of the bare mover.
func (b *bareSource) pages(s send) (a answer, err error) {
	if err := b.connect(); err != nil {
		return a, err
	}
	b.head = b.head[:0]
	b.head = binary.LittleEndian.AppendUint32(b.head, uint32(len(s.Pages)))
	b.head = binary.LittleEndian.AppendUint32(b.head, b.pool.Layout.Shape.PageBytes)
	b.head = binary.LittleEndian.AppendUint64(b.head, uint64(flag(s.Digests)))
	for i, p := range s.Pages {
		sum := uint64(0)
		if s.Digests {
			sum = b.digest(p)
		}
		b.head = binary.LittleEndian.AppendUint32(b.head, s.To[i])
		b.head = binary.LittleEndian.AppendUint32(b.head, p)
		b.head = binary.LittleEndian.AppendUint64(b.head, sum)
	}
	if a.T0, err = monotonic(); err != nil {
		return a, err
	}
	m := b.mover
	m.add(b.head)
	if !b.copies {
		for _, p := range s.Pages {
			page := b.pool.Page(spec.PageID(p))
			for len(page) > 0 {
				k := min(len(page), callBytes-m.bytes)
				m.add(page[:k])
				page = page[k:]
				if m.full(callBytes) {
					if err := m.write(); err != nil {
						return a, err
					}
				}
			}
		}
	}
	if m.bytes > 0 {
		if err := m.write(); err != nil {
			return a, err
		}
	}
	var ack [1]byte
	_, err = m.some(ack[:])
	return a, err
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// stream sends bytes through the bare stream, 1 MiB a Write, out of the whole pool in turn.
func (b *bareSource) stream(bytes int) (a answer, err error) {
	if err := b.connect(); err != nil {
		return a, err
	}
	if a.T0, err = monotonic(); err != nil {
		return a, err
	}
	for bytes > 0 {
		k := min(bytes, callBytes)
		if b.at+k > len(b.bytes) {
			b.at = 0
		}
		if _, err := b.flow.conn.Write(b.bytes[b.at:][:k]); err != nil {
			return a, err
		}
		b.at += k
		bytes -= k
	}
	return a, nil
}

func (b *bareSource) close() error {
	err := b.ln.Close()
	for _, r := range []*raw{b.mover, b.flow} {
		if r != nil {
			_ = r.close() // the target may have closed it
		}
	}
	return err
}
