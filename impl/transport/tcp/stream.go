package tcp

import (
	"context"
	"fmt"
	"net"
	"sync"

	"kvfence/impl/transport"
)

// taker takes the authenticated streams of one expected link: a source, or whoever else needs a stream that proves the link.
type taker interface {
	key() [32]byte
	// take is given a stream that has proved itself. ready answers the dialer, once the stream is certain to be used.
	take(h hello, conn net.Conn, c *net.TCPConn, ready func() error) error
}

// key implements taker.
func (s *source) key() [32]byte { return s.info.Key }

// take implements taker.
func (s *source) take(h hello, conn net.Conn, c *net.TCPConn, ready func() error) error {
	if h.apart {
		return fmt.Errorf("%w: a stream of another fabric", transport.ErrAuth)
	}
	w, err := newWire(conn, c, s.opts.Spin)
	if err != nil {
		return err
	}
	return s.attach(h, conn, w, ready)
}

// single takes one stream of a link, whole, and no second one.
type single struct {
	info transport.LinkInfo
	give func(net.Conn)

	mu   sync.Mutex
	used bool
}

func (s *single) key() [32]byte { return s.info.Key }

func (s *single) take(h hello, conn net.Conn, _ *net.TCPConn, ready func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used || h.streams != 1 || !h.apart {
		return fmt.Errorf("%w: %w", transport.ErrAuth, errStreamTaken)
	}
	if err := ready(); err != nil {
		return err
	}
	s.used = true
	s.give(conn)
	return nil
}

// ExpectStream waits for one stream of a link in one epoch, for a fabric that moves its bytes elsewhere (impl/transport/verbs). give is called once
// at most, with a stream that has proved to hold the link's key; it must not block, and owns the stream. forget ends the waiting.
func (l *Listener) ExpectStream(info transport.LinkInfo, give func(net.Conn)) (forget func(), err error) {
	if info.Key == [32]byte{} {
		return nil, fmt.Errorf("%w: the link has no key", transport.ErrAuth)
	}
	return l.expect(info, &single{info: info, give: give})
}

// DialStream opens one such stream. ctx bounds the opening only.
func DialStream(ctx context.Context, addr string, info transport.LinkInfo, opts Options) (net.Conn, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	if info.Key == [32]byte{} {
		return nil, fmt.Errorf("%w: the link has no key", transport.ErrAuth)
	}
	conn, _, err := dialProved(ctx, addr, hello{streams: 1, apart: true, prefill: info.Prefill, decode: info.Decode, epoch: info.Epoch}, info.Key, opts)
	return conn, err
}
