//go:build linux

package bench

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"kvfence/impl/device"
	"kvfence/spec"
)

// bareTarget is the receiving end of the bare mover and of the bare stream, into a decode rig's pool between its requests.
type bareTarget struct {
	child    *proc
	shape    Shape
	pool     *device.Pool
	bytes    []byte
	from, to *walk
	mover    *raw
	flow     *raw
	at       int
	source   []byte // shm: the source pool, mapped
	buf      [headBytes]byte
	dig      device.Digester
	copier   device.Mover
	stops    []func() bool
}

const headBytes = 8192

func dialBare(ctx context.Context, child *proc, c config0, address, file string, pool *device.Pool, bytes int) (*bareTarget, error) {
	t := &bareTarget{child: child, pool: pool, bytes: pool.Bytes[:bytes]}
	t.copier.Stream = true
	if c.Suite == "shm" {
		var err error
		if t.source, err = mapFile(file, bytes); err != nil {
			return nil, err
		}
		t.mover, err = t.dial(ctx, c, "unix", address)
		return t, err
	}
	var err error
	if t.mover, err = t.dial(ctx, c, "tcp", address); err != nil {
		return t, err
	}
	t.flow, err = t.dial(ctx, c, "tcp", address)
	return t, err
}

// dial opens one connection; it ends with ctx.
func (t *bareTarget) dial(ctx context.Context, c config0, network, address string) (*raw, error) {
	var d net.Dialer
	nc, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	t.stops = append(t.stops, context.AfterFunc(ctx, func() { _ = nc.Close() })) // who waits for it gets the error
	if err := tune(nc, c.Congestion); err != nil {
		return nil, err
	}
	conn := nc
	if c.Suite == "tls" {
		cfg, err := bareTLS(c.Dir)
		if err != nil {
			return nil, err
		}
		conn = tls.Client(nc, cfg)
	}
	return newRaw(conn, nc)
}

func mapFile(name string, bytes int) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("%w: source pool: %w", ErrBench, err)
	}
	m, err := unix.Mmap(int(f.Fd()), 0, bytes, unix.PROT_READ, unix.MAP_SHARED|unix.MAP_POPULATE)
	return m, errors.Join(err, f.Close())
}

// begin sets the shape of what follows.
func (t *bareTarget) begin(s Shape, r *rand.Rand) {
	t.shape, t.from, t.to = s, newWalk(len(t.bytes)/s.Page, r), newWalk(len(t.bytes)/s.Page, r)
}

// request moves one request without guards and returns its nanoseconds.
func (t *bareTarget) request(_ context.Context, digests bool) (int64, error) {
	from, to := t.from.next(t.shape.Pages), t.to.next(t.shape.Pages)
	if err := t.child.tell(order{Op: "bare", Send: &send{Pages: from, To: to, Digests: digests}}); err != nil {
		return 0, err
	}
	t1, err := t.receive()
	if err != nil {
		return 0, fmt.Errorf("%w: bare mover: %w", ErrBench, err)
	}
	a, err := t.child.hear()
	if err != nil {
		return 0, err
	}
	for i, p := range to {
		if !stamped(t.page(p), from[i]) {
			return 0, fmt.Errorf("%w: bare mover: page %d is not what was sent", ErrBench, i)
		}
	}
	return t1 - a.T0, nil
}

func (t *bareTarget) page(p uint32) []byte { return t.pool.Page(spec.PageID(p)) }

// receive reads header and pages, and answers.
func (t *bareTarget) receive() (t1 int64, err error) {
	n, need := 0, bareHead
	for n < need {
		k, err := t.mover.some(t.buf[n:])
		if err != nil {
			return 0, err
		}
		if n += k; n >= bareHead {
			need = bareHead + bareEntry*int(binary.LittleEndian.Uint32(t.buf[:]))
		}
	}
	head, rest := t.buf[:need], t.buf[need:n]
	digests := head[8] == 1
	if t.source != nil {
		err = t.copyAll(head[bareHead:], digests)
	} else {
		err = t.readAll(head[bareHead:], rest, digests)
	}
	if err != nil {
		return 0, err
	}
	if t1, err = monotonic(); err != nil {
		return 0, err
	}
	_, err = t.mover.conn.Write([]byte{1})
	return t1, err
}

// readAll reads pages straight to where they belong, as much as one call takes, and hashes each piece while it is in the cache.
func (t *bareTarget) readAll(entries, rest []byte, digests bool) error {
	limit := callBytes
	if digests {
		limit = hashBytes
	}
	var pieces []piece
	flush := func() error {
		if err := t.mover.read(); err != nil {
			return err
		}
		for _, p := range pieces {
			if err := t.hash(p); err != nil {
				return err
			}
		}
		pieces = pieces[:0]
		return nil
	}
	for ; len(entries) > 0; entries = entries[bareEntry:] {
		page := t.page(binary.LittleEndian.Uint32(entries))
		for off := 0; off < len(page); {
			k := min(len(page)-off, limit-t.mover.bytes)
			b := page[off:][:k]
			if digests {
				pieces = append(pieces, piece{b, off == 0, off+k == len(page), binary.LittleEndian.Uint64(entries[8:])})
			}
			off += k
			c := copy(b, rest)
			rest = rest[c:]
			if b = b[c:]; len(b) > 0 {
				t.mover.add(b)
			}
			if t.mover.full(limit) {
				if err := flush(); err != nil {
					return err
				}
			}
		}
	}
	if len(rest) > 0 {
		return io.ErrUnexpectedEOF
	}
	return flush()
}

// piece is a run of a page to hash once it is there.
type piece struct {
	b           []byte
	first, last bool
	want        uint64
}

func (t *bareTarget) hash(p piece) error {
	if p.first {
		t.dig.Start(device.DigestHeader{Used: uint32(t.shape.Page)})
	}
	t.dig.Write(p.b)
	if p.last && t.dig.Sum() != p.want {
		return fmt.Errorf("%w: digest differs", ErrBench)
	}
	return nil
}

// copyAll copies pages out of the mapped source.
func (t *bareTarget) copyAll(entries []byte, digests bool) error {
	segs := []spec.Segment{{Bytes: uint32(t.shape.Page)}}
	stream := t.shape.Page >= device.StreamMin && t.shape.Bytes() >= 2<<20
	t.copier.Stream = stream
	for ; len(entries) > 0; entries = entries[bareEntry:] {
		to, from := t.page(binary.LittleEndian.Uint32(entries)), t.sourcePage(binary.LittleEndian.Uint32(entries[4:]))
		switch {
		case digests:
			d, err := t.copier.CopyDigest(to, segs, from, segs, device.DigestHeader{})
			if err != nil {
				return err
			}
			if d != binary.LittleEndian.Uint64(entries[8:]) {
				return fmt.Errorf("%w: digest differs", ErrBench)
			}
		case stream:
			device.CopyStream(to, from)
		default:
			copy(to, from)
		}
	}
	return nil
}

func (t *bareTarget) sourcePage(p uint32) []byte {
	return t.source[int(p)*t.shape.Page:][:t.shape.Page]
}

// copyOnly is Go's copy() of the same lists in this process alone.
func (t *bareTarget) copyOnly() (int64, error) {
	from, to := t.from.next(t.shape.Pages), t.to.next(t.shape.Pages)
	t0, err := monotonic()
	for i := range to {
		copy(t.page(to[i]), t.sourcePage(from[i]))
	}
	t1, err1 := monotonic()
	return t1 - t0, errors.Join(err, err1)
}

// stream moves as many bytes through the bare stream.
func (t *bareTarget) stream(bytes int) (int64, error) {
	if err := t.child.tell(order{Op: "stream", Send: &send{Bytes: bytes}}); err != nil {
		return 0, err
	}
	for left := bytes; left > 0; {
		k := min(left, callBytes)
		if t.at+k > len(t.bytes) {
			t.at = 0
		}
		if _, err := io.ReadFull(t.flow.conn, t.bytes[t.at:][:k]); err != nil {
			return 0, fmt.Errorf("%w: stream: %w", ErrBench, err)
		}
		t.at += k
		left -= k
	}
	t1, err := monotonic()
	if err != nil {
		return 0, err
	}
	a, err := t.child.hear()
	return t1 - a.T0, err
}

func (t *bareTarget) close() (err error) {
	for _, stop := range t.stops {
		stop()
	}
	for _, r := range []*raw{t.mover, t.flow} {
		if r != nil {
			_ = r.close() // the run is over, or failed for a better reason
		}
	}
	if t.source != nil {
		err = unix.Munmap(t.source)
	}
	return err
}
