// Package chaos holds the tests that run the real binary: separate processes for prefill nodes, decode nodes and the gateway,
// over tcp and shm, while processes are killed, paused and resumed, links are cut and clients go away. Its oracle is the
// reference model run alone in the test: every 200 must equal it token for token, every failure must name its cause, and in
// the end every page must be free. It has no code of its own besides tests; build tag "chaos". Called by `make test`, `make
// test-long` and `make soak`.
//
// Environment: KVFENCE_SEED repeats a run's choices (not the machine's timing), KVFENCE_CHAOS_SECONDS sets how long each storm
// lasts, KVFENCE_CHAOS_LONG=1 runs the storms over every shape, KVFENCE_SOAK_SECONDS is the soak's length, KVFENCE_CHAOS_DIR keeps
// logs and traces of all nodes, KVFENCE_CHAOS_BINARY is a binary to run in place of one that is built here.
// Over RDMA (verbs_test.go) the suite runs in the machine of impl/rig, which names its devices in the environment.
// Read next: chaos_test.go, then storm_test.go, link_test.go (faults), judge_test.go (the oracle), cluster_test.go.
package chaos
