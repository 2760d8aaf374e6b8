package driver

import (
	"errors"
	"fmt"
)

// Code is a CUresult.
type Code int

// Codes that callers tell apart.
const (
	InvalidValue       Code = 1
	OutOfMemory        Code = 2
	InvalidContext     Code = 201
	ECCUncorrectable   Code = 214
	InvalidHandle      Code = 400
	NotFound           Code = 500
	NotReady           Code = 600
	IllegalAddress     Code = 700
	LaunchFailed       Code = 719
	NotSupported       Code = 801
	CaptureUnsupported Code = 900
	CaptureInvalidated Code = 901
)

// Error is what a call was refused with.
type Error struct {
	Call string // the driver's function
	Code Code
	Name string // of the code, as CUDA_ERROR_ILLEGAL_ADDRESS
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("%v: %s: %s (%d)", ErrCall, e.Call, e.Name, int(e.Code))
}

// Unwrap makes each an ErrCall.
func (e *Error) Unwrap() error { return ErrCall }

// Sticky: see Code.Sticky.
func (e *Error) Sticky() bool { return e.Code.Sticky() }

// Sticky reports whether an error is, or wraps, an *Error after which its device is of no more use to this process.
func Sticky(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Sticky()
}

// Sticky reports whether work that was queued may be lost, or may still happen, and every later call may fail. Such a device must not be
// trusted again in this process.
func (c Code) Sticky() bool { return c.inconsistent() || c.doubtful() }

// inconsistent are the codes whose description (CUDA Driver API, CUresult) says that the process is left in an inconsistent state or must be
// terminated, or that the context cannot be used any more. header_test.go compares them with the header.
func (c Code) inconsistent() bool {
	switch c {
	case 226, // CONTAINED: an exception that the device's error containment has caught
		IllegalAddress,
		702, // LAUNCH_TIMEOUT
		710, // ASSERT: the context cannot be used anymore
		714, // HARDWARE_STACK_ERROR
		715, // ILLEGAL_INSTRUCTION
		716, // MISALIGNED_ADDRESS
		717, // INVALID_ADDRESS_SPACE
		718, // INVALID_PC
		LaunchFailed,
		721, // TENSOR_MEMORY_LEAK
		810, // MPS_CLIENT_TERMINATED
		911: // EXTERNAL_DEVICE
		return true
	}
	return false
}

// doubtful are codes whose description does not say so much. They speak of memory or links that have failed, or of a driver or context that is
// gone: nothing that was queued can be awaited after them. Taking them as sticky is this package's choice, the safe one.
func (c Code) doubtful() bool {
	switch c {
	case 4, // DEINITIALIZED
		46,  // DEVICE_UNAVAILABLE
		100, // NO_DEVICE
		ECCUncorrectable,
		220,           // NVLINK_UNCORRECTABLE
		709,           // CONTEXT_IS_DESTROYED
		802,           // SYSTEM_NOT_READY
		805, 806, 807, // MPS: the connection, a call to, or a fatal failure of its server
		999: // UNKNOWN
		return true
	}
	return false
}
