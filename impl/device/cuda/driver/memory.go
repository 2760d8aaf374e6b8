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

// Alloc is device memory, of undefined bytes. Free gives it back.
func (c *Context) Alloc(n uint64) (kernels.Addr, error) {
	var p C.kd_ptr
	err := c.d.err("cuMemAlloc_v2", C.in_cuMemAlloc_v2(c.d.t, c.h, &p, C.size_t(n)))
	return kernels.Addr(p), err
}

// Free gives memory of Alloc back. No work that uses it is queued.
func (c *Context) Free(a kernels.Addr) error {
	return c.d.err("cuMemFree_v2", C.in_cuMemFree_v2(c.d.t, c.h, C.kd_ptr(a)))
}

// WriteSync copies ordinary memory to the device. It may return while the last bytes are on their way, behind no stream's work and before
// none: Sync of the context waits for them. For tests and set-up; Stream.CopyIn is for the rest.
func (c *Context) WriteSync(a kernels.Addr, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	return c.d.err("cuMemcpyHtoD_v2", C.in_cuMemcpyHtoD_v2(c.d.t, c.h, C.kd_ptr(a), unsafe.Pointer(&b[0]), C.size_t(len(b))))
}

// ReadSync copies from the device and waits; not for what is queued in streams.
func (c *Context) ReadSync(b []byte, a kernels.Addr) error {
	if len(b) == 0 {
		return nil
	}
	return c.d.err("cuMemcpyDtoH_v2", C.in_cuMemcpyDtoH_v2(c.d.t, c.h, unsafe.Pointer(&b[0]), C.kd_ptr(a), C.size_t(len(b))))
}

// Pointer is what the driver knows of an address, a serving engine's for example.
func (c *Context) Pointer(a kernels.Addr) (PointerInfo, error) {
	var w [C.KD_POINTER_WORDS]C.uint64_t
	err := c.d.err("cuPointerGetAttributes", C.kd_pointer(c.d.t, c.h, C.kd_ptr(a), &w[0]))
	if err != nil || w[C.KD_MEMORY_TYPE] == 0 {
		return PointerInfo{}, err
	}
	return PointerInfo{
		Known: true, Device: uint32(w[C.KD_MEMORY_TYPE]) == 2, Ordinal: int(int32(w[C.KD_ORDINAL])), Start: uint64(w[C.KD_START]),
		Bytes: uint64(w[C.KD_SIZE]), Buffer: uint64(w[C.KD_BUFFER]), Managed: byte(w[C.KD_MANAGED]) != 0, Mapped: byte(w[C.KD_MAPPED]) != 0,
		IPC: byte(w[C.KD_IPC]) != 0, FD: w[C.KD_HANDLES]&1 != 0,
	}, nil
}

// Export is a name of the allocation of Alloc that begins at a, for another process of this machine.
func (c *Context) Export(a kernels.Addr) (IPCHandle, error) {
	var h C.struct_kd_ipc
	err := c.d.err("cuIpcGetMemHandle", C.in_cuIpcGetMemHandle(c.d.t, c.h, &h, C.kd_ptr(a)))
	return *(*IPCHandle)(unsafe.Pointer(&h)), err
}

// OpenIPC maps an allocation of another process, for reading and writing: there is no way to ask for less. CloseIPC unmaps it. The driver
// counts: a second OpenIPC gives the same address.
func (c *Context) OpenIPC(h IPCHandle) (kernels.Addr, error) {
	var p C.kd_ptr
	err := c.d.err("cuIpcOpenMemHandle_v2", C.in_cuIpcOpenMemHandle_v2(c.d.t, c.h, &p, *(*C.struct_kd_ipc)(unsafe.Pointer(&h)), 0))
	return kernels.Addr(p), err
}

// CloseIPC ends one OpenIPC. The exporting process frees its memory only after it.
func (c *Context) CloseIPC(a kernels.Addr) error {
	return c.d.err("cuIpcCloseMemHandle", C.in_cuIpcCloseMemHandle(c.d.t, c.h, C.kd_ptr(a)))
}

// DMABuf is a file descriptor of the bytes of [a, a+n), for a network card's driver; a and n are multiples of the host's page size. It is the
// caller's to close. Only where AttrDMABuf is 1; mapped memory must have been made with rdma.
func (c *Context) DMABuf(a kernels.Addr, n uint64) (fd int, err error) {
	f := C.int(-1)
	err = c.d.err("cuMemGetHandleForAddressRange", C.in_cuMemGetHandleForAddressRange(c.d.t, c.h, unsafe.Pointer(&f), C.kd_ptr(a), C.size_t(n), 1, 0))
	return int(f), err
}

// SyncMemops makes every synchronous copy of the allocation that holds a wait until it is done, as memory needs that a network card writes
// ("GPUDirect RDMA", docs.nvidia.com/cuda/gpudirect-rdma, on CU_POINTER_ATTRIBUTE_SYNC_MEMOPS).
func (c *Context) SyncMemops(a kernels.Addr) error {
	return c.d.err("cuPointerSetAttribute", C.kd_sync_memops(c.d.t, c.h, C.kd_ptr(a)))
}

// FlushWrites waits until what network cards have written into memory of this context is visible within the scope. Only where AttrFlushWrites
// has FlushHost; needless where AttrWritesOrdering is the scope or more.
func (c *Context) FlushWrites(s Scope) error {
	if s != ToOwner && s != ToAllDevices {
		return fmt.Errorf("%w: a scope of %d", ErrUse, s)
	}
	return c.d.err("cuFlushGPUDirectRDMAWrites", C.in_cuFlushGPUDirectRDMAWrites(c.d.t, c.h, 0, C.int(s)))
}
