package tcp

import (
	"crypto/tls"
	"io"
	"net"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// One call moves at most so much; more gains nothing, and hashing follows each call while its bytes are in the cache.
const (
	callBytes = 1 << 20
	callIovs  = 1024 // IOV_MAX of Linux
)

// wire moves lists of byte ranges over one stream. Both calls may move less than asked, never nothing without an error. One
// goroutine reads, one writes; close may come from any and ends both with an error.
type wire interface {
	readv(v []unix.Iovec) (int, error)
	writev(v []unix.Iovec) (int, error)
	close()
}

func iov(b []byte) unix.Iovec {
	v := unix.Iovec{Base: unsafe.SliceData(b)}
	v.SetLen(len(b))
	return v
}

// advance drops n bytes from the front of a list, changing it in place.
func advance(v []unix.Iovec, n int) []unix.Iovec {
	for n > 0 {
		if l := int(v[0].Len); n >= l {
			n -= l
			v = v[1:]
			continue
		}
		v[0].Base = (*byte)(unsafe.Add(unsafe.Pointer(v[0].Base), n))
		v[0].SetLen(int(v[0].Len) - n)
		n = 0
	}
	return v
}

func writeAll(w wire, v []unix.Iovec) error {
	for len(v) > 0 {
		n, err := w.writev(v)
		if err != nil {
			return err
		}
		v = advance(v, n)
	}
	return nil
}

// readAtLeast fills the first need bytes of v and returns how many it read in all.
func readAtLeast(w wire, v []unix.Iovec, need int) (got int, err error) {
	for got < need {
		n, err := w.readv(v)
		if err != nil {
			return got, err
		}
		got += n
		v = advance(v, n)
	}
	return got, nil
}

// rawWire makes raw readv and writev calls within Go's network poller: a call that would block parks the goroutine, and close
// wakes it. The descriptor itself is closed only when the last call on it has returned. The calls never wait (the descriptor
// is non-blocking), they copy for at most some hundred microseconds; so the runtime is not told of them, which would otherwise
// take the processor away in the middle of each and start another thread for it: about a tenth of the CPU time on busy cores.
type rawWire struct {
	c      *net.TCPConn
	rd, wr half
}

// half is one direction. try is made once, so that a call allocates nothing.
type half struct {
	wait func(func(fd uintptr) bool) error
	try  func(fd uintptr) bool
	trap uintptr
	spin int
	v    []unix.Iovec
	n    int
	err  syscall.Errno
}

func newRawWire(c *net.TCPConn, spin int) (*rawWire, error) {
	rc, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	w := &rawWire{c: c}
	w.rd.init(rc.Read, unix.SYS_READV, spin)
	w.wr.init(rc.Write, unix.SYS_WRITEV, 0)
	return w, nil
}

func (h *half) init(wait func(func(fd uintptr) bool) error, trap uintptr, spin int) {
	h.wait, h.trap, h.spin = wait, trap, spin
	h.try = func(fd uintptr) bool {
		for left := h.spin; ; {
			n, _, e := unix.RawSyscall(h.trap, fd, uintptr(unsafe.Pointer(unsafe.SliceData(h.v))), uintptr(len(h.v)))
			if e == unix.EINTR {
				continue
			}
			if e == unix.EAGAIN {
				if left == 0 {
					return false
				}
				left--
				unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
				continue
			}
			h.n, h.err = int(n), e
			return true
		}
	}
}

func (h *half) do(v []unix.Iovec) (int, error) {
	h.v = v[:min(len(v), callIovs)]
	err := h.wait(h.try)
	h.v = nil
	switch {
	case err != nil:
		return 0, err
	case h.err != 0:
		return 0, h.err
	case h.n == 0:
		return 0, io.EOF
	}
	return h.n, nil
}

func (w *rawWire) readv(v []unix.Iovec) (int, error)  { return w.rd.do(v) }
func (w *rawWire) writev(v []unix.Iovec) (int, error) { return w.wr.do(v) }
func (w *rawWire) close()                             { _ = w.c.Close() }

// stageBytes gathers small pieces before TLS, so that each does not become a record; whole records pass by it.
const (
	stageBytes  = 64 << 10
	stagePieces = 16 << 10
)

// tlsWire is a stream inside TLS. Close is that of the TCP connection: an alert could wait for the peer.
type tlsWire struct {
	t     *tls.Conn
	c     *net.TCPConn
	stage []byte
}

func bytesOf(v unix.Iovec) []byte { return unsafe.Slice(v.Base, int(v.Len)) }

func (w *tlsWire) readv(v []unix.Iovec) (int, error) {
	for {
		n, err := w.t.Read(bytesOf(v[0]))
		if n > 0 {
			return n, nil
		}
		if err != nil {
			return 0, err
		}
	}
}

// writev writes all of v.
func (w *tlsWire) writev(v []unix.Iovec) (int, error) {
	total := 0
	w.stage = w.stage[:0]
	for _, x := range v {
		b := bytesOf(x)
		total += len(b)
		if len(b) >= stagePieces || len(w.stage)+len(b) > stageBytes {
			if err := w.flush(); err != nil {
				return 0, err
			}
		}
		if len(b) < stagePieces {
			w.stage = append(w.stage, b...)
			continue
		}
		if _, err := w.t.Write(b); err != nil {
			return 0, err
		}
	}
	return total, w.flush()
}

func (w *tlsWire) flush() error {
	if len(w.stage) == 0 {
		return nil
	}
	_, err := w.t.Write(w.stage)
	w.stage = w.stage[:0]
	return err
}

func (w *tlsWire) close() { _ = w.c.Close() }
