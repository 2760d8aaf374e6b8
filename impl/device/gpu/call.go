//go:build cuda && cgo && linux

package gpu

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// caller makes one call of the library at a time and waits for it no longer than a limit: the driver of a sick card can keep a call for ever. A
// goroutine that it keeps is the driver's and ends with its call; there is one at most for each caller. Safe for concurrent use.
type caller struct {
	turn  chan struct{} // holds one token while a call is under way
	at    atomic.Pointer[string]
	limit time.Duration
}

func newCaller(limit time.Duration) *caller {
	return &caller{turn: make(chan struct{}, 1), limit: limit}
}

// step notes which function is asked now, for the error of one that hangs.
func (c *caller) step(name string) { c.at.Store(&name) }

func (c *caller) where() string {
	if s := c.at.Load(); s != nil {
		return *s
	}
	return "a call"
}

// call runs f, which must keep nothing that its caller reads but its result; more is added to the limit.
func call[T any](c *caller, more time.Duration, f func() T) (out T, err error) {
	timer := time.NewTimer(c.limit + more)
	defer timer.Stop()
	select {
	case c.turn <- struct{}{}:
	case <-timer.C:
		return out, fmt.Errorf("%w: %s is still under way after %s", ErrHung, c.where(), c.limit+more)
	}
	done := make(chan T, 1)
	go func() {
		r := f()
		<-c.turn
		done <- r
	}()
	select {
	case out = <-done:
		return out, nil
	case <-timer.C:
		return out, fmt.Errorf("%w: %s did not return in %s", ErrHung, c.where(), c.limit+more)
	}
}

// idle reports whether no call is under way, and takes the turn for good if so.
func (c *caller) idle() bool {
	select {
	case c.turn <- struct{}{}:
		return true
	case <-time.After(c.limit):
		return false
	}
}

// callError is the error of a call that was answered.
type callError struct {
	what string
	ret  nvml.Return
}

// Error implements error.
func (e callError) Error() string {
	return fmt.Sprintf("%s: %s: %s (%d)", ErrCall, e.what, e.ret.Error(), int(e.ret))
}

// Unwrap makes it an ErrCall.
func (e callError) Unwrap() error { return ErrCall }

// failed is nil for success.
func failed(what string, ret nvml.Return) error {
	if ret == nvml.SUCCESS {
		return nil
	}
	return callError{what, ret}
}

// absent reports whether an answer says that the card or the library does not have what was asked for, or does not tell it to this user.
func absent(ret nvml.Return) bool {
	switch ret {
	case nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_FUNCTION_NOT_FOUND, nvml.ERROR_NO_PERMISSION, nvml.ERROR_DEPRECATED, nvml.ERROR_ARGUMENT_VERSION_MISMATCH:
		return true
	}
	return false
}
