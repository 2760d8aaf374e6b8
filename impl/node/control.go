package node

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"kvfence/spec"
)

// A control connection begins with a greeting in each direction, before any message:
//
//	decode:  "KVFC" | version u16 | rank u16    the prefill rank that is wanted
//	prefill: "KVFC" | version u16 | ranks u16   ranks of the side behind this address; 0: no such rank
//
// so that one address can stand for all ranks of a side. Envelopes (spec.AppendEnvelope) follow; each is bounded by the codec.
const (
	greeting      = "KVFC"
	greetingBytes = 8
	readCredit    = 64 // messages of one connection that wait for the loop before its reader stops
	writeBound    = 20 * time.Second
)

// Errors of a control connection.
var (
	ErrGreeting  = errors.New("not a kvfence control connection")
	ErrNoRank    = errors.New("the side has no such rank")
	errQueueFull = errors.New("write queue is full: the peer does not read")
)

func putGreeting(w io.Writer, value uint16) error {
	b := append(make([]byte, 0, greetingBytes), greeting...)
	b = binary.LittleEndian.AppendUint16(b, spec.Version)
	_, err := w.Write(binary.LittleEndian.AppendUint16(b, value))
	return err
}

func getGreeting(r io.Reader) (uint16, error) {
	var b [greetingBytes]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrGreeting, err)
	}
	if string(b[:4]) != greeting {
		return 0, fmt.Errorf("%w: it begins with %q", ErrGreeting, b[:4])
	}
	if v := binary.LittleEndian.Uint16(b[4:]); v != spec.Version {
		return 0, fmt.Errorf("%w: %w", ErrGreeting, &spec.VersionError{Theirs: v})
	}
	return binary.LittleEndian.Uint16(b[6:]), nil
}

// conn is one control connection after its greeting: a reader and a writer goroutine. Safe for concurrent use.
type conn struct {
	nc     net.Conn
	leaf   *x509.Certificate // of the peer; nil on a plain connection
	out    chan outgoing
	credit chan struct{}
	once   sync.Once
	closed chan struct{}
	wg     sync.WaitGroup
}

// outgoing is an envelope, or with last set the wish to close behind everything before it.
type outgoing struct {
	env  spec.Envelope
	last bool
}

func newConn(nc net.Conn, queue int) *conn {
	c := &conn{nc: nc, out: make(chan outgoing, queue), credit: make(chan struct{}, readCredit), closed: make(chan struct{})}
	if t, ok := nc.(*tls.Conn); ok {
		if certs := t.ConnectionState().PeerCertificates; len(certs) > 0 {
			c.leaf = certs[0]
		}
	}
	return c
}

// start runs the writer and a reader that hands each message to recv; release is to be called when a message was handled. lost
// is called once, after both have ended.
func (c *conn) start(recv func(env spec.Envelope, release func()), refused func(error), lost func(error)) {
	var first error
	var mu sync.Mutex
	end := func(err error) {
		mu.Lock()
		if first == nil {
			first = err
		}
		mu.Unlock()
		c.abort()
	}
	c.wg.Go(func() { end(c.write()) })
	c.wg.Go(func() { end(c.read(recv, refused)) })
	go func() {
		c.wg.Wait()
		lost(first)
	}()
}

// send queues env and never blocks; a full queue closes the connection.
func (c *conn) send(env spec.Envelope) error { return c.queue(outgoing{env: env}) }

// finish closes the connection behind what was sent.
func (c *conn) finish() error { return c.queue(outgoing{last: true}) }

func (c *conn) queue(o outgoing) error {
	select {
	case c.out <- o:
		return nil
	default:
		c.abort()
		return errQueueFull
	}
}

// abort closes at once.
func (c *conn) abort() {
	c.once.Do(func() {
		close(c.closed)
		_ = c.nc.Close() // what it says is of no use to anyone
	})
}

func (c *conn) write() error {
	w := bufio.NewWriterSize(c.nc, 32<<10)
	var buf []byte
	for {
		var o outgoing
		select {
		case o = <-c.out:
		default:
			if err := w.Flush(); err != nil {
				return err
			}
			select {
			case o = <-c.out:
			case <-c.closed:
				return net.ErrClosed
			}
		}
		if err := c.nc.SetWriteDeadline(time.Now().Add(writeBound)); err != nil {
			return err
		}
		if o.last {
			return errors.Join(w.Flush(), io.EOF)
		}
		b, err := spec.AppendEnvelope(buf[:0], o.env)
		if err != nil {
			return err
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
		if buf = b; cap(buf) > 1<<20 {
			buf = nil // the rare large message shall not stay
		}
	}
}

func (c *conn) read(recv func(spec.Envelope, func()), refused func(error)) error {
	r := bufio.NewReaderSize(c.nc, 32<<10)
	limit := uint32(spec.MaxHandshakeBody) // nobody is known before the first message
	var buf []byte
	for {
		env, b, err := spec.ReadEnvelopeLimit(r, buf, limit)
		if err != nil {
			var kind *spec.KindError
			if errors.As(err, &kind) { // the stream stands behind it; counted, not acted upon
				refused(err)
				continue
			}
			return err
		}
		if buf = b; cap(buf) > 1<<20 {
			buf = nil
		}
		limit = spec.MaxBody
		select {
		case c.credit <- struct{}{}:
		case <-c.closed:
			return net.ErrClosed
		}
		recv(env, func() { <-c.credit })
	}
}

// dialControl opens a connection to one prefill rank and returns it with the number of ranks behind the address. The greeting is
// bounded by ctx and wait.
func dialControl(ctx context.Context, addr, name string, rank uint16, creds *credentials, wait time.Duration, queue int) (*conn, uint16, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	nc, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, 0, err
	}
	if cfg := creds.client(serverName(name, addr)); cfg != nil {
		t := tls.Client(nc, cfg)
		if err := t.HandshakeContext(ctx); err != nil {
			return nil, 0, errors.Join(err, nc.Close())
		}
		nc = t
	}
	ranks, err := greet(nc, rank, wait)
	if err != nil {
		return nil, 0, errors.Join(err, nc.Close())
	}
	return newConn(nc, queue), ranks, nil
}

func greet(nc net.Conn, rank uint16, wait time.Duration) (uint16, error) {
	if err := nc.SetDeadline(time.Now().Add(wait)); err != nil {
		return 0, err
	}
	if err := putGreeting(nc, rank); err != nil {
		return 0, err
	}
	ranks, err := getGreeting(nc)
	if err != nil {
		return 0, err
	}
	if ranks == 0 {
		return 0, fmt.Errorf("%w: rank %d", ErrNoRank, rank)
	}
	return ranks, nc.SetDeadline(time.Time{})
}

// welcome answers the greeting on the prefill side and returns the rank that is wanted.
func welcome(nc net.Conn, ranks int, wait time.Duration) (spec.Rank, error) {
	if err := nc.SetDeadline(time.Now().Add(wait)); err != nil {
		return 0, err
	}
	if t, ok := nc.(*tls.Conn); ok {
		if err := t.Handshake(); err != nil {
			return 0, err
		}
	}
	rank, err := getGreeting(nc)
	if err != nil {
		return 0, err
	}
	if int(rank) >= ranks {
		return 0, errors.Join(fmt.Errorf("%w: rank %d of %d", ErrNoRank, rank, ranks), putGreeting(nc, 0))
	}
	if err := putGreeting(nc, uint16(ranks)); err != nil {
		return 0, err
	}
	return spec.Rank(rank), nc.SetDeadline(time.Time{})
}
