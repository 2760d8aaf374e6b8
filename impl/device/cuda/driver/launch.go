//go:build cuda && cgo && linux

package driver

/*
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"
)

// Module is a loaded image.
type Module struct {
	c *Context
	h unsafe.Pointer
}

// Function is a kernel of a module, which takes one struct by value, of Bytes bytes.
type Function struct {
	Name  string
	Bytes uint64
	h     unsafe.Pointer
}

// Load loads an image: a cubin, or PTX with a zero byte at its end.
func (c *Context) Load(image []byte) (*Module, error) {
	if len(image) == 0 {
		return nil, fmt.Errorf("%w: an empty image", ErrUse)
	}
	m := &Module{c: c}
	b := C.CBytes(image)
	defer C.free(b)
	if err := c.d.err("cuModuleLoadData", C.in_cuModuleLoadData(c.d.t, c.h, &m.h, b)); err != nil {
		return nil, err
	}
	return m, nil
}

// Unload removes the image. No work that runs its kernels is queued.
func (m *Module) Unload() error {
	return m.c.d.err("cuModuleUnload", C.in_cuModuleUnload(m.c.d.t, m.c.h, m.h))
}

// Function is a kernel. How many bytes it takes is the driver's word.
func (m *Module) Function(name string) (f Function, err error) {
	d, c := m.c.d, m.c.h
	n := C.CString(name)
	defer C.free(unsafe.Pointer(n))
	f.Name = name
	if err := d.err("cuModuleGetFunction", C.in_cuModuleGetFunction(d.t, c, &f.h, m.h, n)); err != nil {
		return Function{}, fmt.Errorf("%s: %w", name, err)
	}
	var offset, bytes C.size_t
	if err := d.err("cuFuncGetParamInfo", C.in_cuFuncGetParamInfo(d.t, c, f.h, 0, &offset, &bytes)); err != nil {
		return Function{}, fmt.Errorf("%s: %w", name, err)
	}
	if f.Bytes = uint64(bytes); offset != 0 || f.Bytes == 0 {
		return Function{}, fmt.Errorf("%w: %s takes %d bytes at %d", ErrUse, name, bytes, offset)
	}
	return f, nil
}

// Launch queues a kernel of grid blocks of block threads. args is the encoding of its struct, copied before Launch returns; one of another size
// than the kernel's is refused here, since the driver would read beyond it or leave the rest out.
func (s *Stream) Launch(f Function, grid, block uint32, args []byte) error {
	if f.h == nil || uint64(len(args)) != f.Bytes {
		return fmt.Errorf("%w: %s takes %d bytes, not %d", ErrUse, f.Name, f.Bytes, len(args))
	}
	return s.c.d.err("cuLaunchKernel", C.kd_launch(s.c.d.t, s.c.h, f.h, C.uint(grid), C.uint(block), s.h, unsafe.Pointer(&args[0])))
}

// Graph is work that was captured once and can be queued many times. Its launches run one after the other, whatever their streams.
type Graph struct {
	c *Context
	h unsafe.Pointer
}

// Capture makes a graph of what queue queues to the stream, none of which happens. queue makes no other calls of the driver: they fail,
// and the capture with them. It runs on a thread of its own, as the driver wants begin and end of a capture on one.
func (s *Stream) Capture(queue func() error) (*Graph, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	d, c := s.c.d, s.c.h
	if err := d.err("cuStreamBeginCapture_v2", C.in_cuStreamBeginCapture_v2(d.t, c, s.h, 1)); err != nil { // of this thread
		return nil, err
	}
	said := queue()
	var template unsafe.Pointer
	if err := d.err("cuStreamEndCapture", C.in_cuStreamEndCapture(d.t, c, s.h, &template)); err != nil || said != nil {
		if template != nil && !Sticky(err) {
			err = errors.Join(err, d.err("cuGraphDestroy", C.in_cuGraphDestroy(d.t, c, template)))
		}
		return nil, errors.Join(said, err)
	}
	g := &Graph{c: s.c}
	err := d.err("cuGraphInstantiateWithFlags", C.in_cuGraphInstantiateWithFlags(d.t, c, &g.h, template, 0))
	if Sticky(err) {
		return nil, err
	}
	gone := d.err("cuGraphDestroy", C.in_cuGraphDestroy(d.t, c, template))
	if err == nil && gone != nil && !Sticky(gone) {
		return nil, errors.Join(gone, g.Destroy())
	}
	if err := errors.Join(err, gone); err != nil {
		return nil, err
	}
	return g, nil
}

// Launch queues the graph's work.
func (g *Graph) Launch(s *Stream) error {
	return g.c.d.err("cuGraphLaunch", C.in_cuGraphLaunch(g.c.d.t, g.c.h, g.h, s.h))
}

// Destroy lets go of it. Launches that are queued are done all the same.
func (g *Graph) Destroy() error {
	return g.c.d.err("cuGraphExecDestroy", C.in_cuGraphExecDestroy(g.c.d.t, g.c.h, g.h))
}
