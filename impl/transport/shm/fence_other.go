//go:build linux && !amd64

package shm

import "sync/atomic"

// loadFence orders the loads before it with the loads after it, by an atomic exchange. Assumed, not measured: only amd64 is tested.
//
//go:noinline
func loadFence() {
	var x atomic.Uint64
	x.Swap(1)
}
