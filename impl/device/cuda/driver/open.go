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
)

// Driver is an opened library. It stays open: the driver has threads of its own.
type Driver struct {
	t       *C.struct_kd_table
	version int
	devices int
}

// Open loads the library at path, or libcuda.so.1, finds every function, and counts the devices. No device is touched.
func Open(path string) (*Driver, error) {
	if path == "" {
		path = "libcuda.so.1"
	}
	d := &Driver{t: (*C.struct_kd_table)(C.calloc(1, C.sizeof_struct_kd_table))}
	p := C.CString(path)
	defer C.free(unsafe.Pointer(p))
	if missing := C.kd_open(d.t, p); missing != nil {
		return nil, fmt.Errorf("%w: %s", ErrNoDriver, C.GoString(missing))
	}
	var version, n C.int
	if err := d.err("cuInit", C.kd_cuInit(d.t, 0)); err != nil {
		return nil, err
	}
	if err := d.err("cuDriverGetVersion", C.kd_cuDriverGetVersion(d.t, &version)); err != nil {
		return nil, err
	}
	if err := d.err("cuDeviceGetCount", C.kd_cuDeviceGetCount(d.t, &n)); err != nil {
		return nil, err
	}
	d.version, d.devices = int(version), int(n)
	return d, nil
}

// Version is of the driver's interface, as 13000.
func (d *Driver) Version() int { return d.version }

// Devices is how many there are.
func (d *Driver) Devices() int { return d.devices }

func (d *Driver) err(call string, code C.int) error {
	if code == 0 {
		return nil
	}
	return &Error{call, Code(code), C.GoString(C.kd_name(d.t, code))}
}

// Device is one device.
type Device struct {
	d *Driver
	h C.int
	DeviceInfo
}

// Device is the one with this ordinal, from 0.
func (d *Driver) Device(ordinal int) (*Device, error) {
	v := &Device{d: d, DeviceInfo: DeviceInfo{Ordinal: ordinal}}
	if err := d.err("cuDeviceGet", C.kd_cuDeviceGet(d.t, &v.h, C.int(ordinal))); err != nil {
		return nil, err
	}
	var name [256]C.char
	if err := d.err("cuDeviceGetName", C.kd_cuDeviceGetName(d.t, &name[0], C.int(len(name)), v.h)); err != nil {
		return nil, err
	}
	var pci [32]C.char
	if err := d.err("cuDeviceGetPCIBusId", C.kd_cuDeviceGetPCIBusId(d.t, &pci[0], C.int(len(pci)), v.h)); err != nil {
		return nil, err
	}
	var uuid C.struct_kd_uuid
	if err := d.err("cuDeviceGetUuid_v2", C.kd_cuDeviceGetUuid_v2(d.t, &uuid, v.h)); err != nil {
		return nil, err
	}
	var bytes C.size_t
	if err := d.err("cuDeviceTotalMem_v2", C.kd_cuDeviceTotalMem_v2(d.t, &bytes, v.h)); err != nil {
		return nil, err
	}
	v.Name, v.PCI, v.Bytes = C.GoString(&name[0]), C.GoString(&pci[0]), uint64(bytes)
	for i, b := range uuid.bytes {
		v.UUID[i] = byte(b)
	}
	var err error
	if v.Major, err = v.Attribute(AttrMajor); err != nil {
		return nil, err
	}
	v.Minor, err = v.Attribute(AttrMinor)
	return v, err
}

// Attribute is a property; 0 is "no" for those that are questions.
func (v *Device) Attribute(a Attribute) (int, error) {
	var n C.int
	err := v.d.err("cuDeviceGetAttribute", C.kd_cuDeviceGetAttribute(v.d.t, &n, C.int(a), v.h))
	return int(n), err
}

// Context is a device's primary context, the one that a serving engine in this process uses too. Each call here makes it the thread's
// current one for as long as the call takes.
type Context struct {
	d   *Driver
	dev *Device
	h   unsafe.Pointer
}

// Retain holds the primary context, which is made if nobody else holds it. Release gives it back.
func (v *Device) Retain() (*Context, error) {
	c := &Context{d: v.d, dev: v}
	err := v.d.err("cuDevicePrimaryCtxRetain", C.kd_cuDevicePrimaryCtxRetain(v.d.t, &c.h, v.h))
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Release gives the context back. What was made in it must be gone; nothing of it is used after.
func (c *Context) Release() error {
	return c.d.err("cuDevicePrimaryCtxRelease_v2", C.kd_cuDevicePrimaryCtxRelease_v2(c.d.t, c.dev.h))
}

// Device is the context's.
func (c *Context) Device() *Device { return c.dev }

// Sync waits for all work of all streams.
func (c *Context) Sync() error {
	return c.d.err("cuCtxSynchronize", C.in_cuCtxSynchronize(c.d.t, c.h))
}

// Memory is how much of the device's memory is free, of how much.
func (c *Context) Memory() (free, total uint64, err error) {
	var f, t C.size_t
	err = c.d.err("cuMemGetInfo_v2", C.in_cuMemGetInfo_v2(c.d.t, c.h, &f, &t))
	return uint64(f), uint64(t), err
}
