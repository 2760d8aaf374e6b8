//go:build verbs && rig

package verbs

// #include "shim.h"
import "C"

// What tests need of cgo, which test files cannot use: requests that no writer of this package makes.

// rawWrite writes n bytes from the start of the source's KV pool to any address with any key.
func rawWrite(s *source, remote uint64, key uint32, n int) func(*batch, int) (bool, error) {
	return rawRequest(s, C.KV_WRITE, remote, key, n)
}

// rawRead reads n bytes into the start of the source's KV pool.
func rawRead(s *source, remote uint64, key uint32, n int) func(*batch, int) (bool, error) {
	return rawRequest(s, C.KV_READ, remote, key, n)
}

func rawRequest(s *source, op C.uint8_t, remote uint64, key uint32, n int) func(*batch, int) (bool, error) {
	return func(b *batch, _ int) (bool, error) {
		w := b.add(op)
		w.remote, w.key = C.uint64_t(remote), C.uint32_t(key)
		b.piece(w, addressOf(s.a.mem[0].Bytes), uint32(n), s.a.rails[0].pools[0].pages.local())
		return true, nil
	}
}

// qpn is a queue pair's number.
func qpn(q *queue) uint32 { return uint32(C.kv_qpn(q.qp)) }
