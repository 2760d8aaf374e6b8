//go:build linux

package shm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"

	"kvfence/impl/device"
	"kvfence/impl/transport"
	"kvfence/spec"
)

// ReaderConfig is what a reader needs to open a link.
type ReaderConfig struct {
	Address string // the exporter's socket
	Link    transport.LinkInfo
	// Source are the layouts of the source's pools that both sides agreed on; nil where it has none.
	Source [spec.ComponentCount]*spec.Layout
	// Memory is the destination. It is never shared.
	Memory device.Memory
	Sink   transport.ReaderSink
	// StreamBytes is the size of a job from which pages of device.StreamMin and more bypass the cache. 0: 2 MiB.
	StreamBytes uint64
	// Lazy leaves the source's pages to be entered at their first touch, for pools so large that entering all takes too long.
	Lazy bool

	hook func(at point) // tests: called at points of a copy
}

const defaultStreamBytes = 2 << 20

// Dial opens a link: it shows the key, maps the source's pools for reading and exchanges nonces. The context bounds the handshake
// only. The Reader must be closed.
func Dial(ctx context.Context, cfg ReaderConfig) (*Reader, error) {
	if cfg.StreamBytes == 0 {
		cfg.StreamBytes = defaultStreamBytes
	}
	r, err := dial(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("shm link to %s, epoch %d: %w", cfg.Link.Prefill, cfg.Link.Epoch, err)
	}
	r.start()
	return r, nil
}

func dial(ctx context.Context, cfg ReaderConfig) (r *Reader, err error) {
	var d net.Dialer
	nc, err := d.DialContext(ctx, "unixpacket", cfg.Address)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", transport.ErrStream, err)
	}
	c := nc.(*net.UnixConn)
	stop := context.AfterFunc(ctx, func() { _ = c.Close() }) // ends the handshake
	r = newReader(cfg, c)
	err = r.handshake()
	if !stop() {
		err = errors.Join(ctx.Err(), err)
	}
	if err != nil {
		return nil, errors.Join(err, r.release())
	}
	return r, nil
}

// handshake is the reader's side of wire.go.
func (r *Reader) handshake() error {
	own, err := newControl(r.cfg.Link)
	if err != nil {
		return err
	}
	r.own = own
	s := &script{conn: r.conn, key: r.cfg.Link.Key}
	hello, _, err := s.receive(helloBytes, 0, nil)
	if err != nil {
		return err
	}
	if string(hello[:len(magic)]) != magic {
		return fmt.Errorf("%w: the socket speaks something else", transport.ErrAuth)
	}
	l := r.cfg.Link
	if err := s.send(claim{l.Prefill, l.Decode, l.Epoch, own.nonce()}.encode(), int(own.file.Fd())); err != nil {
		return fmt.Errorf("%w: %w", transport.ErrAuth, err)
	}
	body, files, err := s.receive(tableBytes, -1, nil)
	if err != nil {
		return err
	}
	defer closeAll(files)
	t := decodeTable(body)
	if err := r.mapAll(t, files); err != nil {
		return err
	}
	read := r.theirs.nonce()
	if err := s.send(read[:]); err != nil {
		return fmt.Errorf("%w: %w", transport.ErrAuth, err)
	}
	seen, _, err := s.receive(nonceBytes, 0, nil)
	if err != nil {
		return err
	}
	if n := own.nonce(); !bytes.Equal(seen, n[:]) {
		return ErrNonce
	}
	return nil
}

// mapAll maps the exporter's control page and pools. What is mapped is r's also when it returns an error.
func (r *Reader) mapAll(t table, files []int) (err error) {
	if len(files) == 0 {
		return fmt.Errorf("%w: no descriptors came", ErrRegions)
	}
	if r.theirs, err = openControl(files[0], r.cfg.Link, t.nonce); err != nil {
		return err
	}
	for c, p := range t.pools {
		want := r.cfg.Source[c]
		if p.has != (want != nil) {
			return fmt.Errorf("%w: exporter has a %s pool: %t, agreed: %t", ErrRegions, spec.Component(c), p.has, want != nil)
		}
		if !p.has {
			continue
		}
		if r.source[c], err = r.mapPool(*want, p.bytes, p.tags, files); err != nil {
			return fmt.Errorf("%s pool: %w", spec.Component(c), err)
		}
	}
	return nil
}

func (r *Reader) mapPool(l spec.Layout, bytes, tags region, files []int) (*device.Pool, error) {
	nb := int64(l.Shape.Pages) * int64(l.Shape.PageBytes)
	nt := int64(l.Shape.Pages) * int64(l.Shape.TagSlots) * spec.TagBytes
	b, err := r.mapOne(bytes, nb, files)
	if err != nil {
		return nil, err
	}
	g, err := r.mapOne(tags, nt, files)
	if err != nil {
		return nil, err
	}
	return device.NewPool(l, b, g)
}

// mapOne maps one region of exactly the agreed length, and insists on the seals where the exporter claims them.
func (r *Reader) mapOne(g region, length int64, files []int) ([]byte, error) {
	if g.at.Length != length {
		return nil, fmt.Errorf("%w: %d bytes, the layout has %d", ErrRegions, g.at.Length, length)
	}
	if g.file < 1 || g.file >= len(files) {
		return nil, fmt.Errorf("%w: descriptor %d of %d", ErrRegions, g.file, len(files))
	}
	fd := files[g.file]
	if g.sealed {
		if err := device.CheckSealed(fd); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrRegions, err)
		}
	}
	m, err := mapRegion(fd, g.at, r.cfg.Lazy)
	if err != nil {
		return nil, err
	}
	r.maps = append(r.maps, m)
	return m, nil
}

// release gives back everything but the goroutines.
func (r *Reader) release() error {
	err := r.conn.Close()
	if errors.Is(err, net.ErrClosed) {
		err = nil // by the context, or by the watcher
	}
	for _, c := range []*control{r.own, r.theirs} {
		if c != nil {
			err = errors.Join(err, c.close())
		}
	}
	for _, m := range r.maps {
		err = errors.Join(err, unix.Munmap(m))
	}
	r.maps, r.source = nil, device.Memory{}
	return err
}
