//go:build cuda && cgo && linux

package driver

/*
#include "shim.h"
*/
import "C"

import (
	"fmt"
	"unsafe"

	"kvfence/kernels"
)

// Pinned is host memory that does not move and that the device reaches at At. While work that writes it is queued the host neither reads
// nor writes it; while work that reads it is queued the host does not write it.
type Pinned struct {
	At    kernels.Addr
	c     *Context
	host  unsafe.Pointer
	n     uint64
	taken bool // the memory is another's: Free lets go of it only
}

const (
	portable  = 1 // pinned for all contexts
	deviceMap = 2 // in the device's address space
)

// HostAlloc is pinned memory of n bytes.
func (c *Context) HostAlloc(n uint64) (*Pinned, error) {
	p := &Pinned{c: c, n: n}
	if err := c.d.err("cuMemHostAlloc", C.in_cuMemHostAlloc(c.d.t, c.h, &p.host, C.size_t(n), portable|deviceMap)); err != nil {
		return nil, err
	}
	return p.reached()
}

// HostRegister pins memory that is there: of a mapping of its own, outside of Go's heap, which stays until after Free.
func (c *Context) HostRegister(b []byte) (*Pinned, error) {
	if len(b) == 0 {
		return nil, fmt.Errorf("%w: no memory to pin", ErrUse)
	}
	p := &Pinned{c: c, n: uint64(len(b)), host: unsafe.Pointer(&b[0]), taken: true}
	if err := c.d.err("cuMemHostRegister_v2", C.in_cuMemHostRegister_v2(c.d.t, c.h, p.host, C.size_t(p.n), portable|deviceMap)); err != nil {
		return nil, err
	}
	return p.reached()
}

func (p *Pinned) reached() (*Pinned, error) {
	var at C.kd_ptr
	err := p.c.d.err("cuMemHostGetDevicePointer_v2", C.in_cuMemHostGetDevicePointer_v2(p.c.d.t, p.c.h, &at, p.host, 0))
	if err != nil {
		if !Sticky(err) {
			_ = p.Free() // the first error says more
		}
		return nil, err
	}
	p.At = kernels.Addr(at)
	return p, nil
}

// Bytes is the memory; nil after Free.
func (p *Pinned) Bytes() []byte {
	if p.host == nil {
		return nil
	}
	return unsafe.Slice((*byte)(p.host), p.n)
}

// Free gives the memory back. No work that uses it is queued, and no slice of Bytes is used after.
func (p *Pinned) Free() error {
	if p.host == nil {
		return fmt.Errorf("%w: pinned memory that was freed", ErrUse)
	}
	var err error
	if p.taken {
		err = p.c.d.err("cuMemHostUnregister", C.in_cuMemHostUnregister(p.c.d.t, p.c.h, p.host))
	} else {
		err = p.c.d.err("cuMemFreeHost", C.in_cuMemFreeHost(p.c.d.t, p.c.h, p.host))
	}
	if err == nil {
		p.host, p.n = nil, 0
	}
	return err
}

// run is the address of n bytes from offset.
func (p *Pinned) run(offset, n uint64) (unsafe.Pointer, error) {
	if p.host == nil || offset > p.n || n > p.n-offset {
		return nil, fmt.Errorf("%w: bytes %d to %d of pinned memory of %d", ErrUse, offset, offset+n, p.n)
	}
	return unsafe.Add(p.host, offset), nil
}
