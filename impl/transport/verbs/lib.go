//go:build verbs

package verbs

/*
#cgo LDFLAGS: -ldl
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// library opens libibverbs once. The name is that of every rdma-core since 2009.
var library = sync.OnceValue(func() error {
	name := C.CString("libibverbs.so.1")
	defer C.free(unsafe.Pointer(name))
	if why := C.kv_load(name); why != nil {
		return fmt.Errorf("%w: %s", ErrNoLibrary, C.GoString(why))
	}
	return nil
})

// Library says whether libibverbs can be used, and what is missing.
func Library() error { return library() }

// WindowsOf says what a device announces of memory windows. Whether they hold is tried when a node opens it.
func WindowsOf(device string) (string, error) {
	h, err := openHCA(device)
	if err != nil {
		return "", err
	}
	text := "none"
	if h.limits.windows2 != 0 {
		text = fmt.Sprintf("type 2B, at most %d (tried when a node opens the device)", uint32(h.limits.max_mw))
	}
	return text, h.close()
}

// result is the error of a call that returns 0 or an errno.
func result(what string, code C.int) error {
	if code == 0 {
		return nil
	}
	return fmt.Errorf("%s: %w", what, syscall.Errno(code))
}

func failed(what string, err error) error {
	if err == nil {
		err = errors.New("no reason given")
	}
	return fmt.Errorf("%s: %w", what, err)
}

// rights to registered memory.
const (
	localWrite  = C.IBV_ACCESS_LOCAL_WRITE
	remoteWrite = C.IBV_ACCESS_REMOTE_WRITE
	remoteRead  = C.IBV_ACCESS_REMOTE_READ
	bindWindows = C.IBV_ACCESS_MW_BIND
)

// States of a port and of a queue pair.
const (
	portActive = C.IBV_PORT_ACTIVE
	stateError = C.IBV_QPS_ERR
)

// hca is an opened device.
type hca struct {
	ctx    *C.struct_ibv_context
	pd     *C.struct_ibv_pd
	limits C.kv_limits
}

func openHCA(name string) (*hca, error) {
	if err := library(); err != nil {
		return nil, err
	}
	n := C.CString(name)
	defer C.free(unsafe.Pointer(n))
	ctx, err := C.kv_open(n)
	if ctx == nil {
		return nil, fmt.Errorf("%w: %w", ErrNoDevice, failed("open "+name, err))
	}
	h := &hca{ctx: ctx}
	if err := result("query "+name, C.kv_limits_of(ctx, &h.limits)); err != nil {
		return nil, errors.Join(err, h.close())
	}
	if h.pd, err = C.kv_pd(ctx); h.pd == nil {
		return nil, errors.Join(failed("protection domain of "+name, err), h.close())
	}
	return h, nil
}

func (h *hca) close() (err error) {
	if h.pd != nil {
		err = result("free protection domain", C.kv_pd_free(h.pd))
	}
	return errors.Join(err, result("close device", C.kv_close(h.ctx)))
}

func (h *hca) port(n uint8) (p C.kv_port, err error) {
	return p, result("query port", C.kv_port_of(h.ctx, C.uint8_t(n), &p))
}

func (h *hca) gid(port uint8, index int) (g [16]byte, err error) {
	return g, result("query GID", C.kv_gid(h.ctx, C.uint8_t(port), C.int(index), (*C.uint8_t)(&g[0])))
}

// region is registered memory.
type region struct{ mr *C.struct_ibv_mr }

func (h *hca) register(b []byte, rights C.int) (region, error) { return register(h.pd, b, rights) }

func register(pd *C.struct_ibv_pd, b []byte, rights C.int) (region, error) {
	mr, err := C.kv_register(pd, addressOf(b), C.uint64_t(len(b)), rights)
	if mr == nil {
		return region{}, failed(fmt.Sprintf("register %d bytes", len(b)), err)
	}
	return region{mr}, nil
}

func addressOf(b []byte) C.uint64_t { return C.uint64_t(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

func (r region) free() error {
	if r.mr == nil {
		return nil
	}
	return result("deregister", C.kv_deregister(r.mr))
}

func (r region) local() C.uint32_t  { return C.kv_lkey(r.mr) }
func (r region) remote() C.uint32_t { return C.kv_rkey(r.mr) }

// arena is memory that is no Go memory: what a device reads or writes on its own.
func arena(n int) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes: %w", n, err)
	}
	return b, nil
}

// waiter waits for a descriptor of the library to become readable, in Go's own poller.
type waiter struct {
	f  *os.File
	rc syscall.RawConn
}

func newWaiter(fd C.int, name string) (*waiter, error) {
	n, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("duplicate %s: %w", name, err)
	}
	f := os.NewFile(uintptr(n), name) // it is non-blocking already, so it goes to the poller
	rc, err := f.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &waiter{f, rc}, nil
}

// take calls try until it does not say EAGAIN; closing the waiter ends it with an error.
func (w *waiter) take(try func() C.int) (err error) {
	var code C.int
	if err := w.rc.Read(func(uintptr) bool { code = try(); return syscall.Errno(code) != syscall.EAGAIN }); err != nil {
		w.sleep()
		return err
	}
	return result("take event", code)
}

// wake lets a take return once, with os.ErrDeadlineExceeded, so that its caller looks again without an event.
func (w *waiter) wake() {
	_ = w.f.SetReadDeadline(time.Now())
}

// sleep lets takes wait again.
func (w *waiter) sleep() { _ = w.f.SetReadDeadline(time.Time{}) }

func (w *waiter) close() { _ = w.f.Close() }

// statusText is the library's text of a completion's status.
func statusText(s C.uint32_t) string { return C.GoString(C.kv_status(s)) }

func pointer[T any](p *T) unsafe.Pointer { return unsafe.Pointer(p) }
