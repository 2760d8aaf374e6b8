//go:build cuda && cgo && linux

package driver

/*
#include "shim.h"
*/
import "C"

import (
	"errors"
	"fmt"

	"kvfence/kernels"
)

// Shared is device memory that several processes can map: made by Create, or by Import from a file descriptor of another process. One mapping,
// at At. Close unmaps it; the memory itself goes when no process holds or maps it.
type Shared struct {
	At    kernels.Addr
	Bytes uint64
	c     *Context
	h     C.kd_memory
	// What of it exists, for a Close after a part was made or undone.
	held, reserved, mapped bool
}

// Granularity is what sizes of Create are rounded up to.
func (c *Context) Granularity(rdma bool) (uint64, error) {
	var n C.size_t
	err := c.d.err("cuMemGetAllocationGranularity", C.kd_granularity(c.d.t, c.h, C.int(c.dev.Ordinal), flag(rdma), &n))
	return uint64(n), err
}

// Create is memory of at least n bytes, mapped for reading and writing; with rdma, for network cards too (AttrRDMAWithVMM).
func (c *Context) Create(n uint64, rdma bool) (*Shared, error) {
	g, err := c.Granularity(rdma)
	if err != nil {
		return nil, err
	}
	if n == 0 || g == 0 || n > ^uint64(0)-g {
		return nil, fmt.Errorf("%w: memory of %d bytes in units of %d", ErrUse, n, g)
	}
	s := &Shared{c: c, Bytes: (n + g - 1) / g * g}
	if err := c.d.err("cuMemCreate", C.kd_create(c.d.t, c.h, C.int(c.dev.Ordinal), flag(rdma), C.size_t(s.Bytes), &s.h)); err != nil {
		return nil, err
	}
	return s.placed(ReadWrite)
}

// Import maps n bytes, the whole size, of what another process exported. The access is this process's own word: it keeps it from
// writing by mistake. The file descriptor stays the caller's.
func (c *Context) Import(fd int, n uint64, access Access) (*Shared, error) {
	s := &Shared{c: c, Bytes: n}
	if err := c.d.err("cuMemImportFromShareableHandle", C.kd_import(c.d.t, c.h, C.int(fd), &s.h)); err != nil {
		return nil, err
	}
	return s.placed(access)
}

// placed reserves addresses, maps there and sets the access, or undoes what it did.
func (s *Shared) placed(access Access) (*Shared, error) {
	s.held = true
	if err := s.place(access); err != nil {
		if Sticky(err) {
			return nil, err // nothing can be undone any more
		}
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Shared) place(access Access) error {
	d, c, n := s.c.d, s.c.h, C.size_t(s.Bytes)
	var p C.kd_ptr
	if err := d.err("cuMemAddressReserve", C.in_cuMemAddressReserve(d.t, c, &p, n, 0, 0, 0)); err != nil {
		return err
	}
	s.At, s.reserved = kernels.Addr(p), true
	if err := d.err("cuMemMap", C.in_cuMemMap(d.t, c, p, n, 0, s.h, 0)); err != nil {
		return err
	}
	s.mapped = true
	return d.err("cuMemSetAccess", C.kd_set_access(d.t, c, C.int(s.c.dev.Ordinal), p, n, C.int(access)))
}

// ExportFD is a file descriptor that names the memory to another process, for reading and writing. It is the caller's to close.
func (s *Shared) ExportFD() (int, error) {
	fd := C.int(-1)
	err := s.c.d.err("cuMemExportToShareableHandle", C.kd_export(s.c.d.t, s.c.h, s.h, &fd))
	return int(fd), err
}

// Close unmaps the memory, gives its addresses back and lets go of it. No work that uses it is queued. After an error what is left can be
// closed again.
func (s *Shared) Close() error {
	d, c, p, n := s.c.d, s.c.h, C.kd_ptr(s.At), C.size_t(s.Bytes)
	if s.mapped {
		if err := d.err("cuMemUnmap", C.in_cuMemUnmap(d.t, c, p, n)); err != nil {
			return err
		}
		s.mapped = false
	}
	if s.reserved {
		if err := d.err("cuMemAddressFree", C.in_cuMemAddressFree(d.t, c, p, n)); err != nil {
			return err
		}
		s.reserved = false
	}
	if s.held {
		if err := d.err("cuMemRelease", C.in_cuMemRelease(d.t, c, s.h)); err != nil {
			return err
		}
		s.held = false
	}
	return nil
}

func flag(b bool) C.int {
	if b {
		return 1
	}
	return 0
}
