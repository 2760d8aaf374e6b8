//go:build linux

package shm

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// peer is the process at the other end of a connection, held by a descriptor that names this process and no later one of its number.
type peer struct {
	pid  *os.File
	conn syscall.RawConn
}

// peerOf checks the user of the process that connected and takes hold of it. With SO_PEERPIDFD (Linux 6.5) the kernel names the
// very process; before, its number is opened and is trusted only while the connection still stands, which a process keeps open by
// living (a connection that it had handed to another process and then ended would fool that, so this is the weaker way).
func peerOf(c *net.UnixConn, allowed []uint32) (*peer, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPeer, err)
	}
	var pidfd int
	cerr := raw.Control(func(fd uintptr) { pidfd, err = openPeer(int(fd), allowed) })
	if err = errors.Join(err, cerr); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPeer, err)
	}
	return watchable(pidfd)
}

func openPeer(fd int, allowed []uint32) (int, error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return -1, err
	}
	if !slices.Contains(allowed, cred.Uid) {
		return -1, fmt.Errorf("user id %d is not allowed", cred.Uid)
	}
	pidfd, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PEERPIDFD)
	if err == nil {
		return pidfd, nil
	}
	if !errors.Is(err, unix.ENOPROTOOPT) {
		return -1, err
	}
	return openByNumber(fd, int(cred.Pid))
}

// openByNumber is the way before Linux 6.5.
func openByNumber(fd, pid int) (int, error) {
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return -1, err
	}
	if hungUp(fd) || readable(pidfd) {
		return -1, errors.Join(errors.New("process has ended"), unix.Close(pidfd))
	}
	return pidfd, nil
}

// hungUp reports that the other end of a socket is closed.
func hungUp(fd int) bool {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	n, err := unix.Poll(p, 0)
	return err != nil || n > 0 && p[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
}

// readable reports that a descriptor would not block a reader; a pidfd is so once its process has ended.
func readable(fd int) bool {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(p, 0)
	return err == nil && n > 0
}

// watchable gives a pidfd to the runtime's poller, so that waiting for it costs no thread.
func watchable(pidfd int) (*peer, error) {
	if err := unix.SetNonblock(pidfd, true); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrPeer, err), unix.Close(pidfd))
	}
	f := os.NewFile(uintptr(pidfd), "pidfd")
	conn, err := f.SyscallConn()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrPeer, err), f.Close())
	}
	return &peer{f, conn}, nil
}

// wait returns nil when the process has ended, with all its threads, and an error after close.
func (p *peer) wait() error {
	return p.conn.Read(func(fd uintptr) bool { return readable(int(fd)) })
}

func (p *peer) close() error { return p.pid.Close() }
