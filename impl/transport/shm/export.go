//go:build linux

package shm

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"kvfence/impl/device"
	"kvfence/impl/transport"
	"kvfence/spec"
)

// ExporterConfig is what an exporter serves.
type ExporterConfig struct {
	// Path is where the Unix socket is bound, less than 108 bytes. It must not exist: the node puts its incarnation into the name.
	Path string
	// Pools is the node's memory, by component; nil where it has none. The caller closes it, after the exporter.
	Pools [spec.ComponentCount]*device.Shared
	// UIDs are the user ids that may connect; empty: this process's own only.
	UIDs []uint32
	// MaxHandshakes bounds connections that have not finished their handshake; the oldest is dropped for a new one. 0: 16.
	MaxHandshakes int
	// Refused, if set, is told why a connection was not taken. Calls may be concurrent.
	Refused func(err error)
}

// Exporter is prefill's end of all its pull links. Safe for concurrent use.
type Exporter struct {
	cfg  ExporterConfig
	l    *net.UnixListener
	done chan struct{} // closed by Close
	wg   sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	exports map[linkName]*Export
	shaking []*net.UnixConn // oldest first
}

// linkName is what a link is looked up by.
type linkName struct {
	prefill, decode spec.Incarnation
	epoch           spec.Epoch
}

func nameOf(i transport.LinkInfo) linkName { return linkName{i.Prefill, i.Decode, i.Epoch} }

// AllocatePools makes the pools of a node's layouts in sealed memory; nil layouts give nil pools.
func AllocatePools(layouts [spec.ComponentCount]*spec.Layout) (pools [spec.ComponentCount]*device.Shared, err error) {
	for c, l := range layouts {
		if l == nil {
			continue
		}
		if pools[c], err = device.NewSharedPool(*l); err != nil {
			for _, p := range pools[:c] {
				if p != nil {
					err = errors.Join(err, p.Close())
				}
			}
			return [spec.ComponentCount]*device.Shared{}, err
		}
	}
	return pools, nil
}

// Listen binds the socket, with mode 0600 before the first connection can be made, and begins to serve. Address may be announced
// once it has returned.
func Listen(cfg ExporterConfig) (*Exporter, error) {
	if len(cfg.UIDs) == 0 {
		cfg.UIDs = []uint32{uint32(os.Geteuid())}
	}
	if cfg.MaxHandshakes <= 0 {
		cfg.MaxHandshakes = 16
	}
	l, err := bind(cfg.Path)
	if err != nil {
		return nil, fmt.Errorf("shm socket %q: %w", cfg.Path, err)
	}
	e := &Exporter{cfg: cfg, l: l, done: make(chan struct{}), exports: map[linkName]*Export{}}
	e.wg.Go(e.accept)
	return e, nil
}

// bind makes the listening socket. Between bind and listen nobody can connect, so the mode is in force from the start.
func bind(path string) (*net.UnixListener, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), path)
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if err = os.Chmod(path, 0o600); err == nil {
		err = unix.Listen(fd, 64)
	}
	var l net.Listener
	if err == nil {
		l, err = net.FileListener(f) // a duplicate
	}
	err = errors.Join(err, f.Close())
	if err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	return l.(*net.UnixListener), nil
}

// Address is the bound path of the socket.
func (e *Exporter) Address() string { return e.cfg.Path }

// Memory is the pools that are exported.
func (e *Exporter) Memory() (m device.Memory) {
	for c, p := range e.cfg.Pools {
		if p != nil {
			m[c] = p.Pool
		}
	}
	return m
}

// Offer lets one reader that holds info.Key open this link. The sink hears of it until the Export is closed.
func (e *Exporter) Offer(info transport.LinkInfo, sink transport.ExporterSink) (*Export, error) {
	if info.Epoch == 0 {
		return nil, fmt.Errorf("%w: epoch 0 is no link's", transport.ErrAuth)
	}
	page, err := newControl(info)
	if err != nil {
		return nil, err
	}
	x := &Export{e: e, info: info, sink: sink, page: page, nonce: page.nonce()}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || e.exports[nameOf(info)] != nil {
		err = ErrTwin
		if e.closed {
			err = ErrClosed
		}
		return nil, errors.Join(fmt.Errorf("offer epoch %d to %s: %w", info.Epoch, info.Decode, err), page.close())
	}
	e.exports[nameOf(info)] = x
	return x, nil
}

// Close ends the socket, all handshakes and all exports, and waits for everything that it started. The pools stay.
func (e *Exporter) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		e.wg.Wait()
		return nil
	}
	e.closed = true
	close(e.done)
	all := make([]*Export, 0, len(e.exports))
	for _, x := range e.exports {
		all = append(all, x)
	}
	for _, c := range e.shaking {
		_ = c.Close() // its handshake reports
	}
	e.mu.Unlock()
	err := os.Remove(e.cfg.Path)
	if errors.Is(err, os.ErrNotExist) {
		err = nil // somebody tidied up
	}
	err = errors.Join(err, e.l.Close())
	for _, x := range all {
		err = errors.Join(err, x.Close())
	}
	e.wg.Wait()
	return err
}

// acceptWait is the pause after an accept that failed.
const acceptWait = 20 * time.Millisecond

func (e *Exporter) accept() {
	for {
		c, err := e.l.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of descriptors, most likely; the socket itself is whole
			e.refused(fmt.Errorf("shm socket: %w", err))
			select {
			case <-e.done:
				return
			case <-time.After(acceptWait):
			}
			continue
		}
		if !e.admit(c) {
			_ = c.Close()
			return
		}
		e.wg.Go(func() {
			err := e.handshake(c)
			if err != nil {
				e.refused(errors.Join(err, c.Close()))
			}
		})
	}
}

func (e *Exporter) refused(err error) {
	if e.cfg.Refused != nil {
		e.cfg.Refused(err)
	}
}

// admit enters a connection among the handshakes in progress.
func (e *Exporter) admit(c *net.UnixConn) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false
	}
	if len(e.shaking) == e.cfg.MaxHandshakes {
		_ = e.shaking[0].Close() // its handshake reports
		e.shaking = e.shaking[1:]
	}
	e.shaking = append(e.shaking, c)
	return true
}

// shaken takes a connection out of the handshakes; false if it was dropped meanwhile.
func (e *Exporter) shaken(c *net.UnixConn) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, s := range e.shaking {
		if s == c {
			e.shaking = append(e.shaking[:i:i], e.shaking[i+1:]...)
			return !e.closed
		}
	}
	return false
}
