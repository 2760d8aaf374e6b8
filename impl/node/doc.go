// Package node is the driver: it gives the four machines of impl/core a clock, sockets, memory and goroutines, feeds them events
// and carries out their actions. One side (a leader and all ranks of that side) lives in one process with one event loop; each
// rank has its own pool, incarnation, control links and data streams.
//
// It decides nothing of the protocol: which page may be used, what is an answer, when a hold ends is impl/core's. It is the only
// package (with cmd) that reads a clock or draws randomness.
//
// Called by impl/cmd/kvfence and by tests. Read next: node.go (start and end), loop.go, then decode.go and prefill.go (actions).
package node
