// Package side times one-sided writes side by side in the rig (build tags verbs and rig): impl/transport/verbs as a node uses it, in two
// processes; ib_write_bw of perftest; and ucp_put_bw of UCX's own ucx_perftest. They take turns, so that what the machine does besides meets all of
// them. Soft RoCE is emulated in an emulated machine: a ratio says what a library costs, a rate says nothing about an adapter.
//
// Called by impl/cmd/rdma -bench. Read next: side_test.go (the rounds), ours_test.go, others_test.go.
package side
