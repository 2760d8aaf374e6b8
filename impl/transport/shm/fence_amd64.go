//go:build linux

package shm

// loadFence orders the loads before it with the loads after it: amd64 does so by itself, and the compiler moves no load over a call
// that it cannot see into.
//
//go:noinline
func loadFence() {}
