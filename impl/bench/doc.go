//go:build linux

// Package bench measures how fast pages travel, beside what the machine can do. It runs a prefill rank and a decode rank as they
// run in production (node.PrefillRig, node.DecodeRig: machine, loop, workers, control link, transport) in two processes, plays
// their leaders, and times each request from "grant in hand, pages sealed" at prefill to "verified" at decode, by the clock that
// both processes of one host share (CLOCK_MONOTONIC). In the same rounds, in shuffled order, it times
//
//	bare movers   the best mover without guards that we know: the same calls and sizes, no grant table, tag, notice or manifest
//	Go streams    one stream of the same bytes over net.Conn or crypto/tls
//	C references  a stream, and memcpy plain and with non-temporal stores, compiled at run time (ref/*.c) if there is a compiler
//
// The movers without guards live here only: production has no such switches. What is compared, and how the interval of a ratio
// is made, is in suite.go and stats.go. Called by impl/cmd/kvfence; it prints nothing but its report.
// Read next: suite.go, guarded.go (decode, and the order of one request), source.go (prefill, the second process).
package bench
