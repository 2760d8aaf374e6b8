// Package driver is the one place where NVIDIA's driver library is opened: devices, contexts, memory, streams, events, kernels and graphs, each
// call a thin one with a typed error. It holds no pools and knows no pages, it keeps no copy of the driver's state, and it frees nothing by
// itself. Without the tag cuda there is only Open, which refuses. Called by impl/device/cuda and impl/gpucheck. Read next: open.go, shim.h,
// fake/src/fake.h.
//
// Any goroutine may call: see kd_enter in shim.h. Calls that the driver itself allows only from one place at a time (a stream's capture,
// a graph's launches, one Pinned's Free) are the caller's to order.
//
// Numbers, structs and meanings are those of "CUDA Driver API" (docs.nvidia.com/cuda/cuda-driver-api) of CUDA 13.0 and of its header. Nothing here
// has run on a GPU.
package driver

import (
	"embed"
	"errors"
)

// ErrNotBuilt says that this binary was built without the tag cuda.
var ErrNotBuilt = errors.New("this binary has no CUDA driver in it (tag cuda; make native and make gpu-bundle build with it)")

// ErrNoDriver says that there is no driver library, or one that lacks a function.
var ErrNoDriver = errors.New("no CUDA driver")

// ErrCall is wrapped by what a call of the driver was refused with: an *Error.
var ErrCall = errors.New("the CUDA driver refused")

// ErrUse is wrapped where a call was not made, because its arguments do not fit each other or what they name is gone.
var ErrUse = errors.New("the CUDA driver was not called")

// Access is what a device may do with mapped memory.
type Access int

// Kinds of access, with the driver's numbers.
const (
	Read      Access = 1
	ReadWrite Access = 3
)

// Attribute is a number of a device's property.
type Attribute int

// Attributes, with the driver's numbers.
const (
	AttrCanMapHost        Attribute = 19 // host memory in the device's address space
	AttrUnifiedAddressing Attribute = 41 // one address space with the host
	AttrMajor             Attribute = 75 // of the compute capability
	AttrMinor             Attribute = 76
	AttrVMM               Attribute = 102 // Create, Map and what belongs to them
	AttrHandleFD          Attribute = 103 // export as a file descriptor
	AttrRDMAWithVMM       Attribute = 110 // Create with rdma
	AttrRDMA              Attribute = 116 // GPUDirect RDMA
	AttrFlushWrites       Attribute = 117 // bits of FlushHost, FlushMemops
	AttrWritesOrdering    Attribute = 118 // 0, or the Scope within which GPUDirect writes need no flush
	AttrDMABuf            Attribute = 124 // DMABuf
)

// Bits of AttrFlushWrites.
const (
	FlushHost   = 1 // FlushWrites works
	FlushMemops = 2 // the same as an operation of a stream; not used here
)

// Scope is to whom GPUDirect writes become visible.
type Scope int

// Scopes, with the driver's numbers: the owner of the memory, or all devices.
const (
	ToOwner      Scope = 100
	ToAllDevices Scope = 200
)

// DeviceInfo is what does not change of a device.
type DeviceInfo struct {
	Ordinal      int
	Name         string
	Major, Minor int    // compute capability
	PCI          string // as 0000:3b:00.0
	UUID         [16]byte
	Bytes        uint64 // of memory, in use or not
}

// PointerInfo is what the driver knows of an address. Known is false for one that is not its own; the rest is then zero.
type PointerInfo struct {
	Known   bool
	Device  bool // memory of a device; else of the host
	Ordinal int
	Start   uint64 // of the allocation or reservation that holds the address
	Bytes   uint64 // of it
	Buffer  uint64 // an allocation's number in this process, never used twice
	Managed bool   // moves between host and device
	Mapped  bool
	IPC     bool // IPCHandle can name it
	FD      bool // made for export as a file descriptor
}

// ipcBytes is CU_IPC_HANDLE_SIZE.
// ipcBytes is CU_IPC_HANDLE_SIZE.
const ipcBytes = 64

// IPCHandle names an allocation to another process on this machine. Whoever has it can read and write the whole allocation.
type IPCHandle [ipcBytes]byte

// Table is table.h: the functions that are used, with their parameters; a fake driver declares the same.
//
//go:embed table.h
var Table embed.FS
