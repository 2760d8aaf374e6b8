package tcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"kvfence/impl/device"
	"kvfence/impl/transport"
	"kvfence/spec"
)

// Listener takes the data streams of all links of one prefill node. Safe for concurrent use.
type Listener struct {
	ln     *net.TCPListener
	mem    device.Memory
	opts   Options
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // the accept loop and all handshakes
	slots  chan struct{}  // handshakes in progress
	denied atomic.Uint64

	mu       sync.Mutex
	expected map[linkKey]taker
}

// linkKey is what a hello names.
type linkKey struct {
	prefill, decode spec.Incarnation
	epoch           spec.Epoch
}

func keyOf(i transport.LinkInfo) linkKey { return linkKey{i.Prefill, i.Decode, i.Epoch} }

// ErrExpected is wrapped when a link is expected already in that epoch.
var ErrExpected = errors.New("link is expected already")

// Listen binds addr; source pages are those of mem. Announce Addr, not addr: it may have asked for any port.
func Listen(addr string, mem device.Memory, opts Options) (*Listener, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	a, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("data listener: %w", err)
	}
	ln, err := net.ListenTCP("tcp", a)
	if err != nil {
		return nil, fmt.Errorf("data listener: %w", err)
	}
	l := &Listener{ln: ln, mem: mem, opts: opts, slots: make(chan struct{}, opts.Pending), expected: map[linkKey]taker{}}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.wg.Add(1)
	go l.accept()
	return l, nil
}

// Addr is the bound address.
func (l *Listener) Addr() string { return l.ln.Addr().String() }

// Denied counts connections that were closed without becoming a stream of an expected link.
func (l *Listener) Denied() uint64 { return l.denied.Load() }

// Expect makes the source of a link in one epoch, before its address is announced to decode. The source must be fenced in the
// end, whatever happens; until then its goroutines live.
func (l *Listener) Expect(info transport.LinkInfo, sink transport.SourceSink) (transport.Source, error) {
	if info.Key == [32]byte{} {
		return nil, fmt.Errorf("%w: the link has no key", transport.ErrAuth)
	}
	s := &source{info: info, mem: l.mem, opts: l.opts, rep: transport.NewReporter(sink), carried: map[spec.LeaseID]uint32{}}
	gone, err := l.expect(info, s)
	if err != nil {
		return nil, err
	}
	s.gone = gone
	return s, nil
}

// expect enters who takes the streams of a link; gone takes it off again.
func (l *Listener) expect(info transport.LinkInfo, t taker) (gone func(), err error) {
	k := keyOf(info)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.expected[k] != nil {
		return nil, fmt.Errorf("%w: %s to %s in epoch %d", ErrExpected, info.Prefill, info.Decode, info.Epoch)
	}
	l.expected[k] = t
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.expected, k)
	}, nil
}

// Close stops listening, ends all connections that have not proved themselves, and waits for its goroutines. Streams that are
// attached go on; their sources are their owners' to fence.
func (l *Listener) Close() error {
	l.cancel()
	err := l.ln.Close()
	l.wg.Wait()
	return err
}

func (l *Listener) accept() {
	defer l.wg.Done()
	for {
		c, err := l.ln.AcceptTCP()
		if l.ctx.Err() != nil {
			if err == nil {
				_ = c.Close()
			}
			return
		}
		if err != nil { // out of descriptors, most likely; the listener itself is whole
			select {
			case <-time.After(20 * time.Millisecond):
			case <-l.ctx.Done():
			}
			continue
		}
		select {
		case l.slots <- struct{}{}:
			l.wg.Add(1)
			go l.admit(c)
		default:
			l.denied.Add(1)
			_ = c.Close()
		}
	}
}

// admit lets a connection prove itself and gives it to the source that expects it.
func (l *Listener) admit(c *net.TCPConn) {
	defer l.wg.Done()
	defer func() { <-l.slots }()
	ctx, cancel := context.WithTimeout(l.ctx, l.opts.Handshake)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	if err := l.introduce(ctx, c, stop); err != nil {
		l.denied.Add(1)
		_ = c.Close()
	}
}

func (l *Listener) introduce(ctx context.Context, c *net.TCPConn, stop func() bool) error {
	if err := l.opts.tune(c); err != nil {
		return err
	}
	conn, binding, err := secure(ctx, c, l.opts.TLS, true)
	if err != nil {
		return err
	}
	var src taker
	h, err := challenge(conn, binding, func(h hello) ([32]byte, bool) {
		l.mu.Lock()
		defer l.mu.Unlock()
		src = l.expected[linkKey{h.prefill, h.decode, h.epoch}]
		if src == nil {
			return [32]byte{}, false
		}
		return src.key(), true
	})
	if err != nil {
		return err
	}
	return src.take(h, conn, c, func() error {
		if !stop() {
			return context.Cause(ctx)
		}
		_, err := conn.Write([]byte{1})
		return err
	})
}
