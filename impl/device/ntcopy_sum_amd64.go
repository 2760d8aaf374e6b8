package device

import (
	"math/bits"
	"unsafe"

	"golang.org/x/sys/cpu"
)

//go:noescape
func ntsum512(accs *[8]uint64, dst, src *byte, units int, secret, start *byte)

// xxh3Secret is XXH3's default secret as little-endian words; xxh3Start is what each hash's accumulators begin with. Both are
// constants of the format, and never written.
var (
	xxh3Secret = [24]uint64{
		0xbe4ba423396cfeb8, 0x1cad21f72c81017c, 0xdb979083e96dd4de, 0x1f67b3b7a4a44072, 0x78e5c0cc4ee679cb, 0x2172ffcc7dd05a82,
		0x8e2443f7744608b8, 0x4c263a81e69035e0, 0xcb00c391bb52283c, 0xa32e531b8b65d088, 0x4ef90da297486471, 0xd8acdea946ef1938,
		0x3f349ce33f76faa8, 0x1d4f0bc7c7bbdcf9, 0x3159b4cd4be0518a, 0x647378d9c97e9fc8, 0xc3ebd33483acc5ea, 0xeb6313faffa081c5,
		0x49daf0b751dd0d17, 0x9e68d429265516d3, 0xfca1477d58be162b, 0xce31d07ad1b8f88f, 0x280416958f3acb45, 0x7e404bbbcafbd7af,
	}
	xxh3Start = [8]uint64{
		3266489917, 11400714785074694791, 14029467366897019727, 1609587929392839161,
		9650029242287828579, 2246822519, 2870177450012600261, 2654435761,
	}
)

// sumUnit is what ntsum512 takes at once; sumUnits the units of one call, so that the accumulators stay small.
const (
	sumUnit  = 4 * DigestChunk
	sumUnits = 16
)

// fusedUnits copies units * sumUnit bytes past the cache and gives the value of each digest chunk, in order.
func fusedUnits(dst, src []byte, units int, value func(uint64)) {
	var accs [4 * sumUnits][8]uint64
	for units > 0 {
		k := min(units, sumUnits)
		ntsum512(&accs[0], unsafe.SliceData(dst), unsafe.SliceData(src), k, (*byte)(unsafe.Pointer(&xxh3Secret)), (*byte)(unsafe.Pointer(&xxh3Start)))
		for i := range 4 * k {
			value(xxh3Merge(&accs[i]))
		}
		dst, src, units = dst[k*sumUnit:], src[k*sumUnit:], units-k
	}
}

// canFuse reports whether fusedUnits may be used here.
func canFuse() bool { return cpu.X86.HasAVX512F }

// xxh3Merge ends the hash of one chunk of DigestChunk bytes.
func xxh3Merge(acc *[8]uint64) uint64 {
	const prime1, avalanche = 11400714785074694791, 0x165667919e3779f9
	h := uint64(DigestChunk)
	h *= prime1
	for i := range 4 {
		hi, lo := bits.Mul64(acc[2*i]^secretAt(11+16*i), acc[2*i+1]^secretAt(19+16*i))
		h += hi ^ lo
	}
	h ^= h >> 37
	h *= avalanche
	return h ^ h>>32
}

// secretAt is the word at byte offset off of the secret.
func secretAt(off int) uint64 {
	return *(*uint64)(unsafe.Add(unsafe.Pointer(&xxh3Secret), off))
}
