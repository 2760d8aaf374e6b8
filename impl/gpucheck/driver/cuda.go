//go:build cuda && cgo && linux

package driver

/*
#cgo linux LDFLAGS: -ldl
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"fmt"
	"unsafe"

	"kvfence/kernels"
)

// card implements Card with the driver's calls.
type card struct {
	t    *C.struct_kd_table
	info Info
}

// Open loads the library at path, or libcuda.so.1, and takes its first card.
func Open(path string) (Card, error) {
	if path == "" {
		path = "libcuda.so.1"
	}
	d := &card{t: (*C.struct_kd_table)(C.calloc(1, C.sizeof_struct_kd_table))}
	p := C.CString(path)
	defer C.free(unsafe.Pointer(p))
	if missing := C.kd_open(d.t, p); missing != nil {
		return nil, fmt.Errorf("%w: %s", ErrNoDriver, C.GoString(missing))
	}
	var name [256]C.char
	var major, minor, version C.int
	if err := d.call("start", C.kd_start(d.t, &name[0], 256, &major, &minor, &version)); err != nil {
		return nil, err
	}
	d.info = Info{C.GoString(&name[0]), int(major), int(minor), int(version)}
	return d, nil
}

// Info is what Open found.
func (d *card) Info() Info { return d.info }

func (d *card) call(what string, code C.int) error {
	if code == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s: %s (%d)", ErrCall, what, C.GoString(C.kd_error(d.t, code)), int(code))
}

// Load is a kernel of an image.
func (d *card) Load(image []byte, kernel string) (f Function, err error) {
	k := C.CString(kernel)
	defer C.free(unsafe.Pointer(k))
	b := C.CBytes(image)
	defer C.free(b)
	return f, d.call("load "+kernel, C.kd_load(d.t, b, k, &f.f))
}

// Alloc is device memory.
func (d *card) Alloc(n uint64) (kernels.Addr, error) {
	var p C.kd_ptr
	err := d.call("allocate", C.kd_alloc(d.t, &p, C.size_t(n)))
	return kernels.Addr(p), err
}

// Free gives it back.
func (d *card) Free(a kernels.Addr) error { return d.call("free", C.kd_free(d.t, C.kd_ptr(a))) }

// Write copies to the device and waits.
func (d *card) Write(a kernels.Addr, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	return d.call("write", C.kd_write(d.t, C.kd_ptr(a), unsafe.Pointer(&b[0]), C.size_t(len(b))))
}

// Read copies from the device and waits.
func (d *card) Read(a kernels.Addr, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	return d.call("read", C.kd_read(d.t, unsafe.Pointer(&b[0]), C.kd_ptr(a), C.size_t(len(b))))
}

// Copy queues a copy within the device.
func (d *card) Copy(to, from kernels.Addr, n uint64) error {
	return d.call("copy", C.kd_copy(d.t, C.kd_ptr(to), C.kd_ptr(from), C.size_t(n)))
}

// Launch queues a kernel; args is the encoding of its struct.
func (d *card) Launch(f Function, grid uint32, args []byte) error {
	return d.call("launch", C.kd_launch(d.t, f.f, C.uint(grid), kernels.Threads, unsafe.Pointer(&args[0])))
}

// Sync waits for the stream.
func (d *card) Sync() error { return d.call("wait", C.kd_sync(d.t)) }

// Event makes one.
func (d *card) Event() (e Event, err error) { return e, d.call("event", C.kd_event(d.t, &e.e)) }

// Record queues it.
func (d *card) Record(e Event) error { return d.call("record", C.kd_record(d.t, e.e)) }

// Elapsed waits for b and gives the milliseconds between a and b.
func (d *card) Elapsed(a, b Event) (float64, error) {
	var ms C.float
	err := d.call("elapsed", C.kd_elapsed(d.t, a.e, b.e, &ms))
	return float64(ms), err
}

// Capture makes a graph of what launches queues.
func (d *card) Capture(launches func() error) (g Graph, err error) {
	if err := d.call("capture", C.kd_capture(d.t)); err != nil {
		return g, err
	}
	said := launches()
	if err := d.call("end of capture", C.kd_captured(d.t, &g.exec)); err != nil {
		return g, err
	}
	return g, said
}

// Replay queues a graph.
func (d *card) Replay(g Graph) error { return d.call("replay", C.kd_replay(d.t, g.exec)) }

// Export is device memory of at least n bytes that another process can map by the file descriptor, and its whole size.
func (d *card) Export(n uint64) (at kernels.Addr, size uint64, fd int, err error) {
	var p C.kd_ptr
	var f C.int = -1
	s := C.size_t(n)
	err = d.call("export", C.kd_export(d.t, &s, &p, &f))
	return kernels.Addr(p), uint64(s), int(f), err
}

// Import maps what another process exported.
func (d *card) Import(fd int, size uint64, access Access) (kernels.Addr, error) {
	var p C.kd_ptr
	err := d.call("import", C.kd_import(d.t, C.int(fd), C.size_t(size), C.int(access), &p))
	return kernels.Addr(p), err
}
