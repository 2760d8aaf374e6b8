package tcp

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// MaxStreams is the most streams of one link.
const MaxStreams = 16

// KeepCongestion as Options.Congestion leaves the system's congestion control on all sockets.
const KeepCongestion = "system"

// Options of one end. The zero value is usable: one stream, plain, no spinning.
type Options struct {
	// Streams of one link; 0 means 1. Decode's value counts: prefill takes what the dialer announces, up to MaxStreams.
	Streams int
	// Congestion is the TCP congestion control: "" means reno on loopback (a pacing one such as bbr costs a factor of 1.5
	// there) and the system's elsewhere, KeepCongestion the system's everywhere, anything else that one on all sockets.
	Congestion string
	// Spin is how often a reader that finds nothing tries again, yielding its core each time, before it parks. About 1 us a turn.
	Spin int
	// TLS encrypts all streams (TLS 1.3 or none); nil means plain. It is the caller's to demand and verify certificates
	// on both sides. The dialer sets ServerName.
	TLS *tls.Config
	// MaxQueued bounds the writes that a source holds unsent; 0 means 1<<18. Beyond it Post ends with ErrQueueFull.
	MaxQueued int
	// Handshake is how long a connection may take to prove itself to the listener; 0 means 10 s.
	Handshake time.Duration
	// Pending bounds the connections that have not proved themselves yet; more are closed at once. 0 means 128.
	Pending int
}

// ErrOptions is wrapped when options contradict each other or the bounds of this package.
var ErrOptions = errors.New("tcp transport options")

func (o Options) withDefaults() (Options, error) {
	if o.Streams == 0 {
		o.Streams = 1
	}
	if o.MaxQueued == 0 {
		o.MaxQueued = 1 << 18
	}
	if o.Handshake == 0 {
		o.Handshake = 10 * time.Second
	}
	if o.Pending == 0 {
		o.Pending = 128
	}
	if o.Streams < 0 || o.Streams > MaxStreams {
		return o, fmt.Errorf("%w: %d streams, at most %d", ErrOptions, o.Streams, MaxStreams)
	}
	if o.MaxQueued < 0 || o.Spin < 0 || o.Handshake < 0 || o.Pending < 0 {
		return o, fmt.Errorf("%w: negative", ErrOptions)
	}
	if o.TLS != nil {
		o.TLS = o.TLS.Clone()
		o.TLS.MinVersion = max(o.TLS.MinVersion, tls.VersionTLS13)
	}
	return o, nil
}

// tune sets the congestion control. Only one that was named must work.
func (o Options) tune(c *net.TCPConn) error {
	name, must := o.Congestion, true
	switch name {
	case KeepCongestion:
		return nil
	case "":
		a, ok := c.RemoteAddr().(*net.TCPAddr)
		if !ok || !a.IP.IsLoopback() {
			return nil
		}
		name, must = "reno", false
	}
	rc, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var serr error
	if err := rc.Control(func(fd uintptr) {
		serr = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, name)
	}); err != nil {
		return err
	}
	if must && serr != nil {
		return fmt.Errorf("%w: congestion control %q: %w", ErrOptions, name, serr)
	}
	return nil
}

// CheckCongestion tries a name for Options.Congestion on a socket that is closed again. The error wraps ErrOptions and says which
// names this machine takes.
func CheckCongestion(name string) error {
	if name == "" || name == KeepCongestion {
		return nil
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name); err != nil {
		return fmt.Errorf("%w: congestion control %q: %w; this machine has %s, and %q keeps the system's", ErrOptions, name, err, congestions(), KeepCongestion)
	}
	return nil
}

// congestions are the names that the kernel offers, for an error.
func congestions() string {
	b, err := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
	if err != nil {
		return "others"
	}
	return strings.Join(strings.Fields(string(b)), ", ")
}
