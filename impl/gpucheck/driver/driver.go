// Package driver is the part of the CUDA driver's interface that the GPU check needs, opened at run time: memory, kernels, events, graphs, and
// memory shared between processes. It is for one goroutine that keeps its thread, and for checks only: it holds no pools and no pages of an
// engine. Without the tag cuda there is only Open, which refuses. Called by impl/gpucheck. Read next: cuda.go, fake/src/fake.cc.
package driver

import (
	"errors"
	"unsafe"

	"kvfence/kernels"
)

// ErrNotBuilt says that this binary was built without the tag cuda.
var ErrNotBuilt = errors.New("this binary has no CUDA driver in it (tag cuda; make gpu-bundle builds one that has)")

// ErrNoDriver says that there is no driver library, or one that lacks a function.
var ErrNoDriver = errors.New("no CUDA driver")

// ErrCall is wrapped by what a call of the driver was refused with.
var ErrCall = errors.New("the CUDA driver refused")

// Info is the card and its driver.
type Info struct {
	Name         string
	Major, Minor int
	Version      int // of the driver's interface, as 13000
}

// Access is what this process may do with mapped memory.
type Access int

// Kinds of access, with the driver's numbers.
const (
	Read      Access = 1
	ReadWrite Access = 3
)

// Event marks a place in the stream.
type Event struct{ e unsafe.Pointer }

// Graph is a captured run of launches.
type Graph struct{ exec unsafe.Pointer }

// Function is a loaded kernel.
type Function struct{ f unsafe.Pointer }

// Card is the first card, its primary context and one stream. The goroutine that opens it keeps its thread and makes all calls.
type Card interface {
	Info() Info
	// Load is a kernel of an image.
	Load(image []byte, kernel string) (Function, error)
	Alloc(n uint64) (kernels.Addr, error)
	Free(a kernels.Addr) error
	// Write and Read wait until the bytes are there.
	Write(a kernels.Addr, b []byte) error
	Read(a kernels.Addr, b []byte) error
	// Copy, Launch, Record and Replay queue.
	Copy(to, from kernels.Addr, n uint64) error
	Launch(f Function, grid uint32, args []byte) error
	Sync() error
	Event() (Event, error)
	Record(e Event) error
	// Elapsed waits for b and gives the milliseconds between a and b.
	Elapsed(a, b Event) (float64, error)
	// Capture makes a graph of what launches queues.
	Capture(launches func() error) (Graph, error)
	Replay(g Graph) error
	// Export is device memory of at least n bytes that another process can map by the file descriptor, and its whole size.
	Export(n uint64) (at kernels.Addr, size uint64, fd int, err error)
	// Import maps what another process exported.
	Import(fd int, size uint64, access Access) (kernels.Addr, error)
}
