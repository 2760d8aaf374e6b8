//go:build cuda && cgo && linux

package driver

/*
#include "shim.h"
*/
import "C"

import (
	"errors"
	"unsafe"

	"kvfence/kernels"
)

// Stream is a queue of work that waits for no other stream but by events: not for the default stream either.
type Stream struct {
	c *Context
	h unsafe.Pointer
}

// NewStream makes one.
func (c *Context) NewStream() (*Stream, error) {
	s := &Stream{c: c}
	if err := c.d.err("cuStreamCreate", C.in_cuStreamCreate(c.d.t, c.h, &s.h, 1)); err != nil { // CU_STREAM_NON_BLOCKING
		return nil, err
	}
	return s, nil
}

// Destroy lets go of it. Work that is queued is done all the same.
func (s *Stream) Destroy() error {
	return s.c.d.err("cuStreamDestroy_v2", C.in_cuStreamDestroy_v2(s.c.d.t, s.c.h, s.h))
}

// Sync waits for all work that is queued.
func (s *Stream) Sync() error {
	return s.c.d.err("cuStreamSynchronize", C.in_cuStreamSynchronize(s.c.d.t, s.c.h, s.h))
}

// Query reports whether all work is done.
func (s *Stream) Query() (bool, error) {
	return done(s.c.d.err("cuStreamQuery", C.in_cuStreamQuery(s.c.d.t, s.c.h, s.h)))
}

// done reads a query's answer: not ready is no error.
func done(err error) (bool, error) {
	var e *Error
	if errors.As(err, &e) && e.Code == NotReady {
		return false, nil
	}
	return err == nil, err
}

// Wait lets all work that is queued from now on wait for what the event marks now. The event has been recorded: of one that has not, the
// driver waits for nothing and says nothing.
func (s *Stream) Wait(e *Event) error {
	return s.c.d.err("cuStreamWaitEvent", C.in_cuStreamWaitEvent(s.c.d.t, s.c.h, s.h, e.h, 0))
}

// CopyIn queues a copy of n bytes from offset in pinned memory.
func (s *Stream) CopyIn(to kernels.Addr, from *Pinned, offset, n uint64) error {
	p, err := from.run(offset, n)
	if err != nil {
		return err
	}
	return s.c.d.err("cuMemcpyHtoDAsync_v2", C.in_cuMemcpyHtoDAsync_v2(s.c.d.t, s.c.h, C.kd_ptr(to), p, C.size_t(n), s.h))
}

// CopyOut queues a copy of n bytes to offset in pinned memory.
func (s *Stream) CopyOut(to *Pinned, offset uint64, from kernels.Addr, n uint64) error {
	p, err := to.run(offset, n)
	if err != nil {
		return err
	}
	return s.c.d.err("cuMemcpyDtoHAsync_v2", C.in_cuMemcpyDtoHAsync_v2(s.c.d.t, s.c.h, p, C.kd_ptr(from), C.size_t(n), s.h))
}

// Copy queues a copy within the device.
func (s *Stream) Copy(to, from kernels.Addr, n uint64) error {
	return s.c.d.err("cuMemcpyDtoDAsync_v2", C.in_cuMemcpyDtoDAsync_v2(s.c.d.t, s.c.h, C.kd_ptr(to), C.kd_ptr(from), C.size_t(n), s.h))
}

// Fill queues n bytes of v.
func (s *Stream) Fill(at kernels.Addr, v byte, n uint64) error {
	return s.c.d.err("cuMemsetD8Async", C.in_cuMemsetD8Async(s.c.d.t, s.c.h, C.kd_ptr(at), C.uchar(v), C.size_t(n), s.h))
}

// Fill32 queues n words of v; at is a multiple of 4.
func (s *Stream) Fill32(at kernels.Addr, v uint32, n uint64) error {
	return s.c.d.err("cuMemsetD32Async", C.in_cuMemsetD32Async(s.c.d.t, s.c.h, C.kd_ptr(at), C.uint(v), C.size_t(n), s.h))
}
