//go:build linux

package bench

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	callBytes  = 1 << 20   // of one readv or writev, as impl/transport/tcp
	hashBytes  = 256 << 10 // of one readv of pages that are hashed
	callIovs   = 1024
	stageBytes = 64 << 10 // small pages are gathered before TLS, as impl/transport/tcp
	stagePiece = 16 << 10
)

// raw is one end of a bare stream: lists of byte ranges in raw calls within Go's poller, or in order through TLS. One goroutine.
type raw struct {
	conn  net.Conn // what carries the bytes
	under net.Conn // what is closed
	rc    syscall.RawConn
	iov   []unix.Iovec
	bytes int
	stage []byte
}

func newRaw(conn, under net.Conn) (*raw, error) {
	r := &raw{conn: conn, under: under}
	if _, ok := conn.(*tls.Conn); ok {
		return r, nil
	}
	sc, ok := under.(syscall.Conn)
	if !ok {
		return nil, fmt.Errorf("%w: no raw connection", ErrBench)
	}
	var err error
	r.rc, err = sc.SyscallConn()
	return r, err
}

// add adds b to the list.
func (r *raw) add(b []byte) {
	v := unix.Iovec{Base: unsafe.SliceData(b)}
	v.SetLen(len(b))
	r.iov = append(r.iov, v)
	r.bytes += len(b)
}

// full reports whether the list is one call's.
func (r *raw) full(limit int) bool { return r.bytes >= limit || len(r.iov) == callIovs }

// write sends the list and empties it.
func (r *raw) write() error {
	v := r.iov
	r.iov, r.bytes = r.iov[:0], 0
	if r.rc == nil {
		return r.writeTLS(v)
	}
	for len(v) > 0 {
		n, err := r.call(unix.SYS_WRITEV, v)
		if err != nil {
			return err
		}
		v = advance(v, n)
	}
	return nil
}

func (r *raw) writeTLS(v []unix.Iovec) error {
	flush := func() error {
		_, err := r.conn.Write(r.stage)
		r.stage = r.stage[:0]
		return err
	}
	for _, x := range v {
		b := unsafe.Slice(x.Base, int(x.Len))
		if len(r.stage) > 0 && (len(b) >= stagePiece || len(r.stage)+len(b) > stageBytes) {
			if err := flush(); err != nil {
				return err
			}
		}
		if len(b) < stagePiece {
			r.stage = append(r.stage, b...)
			continue
		}
		if _, err := r.conn.Write(b); err != nil {
			return err
		}
	}
	if len(r.stage) > 0 {
		return flush()
	}
	return nil
}

// read fills the list and empties it.
func (r *raw) read() error {
	v := r.iov
	r.iov, r.bytes = r.iov[:0], 0
	if r.rc == nil {
		for _, x := range v {
			if _, err := io.ReadFull(r.conn, unsafe.Slice(x.Base, int(x.Len))); err != nil {
				return err
			}
		}
		return nil
	}
	for len(v) > 0 {
		n, err := r.call(unix.SYS_READV, v)
		if err != nil {
			return err
		}
		v = advance(v, n)
	}
	return nil
}

// some reads at least one byte and at most len(b).
func (r *raw) some(b []byte) (int, error) {
	if r.rc == nil {
		return r.conn.Read(b)
	}
	v := unix.Iovec{Base: unsafe.SliceData(b)}
	v.SetLen(len(b))
	return r.call(unix.SYS_READV, []unix.Iovec{v})
}

func (r *raw) call(trap uintptr, v []unix.Iovec) (n int, err error) {
	var e syscall.Errno
	try := func(fd uintptr) bool {
		for {
			k, _, errno := unix.RawSyscall(trap, fd, uintptr(unsafe.Pointer(unsafe.SliceData(v))), uintptr(min(len(v), callIovs)))
			if errno == unix.EINTR {
				continue
			}
			n, e = int(k), errno
			return errno != unix.EAGAIN
		}
	}
	if trap == unix.SYS_READV {
		err = r.rc.Read(try)
	} else {
		err = r.rc.Write(try)
	}
	switch {
	case err != nil:
		return 0, err
	case e != 0:
		return 0, e
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

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

func (r *raw) close() error { return r.under.Close() }

// tune sets the congestion control of a TCP socket.
func tune(c net.Conn, congestion string) error {
	t, ok := c.(*net.TCPConn)
	if !ok || congestion == "" || congestion == "system" {
		return nil
	}
	rc, err := t.SyscallConn()
	if err != nil {
		return err
	}
	var serr error
	if err := rc.Control(func(fd uintptr) {
		serr = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, congestion)
	}); err != nil {
		return err
	}
	if serr != nil {
		return fmt.Errorf("%w: congestion control %q: %w", ErrBench, congestion, serr)
	}
	return nil
}
