// Package chaos holds the tests that run the real binary: separate processes for prefill nodes, decode nodes and the gateway,
// over tcp and shm, while processes are killed, paused and resumed, links are cut and clients go away. Its oracle is the
// reference model run alone in the test: every 200 must equal it token for token, every failure must name its cause, and in
// the end every page must be free. It has no code of its own besides tests; build tag "chaos".
// Read next: chaos_test.go, then cluster_test.go.
package chaos
