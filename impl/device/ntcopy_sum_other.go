//go:build !amd64

package device

const sumUnit = 4 * DigestChunk

func canFuse() bool { return false }

// fusedUnits is never called where canFuse is false.
func fusedUnits([]byte, []byte, int, func(uint64)) {}
