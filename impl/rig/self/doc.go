// Package self is what the rig shows about itself, in its machine (build tag rig): its devices are there, a queue pair of libibverbs'
// own example reaches another, and tests that fail, skip or hang are planted, which impl/cmd/rdma must refuse. It tests nothing of kvfence.
//
// Called by impl/cmd/rdma. Read next: self_test.go.
package self
