package device

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

//go:noescape
func nt512(dst, src *byte, n int)

//go:noescape
func nt512x4(dst, src *byte, n int)

//go:noescape
func nt256(dst, src *byte, n int)

// wideBlock is the unit of nt512x4.
const wideBlock = 16 << 10

// stream512 copies whole 16 KiB blocks four runs at a time, and the rest in one run.
func stream512(dst, src *byte, n int) {
	wide := n &^ (wideBlock - 1)
	if wide > 0 {
		nt512x4(dst, src, wide)
	}
	if n > wide {
		nt512((*byte)(unsafe.Add(unsafe.Pointer(dst), wide)), (*byte)(unsafe.Add(unsafe.Pointer(src), wide)), n-wide)
	}
}

// streams are the ways that this processor has, best first; the last is plain copy.
func streams() (all []stream) {
	if cpu.X86.HasAVX512F {
		all = append(all, stream{"avx512", stream512})
	}
	if cpu.X86.HasAVX2 {
		all = append(all, stream{"avx2", nt256})
	}
	return append(all, stream{"copy", nil})
}

func pickStream() stream { return streams()[0] }

// misalign is how many bytes lie before the first aligned one of b.
func misalign(b []byte) int {
	return int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & (streamAlign - 1))
}
