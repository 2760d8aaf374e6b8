// Package rig is a machine with RDMA for tests, where none is: Debian's kernel under QEMU, by software emulation, with soft RoCE devices
// (rdma_rxe) on interfaces that lead nowhere. The host's files are there to read, one folder to write, and no network.
//
// It shows semantics, never speed: two queue pairs talk through one driver's loop, no packet meets a wire. What a
// real adapter does beyond that is assumed, and docs/how-it-is-checked.md says so.
//
// Called by impl/cmd/rdma. Read next: kernel.go (what it is made of), vm.go (how it runs), results.go (what counts).
package rig
