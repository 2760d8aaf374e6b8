package gpucheck

import (
	"kvfence/impl/device/cuda/driver"
	"kvfence/kernels"
)

// made is what the card keeps until it is destroyed: an event or a graph.
type made interface{ Destroy() error }

// raw is the first card, its primary context and one stream, without pools: the check's own use of the driver.
type raw interface {
	Info() driver.DeviceInfo
	// Version is of the driver's interface, as 13000.
	Version() int
	// Load keeps a kernel of an image under its name.
	Load(image []byte, kernel string) error
	Alloc(n uint64) (kernels.Addr, error)
	Free(a kernels.Addr) error
	// Write and Read go through pinned memory, in the stream, and wait.
	Write(a kernels.Addr, b []byte) error
	Read(a kernels.Addr, b []byte) error
	// Copy, Launch, Record and Replay queue.
	Copy(to, from kernels.Addr, n uint64) error
	Launch(kernel string, grid uint32, args []byte) error
	Sync() error
	Event() (made, error)
	Record(e made) error
	// Elapsed waits for b and gives the milliseconds between a and b.
	Elapsed(a, b made) (float64, error)
	// Capture makes a graph of what launches queues.
	Capture(launches func() error) (made, error)
	Replay(g made) error
	// Export is device memory of at least n bytes that another process can map by the file descriptor, and its whole size.
	Export(n uint64) (at kernels.Addr, size uint64, fd int, err error)
	// Import maps what another process exported.
	Import(fd int, size uint64, access driver.Access) (kernels.Addr, error)
}
