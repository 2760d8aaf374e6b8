//go:build cuda && cgo && linux

package driver

/*
#include "shim.h"
*/
import "C"

import "unsafe"

// Event marks a place in a stream: the last one at which it was recorded.
type Event struct {
	c *Context
	h unsafe.Pointer
}

// NewEvent makes one; with timing, for Elapsed.
func (c *Context) NewEvent(timing bool) (*Event, error) {
	e := &Event{c: c}
	flags := C.uint(2) // CU_EVENT_DISABLE_TIMING
	if timing {
		flags = 0
	}
	if err := c.d.err("cuEventCreate", C.in_cuEventCreate(c.d.t, c.h, &e.h, flags)); err != nil {
		return nil, err
	}
	return e, nil
}

// Destroy lets go of it.
func (e *Event) Destroy() error {
	return e.c.d.err("cuEventDestroy_v2", C.in_cuEventDestroy_v2(e.c.d.t, e.c.h, e.h))
}

// Record queues it: it marks all work of the stream so far.
func (e *Event) Record(s *Stream) error {
	return e.c.d.err("cuEventRecord", C.in_cuEventRecord(e.c.d.t, e.c.h, e.h, s.h))
}

// Query reports whether what it marks is done. It has been recorded.
func (e *Event) Query() (bool, error) {
	return done(e.c.d.err("cuEventQuery", C.in_cuEventQuery(e.c.d.t, e.c.h, e.h)))
}

// Sync waits for what it marks. It has been recorded.
func (e *Event) Sync() error {
	return e.c.d.err("cuEventSynchronize", C.in_cuEventSynchronize(e.c.d.t, e.c.h, e.h))
}

// Elapsed is the milliseconds from one event with timing to a later one. Both are done.
func Elapsed(from, to *Event) (float64, error) {
	var ms C.float
	err := to.c.d.err("cuEventElapsedTime", C.in_cuEventElapsedTime(to.c.d.t, to.c.h, &ms, from.h, to.h))
	return float64(ms), err
}
